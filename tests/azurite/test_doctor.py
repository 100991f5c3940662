"""``azguard doctor`` on the emulators, and on a service that deviates from the live one in one thing."""

import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from azguard.accounts.account import Account, Auth, from_connection_string
from azguard.address import Kind, parse
from azguard.doctor import machine, run
from azguard.doctor.run import Diagnosis, DoctorPlan
from azguard.doctor.stage import holds
from azguard.files.guarding import Guarding
from azguard.folders import Folders
from azguard.requests.deadline import Deadline
from azguard.wire.client import NetworkClient
from tests.azurite.account.test_denials import account_sas
from tests.support import live_like, places, sdk_clients
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.live_like import Deviation, LiveLike
from tests.support.no_records import NoRecords
from tests.support.terminals import need_terminal

pytestmark = pytest.mark.xdist_group("doctor")

PAGE, EMULATOR = places.REPOSITORY / "docs/doctor.md", places.REPOSITORY / "docs/emulator.md"
_TABLE = re.compile(r"(?<=<!-- doctor -->\n)(\|.*\n)+")
_ALL = ("blob", "table", "queue", "file")
# What depends on this machine, and not on azguard or the emulators.
_OF_MACHINE = "machine"
BLOBS = DoctorPlan(("blob",))


def diagnose(account: Account, wanted: str = "", plan: DoctorPlan = BLOBS, **more: Any) -> Diagnosis:
    """Run the checks whose name, or part, matches."""
    folders = Folders.of(os.environ)
    every = run.list_checks(plan, account, folders, os.environ)
    checks = [each for each in every if each.part != _OF_MACHINE and re.search(wanted, f"{each.part}: {each.name}")]
    return run.diagnose(plan, account, checks, Deadline(60), Guarding(NoRecords(), None), **more)[0]


def list_others(found: Diagnosis) -> dict[str, tuple[str, str]]:
    return {each.check: (each.verdict, each.detail) for each in found.checks if each.verdict != "holds"}


@pytest.fixture(scope="module")
def both(connection_string: str, files_connection_string: str) -> Account:
    """Return the account of both emulators."""
    return from_connection_string(f"{connection_string};{files_connection_string.rpartition(';')[2]}")


@pytest.fixture(scope="module")
def whole(both: Account) -> Diagnosis:
    """Return the diagnosis of the emulators, by each operation under each condition."""
    plan = DoctorPlan(services=_ALL, is_full=True)
    every = run.list_checks(plan, both, Folders.of(os.environ), os.environ)
    checks = [each for each in every if each.part != _OF_MACHINE]
    return run.diagnose(plan, both, checks, Deadline(300), Guarding(NoRecords(), None))[0]


