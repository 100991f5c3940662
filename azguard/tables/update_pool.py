"""Updates of many entities, a few at a time, and how they ended.

The main thread only waits; the updates are begun, made and counted in others. A signal interrupts the main thread
alone, so that no interruption, whenever it comes, loses the count of what was committed.
"""

import _thread
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue

from azguard.errors import AzguardError, NotFound, OutcomeUnknown, TransformFailed
from azguard.requests.deadline import Deadline
from azguard.tables.updating import VersionedEntity
from azguard.updates import update as updates
from azguard.updates.plan import UpdateHooks, UpdatePlan

UPDATED = "updated"
UNCHANGED = "unchanged"
SKIPPED = "skipped"
FAILED = "failed"
UNKNOWN = "unknown"
# Longer than any deadline.
_FOREVER_SECONDS = 1e9


class NoLongerMatches(TransformFailed):
    """Another writer changed the entity, so that it is not to be updated any more."""


@dataclass(frozen=True)
class Update:
    """One entity's update, ready to run."""

    resource: VersionedEntity
    plan: UpdatePlan
    deadline: Deadline
    tools: UpdateHooks


@dataclass(frozen=True)
class Done:
    """How one entity's update ended."""

    address: str
    outcome: str
    #: Why it failed or is unknown; None of one that ended well.
    error: AzguardError | None = None


class StoppableClock:
    """Time that can be made to run out: then every deadline is over that began before, and none that begins after."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_stopped = False

    def __call__(self) -> float:
        return self._clock() + (_FOREVER_SECONDS if self._is_stopped else 0.0)

    def stop(self) -> None:
        """Let every deadline pass."""
        self._is_stopped = True


class Tally:
    """How many updates are under way, and how the others ended.

    What the main thread calls of it uses locks and queues written in C alone: a signal can leave others locked.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = Counter[str]()
        self._under_way = 0
        self._is_closed = False
        #: Has an item once the tally is closed and no update is under way.
        self._idle = SimpleQueue[None]()
        self._failures = deque[Done]()
        #: Has an item for each failure, and one when all is over.
        self._news = SimpleQueue[None]()
        #: Whether the updates came to an end by themselves.
        self.is_over = False
        #: Why there are no more updates, if the query failed.
        self.failure: BaseException | None = None

    @property
    def counts(self) -> Counter[str]:
        """Return how many updates ended in each way; how those under way end is not known."""
        with self._lock:
            return self._ended + Counter({UNKNOWN: self._under_way})

    @property
    def is_complete(self) -> bool:
        """Return whether every entity that matches was updated, so that an interruption comes too late to be one."""
        return self.is_over and self.failure is None

    @property
    def is_closed(self) -> bool:
        """Return whether no other update may begin."""
        return self._is_closed

    def run(self, update: Update) -> None:
        """Make one update and count its end, in a thread of the pool."""
        with self._lock:
            if self._is_closed:
                return
            self._under_way += 1
        done = _run_one(update)
        with self._lock:
            self._under_way -= 1
            self._ended[done.outcome] += 1
            if done.error is not None:
                self._failures.append(done)
                self._news.put(None)
            if self._is_closed and not self._under_way:
                self._idle.put(None)

    def finish(self, failure: BaseException | None) -> None:
        """Note that there are no more updates, and why if the query failed."""
        with self._lock:
            self.failure = failure
            self.is_over = not self._is_closed
            self._news.put(None)

    def wait(self) -> None:
        """Wait for the next failure, or until all is over."""
        self._news.get()

    def close(self) -> None:
        """Let no other update begin, and wait until those under way have ended."""
        with self._lock:
            self._is_closed = True
            is_idle = not self._under_way
        if not is_idle:
            self._idle.get()

    def report_failures(self, report: Callable[[Done], None]) -> None:
        """Report each update that failed, or whose outcome is unknown, since the last call."""
        while self._failures:
            report(self._failures[0])
            # Only now: if it is interrupted in between, a failure is reported twice rather than never.
            self._failures.popleft()


def run_each(
    updates: Iterable[Update], jobs: int, tally: Tally, on_failure: Callable[[Done], None], stop: Callable[[], None]
) -> None:
    """Run the updates, so many at a time, and report each failure as it happens.

    Whatever interrupts it, Ctrl-C or an error of ``updates``: no other update begins, ``stop`` is called, and what is
    under way is settled before the interruption goes on. If that is interrupted too, the outcome of what is still
    under way counts as unknown.
    """
    try:
        # Not threading.Thread, whose start takes locks that a signal can leave locked.
        _thread.start_new_thread(_drive, (updates, jobs, tally, stop))
        while not tally.is_over:
            tally.wait()
            tally.report_failures(on_failure)
    except BaseException:
        stop()
        tally.close()
        tally.report_failures(on_failure)
        raise
    if tally.failure is not None:
        raise tally.failure


def _drive(updates: Iterable[Update], jobs: int, tally: Tally, stop: Callable[[], None]) -> None:
    """Begin the updates, in a thread that no signal interrupts."""
    failure: BaseException | None = None
    with ThreadPoolExecutor(jobs, "update") as pool:
        running = set[Future[None]]()
        try:
            for update in updates:
                if tally.is_closed:
                    break
                running.add(pool.submit(tally.run, update))
                if len(running) == jobs:  # None waits, since its deadline has begun.
                    running = wait(running, return_when=FIRST_COMPLETED).not_done
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
            failure = error
            stop()
    tally.finish(failure)


def _run_one(update: Update) -> Done:
    address = str(update.resource.target.address)
    try:
        ended = updates.update(update.resource, update.plan, update.deadline, update.tools)
    except NoLongerMatches:
        return Done(address, SKIPPED)
    except AzguardError as error:
        if isinstance(error, NotFound) and error.service_code is None:
            return Done(address, SKIPPED)  # It was deleted meanwhile.
        outcome = UNKNOWN if isinstance(error, OutcomeUnknown) else FAILED
        return Done(address, outcome, error.but(address=error.address or address))
    # One entity's failure must not hide the outcomes of the others; how far an unexpected one got is not known.
    except Exception as error:  # noqa: BLE001  # an unexpected failure is an outcome too
        return Done(address, UNKNOWN, AzguardError(f"{type(error).__name__}: {error}", address=address))
    # Without an attempt it was an earlier run of the same key that wrote it.
    return Done(address, UPDATED if ended.outcome == "committed" and ended.attempts else UNCHANGED)
