"""Races for the contention benchmark: long-lived worker processes, one emulator per race, and what came of it."""

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azguard.emulators import background
from azguard.emulators.azurite_process import Azurite
from azguard.folders import Folders
from benchmarks import contention_ways
from benchmarks.contention_ways import START, Counts, Line, Way

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# Forked once everything is imported: thirty-two imports of the SDK would keep the machine busy for long.
_PROCESSES = multiprocessing.get_context("fork")

Emulators = Callable[[], AbstractContextManager[Azurite]]


@dataclass(frozen=True)
class Race:
    """So many workers, each applying so many increments one after the other, over requests this slow (seconds)."""

    way: Way
    workers: int
    increments: int
    latency: float


@dataclass(frozen=True)
class Share:
    """One worker's part: when each of its increments began and ended (seconds, one clock for all), its requests
    and the seconds of processor time it used.
    """

    spans: list[tuple[float, float]]
    counts: Counts
    processor: float


@dataclass(frozen=True)
class Outcome:
    """What came of a race. ``fairness`` is Jain's index of the workers' commits when half of all were made."""

    race: Race
    commits_per_second: float
    requests: float  # per commit
    attempts: float  # per commit: writes of the blob
    leases: float  # per commit: requests about leases
    processor: float  # milliseconds of a worker's processor time per commit
    durations: list[float]  # of each increment, seconds
    fairness: float

    def quantile(self, share: float) -> float:
        """Return the seconds within which this share of the increments were complete."""
        return quantile(self.durations, share)


class Crew:
    """Running workers."""

    def __init__(self, ends: "list[Connection[Any, Any]]", emulators: Emulators) -> None:
        self._ends, self._emulators = ends, emulators

    def race(self, race: Race) -> Outcome:
        """Run a race against an emulator, and check that no increment was lost or doubled."""
        with tempfile.TemporaryDirectory() as name, self._emulators() as mine:
            blob = contention_ways.client(Line(mine.ports["blob"], 0.0))
            container = blob._get_container_client()
            container.create_container()
            blob.upload_blob(START)
            ends = self._ends[: race.workers]
            for end in ends:
                end.send((race, mine.ports["blob"], Path(name)))
            shares: list[Share] = [end.recv() for end in ends]
            found = json.loads(blob.download_blob().readall())["count"]
            container.delete_container()
        if found != race.workers * race.increments:
            raise SystemExit(f"{race}: {found} found, {race.workers * race.increments} expected")
        return outcome(race, shares)


def own_emulator() -> AbstractContextManager[Azurite]:
    """Run an emulator for one race."""
    return background.run_private_azurite(Folders.of(os.environ).emulator, os.environ)


@contextmanager
def crew(most: int, sizes: Iterable[int], emulators: Emulators = own_emulator) -> Iterator[Crew]:
    """Run ``most`` workers for the length of a ``with`` block; ``sizes`` are the numbers that will race.

    ``emulators`` gives each race its emulator.
    """
    barriers = {size: _PROCESSES.Barrier(size) for size in sizes}
    with ExitStack() as stack:
        ends = []
        for number in range(most):
            here, there = _PROCESSES.Pipe()
            process = _PROCESSES.Process(target=_work, args=(number, there, barriers), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
            there.close()
            ends.append(here)
        yield Crew(ends, emulators)


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that at least this share of the values do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, -int(-len(ranked) * share // 1) - 1)]


def _work(number: int, orders: "Connection[Any, Any]", barriers: dict[int, Barrier]) -> None:
    while True:
        race, port, folder = orders.recv()
        line = Line(port, race.latency)
        apply = contention_ways.increments(race.way, number, line, folder)
        contention_ways.client(Line(port, 0.0)).get_blob_properties()  # the first request is always slower
        barriers[race.workers].wait()
        before = time.process_time()
        spans = []
        for _ in range(race.increments):
            began = time.monotonic()
            apply()
            spans.append((began, time.monotonic()))
        orders.send(Share(spans, line.counts, time.process_time() - before))


def outcome(race: Race, shares: list[Share]) -> Outcome:
    """Return the figures of a race."""
    ends = sorted((end, number) for number, share in enumerate(shares) for _, end in share.spans)
    commits = len(ends)
    seconds = ends[-1][0] - min(share.spans[0][0] for share in shares)
    half = [number for _, number in ends[: commits // 2]]
    made = [half.count(number) for number in range(race.workers)]
    writes, leases = sum(s.counts.writes for s in shares), sum(s.counts.leases for s in shares)
    return Outcome(
        race=race,
        commits_per_second=commits / seconds,
        requests=(sum(s.counts.reads for s in shares) + writes + leases) / commits,
        attempts=writes / commits,
        leases=leases / commits,
        processor=1000 * sum(s.processor for s in shares) / commits,
        durations=[end - began for share in shares for began, end in share.spans],
        fairness=sum(made) ** 2 / (len(made) * sum(count**2 for count in made)),
    )
