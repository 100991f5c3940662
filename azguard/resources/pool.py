"""Jobs that write, a few at a time, and how they ended.

The main thread only waits; the jobs are begun, run and counted in others. A signal interrupts the main thread alone, so
that no interruption, whenever it comes, loses the count of what was committed.
"""

import _thread
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from azguard.errors import AzguardError, OutcomeUnknown
from azguard.frozen import frozen
from azguard.requests import commits, trace
from azguard.wire.connections import CONNECTIONS

# More threads would wait for each other: Python runs one at a time.
DEFAULT_JOBS = 16
# Each job needs a connection.
MOST_JOBS = CONNECTIONS
FAILED = "failed"
UNKNOWN = "unknown"
# So many ends may wait to be told: no other job begins while the reader of the lines is that far behind.
_MOST_UNTOLD = 10_000
_READER_PAUSE_SECONDS = 0.05
# Ends that follow one another so soon are told together: to wake up for each costs more than to tell it.
_GATHERING_SECONDS = 0.02
# A signal that comes in the moment before a wait begins does not end it, and is noticed when the wait is over.
_LONGEST_WAIT_SECONDS = 0.5
# Longer than any deadline.
_FOREVER_SECONDS = 1e9


@frozen
class Done:
    """How one job ended."""

    address: str
    outcome: str
    #: Why it failed or is unknown; None of one that ended well.
    error: AzguardError | None = None
    #: What it delivers besides.
    result: Any = None


class Job(Protocol):
    """One write, ready to run."""

    def run(self) -> Done:
        """Make the write and return how it ended; it raises nothing: see ``conclude``."""


def conclude(address: str, work: Callable[[], Done]) -> Done:
    """Return how the work ended; an error of it is an end too."""
    try:
        return work()
    except AzguardError as error:
        outcome = UNKNOWN if isinstance(error, OutcomeUnknown) else FAILED
        return Done(address, outcome, error.but(address=error.address or address))
    # One job's failure must not hide the outcomes of the others; how far an unexpected one got is not known.
    except Exception as error:  # noqa: BLE001  # an unexpected failure is an outcome too
        return Done(address, UNKNOWN, AzguardError(f"{type(error).__name__}: {error}", address=address))


