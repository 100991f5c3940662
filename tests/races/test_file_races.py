"""Processes increment a number in one file, through lost answers and kills: each increment is there once.

Two machines of four processes each: a cache folder is a machine's memory. A process that was killed, or does not know
what became of its increment, begins again with the same key. Short here; ``--race-minutes`` has the long one.
"""

import json
import random
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from azguard.errors import OutcomeUnknown
from tests.support import files_world, thorough
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.forked_process import ForkedProcess

pytestmark = [
    pytest.mark.xdist_group("other-races"),
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells of a process that was killed by its lock"),
    pytest.mark.timeout(0),
]
_MACHINES, _PROCESSES = 2, 4
_LOSSES = (Fault.DROP, Fault.FAIL_AFTER, Fault.FAIL_BEFORE, Fault.RESET, Fault.REPLAYED)
_SHARE_LOST, _SHARE_KILLED = 0.06, 0.03


@dataclass
class Race:
    """The processes under way, and what happens to them."""

    cli: CliWorld
    file: str
    chance: random.Random
    running: dict[int, ForkedProcess] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, request: Request) -> Fault:
        """Kill one of the processes now and then, and lose an answer now and then."""
        with self.lock:
            if self.running and self.chance.random() < _SHARE_KILLED:
                self.running[self.chance.choice(sorted(self.running))].kill()
            return self.chance.choice(_LOSSES) if self.chance.random() < _SHARE_LOST else Fault.NONE

    def work(self, worker: int, rounds: int) -> None:
        """Increment so many times."""
        for number in range(rounds):
            self.increment(worker, number)

    def increment(self, worker: int, number: int) -> None:
        """Increment once, whatever happens."""
        words = ("safe-update", f"file:{self.file}", "--increment", "n", "--op-id", f"{worker}-{number}")
        more = ("--wait", "120s", "-o", "none")
        cache = {"AZGUARD_CACHE_DIR": str(self.cli.root / f"machine-{worker % _MACHINES}")}
        while True:
            with self.cli.begin_fork(*words, *more, env=cache) as child:
                with self.lock:
                    self.running[worker] = child
                _, err = child.communicate()
                with self.lock:
                    del self.running[worker]
            if child.returncode == 0:
                return
            assert child.returncode in (-9, OutcomeUnknown.exit_code), err.decode()
            self.counts["kills" if child.returncode < 0 else "unknown"] += 1


def race(cli: CliWorld, seed: str, rounds: int) -> tuple[Race, object]:
    """Let all processes increment so many times each, and return what is in the file."""
    made = Race(cli, files_world.make(cli, b'{"n": 0}', "count.json"), random.Random(seed))
    with proxy.running(files_world.port(cli), made.decide) as between:
        made.cli = files_world.through(cli, between.port)
        with ThreadPoolExecutor(_MACHINES * _PROCESSES) as pool:
            jobs = [pool.submit(made.work, worker, rounds) for worker in range(_MACHINES * _PROCESSES)]
            for job in jobs:
                job.result()
    return made, json.loads(files_world.client(cli, made.file).download_file().readall())


def check(cli: CliWorld, seed: str, rounds: int) -> Race:
    """Race, and see that each increment is there once and nothing is left behind."""
    made, found = race(cli, seed, rounds)
    share = made.file.partition("/")[0]
    lease = files_world.client(cli, made.file).get_file_properties().lease
    assert (found, lease.state) == ({"n": rounds * _MACHINES * _PROCESSES}, "available"), made.counts
    assert files_world.names(cli, share) == ["count.json"]
    return made


def test_increments_of_eight_processes_are_exact(files_cli: CliWorld, seed: str) -> None:
    check(files_cli, seed, thorough.count(2, 1))


def test_a_long_race_is_exact_too(files_cli: CliWorld, seed: str, pytestconfig: pytest.Config) -> None:
    minutes = pytestconfig.getoption("--race-minutes")
    if not minutes:
        pytest.skip("long: --race-minutes N")
    assert check(files_cli, seed, int(10 * minutes) + 10).counts["kills"] > 0
