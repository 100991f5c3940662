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
from azguard.demo.strategies import Outcome, Strategy
from azguard.demo.worker import Job
from azguard.demo.writers import Writers
from azguard.emulators import azurite

if TYPE_CHECKING:
    from azguard.faultproxy.proxy import Answer

LOST_SHARE = 0.1


class Verdict(StrEnum):
    """What was found, beside what was expected."""

    TOO_FEW = "too few"
    TOO_MANY = "too many"
    EXACT = "exact"


@dataclass(frozen=True)
class DemoPlan:
    """How many processes apply how many increments each, and the seed of which answers are lost."""

    writers: int
    increments: int
    seed: int

    @property
    def expected(self) -> int:
        """Return the count that is right in the end."""
        return self.writers * self.increments


@dataclass(frozen=True)
class Progress:
    """A strategy that runs: increments that have ended, requests answered, answers lost."""

    name: str
    ended: int
    seconds: float
    requests: int
    dropped: int


@dataclass(frozen=True)
class StrategyResult:
    """How a strategy ended."""

    name: str
    expected: int
    found: int
    verdict: Verdict
    #: Increments that ended with an error that leaves open whether they were applied.
    unknown: int
    #: Increments that ended with an error that says that they were not applied.
    failed: int
    seconds: float
    #: Requests that the emulator answered.
    requests: int
    #: Answers that the client never got.
    dropped: int


@dataclass(frozen=True)
class Result:
    """What the demonstration found; ``exact`` is azguard's own verdict."""

    strategies: tuple[StrategyResult, ...]
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
    watch: Callable[[Progress | StrategyResult], None],
) -> Result:
    """Run the three ways, one after the other.

    ``emulator`` is the folder in which Azurite is looked for and installed. ``watch`` is told of progress several
    times a second, and of each strategy's end.

    Raises:
        ConfigError: there is no Node.js.
        Unavailable: Azurite could not be installed or started.
    """
    import tempfile

    with (
        tempfile.TemporaryDirectory(prefix="azguard-demo-") as folder,
        writers.started(plan.writers, Path(folder), environ) as running,
        azurite.private(emulator, environ, say=say) as mine,
    ):
        running.await_ready()
        strategies.container(mine.ports["blob"]).create_container()
        ended = tuple(_race(strategy, plan, running, mine.ports["blob"], watch) for strategy in Strategy)
    return Result(ended, ended[-1].verdict is Verdict.EXACT, plan.writers, plan.increments, plan.seed)


def verdict(expected: int, found: int) -> Verdict:
    """Compare two counts."""
    if found == expected:
        return Verdict.EXACT
    return Verdict.TOO_FEW if found < expected else Verdict.TOO_MANY


def _race(
    strategy: Strategy, plan: DemoPlan, running: Writers, port: int, watch: Callable[[Progress | StrategyResult], None]
) -> StrategyResult:
    from azguard.faultproxy import proxy

    # Past the proxy: neither this write nor the last look is part of the race.
    blob = strategies.blob(strategy, port)
    blob.upload_blob(strategies.START)
    # Every strategy meets the same sequence of losses; whom they hit is up to the race.
    with proxy.running(port, proxy.losing(LOST_SHARE, random.Random(plan.seed))) as between:
        began = time.monotonic()
        for counts in running.run(Job(strategy, between.port, plan.increments)):
            seconds = time.monotonic() - began
            watch(Progress(strategy, counts.total(), seconds, len(between.log), _lost(between.log)))
    found = json.loads(blob.download_blob().readall())["count"]
    ended = StrategyResult(
        strategy, plan.expected, found, verdict(plan.expected, found), counts[Outcome.UNKNOWN], counts[Outcome.FAILED],
        round(seconds, 1), len(between.log), _lost(between.log),
    )  # fmt: skip
    watch(ended)
    return ended


def _lost(log: "list[Answer]") -> int:
    return sum(answer.dropped for answer in log)