class StoppableClock:
    """Time that can be made to run out: then every deadline is over that began before, and none that begins after."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: Whether it has run out.
        self.is_stopped = False

    def __call__(self) -> float:
        return self._clock() + (_FOREVER_SECONDS if self.is_stopped else 0.0)

    def stop(self) -> None:
        """Let every deadline pass."""
        self.is_stopped = True


class Tally:
    """How many jobs are under way, and how the others ended.

    What the main thread calls of it uses locks and queues written in C alone: a signal can leave others locked.
    """

    def __init__(self, *, is_prompt: bool = True, settle: Callable[[], None] = lambda: None) -> None:
        #: Called before ends are told: it records what they have left to be recorded.
        self._settle = settle
        #: Whether each end is told at once, and not together with those that follow soon.
        self._is_prompt = is_prompt
        #: What the trace of the jobs names; see ``trace.line_command``.
        self.command = trace.line_command.get()
        self._lock = threading.Lock()
        self._ended = Counter[str]()
        self._under_way = 0
        self._is_closed = False
        #: Has an item once the tally is closed and no job is under way.
        self._idle = SimpleQueue[None]()
        self._untold = deque[Done]()
        #: Has an item once a job has ended while no other end waited to be told, and one when all is over.
        self._news = SimpleQueue[None]()
        #: Has an item once all is over.
        self._over = SimpleQueue[None]()
        #: Whether the jobs came to an end by themselves.
        self.is_over = False
        #: Why there are no more jobs, if what makes them failed.
        self.failure: BaseException | None = None

    @property
    def counts(self) -> Counter[str]:
        """Return how many jobs ended in each way; how those under way end is not known."""
        with self._lock:
            return self._ended + Counter({UNKNOWN: self._under_way})

    @property
    def is_complete(self) -> bool:
        """Return whether every job was run, so that an interruption comes too late to be one."""
        return self.is_over and self.failure is None

    @property
    def lags(self) -> bool:
        """Return whether so many ends wait to be told that no other job may begin."""
        return len(self._untold) >= _MOST_UNTOLD

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def run(self, job: Job) -> None:
        """Run one job and count its end, in a thread of the pool."""
        with self._lock:
            if self._is_closed:
                return
            self._under_way += 1
        done: Done | None = None
        try:
            done = job.run()
        finally:
            self._end(done)

    def _end(self, done: Done | None) -> None:
        """Count the end of a job; None of one that has raised, against its promise."""
        with self._lock:
            self._under_way -= 1
            self._ended[UNKNOWN if done is None else done.outcome] += 1
            if done is not None:
                self._untold.append(done)
                if len(self._untold) == 1:
                    self._news.put(None)
            if self._is_closed and not self._under_way:
                self._idle.put(None)

    def finish(self, failure: BaseException | None) -> None:
        """Note that there are no more jobs, and why if what makes them failed."""
        with self._lock:
            self.failure = failure
            self.is_over = not self._is_closed
            self._news.put(None)
            self._over.put(None)

    def wait(self) -> None:
        """Wait until the next job ends, or all is over, or for a moment."""
        with suppress(Empty):
            self._news.get(timeout=_LONGEST_WAIT_SECONDS)
            if not self._is_prompt:
                self._over.get(timeout=_GATHERING_SECONDS)

    def close(self) -> None:
        """Let no other job begin, and wait until those under way have ended."""
        with self._lock:
            self._is_closed = True
            is_idle = not self._under_way
        while not is_idle:
            with suppress(Empty):
                self._idle.get(timeout=_LONGEST_WAIT_SECONDS)
                is_idle = True

    def report_ended(self, report: Callable[[Done], None]) -> None:
        """Report each job that ended since the last call."""
        while count := len(self._untold):
            self._settle()
            for _ in range(count):
                report(self._untold[0])
                # Only now: if it is interrupted in between, an end is reported twice rather than never.
                self._untold.popleft()


def run_each(
    jobs: Iterable[Job], width: int, tally: Tally, on_end: Callable[[Done], None], stop: Callable[[], None]
) -> None:
    """Run the jobs, ``width`` at a time, and report how each ended.

    A job is taken from ``jobs`` when it can begin, so that its deadline may begin then, too.

    Whatever interrupts it, Ctrl-C or an error of ``jobs``: no other job begins, ``stop`` is called, and what is
    under way is settled before the interruption goes on. If that is interrupted too, the outcome of what is still
    under way counts as unknown.
    """
    try:
        # Not threading.Thread, whose start takes locks that a signal can leave locked.
        _thread.start_new_thread(_drive, (jobs, width, tally, stop))
        while not tally.is_over:
            tally.wait()
            tally.report_ended(on_end)
        # A job may have ended, and with it all, since the last look.
        tally.report_ended(on_end)
    except BaseException:
        stop()
        tally.close()
        tally.report_ended(on_end)
        raise
    if tally.failure is not None:
        raise tally.failure


class PoolEnd(NamedTuple):
    """How a run of jobs ended, to be told before its interruption goes on."""

    #: How many jobs ended in each way.
    counts: Counter[str]
    #: What interrupted the run; None if nothing did, or Ctrl-C did after the last job.
    interruption: BaseException | None


def run_phases(
    phases: Sequence[Iterable[Job]],
    width: int,
    on_end: Callable[[Done], None],
    stop: Callable[[], None],
    *,
    goes_on: Callable[[Counter[str]], bool] = lambda counts: True,
    settle: Callable[[], None] = lambda: None,
    is_prompt: bool = False,
) -> PoolEnd:
    """Run the jobs of each phase as ``run_each`` does, while ``goes_on`` agrees to what the phases before came to.

    ``is_prompt`` reports each end at once, for a reader that waits for it before it asks for more.

    When it returns, signals are ignored, so that what was committed is told.

    Raises:
        BaseException: what interrupted it before the first job; there is nothing to tell.
    """
    tallies: list[Tally] = []
    is_complete = False
    try:
        for phase in phases:
            if not goes_on(_sum(tallies)):
                break
            tallies.append(Tally(is_prompt=is_prompt, settle=settle))
            run_each(phase, width, tallies[-1], on_end, stop)
        is_complete = True
        commits.announce()
    except BaseException as interruption:
        commits.announce()
        counts = _sum(tallies)
        if not counts:
            raise
        is_complete |= len(tallies) == len(phases) and tallies[-1].is_complete
        return PoolEnd(counts, None if is_complete and isinstance(interruption, KeyboardInterrupt) else interruption)
    return PoolEnd(_sum(tallies), None)


def _sum(tallies: Iterable[Tally]) -> Counter[str]:
    return sum((each.counts for each in tallies), Counter[str]())


def _drive(jobs: Iterable[Job], width: int, tally: Tally, stop: Callable[[], None]) -> None:
    """Run the jobs in this and in further threads, which no signal interrupts."""
    supply = _Supply(jobs, width, tally, stop)
    supply.work()
    for thread in supply.threads:
        thread.join()
    tally.finish(supply.failure)


class _Supply:
    """Threads that each take a job when they can begin it: to hand jobs over to them would cost a switch for each."""

    def __init__(self, jobs: Iterable[Job], width: int, tally: Tally, stop: Callable[[], None]) -> None:
        self._jobs = iter(jobs)
        self._width = width
        self._tally = tally
        self._stop = stop
        self._lock = threading.Lock()
        self._is_over = False
        #: All but the first one. None is added once the jobs are over.
        self.threads: list[threading.Thread] = []
        #: Why there are no more jobs, if what makes them failed.
        self.failure: BaseException | None = None

    def work(self) -> None:
        """Run jobs until there are no more."""
        trace.line_command.set(self._tally.command)
        while (job := self._take()) is not None:
            try:
                self._tally.run(job)
            except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
                self._end(error)

    def _take(self) -> Job | None:
        """Return the next job, None if there is none, and have another thread take the one after it."""
        with self._lock:
            if self._is_over:
                return None
            job: Job | None = None
            try:
                self._wait_for_reader()
                if not self._tally.is_closed:
                    job = next(self._jobs, None)
                if job is not None and len(self.threads) < self._width - 1:
                    self._add_thread()
            except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
                self.failure = error
                self._stop()
            self._is_over = job is None
            return job

    def _end(self, error: BaseException) -> None:
        """Let no other job begin: one has raised an error, against its promise."""
        with self._lock:
            self.failure = self.failure or error
            self._is_over = True
        self._stop()

    def _wait_for_reader(self) -> None:
        while self._tally.lags and not self._tally.is_closed:
            time.sleep(_READER_PAUSE_SECONDS)  # the threads that work tell by no event how far they are

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self.work, name=f"job_{len(self.threads)}")
        with suppress(RuntimeError):  # Where the system has no thread left, those that run take all jobs.
            thread.start()
            self.threads.append(thread)
