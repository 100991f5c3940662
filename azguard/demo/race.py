"""The demonstration itself: an emulator of its own, answers that get lost, and three strategies to count.

It needs no account and leaves nothing behind: emulator, proxy and writers end with it, however it ends.
"""

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from azguard.demo import strategies, writers
from azguard.demo.strategies import IncrementOutcome, Strategy
from azguard.demo.worker import WriterJob
from azguard.demo.writers import Writers
from azguard.emulators import azurite
from azguard.processes import signals

if TYPE_CHECKING:
    from azguard.faultproxy.proxy import Answer

#: Which share of all answers is lost.
LOST_SHARE = 0.1


class CountVerdict(StrEnum):
    """What was found, beside what was expected."""

    TOO_FEW = "too few"
    TOO_MANY = "too many"
    EXACT = "exact"


@dataclass(frozen=True)
class DemoPlan:
    """What to run."""

    #: How many processes.
    writers: int
    #: How many increments each of them applies.
    increments: int
    #: Decides which answers are lost.
    seed: int

    @property
    def expected(self) -> int:
        """Return the count that is right in the end."""
        return self.writers * self.increments


@dataclass(frozen=True)
class StrategyProgress:
    """How far a strategy is."""

    name: str
    #: Increments that have ended.
    ended: int
    seconds: float
    #: Requests that the emulator answered.
    requests: int
    #: Answers that were lost.
    dropped: int


@dataclass(frozen=True)
class StrategyResult:
    """How a strategy ended."""

    name: str
    expected: int
    found: int
    verdict: CountVerdict
    #: Increments that ended with an error that leaves open whether they were applied.
    unknown: int
    #: Increments that ended with an error that says that they were not applied.
    failed: int
    seconds: float
    #: Requests that the emulator answered.
    requests: int
    #: Answers to them that the client never received.
    dropped: int


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found."""

    strategies: tuple[StrategyResult, ...]
    #: Whether azguard's own count is exact.
    exact: bool
    writers: int
    increments: int
    seed: int


def run(
    plan: DemoPlan,
    emulator: Path,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
    watch: Callable[[StrategyProgress | StrategyResult], None],
) -> DemoResult:
    """Run the three strategies, one after the other.

    ``emulator`` is the folder in which Azurite is looked for and installed. ``watch`` is called with the progress
    several times a second, and with the result of each strategy.

    Raises:
        ConfigError: there is no Node.js.
        Unavailable: Azurite could not be installed or started.
    """
    with (
        signals.hold_temporary_folder("azguard-demo-") as folder,
        writers.start(plan.writers, Path(folder), environ) as running,
        azurite.private(emulator, environ, say=say) as mine,
    ):
        running.await_ready()
        strategies.container(mine.ports["blob"]).create_container()
        ended = tuple(_race(strategy, plan, running, mine.ports["blob"], watch) for strategy in Strategy)
    return DemoResult(
        strategies=ended,
        exact=ended[-1].verdict is CountVerdict.EXACT,
        writers=plan.writers,
        increments=plan.increments,
        seed=plan.seed,
    )


def verdict(expected: int, found: int) -> CountVerdict:
    """Compare two counts."""
    if found == expected:
        return CountVerdict.EXACT
    return CountVerdict.TOO_FEW if found < expected else CountVerdict.TOO_MANY


def _race(
    strategy: Strategy,
    plan: DemoPlan,
    running: Writers,
    port: int,
    watch: Callable[[StrategyProgress | StrategyResult], None],
) -> StrategyResult:
    from azguard.faultproxy import proxy

    # Not through the proxy: neither this write nor the last read is part of the race.
    blob = strategies.blob(strategy, port)
    blob.upload_blob(strategies.START)
    # Every strategy gets the same sequence of losses; which requests they hit depends on timing.
    with proxy.running(port, proxy.losing(LOST_SHARE, random.Random(plan.seed))) as between:
        began = time.monotonic()
        for counts in running.run(WriterJob(strategy, between.port, plan.increments)):
            seconds = time.monotonic() - began
            watch(
                StrategyProgress(
                    name=strategy,
                    ended=counts.total(),
                    seconds=seconds,
                    requests=len(between.log),
                    dropped=_count_lost(between.log),
                )
            )
    found = json.loads(blob.download_blob().readall())["count"]
    ended = StrategyResult(
        name=strategy,
        expected=plan.expected,
        found=found,
        verdict=verdict(plan.expected, found),
        unknown=counts[IncrementOutcome.UNKNOWN],
        failed=counts[IncrementOutcome.FAILED],
        seconds=round(seconds, 1),
        requests=len(between.log),
        dropped=_count_lost(between.log),
    )
    watch(ended)
    return ended


def _count_lost(log: "list[Answer]") -> int:
    return sum(answer.dropped for answer in log)
