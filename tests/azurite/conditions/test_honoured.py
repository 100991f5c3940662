"""Every (command, condition) of blobs, containers and queues that the service honours.

What fails, what holds, and what is sent.

The pairs, and the answers to them, come from the evidence in tests/data/semantics.yaml, never from the table under
test. Where the emulator is known to answer otherwise than the live service (``SCRIPTED``), the refusal is scripted.
"""

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError

from azguard.emulators.azurite_process import Azurite
from tests.support.cli_world import CliWorld, Ran
from tests.support.command_tree import command_at
from tests.support.condition_stage import LEASE, OTHER_LEASE, VALUES, Sent, Stage, find_flaws
from tests.support.evidence import EXPECTED, HEADERS, ROWS, answer_to, failures
from tests.support.queue_stage import QueueStage
from tests.support.scenarios import NO_COMMAND, PLAYED, SCENARIOS, SCRIPTED, Scenario
from tests.support.staging import staged
from tests.system.test_refused_conditions import REMOTE

_HEADERS = {**{flag: header.lower() for flag, header in HEADERS.items()}, "--lease-id": "x-ms-lease-id"}
# The header that names the version of the destination, and that of a source.
_VERSIONS = ("if-match", "x-ms-source-if-match")
WALKED = sorted(name for name in EXPECTED if name.startswith(("blob.", "container.", "queue.")))


@dataclass(frozen=True)
class Case:
    """One condition of one scenario, with the value ``*`` or with one of its own."""

    scenario: Scenario
    flag: str
    star: bool = False

    def values(self, subject: Any) -> tuple[str, str]:
        """Return a value that holds for what the condition is about, and one that fails."""
        if self.star:
            return "*", "*"
        holds, fails = VALUES[self.flag.replace("--source-", "--")]
        return holds(subject), fails(subject)

    def find_subject(self, stage: Stage) -> Any:
        """Return what the condition is about; without a version where nothing is."""
        try:
            return stage.subject(source=self.flag.startswith("--source-"))
        except ResourceNotFoundError:
            return SimpleNamespace(etag=None)

    @property
    def beside(self) -> tuple[str, ...]:
        """Return what a condition on a source needs beside it, since it says nothing of the destination."""
        return self.scenario.anyhow if self.flag.startswith("--source-") else ()

    @property
    def refusal(self) -> str:
        """Return how the live service answers when it fails."""
        return answer_to(self.scenario.operation, self.flag, "*" if self.star else "")

    @property
    def script(self) -> str | None:
        """Return why the refusal has to be scripted: what the emulator does instead."""
        known = SCRIPTED.get((self.scenario.operation, f"{self.flag} *" if self.star else self.flag))
        return known or (self.scenario.elsewhere or None)

    @property
    def creates_only(self) -> bool:
        """Return whether it requires that nothing is there."""
        return self.star and self.flag == "--if-none-match"

    @property
    def requires_something(self) -> bool:
        """Return whether it requires that something is there, whatever it is."""
        return self.star and self.flag == "--if-match"

    @property
    def has_known_refusal(self) -> bool:
        """Return whether the evidence says how it fails: of If-Match: * where nothing is, only for some writes."""
        return not self.requires_something or (self.script is not None and not self.scenario.answer)

    def __str__(self) -> str:
        return f"{self.scenario} {self.flag}{' *' if self.star else ''}"


CASES = [
    Case(scenario, flag, star)
    for scenario in SCENARIOS
    if scenario.answer or not scenario.elsewhere
    for flag in HEADERS
    for star in (False, True)
    if flag in (scenario.expected.wildcards if star else scenario.expected.honours)
    # A snapshot that is restored goes with its blob.
    if not (star and flag == "--if-none-match" and "snapshot" in scenario.before)
]
LEASED = [each for each in PLAYED if each.expected.lease in ("required", "optional")]
TIED = [each for each in PLAYED if each.expected.guard != "none"]


def exit_status(answer: str, scenario: Scenario) -> int:
    """Return the exit status for an answer of the service, by its meaning: CONTRACT §8."""
    status, _, code = answer.partition(" ")
    if code.startswith("Lease"):
        return 49
    if code.startswith("BlobAlreadyExists") or "exists" in code:
        return 45
    # 304 is "unchanged" to a read; a write that is answered so failed its condition.
    return 42 if scenario.expected.writes else int(status[0] + status[-1])


def play(stage: Stage, flag: str, value: str, etag: str | None, *more: str) -> tuple[Ran, set[str | None]]:
    """Run the command under a condition; return what it left, and with which values its requests went out.

    ``etag`` is the version of what the condition is about. A read may look again to explain what it saw; a write goes
    out with its condition each time, or not at all.
    """
    scenario = stage.scenario
    ran = stage.run(flag, value, *more)
    log = stage.sent()
    sent = [each for each in log if each.operation == scenario.operation]
    counted = sent if scenario.expected.writes else sent[:1]
    return ran, {find_value(each, flag, etag, log if scenario.pins else []) for each in counted}


def find_value(write: Sent, flag: str, etag: str | None, reads: Sequence[Sent]) -> str | None:
    """Return the value of the condition that a request carries; or that of a read, whose version the request names."""
    header = _HEADERS[flag]
    if write.headers.get(_VERSIONS[flag.startswith("--source-")]) == etag:
        carried = [each.headers.get(header.replace("x-ms-source-", "")) for each in reads if each is not write]
        found = next((each for each in carried if each is not None), None)
        return found or write.headers.get(header)
    return write.headers.get(header)


