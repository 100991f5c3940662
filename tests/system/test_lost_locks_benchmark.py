"""What the benchmark of lost locks measures and prints."""

import asyncio
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import lost_locks, lost_locks_work
from benchmarks.lost_locks import Findings
from benchmarks.lost_locks_blows import Blow, Outcome, status_of
from benchmarks.lost_locks_runners import Flock

# Many processes that contend: one such race at a time.
pytestmark = pytest.mark.xdist_group("lock-races")

STOPPED = Outcome(77, 5.1, {"command": 0.0, "started": 0.04, "stubborn": 5.0}, 9.0)
RAN_ON = Outcome(0, None, {"command": None, "started": 0.04, "stubborn": 12.0}, 9.0)


def test_holders_overlap_from_the_beginning_of_the_next_to_the_last_work_of_the_first() -> None:
    waited = Outcome(0, None, RAN_ON.ended, None)
    assert [
        (each.overlap("command"), each.overlap("started"), each.overlap("started", "stubborn"))
        for each in (STOPPED, RAN_ON, waited)
    ] == [(0.0, 0.0, 0.0), (None, 0.0, 3.0), (0.0, 0.0, 0.0)]


def test_a_table_tells_what_ended_what_ran_on_and_what_was_not_measured() -> None:
    found = Findings("azlock 1.0", "its lease broken", {(Blow.TAKEN, False): [STOPPED, RAN_ON]})
    found.statuses.update({"exits 7": [7, 7], "is ended by TERM": [143, 143], "is ended by KILL": [137, 1]})
    lines = list(lost_locks.table([found]))
    assert lines[:13] + lines[-4:] == [
        "|  | azlock 1.0 |",
        "|---|---|",
        "| **the lock is taken away at once** | its lease broken |",
        "| status of the runner | 77 or 0, once the command is done |",
        "| its status over a command that ignores TERM | — |",
        "| the runner ends after | 5.1 s or with the command only |",
        "| the command ends after | 0.0 s or does not |",
        "| a process it started ends after | 0.0 s |",
        "| such a process that ignores TERM ends after | 5.0–12.0 s |",
        "| a command that ignores TERM ends after | — |",
        "| the next holder begins after | 9.0 s |",
        "| at work beside the command for | 0.0 s or ≥ 30 s |",
        "| at work beside a command that ignores TERM for | — |",
        "| **the command ends of itself** |  |",
        "| exits 7: status | 7 |",
        "| is ended by TERM: status | 143 |",
        "| is ended by KILL: status | 137 or 1 |",
    ]


def test_work_writes_the_clock_until_its_permission_is_gone(tmp_path: Path) -> None:
    beats, permission = tmp_path / "beats", tmp_path / "permission"
    permission.touch()
    began = time.monotonic()
    work = subprocess.Popen([sys.executable, "-S", lost_locks_work.__file__, str(beats), str(permission)])
    try:
        while not (beats.exists() and beats.read_text(encoding="ascii").count("\n") >= 2):
            assert time.monotonic() < began + 30
            time.sleep(0.01)  # another process makes it so
        permission.unlink()
        assert work.wait(timeout=60) == 0
    finally:
        work.kill()
        work.wait()
    written = [float(line) for line in beats.read_text(encoding="ascii").splitlines()]
    assert written == sorted(written)
    assert began < written[0] < written[-1] < time.monotonic()


@pytest.mark.skipif(not shutil.which("flock"), reason="there is no flock")
def test_the_status_of_a_real_runner_is_measured(tmp_path: Path) -> None:
    flock = Flock({"flock": shutil.which("flock") or ""}, tmp_path)
    assert [asyncio.run(status_of(flock, script)) for script in ("exit 7", "kill -TERM $$")] == [7, 143]