@pytest.fixture(autouse=True)
def without_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no command of this process fork another one: tests/system/test_doctor.py does."""
    monkeypatch.setattr(machine, "check_process_control", lambda environ: holds())


def read_table(path: object) -> list[list[str]]:
    """Return the rows of the table of the doctor on a page, without its head."""
    found = _TABLE.search(path.read_text(encoding="utf-8"))  # type: ignore[attr-defined]  # a path
    assert found is not None
    return [line.strip("| ").split(" | ") for line in found[0].splitlines()[2:]]


def write_table(path: object, head: list[str], rows: list[list[str]]) -> None:
    """Write the table of the doctor into a page."""
    lines = [head, ["---"] * len(head), *rows]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    path.write_text(_TABLE.sub(lambda _: text, path.read_text(encoding="utf-8")), encoding="utf-8")  # type: ignore[attr-defined]  # a path


def test_the_page_shows_the_commands_table(whole: Diagnosis, both: Account, request: pytest.FixtureRequest) -> None:
    usual = run.list_checks(DoctorPlan(services=_ALL), both, Folders.of(os.environ), os.environ)
    found = {each.check: [each.verdict, each.detail] for each in whole.checks}
    # tests/system/test_doctor.py sees that they hold.
    found |= {each.name: ["holds", ""] for each in usual if each.part == _OF_MACHINE}
    rows = [[each.part, each.name, *found[each.name]] for each in usual]
    if request.config.getoption("--write-docs"):
        write_table(PAGE, ["part", "check", "verdict", "detail"], rows)
    assert [[*each, ""][:4] for each in read_table(PAGE)] == rows


def test_the_emulators_differ_in_what_their_page_says(whole: Diagnosis, request: pytest.FixtureRequest) -> None:
    """In both directions: each difference is told, and what is told differs."""
    found = [[each.check, each.detail] for each in whole.checks if each.verdict == "differs"]
    if request.config.getoption("--write-docs"):
        write_table(EMULATOR, ["check", "what comes"], found)
    assert read_table(EMULATOR) == found


def test_the_files_emulator_differs_in_nothing(whole: Diagnosis) -> None:
    of_files = {each.verdict for each in whole.checks if each.service == "file"}
    assert of_files == {"holds"}


def test_on_a_live_service_all_holds_in_400_requests(both: Account, cli: CliWorld, connection_string: str) -> None:
    need_terminal()
    plan = DoctorPlan(services=_ALL)
    said = run.count_requests(plan, run.list_checks(plan, both, Folders.of(os.environ), os.environ))
    service = LiveLike(both)
    there = replace(cli, connection_string=f"{connection_string};FileEndpoint={both.endpoints['file']}")
    with patch.object(NetworkClient, "send", lambda _, *asked: service.send(*asked)):
        ran = there.call("doctor", "-o", "json", "--timeout", "2m")
    requests = ran.json["requests"]
    assert (
        ran.code,
        ran.json["differs"],
        requests <= 400,
        0.9 * said < requests < 1.1 * said,
        both.name in ran.out,
    ) == (0, 0, True, True, False), (said, ran.json)


_DIFFERS, _IMPOSSIBLE = "differs", "not possible here"
_METADATA, _VERSION = "promises: blob set metadata", "blob set metadata: if-match"
_LAST_WRITE, _NAMES = "a read sees the last write", "names in answers of the blob service"
_NO_TAGS = "400 FeatureNotYetSupportedForHierarchicalNamespaceAccounts"
#: Which checks are run, and what each that does not hold is found to do.
_BY_DEVIATION: dict[Deviation, tuple[str, dict[str, tuple[str, str]]]] = {
    live_like.ignore_version: (_METADATA, {_VERSION: (_DIFFERS, "a wrong value: done all the same")}),
    live_like.rename_code: (_METADATA, {_VERSION: (_DIFFERS, "a wrong value: 409 Conflict, not 412 ConditionNotMet")}),
    live_like.apply_refused: (_METADATA, {
        _VERSION: (_DIFFERS, "a wrong value: refused with 412 ConditionNotMet, and applied all the same")}),
    live_like.ignore_lease: (_METADATA, {
        "blob set metadata: lease-id": (_DIFFERS, "no lease id: done all the same")}),
    live_like.ignore_create_only: ("promises: blob put block blob", {
        "blob put block blob: if-none-match *": (_DIFFERS, "it exists: done all the same")}),
    live_like.move_date: ("^answers", {"clock of the blob service": (
        _DIFFERS, "Date of an answer is 2h ahead of the service's own write: it is a gateway's")}),
    live_like.drop_ids: ("^answers", {
        _NAMES: (_DIFFERS, "some name no request: a repeated answer is not noticed")}),
    live_like.cache_reads: ("^answers", {
        _LAST_WRITE: (_DIFFERS, "a read after a write has an earlier version: a cache answers")}),
    live_like.replay_answers: ("^answers: (a read|names)", {
        _LAST_WRITE: (_IMPOSSIBLE, "no answer from http://HOST/ACCOUNT: the answer belongs to another request"),
        _NAMES: (_DIFFERS, "some are those of other requests: a gateway repeats answers")}),
    live_like.send_twice: (f"^answers: a request|{_METADATA}", {"a request is carried out once": (
        _DIFFERS,
        "a create of a new name was answered with 409 BlobAlreadyExists, and it is there: it was sent twice")}),
    live_like.refuse_tags: ("promises: blob delete: if-tags|rights: fences", {
        "blob delete: if-tags": (_IMPOSSIBLE, f"{_NO_TAGS}: there is no such operation"),
        "fences": (_IMPOSSIBLE, f"blob set tags: {_NO_TAGS}")}),
}  # fmt: skip


@pytest.mark.parametrize("deviation", _BY_DEVIATION, ids=lambda each: each.__name__)
def test_a_deviation_is_found_and_named(both: Account, deviation: Deviation) -> None:
    wanted, expected = _BY_DEVIATION[deviation]
    account = replace(both, shared={"client": LiveLike(both, deviation)})
    assert list_others(diagnose(account, wanted)) == expected


def list_doctors(cli: CliWorld) -> list[str]:
    """Return the names of the containers that a doctor made."""
    return [each["name"] for each in cli.call("container", "list", "--prefix", "azguard-doctor-").json]


def test_what_was_made_is_removed_after_a_failure_too(both: Account, cli: CliWorld) -> None:
    def fail_late(results: Iterator[Any]) -> list[Any]:
        seen = [each.check for each in (next(results) for _ in range(3))]
        raise KeyboardInterrupt(seen)

    with pytest.raises(KeyboardInterrupt, match="blob put block blob: if-match"):
        diagnose(both, "promises: blob", watch=fail_late)
    assert list_doctors(cli) == []


def test_in_a_container_that_was_given_only_what_it_made_is_deleted(both: Account, cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/mine", "--content", "x")
    plan = DoctorPlan(("blob",), container=site)
    found = diagnose(both, "promises: (blob (set metadata|lease)|container)|^answers: a req", plan)
    names = [each["name"] for each in cli.call("blob", "list", site).json]
    assert (names, list_doctors(cli), list_others(found)) == (
        ["mine"],
        [],
        {"container delete: lease-id": ("not possible here", "only in the container that was given")},
    )


def test_what_a_sas_does_not_allow_is_named(both: Account) -> None:
    account = replace(both, auth=Auth.SAS, secret=account_sas("rwdlac"))
    others = list_others(diagnose(account, "login|rights: fences|blob put block blob: (if-match|if-tags)"))
    assert (sorted(others), others["fences"][1]) == (
        ["blob put block blob: if-tags", "fences"],
        "the SAS does not allow this to azguard-doctor-…/azguard-doctor-…: it needs tags (t), and has sp=rwdlac",
    )


@cases(
    ("change", "status"),
    (("AccountKey=.*?;", f"AccountKey={'A' * 86}==;"), 43),
    ((r"BlobEndpoint=http://127.0.0.1:\d+", "BlobEndpoint=http://127.0.0.1:1"), 53),
)
def test_without_a_service_the_exit_status_says_why(cli: CliWorld, change: tuple[str, str], status: int) -> None:
    there = replace(cli, connection_string=re.sub(*change, str(cli.connection_string)))
    ran = there.call("doctor", "--only", "blob", "-o", "json")
    assert (ran.code, ran.error["exit_code"], ran.out.startswith("{")) == (status, status, True)


def test_writers_beside_azguard_are_counted_and_named(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/ours", "--content", "x")
    sdk_clients.blob(
        from_connection_string(str(cli.connection_string)), parse(f"{site}/theirs", Kind.BLOB).address
    ).upload_blob(b"x")
    policies = b'{"deploy": {"permission": "rw", "expiry": "2030-01-01T00:00:00Z"}}'
    assert cli.call("container", "acl", "set", site, "--last-writer-wins", stdin=policies).code == 0
    ran = cli.call("doctor", "--only", "queue", "--writers", site, "--query", "checks[?part=='writers'].detail")
    assert ran.json == [
        "1 of 2 (50 %) without a lineage, so not by azguard: theirs",
        "a SAS of each of these stored access policies: deploy (rw)",
    ]


def test_writers_of_a_table_are_counted_too(cli: CliWorld) -> None:
    table = f"t{uuid.uuid4().hex[:20]}"
    cli.call("table", "create", table)
    cli.call("entity", "insert", f"{table}/p/r", stdin=b'{"n": 1}')
    ran = cli.call(
        "doctor", "--only", "queue", "--writers", f"table:{table}", "--query", "checks[?part=='writers'].detail"
    )
    assert ran.json == ["all 1 by azguard", "no stored access policy allows it; a key, a role, or another SAS does"]


def test_a_container_that_is_named_has_to_be_there(cli: CliWorld) -> None:
    codes = [cli.call("doctor", option, "no-such-thing").code for option in ("--container", "--writers")]
    assert codes == [44, 44]


def test_a_table_shows_each_check_and_what_differs_is_told_whole(cli: CliWorld) -> None:
    ran = cli.call("doctor", "--only", "queue", "-o", "table")
    told = [each for each in ran.err.splitlines() if each.startswith("differs: queue delete")]
    shown = re.search(r"^ queue delete message: pop-receipt +differs", ran.out, re.MULTILINE)
    assert (ran.code, shown is not None, told) == (
        20,
        True,
        ["differs: queue delete message: pop-receipt: an old receipt: 400 PopReceiptMismatch, not 404 MessageNotFound"],
    )


def test_names_are_told_where_they_are_asked_for(cli: CliWorld) -> None:
    ran = cli.call("doctor", "--only", "queue", "--with-names", "--query", "account")
    assert ran.json == "devstoreaccount1"
