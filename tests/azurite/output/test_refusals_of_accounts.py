"""Refusals that no emulator gives, as a live account words them: what a command makes of each."""

from collections.abc import Mapping
from dataclasses import replace

from tests.support import scripted_service
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.scripted_service import Answer

_BLOB = Answer(200, None, {
    "ETag": '"0x1"', "Last-Modified": "Thu, 09 May 2019 00:53:12 GMT", "x-ms-blob-type": "BlockBlob",
    "x-ms-lease-state": "available", "x-ms-lease-status": "unlocked",
})  # fmt: skip
_NO_BLOB = Answer(404, "BlobNotFound")
_OF_NAMESPACE = "FeatureNotYetSupportedForHierarchicalNamespaceAccounts"


def refuse(status: int, code: str, words: str = "No.", headers: Mapping[str, str] | None = None) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>{words}\nRequestId:1\nTime:2026-11-27T00:00:00Z</Message></Error>"
    return Answer(status, code, headers or {}, body.encode())


def play(cli: CliWorld, line: str, *answers: Answer) -> tuple[Ran, int]:
    """Run a line against scripted answers; return its result and the number of its requests."""
    with scripted_service.running(*answers) as service:
        ran = replace(cli, connection_string=service.connection_string).call(*line.split(), stdin=b"x")
        return ran, len(service.asked)


@cases(
    ("line", "answers", "code", "told"),
    ("blob get site/a", [refuse(409, "PublicAccessNotPermitted")], 43, "allows no readers without a login"),
    ("blob get site/a", [refuse(403, "AccountIsDisabled")], 43, "the account acc is disabled"),
    ("blob put site/a", [refuse(403, "InsufficientAccountPermissions")], 43, "its writes are switched off"),
    ("blob get site/a", [refuse(409, "AccountBeingCreated")], 53, "is still being made"),
    ("blob put site/d", [refuse(409, "ResourceTypeMismatch")], 40, "is a directory of a hierarchical namespace"),
    ("blob put site/d", [refuse(409, "ResourceTypeMismatch")], 40, "see what is there: azguard blob list site"),
    ("blob delete site/d --etag 0x1", [_BLOB, refuse(409, "DirectoryIsNotEmpty"), _BLOB], 40, "and not empty"),
    ("blob tags get site/a", [_BLOB, refuse(400, _OF_NAMESPACE)], 40, "it has no index tags"),
    ("blob tags get site/a", [_BLOB, refuse(409, _OF_NAMESPACE)], 40, "it has no index tags"),
    ("blob put site/a --tags a=1", [refuse(400, _OF_NAMESPACE)], 40, "leave --tags, --if-tags and --fence out"),
    ("blob put site/a --fence 3", [_BLOB, refuse(400, _OF_NAMESPACE)], 40, "--fence needs index tags"),
    ("blob get site/a", [refuse(409, "BlobArchived")], 40, "--tier Hot brings it back, within hours"),
    ("blob get site/a", [refuse(409, "BlobBeingRehydrated")], 40, "on its way out of the archive"),
    ("safe-update blob:site/a --increment n", [refuse(409, "BlobArchived")], 40, "is in the archive"),
    ("blob put site/a", [refuse(409, "ContainerBeingDeleted")], 49, "site is still being deleted"),
    ("blob get site/a --timeout 0.3", [refuse(500, "OperationTimedOut", "Took too long.")], 53, "Took too long."),
    (
        "blob get site/a --timeout 1",
        [refuse(503, "ServerBusy", "Ingress is over the account limit.", {"Retry-After": "30"})],
        53,
        "asks to be left alone for 30s\n  Ingress is over the account limit.",
    ),
)
def test_a_refusal_says_what_it_means(line: str, answers: list[Answer], code: int, told: str, cli: CliWorld) -> None:
    ran, _ = play(cli, line, *answers)
    assert (ran.code, told in ran.err) == (code, True), ran.err


_NO_TABLE = Answer(404, "TableNotFound")


@cases(
    ("line", "before", "code", "made"),
    ("container create site", [], "ContainerBeingDeleted", replace(_BLOB, status=201)),
    ("share create team", [], "ShareBeingDeleted", replace(_BLOB, status=201)),
    ("queue create jobs", [], "QueueBeingDeleted", Answer(201)),
    ("table create Orders", [_NO_TABLE], "TableBeingDeleted", Answer(204)),
)
def test_a_create_waits_for_its_name(line: str, before: list[Answer], code: str, made: Answer, cli: CliWorld) -> None:
    busy = [*before, Answer(409, code)]
    at_once, _ = play(cli, line, *busy)
    assert (at_once.code, "or create it with --wait 2m" in at_once.err) == (49, True)
    waited, requests = play(cli, f"{line} --wait 20", *busy, *before, made)
    assert (waited.code, "is still being deleted: waiting up to 20s" in waited.err) == (0, True)
    assert requests == 2 * len(busy)


def test_a_create_gives_up_when_its_wait_is_over(cli: CliWorld) -> None:
    ran, requests = play(cli, "container create site --wait 0.3", Answer(409, "ContainerBeingDeleted"))
    assert (ran.code, requests > 1, "site is still being deleted" in ran.err) == (75, True, True)


def test_a_wait_ends_at_another_refusal(cli: CliWorld) -> None:
    answers = (Answer(409, "ContainerBeingDeleted"), refuse(403, "AccountIsDisabled"))
    assert play(cli, "container create site --wait 20", *answers)[0].code == 43
