"""Every (command, condition) of blobs, containers and queues that the service does not honour.

The exit status is 2, and nothing is asked.

Which those are is said by the evidence, never by the table under test or by the help. The account is a port that counts
who connects to it, and answers nothing.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import thorough
from tests.support.cases import cases
from tests.support.condition_stage import LEASE, LONG_AGO
from tests.support.counted import FACTS, Counted, counting
from tests.support.evidence import HEADERS, Expected
from tests.support.scenarios import SCENARIOS, Scenario

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
# Writes to a snapshot that mean something: it can be deleted, and has a tier and tags of its own.
_OF_SNAPSHOTS = {"blob.delete", "blob.set_tier", "blob.set_tags"}
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
@cases("scenario", SCENARIOS, ids=str)
def test_what_means_nothing_is_refused_before_any_request(scenario: Scenario, counted: Counted) -> None:
    said, expected = {}, {}
    options = {(*scenario.words(FACTS), *option): option[0] for option in wrong_options(scenario)}
    for words in thorough.share(wrong_lines(scenario), SCENARIOS.index(scenario)):
        ran, asked = counted.call(*words, stdin=scenario.stdin)
        # An option that is refused is named.
        said[words] = (ran.code, options.get(words, "") in ran.err, ran.err[:6], ran.stdout, asked)
        expected[words] = (2, True, "error:", b"", False)
    assert said == expected
