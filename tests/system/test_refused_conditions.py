"""Every (command, condition) of blobs and containers that the service does not honour: exit 2, and nothing is asked.

Which those are is said by the evidence, never by the table under test or by the help. The account is a port that counts
who connects to it, and answers nothing.
"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.cli_world import CliWorld, Ran
from tests.support.condition_stage import LEASE, LONG_AGO
from tests.support.evidence import HEADERS, Expected
from tests.support.scenarios import SCENARIOS, Scenario

_SINCE, _MATCH, _TAGS = LONG_AGO, '"0x8D0000000000000"', "\"stage\" = 'live'"
_FACTS = {"container": "site", "blob": "site/a", "source": "site/s", "lease": LEASE, "copy_id": LEASE}
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


@dataclass(frozen=True)
class Typed:
    """A command line with an option that has to be refused."""

    scenario: Scenario
    flag: str
    value: str | None

    def __str__(self) -> str:
        return f"{self.scenario} {self.flag} {self.value!r}"


def typed() -> Iterator[Typed]:
    """Return what means nothing, and of what means something the values that do not."""
    for scenario in SCENARIOS:
        expected = scenario.expected
        for flag in (*HEADERS, *_OTHERS):
            if flag in scenario.line.split():
                continue
            if not means_something(flag, expected):
                yield Typed(scenario, flag, None if flag in _FLAGS_ALONE else value_of(flag))
            elif flag not in _FLAGS_ALONE:
                yield Typed(scenario, flag, "")
            if flag in expected.honours - expected.wildcards and flag.endswith("-match"):
                yield Typed(scenario, flag, "*")


@dataclass(frozen=True)
class Counted:
    """An account whose port counts connections."""

    cli: CliWorld
    listening: socket.socket

    def call(self, *words: str, stdin: bytes = b"") -> tuple[Ran, bool]:
        """Run a command line; return also whether somebody connected meanwhile."""
        ran = self.cli.call(*words, "--timeout", "1s", stdin=stdin)
        try:
            connection, _ = self.listening.accept()
        except BlockingIOError:
            return ran, False
        connection.close()
        return ran, True


@pytest.fixture
def counted(offline: CliWorld) -> Iterator[Counted]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/acc"
        account = f"AccountName=acc;AccountKey=a2V5;BlobEndpoint={endpoint}"
        yield Counted(CliWorld(offline.root, account), listening)


@pytest.mark.parametrize("line", list(typed()), ids=str)
def test_what_would_be_ignored_is_refused_before_any_request(line: Typed, counted: Counted) -> None:
    words = line.scenario.words(_FACTS)
    option = [line.flag] if line.value is None else [line.flag, line.value]
    ran, asked = counted.call(*words, *option, stdin=line.scenario.stdin)
    assert (ran.code, line.flag in ran.err, ran.stdout, asked) == (2, True, b"", False), ran.err


def test_the_port_sees_a_request_that_is_made(counted: Counted) -> None:
    ran, asked = counted.call("blob", "show", "site/a")
    assert (ran.code, asked) == (53, True)
