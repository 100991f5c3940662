"""The demonstration itself: an emulator of its own, answers that get lost, and three strategies to count.

It needs no account and leaves nothing behind: emulator, proxy and writers end with it, however it ends.
"""

import json
import os
import random
import selectors
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

from azguard.demo import worker
from azguard.demo.worker import READY, IncrementOutcome, Strategy, WriterJob
from azguard.emulators import background
from azguard.errors import AzguardError
from azguard.frozen import frozen
from azguard.processes import signals
from azguard.processes.signals import hold_back_interruptions
from azguard.wire import sdk

# The longest wait for output, so that the display shows the time go by.
_TICK_SECONDS = 0.1
# How many lines of standard error an error shows.
_SHOWN_LINES = 5
#: Which share of all answers is lost.
LOST_SHARE = 0.1


class CountVerdict(StrEnum):
    """What was found, beside what was expected."""

    TOO_FEW = "too few"
    TOO_MANY = "too many"
    EXACT = "exact"


@frozen
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
        return self.writers * self.increments


@frozen
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


@frozen
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


@frozen
class DemoResult:
    """What the demonstration found."""

    strategies: tuple[StrategyResult, ...]
    #: Whether azguard's own count is exact.
    exact: bool
    writers: int
    increments: int
    seed: int


class Writers:
    """Running writer processes that wait for jobs."""

    def __init__(self, children: list[Popen[bytes]], stderr: IO[bytes]) -> None:
        self._children = children
        self._stderr = stderr
        self._selector = selectors.DefaultSelector()
        self._rest: dict[int, bytes] = {}
        for child in children:
            assert child.stdout is not None
            self._selector.register(child.stdout.fileno(), selectors.EVENT_READ)
            self._rest[child.stdout.fileno()] = b""

    def await_ready(self) -> None:
        for counts in self._count_until(len(self._children)):
            assert set(counts) <= {READY}

    def run(self, job: WriterJob) -> Iterator[Counter[str]]:
        """Give all of them the same job; yield how many increments ended how, again and again until the end.

        Raises:
            AzguardError: one of them ended.
        """
        for child in self._children:
            assert child.stdin is not None
            try:
                child.stdin.write(job.line())
                child.stdin.flush()
            except BrokenPipeError:
                raise self._explain_exit() from None
        yield from self._count_until(len(self._children) * job.count)

    def close(self) -> None:
        self._selector.close()

    def _count_until(self, total: int) -> Iterator[Counter[str]]:
        counts: Counter[str] = Counter()
        yield counts
        while counts.total() < total:
            for key, _ in self._selector.select(_TICK_SECONDS):
                counts.update(self._read_lines(key.fd))
            yield counts

    def _read_lines(self, descriptor: int) -> list[str]:
        said = os.read(descriptor, 65536)
        if not said:
            raise self._explain_exit()
        *lines, self._rest[descriptor] = (self._rest[descriptor] + said).split(b"\n")
        return [line.decode() for line in lines]

    def _explain_exit(self) -> AzguardError:
        """Return the error of a writer that ended, with the last lines it wrote."""
        said = os.pread(self._stderr.fileno(), 1 << 20, 0).decode("utf-8", "replace")
        lines = [line for line in said.splitlines() if line.strip()]
        return AzguardError(
            "one of the demonstration's writers ended before its time",
            detail=tuple(lines[-_SHOWN_LINES:]),
            reason="demo_writer_failed",
        )


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
        ConfigError: there is no Node.js, or no SDK.
        Unavailable: Azurite could not be installed or started.
    """
    sdk.check_installed()
    with (
        signals.hold_temporary_folder("azguard-demo-") as folder,
        _start_writers(plan.writers, Path(folder), environ) as running,
        background.run_private_azurite(emulator, environ, say=say) as mine,
    ):
        running.await_ready()
        worker.open_container(mine.ports["blob"]).create_container()
        ended = tuple(_race(strategy, plan, running, mine.ports["blob"], watch) for strategy in Strategy)
    return DemoResult(
        strategies=ended,
        exact=ended[-1].verdict is CountVerdict.EXACT,
        writers=plan.writers,
        increments=plan.increments,
        seed=plan.seed,
    )


def judge_count(expected: int, found: int) -> CountVerdict:
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
    from azguard.demo import proxy

    # Not through the proxy: neither this write nor the last read is part of the race.
    blob = worker.open_blob(strategy, port)
    blob.upload_blob(worker.START)
    # Every strategy gets the same sequence of losses; which requests they hit depends on timing.
    with proxy.lose_answers(port, LOST_SHARE, random.Random(plan.seed)) as between:
        began = time.monotonic()
        for counts in running.run(WriterJob(strategy, between.port, plan.increments)):
            seconds = time.monotonic() - began
            watch(
                StrategyProgress(
                    name=strategy,
                    ended=counts.total(),
                    seconds=seconds,
                    requests=len(between.lost),
                    dropped=sum(between.lost),
                )
            )
    found = json.loads(blob.download_blob().readall())["count"]
    ended = StrategyResult(
        name=strategy,
        expected=plan.expected,
        found=found,
        verdict=judge_count(plan.expected, found),
        unknown=counts[IncrementOutcome.UNKNOWN],
        failed=counts[IncrementOutcome.FAILED],
        seconds=round(seconds, 1),
        requests=len(between.lost),
        dropped=sum(between.lost),
    )
    watch(ended)
    return ended


@contextmanager
def _start_writers(count: int, queues: Path, environ: Mapping[str, str]) -> Iterator[Writers]:
    """Start so many writer processes for the length of a ``with`` block; they end with it, and with this process."""
    import tempfile

    with tempfile.TemporaryFile() as stderr, ExitStack() as stack:
        children: list[Popen[bytes]] = []
        stack.callback(_end_writers, children)
        for _ in range(count):
            with hold_back_interruptions():
                children.append(_start_writer(queues, environ, stderr))
        writers = Writers(children, stderr)
        stack.callback(writers.close)
        yield writers


def _start_writer(queues: Path, environ: Mapping[str, str], stderr: IO[bytes]) -> Popen[bytes]:
    return Popen(
        [sys.executable, "-P", "-m", "azguard.demo.worker", str(queues)],
        env=_for_workers(environ),
        stdin=PIPE,
        stdout=PIPE,
        stderr=stderr,
        # Ctrl-C in the terminal must reach only this process, which then ends the writers.
        start_new_session=True,
    )


def _for_workers(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, "PYTHONPATH": os.pathsep.join(os.path.abspath(folder) for folder in sys.path)}


def _end_writers(children: list[Popen[bytes]]) -> None:
    for child in children:
        child.kill()
    for child in children:
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
