"""Which line may begin: the lines of one address follow each other, all others run beside each other.

An address is a sequence of names, such as ``blob, site, a.json``. Two lines follow each other if the address of one is
that of the other, or is inside it: a blob is written when its container has been created.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Protocol, Self

from azguard.batch.lines import LineEnd
from azguard.requests.pool import Done

#: So many lines are read beyond the oldest that has not ended: what waits, and what --ordered holds back, is bounded.
MOST_AHEAD = 10_000
Address = tuple[str, ...]


class PreparedLine(Protocol):
    """What a line is to do."""

    @property
    def addresses(self) -> Iterable[Address]:
        """Return the addresses that it names."""

    def run(self) -> LineEnd:
        """Do it and return how it ended; raise nothing."""


@dataclass(eq=False)
class OrderedJob:
    """A line that runs when those before it at its addresses have ended."""

    #: Counted from 0, without the lines that say nothing.
    position: int
    work: PreparedLine
    end: Callable[["OrderedJob", LineEnd], None]
    #: How many lines it waits for, and which lines wait for it.
    waits_for: int = 0
    followers: list["OrderedJob"] = field(default_factory=list)

    def run(self) -> Done:
        """Do it, and let those begin that waited for it."""
        ended = replace(self.work.run(), position=self.position)
        self.end(self, ended)
        return Done(f"line {ended.line}", ended.outcome, result=ended)


@dataclass
class _Place:
    """The lines at one address that have not ended: the last one of the address itself, and later ones inside it."""

    last: OrderedJob | None = None
    inside: set[OrderedJob] = field(default_factory=set)

    @property
    def jobs(self) -> set[OrderedJob]:
        """Return all of them."""
        return self.inside if self.last is None else {*self.inside, self.last}


class OrderedJobs(Iterator[OrderedJob]):
    """The jobs of lines, each when it may begin. One thread at a time asks for the next one.

    None begins after one whose end ``is_last``.
    """

    def __init__(self, works: Iterable[PreparedLine], is_last: Callable[[LineEnd], bool]) -> None:
        self._works = enumerate(works)
        self._is_last = is_last
        self._places: dict[Address, _Place] = {}
        self._lock = threading.Lock()
        #: Those that have not ended, the oldest first.
        self._open: dict[int, OrderedJob] = {}
        self._ready = deque[OrderedJob]()
        #: For each line that has ended, the lines that waited for it alone; written in C, so that a signal may stop it.
        self._news = SimpleQueue[list[OrderedJob]]()
        self._newest = 0
        self._is_read = self._is_stopped = False

    def stop(self) -> None:
        """Let no other line begin."""
        self._is_stopped = True
        self._news.put([])

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> OrderedJob:
        while not self._is_stopped:
            with suppress(Empty):
                while True:
                    self._ready += self._news.get_nowait()
            if self._ready:
                return self._ready.popleft()
            if not self._may_read():
                if not self._open:
                    break
                self._ready += self._news.get()
            elif (job := self._read()) is not None and not job.waits_for:
                return job
        raise StopIteration

    def _may_read(self) -> bool:
        with self._lock:
            return not self._is_read and self._newest - next(iter(self._open), self._newest) < MOST_AHEAD

    def _read(self) -> OrderedJob | None:
        position, work = next(self._works, (0, None))
        if work is None:
            self._is_read = True
            return None
        job = OrderedJob(position, work, self._end)
        with self._lock:
            self._open[position] = job
            self._newest = position
            before = self._take_places(job)
            job.waits_for = len(before)
            for each in before:
                each.followers.append(job)
        return job

    def _take_places(self, job: OrderedJob) -> set[OrderedJob]:
        """Note where a job is at work, and return those that it has to wait for."""
        before: set[OrderedJob] = set()
        for address in job.work.addresses:
            before |= self._places.get(address, _Place()).jobs
            self._places[address] = _Place(job)
            for length in range(1, len(address)):
                place = self._places.setdefault(address[:length], _Place())
                before |= set() if place.last is None else {place.last}
                place.inside.add(job)
        return before - {job}

    def _end(self, job: OrderedJob, ended: LineEnd) -> None:
        if self._is_last(ended):
            self.stop()
        with self._lock:
            del self._open[job.position]
            for address in job.work.addresses:
                for length in range(1, len(address) + 1):
                    self._leave(address[:length], job)
            for follower in job.followers:
                follower.waits_for -= 1
            self._news.put([each for each in job.followers if not each.waits_for])

    def _leave(self, address: Address, job: OrderedJob) -> None:
        place = self._places.get(address)
        if place is None:
            return
        place.inside.discard(job)
        if place.last is job:
            place.last = None
        if not place.jobs:
            del self._places[address]
