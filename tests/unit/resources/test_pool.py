"""Jobs in a pool: how far they may run ahead of what is told of them."""

import threading
import time
from collections import Counter
from dataclasses import dataclass

import pytest

from azguard.resources import pool
from azguard.resources.pool import Done, Tally, run_each
from tests.support.cases import cases


@dataclass(frozen=True)
class Job:
    """A job that only ends."""

    number: int

    def run(self) -> Done:
        return Done(str(self.number), "created")


@dataclass(frozen=True)
class Broken:
    """A job that breaks its promise to raise nothing."""

    def run(self) -> Done:
        raise LookupError("not foreseen")


@cases("width", 1, 3)
def test_a_job_that_raises_ends_the_run_with_its_error_and_is_counted(width: int) -> None:
    tally, stops = Tally(), list[str]()
    jobs: list[pool.Job] = [Job(1), Broken(), Job(2)]
    with pytest.raises(LookupError, match="not foreseen"):
        run_each(jobs, width, tally, lambda done: None, lambda: stops.append("stop"))
    assert (tally.counts["unknown"], stops[:1]) == (1, ["stop"])


def test_no_job_begins_while_too_many_ends_wait_for_a_slow_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MOST_UNTOLD", 8)
    monkeypatch.setattr(pool, "_READER_PAUSE_SECONDS", 0.001)
    untold: list[int] = []
    told = Counter[str]()
    tally = Tally()
    paused = threading.Event()
    sleep = time.sleep

    def pause(seconds: float) -> None:
        paused.set()
        sleep(seconds)

    def read(done: Done) -> None:
        if not told:  # The first line is not read before all that may begin has ended.
            assert paused.wait(60)
        untold.append(len(tally._untold))
        told[done.outcome] += 1

    monkeypatch.setattr(time, "sleep", pause)
    run_each((Job(number) for number in range(100)), 2, tally, read, lambda: None)
    assert (told, max(untold) <= 8 + 2) == (Counter(created=100), True)


@dataclass(frozen=True)
class Recording:
    """A job that leaves something to be recorded."""

    number: int
    left: set[str]

    def run(self) -> Done:
        self.left.add(str(self.number))
        return Done(str(self.number), "created")


def test_no_end_is_told_before_what_it_left_is_recorded() -> None:
    left, told = set[str](), Counter[bool]()
    recorded = set[str]()
    tally = Tally(settle=lambda: recorded.update(left.copy()))
    jobs = (Recording(number, left) for number in range(50))
    run_each(jobs, 2, tally, lambda done: told.update([done.address in recorded]), lambda: None)
    assert told == Counter({True: 50})
