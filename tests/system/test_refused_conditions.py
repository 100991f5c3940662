"""Every condition that means nothing to a command: the reason is told, the exit status is 2, and nothing is asked.

It is typed on every remote command that does not show it in its help; and for blobs, containers and queues the evidence
says which those are, never the table under test. There the account is a port that counts who connects to it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from azguard.cli.options import common
from azguard.cli.parsing.tree import Command
from azguard.wire.rows import Condition, Operation
from tests.support import thorough
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.command_tree import command_at
from tests.support.condition_stage import LEASE, LONG_AGO
from tests.support.counted import FACTS, Counted, counting
from tests.support.evidence import HEADERS, Expected
from tests.support.scenarios import SCENARIOS, Scenario
from tests.system.test_help import EVERY

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
@cases("noun", *sorted({path[0] for path in REMOTE}))
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


_SINCE, _MATCH, _TAGS = LONG_AGO, '"0x8D0000000000000"', "\"stage\" = 'live'"
_OTHERS = ("--etag", "--lease-id", "--source-lease-id", "--fence", "--last-writer-wins", "--allow-race")
_FLAGS_ALONE = ("--last-writer-wins", "--allow-race")


def means_something(flag: str, expected: Expected) -> bool:
    """Return whether an option asks an operation for something that it can do, by the evidence."""
    return {
        "--etag": expected.guard != "none",
        "--lease-id": expected.names_lease,
        "--source-lease-id": False,
        "--fence": expected.fences,
        "--last-writer-wins": expected.overwrites,
        "--allow-race": expected.guard == "compare",
    }.get(flag, flag in expected.honours)


def value_of(flag: str) -> str:
    """Return a value that a condition may have."""
    if flag.endswith("-since"):
        return _SINCE
    if flag.endswith("-tags"):
        return _TAGS
    return LEASE if flag.endswith("lease-id") else "5" if "-number-" in flag or flag == "--fence" else _MATCH


def wrong_options(scenario: Scenario) -> Iterator[tuple[str, ...]]:
    """Yield each option that means nothing, and of those that mean something the values that do not."""
    expected = scenario.expected
    for flag in (*HEADERS, *_OTHERS):
        if flag in scenario.line.split():
            continue
        if not means_something(flag, expected):
            yield (flag,) if flag in _FLAGS_ALONE else (flag, value_of(flag))
        elif flag not in _FLAGS_ALONE:
            yield flag, ""
        if flag in expected.honours - expected.wildcards and flag.endswith("-match"):
            yield flag, "*"


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    with counting(tmp_path) as made:
        yield made


# What stands in an address instead of a name: an unset variable, a place without its container, an end without a name.
_NAMELESS = ("", "/", "/a", "site/", " ", "?snapshot=2026-11-21T10:00:00Z")
# Writes to a snapshot that mean something: it can be deleted, and has a tier, tags, holds and policies of its own.
_OF_SNAPSHOTS = {
    "blob.delete", "blob.set_tier", "blob.set_tags",
    "blob.set_legal_hold", "blob.set_immutability_policy", "blob.delete_immutability_policy",
}  # fmt: skip
_OF_BLOBS = [each for each in SCENARIOS if "{blob}" in each.line]
_FIXED = [each for each in _OF_BLOBS if each.expected.writes and each.operation not in _OF_SNAPSHOTS]


def test_the_port_sees_a_request_that_is_made(counted: Counted) -> None:
    ran, asked = counted.call("blob", "show", "site/a")
    assert (ran.code, asked) == (53, True)


def wrong_lines(scenario: Scenario) -> Iterator[tuple[str, ...]]:
    """Yield the command line with what would be ignored, with an address without a name, and writing what is kept."""
    yield from ((*scenario.words(FACTS), *option) for option in wrong_options(scenario))
    place = next(each for each in ("blob", "message", "queue", "container") if f"{{{each}}}" in scenario.line)
    for text in (*_NAMELESS, *(("site",) if place in ("blob", "message") else ())):
        yield tuple(scenario.words({**FACTS, place: text}))
    if scenario in _FIXED:
        for which in ("snapshot", "versionid"):
            yield tuple(scenario.words({**FACTS, "blob": f"site/a?{which}=2026-11-21T10:00:00.0000000Z"}))


@pytest.mark.thorough
@cases("scenario", *SCENARIOS, ids=str)
def test_what_means_nothing_is_refused_before_any_request(scenario: Scenario, counted: Counted) -> None:
    said, expected = {}, {}
    options = {(*scenario.words(FACTS), *option): option[0] for option in wrong_options(scenario)}
    for words in thorough.share(wrong_lines(scenario), SCENARIOS.index(scenario)):
        ran, asked = counted.call(*words, stdin=scenario.stdin)
        # An option that is refused is named.
        said[words] = (ran.code, options.get(words, "") in ran.err, ran.err[:6], ran.stdout, asked)
        expected[words] = (2, True, "error:", b"", False)
    assert said == expected