def play_refused(stage: Stage, case: Case, value: str, etag: str | None) -> tuple[int, bool, bool, list[str]]:
    """Run the command under a condition that fails.

    Return its exit status, whether the condition went out with each write, whether all is as it was before, and what is
    wrong with the error that it told.
    """
    before = stage.look()
    status, code = re.match(r"(\d{3})(?: (\w+))?", case.refusal).groups("ConditionNotMet")  # type: ignore[union-attr]  # it matches
    headers = {"x-ms-error-code": code, "x-ms-request-id": "1"}
    with stage.answering(int(status), headers) if case.script else nullcontext():
        ran, sent = play(stage, case.flag, value, etag, *case.beside)
    # Some look first, and do not send what cannot succeed.
    return ran.code, sent <= {value}, stage.look() == before, find_flaws(ran)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_condition_goes_out_with_the_request_and_decides(case: Case, cli: CliWorld, azurite: Azurite) -> None:
    with staged(case.scenario, cli, azurite.ports) as stage:
        subject = case.find_subject(stage)
        holding, failing = case.values(subject)
        refused: tuple[int, bool, bool, list[str]] | None = None
        expected = refused
        if case.has_known_refusal:
            expected = (exit_status(case.refusal, case.scenario), True, True, [])
            with stage.absent() if case.requires_something else nullcontext():
                refused = play_refused(stage, case, failing, None if case.requires_something else subject.etag)
        if case.has_known_refusal and case.requires_something:
            subject = case.find_subject(stage)
        if case.creates_only:
            stage.start_without_blob()
            subject.etag = None
        with stage.answering(case.scenario.done, case.scenario.answer) if case.scenario.answer else nullcontext():
            done, sent = play(stage, case.flag, holding, subject.etag, *case.beside)
    assert (refused, done.code, sent) == (expected, 0, {holding}), done.err


@pytest.mark.parametrize("scenario", LEASED, ids=str)
def test_a_lease_id_goes_out_with_the_request_and_decides(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    lease = ROWS[scenario.operation]["lease"]
    with staged(scenario, cli, azurite.ports) as stage:
        (stage.leased if scenario.noun == "blob" else stage.leased_container)()
        before, etag = stage.look(), stage.find_etag()
        without = stage.run(*scenario.anyhow).code if scenario.expected.lease == "required" else None
        refused, sent = play(stage, "--lease-id", OTHER_LEASE, etag, *scenario.anyhow)
        unchanged = stage.look() == before
        done, with_ours = play(stage, "--lease-id", LEASE, etag, *scenario.anyhow)
    assert (without, (refused.code, sent <= {OTHER_LEASE}), unchanged, (done.code, with_ours)) == (
        exit_status(lease["missing"], scenario) if scenario.expected.lease == "required" else None,
        (exit_status(lease["mismatch"], scenario), True),
        True,
        (0, {LEASE}),
    )


@pytest.mark.parametrize("scenario", TIED, ids=str)
def test_a_version_is_kept_whatever_keeps_it(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    """By If-Match where the service compares; else the header would be ignored, and must not go out at all."""
    guard = scenario.expected.guard
    race = ["--allow-race"] if guard == "compare" else []
    with staged(scenario, cli, azurite.ports) as stage:
        etag, before = stage.subject().etag, stage.look()
        refused = stage.run("--etag", '"0x8D0000000000000"', *race)
        unchanged = stage.look() == before
        done = stage.run("--etag", etag, *race)
        log = [each for each in stage.sent() if each.operation == scenario.operation]
        sent = {each.headers.get("if-match") for each in log}
    told = done.json.get("guard", guard) if done.code == 0 else done.err
    assert (refused.code, unchanged, done.code, told, sent) == (
        42,
        True,
        0,
        guard,
        {etag if guard == "if-match" else None},
    )


@pytest.mark.parametrize("scenario", [each for each in PLAYED if "{receipt}" in each.line], ids=str)
def test_a_receipt_goes_out_with_the_request_and_decides(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    with staged(scenario, cli, azurite.ports) as stage:
        assert isinstance(stage, QueueStage)
        ours, others = stage.facts["receipt"], stage.client.send_message("other").pop_receipt
        before = stage.look()
        refused = stage.run_with(others).code
        unchanged = stage.look() == before
        done = stage.run_with(ours).code
        sent = [each.receipt for each in stage.sent() if each.operation == scenario.operation]
    assert (refused, unchanged, done, sent) == (42, True, 0, [ours])


def test_every_command_of_blobs_containers_and_queues_is_walked() -> None:
    walked = {(scenario.command, scenario.operation) for scenario in SCENARIOS}
    missing = {
        (words, operation.name)
        for path in REMOTE
        for words in [" ".join(path)]
        if (operation := command_at(path).spec.operation) is not None and operation.name in WALKED
        if (words, operation.name) not in walked
    }
    assert missing == set()


def test_every_operation_of_the_evidence_is_walked_or_has_no_command() -> None:
    walked = {scenario.operation for scenario in SCENARIOS}
    assert (sorted(walked | set(NO_COMMAND)), walked & set(NO_COMMAND)) == (WALKED, set())


def test_what_is_scripted_is_what_the_evidence_says_of_the_emulator() -> None:
    said = {name: str((ROWS[name].get("azurite_deviation"), failures(name))) for name in WALKED}
    assert [key for key, words in SCRIPTED.items() if words not in said[key[0]]] == []
