"""Every condition of the contract, typed on every remote command that does not honour it: the reason, exit 2."""

import re
from typing import Any

import pytest

from azguard.cli.options import common
from azguard.cli.parsing.tree import Command
from azguard.wire.rows import Condition, Operation
from tests.support import thorough
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.command_tree import command_at
from tests.system.test_help import EVERY

LEASE = "0f3c1111-2222-3333-4444-555566667777"
VALUES = {
    "lease_id": LEASE, "source_lease_id": LEASE, "fence": "7", "last_writer_wins": None, "allow_race": None,
    **{name: "2026-11-21T10:00:00Z" for name in common.CONDITION_NAMES if name.endswith("_since")},
    **{name: "\"a\" = 'b'" for name in common.CONDITION_NAMES if name.endswith("_tags")},
}  # fmt: skip
# An account where nothing answers: what is refused before any request is refused all the same.
NOWHERE = "AccountName=acc;AccountKey=a2V5;" + "".join(
    f"{service}Endpoint=http://127.0.0.1:9/acc;" for service in ("Blob", "Table", "Queue", "File")
)
# Words for the arguments of a command, by how they are written in its help.
PLACES = {
    "BLOB": "site/a", "SOURCE": "site/s", "DESTINATION": "site/a", "OLD": "team/a",
    "FROM": "jobs", "NEW": "team/b", "FILE": "team/a",
    "NAME": "site", "CONTAINER": "site", "[ADDRESS]": "blob:site/a", "TABLE": "Orders",
    "TABLE/PARTITION/ROW": "Orders/eu/1", "QUEUE": "jobs", "QUEUE -- CMD [ARG...]": "jobs", "QUEUE/ID": "jobs/1",
    "ADDRESS": "blob:site/a", "FILE|-": "-",
    "ADDRESS... -- CMD [ARG...]": "blob:locks/a", "SHARE": "team", "SHARE/PATH": "team/a", "SHARE[/PATH]": "team/a",
    "GIB": "100",
    "SHARE/PATH -- CMD [ARG...]": "team/a",
}  # fmt: skip


REMOTE = [path for path in EVERY if command_at(path).spec.is_remote]


def meant(command: Command, name: str) -> bool:
    """Return whether an option is in the command's help: then it means something there."""
    return any(row.name == name and not row.is_hidden for row in command.rows)


def typed(name: str) -> list[str]:
    value = VALUES.get(name, "0x8DC1234567890AB")
    return [f"--{name.replace('_', '-')}", *([] if value is None else [value])]


REASONED = r"(is not enforced here|changes nothing here|cannot be kept here|guards writes,?)(: | and )\w.+[^.]"


@pytest.mark.thorough
@cases("noun", sorted({path[0] for path in REMOTE}))
def test_a_condition_that_means_nothing_is_refused_with_the_reason_before_any_request(
    offline: CliWorld, noun: str
) -> None:
    found = {path: refusals(offline, path) for path in REMOTE if path[0] == noun}
    assert {path: said for path, (said, _) in found.items()} == {path: right for path, (_, right) in found.items()}


def refusals(offline: CliWorld, path: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is said of each condition that means nothing to a command, and what must be."""
    command = command_at(path)
    words = [PLACES[row.metavar] for row in command.rows if row.is_argument and row.is_required]
    env = {"AZURE_STORAGE_CONNECTION_STRING": NOWHERE}
    tail = ("--", "true") if path in (("lock", "run"), ("file", "lock", "run"), ("queue", "work")) else ()
    found, right = {}, {}
    names = sorted(each for each in common.CONDITION_NAMES if not meant(command, each))
    for name in thorough.share(names, REMOTE.index(path)):
        ran = offline.call(*path, *words, *typed(name), "-o", "json", *tail, env=env)
        message = str(ran.error["message"])
        reasoned = re.fullmatch(f"{typed(name)[0]} {REASONED}", message) is not None
        found[name], right[name] = (ran.code, message, reasoned), (2, message, True)
    return found, right


def test_the_walk_reaches_every_remote_command_and_every_condition() -> None:
    assert {("container", "list"), ("status",), ("lock", "run"), ("lease", "wait"), ("safe-update",)} <= set(REMOTE)
    assert {each.replace("-", "_") for each in Condition} < common.CONDITION_NAMES
    assert all(command_at(path).spec.is_remote for path in REMOTE)


def test_last_writer_wins_is_offered_only_where_it_changes_something() -> None:
    operations: dict[tuple[str, ...], Operation | None] = {path: command_at(path).spec.operation for path in REMOTE}
    offered = {path for path in REMOTE if meant(command_at(path), "last_writer_wins")}
    assert offered == {path for path, each in operations.items() if each is not None and each.overwrites}


def test_a_condition_that_is_not_honoured_is_refused_before_an_empty_one_is_asked_for(offline: CliWorld) -> None:
    ran = offline.call("container", "list", "--if-match", "", "-o", "json")
    assert (ran.code, "--if-match is not enforced here: List Containers" in ran.error["message"]) == (2, True)


def test_deleting_a_table_by_its_version_is_answered_in_one_step(offline: CliWorld) -> None:
    for etag in ("abc", "@last", "W/\"datetime'2026-11-21T10%3A00%3A00.0000000Z'\""):
        ran = offline.call("table", "delete", "Orders", "--etag", etag, "-o", "json")
        assert (ran.code, ran.error["message"], ran.error["hint"]) == (
            2,
            "--etag cannot be kept here: Delete Table honours no conditions; a table has no ETag",
            "nothing can guard this by a version; to do it without a guard: --last-writer-wins",
        )
