"""Many processes append lines to one log, with faults and kills: every acknowledged line stands there exactly once.

Short here; ``pytest tests/races/test_append_races.py --race-minutes 1`` has sixteen processes of fifty lines, and
every mix.
"""

import random
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from azure.storage.blob import BlobClient

from tests.faults.rules import at_random
from tests.support import thorough
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.forked_process import ForkedProcess
from tests.support.places import REPOSITORY

# Many processes that contend: one such race at a time.
pytestmark = [pytest.mark.xdist_group("other-races"), pytest.mark.thorough]
_UNIQUE, _EQUAL = "{writer} {number}", "tick"
# The statuses that say that nothing was appended.
_NOTHING = (49, 53, 75)
_UNKNOWN = 74


@dataclass(frozen=True)
class Race:
    """One race: who writes what, and how much goes wrong."""

    words: tuple[str, ...]
    text: str
    writers: int = 6
    lines: int = 5
    share: float = 0.25
    killed: int = 2


APPEND = ("blob", "append", "{blob}", "--line", "{{line}}")
# In a thorough run, and by default.
_SHORT = thorough.some(("content", "equal lines under a lease", "safe-update"), 2)
UPDATE = ("safe-update", "blob:{blob}", "--append-line", "{{line}}")
RACES = {
    "content": Race((*APPEND, "--guard", "content"), _UNIQUE),
    "position": Race(APPEND, _UNIQUE),
    "equal lines by position": Race(APPEND, _EQUAL, writers=4),
    "equal lines under a lease": Race((*APPEND, "--guard", "lease"), _EQUAL, writers=4),
    "safe-update": Race(UPDATE, _UNIQUE, writers=4),
}


@dataclass(frozen=True)
class Told:
    """What the callers were told of each text: how often it was appended for certain, and perhaps."""

    certain: Counter[str]
    perhaps: Counter[str]
    statuses: Counter[int]


def run(race: Race, cli: CliWorld, blob: str, seed: str, tmp: Path) -> Told:
    chance = random.Random(f"{seed} kills")
    decide = at_random(random.Random(f"{seed} faults").randrange(10**6), race.share)
    with proxy.running(cli.port, decide) as between:
        world = cli.through(between.port)
        words = [each.format(blob=blob) for each in race.words]
        # Two hosts: each has a queue of its own.
        environs = [
            world.environ(env={"AZGUARD_WRITE_TIMEOUT": "1s", "AZGUARD_CACHE_DIR": str(tmp / f"host{number}")})
            for number in range(2)
        ]
        running = [
            ForkedProcess(
                (str(tmp / f"w{number}"), f"w{number}", str(race.lines), race.text, *words, "--timeout", "40s", "-q"),
                REPOSITORY,
                environs[number % 2],
                module="tests.races.append_worker",
                stdin=subprocess.DEVNULL,
                stdout=None,
                stderr=None,
            )
            for number in range(race.writers)
        ]
        for number, process in enumerate(running[: race.killed]):
            _await_line(process, tmp / f"w{number}", chance.randrange(2, race.lines))
            try:
                process.wait(chance.uniform(0.0, 0.3))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        for process in running:
            process.wait(1200)
    return tell(race, tmp)


def _await_line(process: ForkedProcess, journal: Path, number: int) -> None:
    """Wait until a process has begun so many lines, however slow the machine is, or has ended."""
    until(lambda: process.poll() is not None or (journal.exists() and _begun(journal) >= number), seconds=200)


def _begun(journal: Path) -> int:
    return journal.read_text().count("begin")


def tell(race: Race, tmp: Path) -> Told:
    told = Told(Counter(), Counter(), Counter())
    for number in range(race.writers):
        journal = tmp / f"w{number}"
        events = [line.split() for line in journal.read_text().splitlines()] if journal.exists() else []
        ended = {int(event[1]): int(event[2]) for event in events if event[0] == "end"}
        for begun in (int(event[1]) for event in events if event[0] == "begin"):
            line, status = race.text.format(writer=f"w{number}", number=begun), ended.get(begun)
            told.statuses[-1 if status is None else status] += 1
            assert status in (None, 0, _UNKNOWN, *_NOTHING), f"{line}: {status}"
            if status == 0:
                told.certain[line] += 1
            elif status in (None, _UNKNOWN):
                told.perhaps[line] += 1
    return told


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", RACES)
def test_every_acknowledged_line_stands_there_exactly_once(
    cli: CliWorld, tmp_path: Path, name: str, pytestconfig: pytest.Config
) -> None:
    race, seed = RACES[name], str(pytestconfig.getoption("--race-seed"))
    if pytestconfig.getoption("--race-minutes"):
        race = replace(race, writers=16, lines=50, killed=4)
    elif name not in _SHORT:
        pytest.skip("long: --race-minutes 1")
    blob = f"{cli.container()}/log"
    assert cli.connection_string is not None
    container, _, rest = blob.partition("/")
    with BlobClient.from_connection_string(cli.connection_string, container, rest) as client:
        client.create_append_blob()
        told = run(race, cli, blob, seed, tmp_path)
        lines = Counter(bytes(client.download_blob().readall()).decode().splitlines())
    wrong = {
        line: (lines[line], told.certain[line], told.perhaps[line])
        for line in {*lines, *told.certain}
        if not told.certain[line] <= lines[line] <= told.certain[line] + told.perhaps[line]
    }
    assert wrong == {}, f"there, certain, perhaps; --race-seed {seed}; {told.statuses}"
    assert told.statuses[0] > 0
    if "content" in name or "lease" in name:
        assert told.statuses[_UNKNOWN] == 0, told.statuses
