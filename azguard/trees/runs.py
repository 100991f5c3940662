"""The phases of a run over a tree, a few files at a time; a later phase begins only if all before it went well.

A run tells how far it came: how many files and bytes of how many, and which file is in work.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from azguard.accounts.account import Target
from azguard.errors import AzguardError, GaveUp, Locked, Partial, Unavailable
from azguard.leases import state as lease_state
from azguard.requests import pool
from azguard.requests.deadline import Deadline
from azguard.requests.pool import DEFAULT_JOBS, FAILED, Done, Job, StoppableClock, conclude
from azguard.trees.items import NOT_TRIED, ROUNDS, SKIPPED, Failures, Outage, TreeItem, TreeSummary

# Each is a request more. A tree of thousands of files that are all leased is not looked at file by file.
_MOST_HOLDERS_NAMED = 10
_LOOK_SECONDS = 2.0


@dataclass(frozen=True)
class Reached:
    """How far a run came at one moment."""

    files: int = 0
    #: Of the files that ended and of those in work.
    bytes: int = 0
    #: None while the files are not counted.
    total_files: int | None = None
    total_bytes: int = 0
    #: The address of the file that is in work for the longest time; None if none is.
    name: str | None = None


@dataclass
class Headway:
    """Counts what the jobs of a run have done. Threads may use it at the same time."""

    _ended: Reached = field(default_factory=Reached)
    #: How many bytes of each file in work are moved, the oldest first.
    _in_work: dict[str, int] = field(default_factory=dict)
    _is_over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, address: str) -> None:
        """Note that a file is in work."""
        self.move(address, 0)

    def move(self, address: str, done: int) -> None:
        """Note how many bytes of a file are moved; fewer than before if it is begun anew."""
        with self._lock:
            self._in_work[address] = done

    def end(self, address: str, size: int) -> None:
        """Note that a file of so many bytes is in work no more, however it ended."""
        with self._lock:
            self._in_work.pop(address, None)
            self._ended = replace(self._ended, bytes=self._ended.bytes + size)

    def count_end(self) -> None:
        """Count a file that has its line."""
        with self._lock:
            self._ended = replace(self._ended, files=self._ended.files + 1)

    def look(self) -> Reached:
        """Return how far the run came."""
        with self._lock:
            moved = self._ended.bytes + sum(self._in_work.values())
            return replace(self._ended, bytes=moved, name=next(iter(self._in_work), None))

    def count_all(self, sizes: Iterable[int]) -> None:
        """Count how many files and bytes there are, beside the run; if that fails, the numbers stay unknown."""
        files = length = 0
        with suppress(AzguardError):
            for size in sizes:
                if self._is_over:
                    return
                files += 1
                length += size
            with self._lock:
                self._ended = replace(self._ended, total_files=files, total_bytes=length)

    def close(self) -> None:
        """Let nothing be counted any more."""
        self._is_over = True


@dataclass(frozen=True)
class Task:
    """A job that a function does."""

    #: Raises nothing: see ``pool.conclude``.
    run: Callable[[], Done]


def pass_over(address: str, file: str | None, reason: str, error: AzguardError | None = None) -> Task:
    """Return the job of a file that is left out, or that failed before anything was sent."""
    if error is not None:
        return Task(lambda: Done(address, FAILED, error.but(address=address)))
    return Task(TreeItem(address=address, file=file, outcome=SKIPPED, reason=reason).done)


@dataclass
class Control:
    """What the jobs of one run share: the time they have, how far they came, and whether they are to stop."""

    patience: Deadline
    headway: Headway = field(default_factory=Headway)
    clock: StoppableClock = field(default_factory=StoppableClock)
    is_stopped: bool = False
    outage: Outage = field(default_factory=lambda: Outage(ROUNDS * DEFAULT_JOBS))
    #: What is left of the looks for holders.
    _looks: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_MOST_HOLDERS_NAMED))

    def stop(self) -> None:
        """Let no job send anything more than it takes to settle what is under way."""
        self.is_stopped = True
        self.clock.stop()

    def conclude(self, address: str, work: Callable[[], Done], size: int = 0) -> Done:
        """Return how a file of so many bytes ended that asks the service.

        It is not tried where the service does not answer any more.
        """
        if self.outage.is_certain:
            return TreeItem(address, None, NOT_TRIED, reason="the service did not answer for those before").done()
        self.headway.begin(address)
        done = conclude(address, work)
        self.headway.end(address, size)
        self.outage.note(done)
        return done

    @contextmanager
    def name_holder(self, target: Target) -> Iterator[None]:
        """Add who holds the lease to what refuses a file; only for the first files that are refused so."""
        try:
            yield
        except Locked as error:
            if error.service_code not in lease_state.IN_THE_WAY:
                raise
            told = error.but(reason="tree_file_leased")
            if self._looks.acquire(blocking=False):
                told = lease_state.add_holder(told, target, self.deadline().restart(seconds=_LOOK_SECONDS))
            # A file has one line.
            raise told.but(message="; ".join((told.message, *told.detail)), detail=()) from error

    def deadline(self) -> Deadline:
        """Return the deadline of one file, which begins now."""
        return self.patience.restart_on(self.clock)

    def check(self, name: str) -> None:
        """End the job of a file of which nothing shows yet, if the run is to stop.

        Raises:
            GaveUp: it is.
        """
        if self.is_stopped:
            raise GaveUp(f"{name} was begun and not ended: the run was stopped", reason="tree_stopped")

    def meter(self, address: str) -> Callable[[int], None]:
        """Return the function that takes the number of moved bytes of one file."""
        return partial(self.headway.move, address)


def run_phases(
    address: str,
    phases: Sequence[Iterable[Job]],
    width: int,
    control: Control,
    on_end: Callable[[Done], None],
    on_summary: Callable[[TreeSummary], None],
) -> None:
    """Run each phase, ``width`` jobs at a time, while no job of an earlier one has failed.

    ``on_end`` is called for each file as it ends, ``on_summary`` once, also after an interruption. An interruption
    after the last file is ignored.

    Raises:
        Changed: some failed, all of them because of a conflict.
        Partial: some failed, or their outcome is unknown.
    """
    failures = Failures()

    def tell(done: Done) -> None:
        failures.note(done)
        control.headway.count_end()
        on_end(done)

    def goes_on(counts: Counter[str]) -> bool:
        return not TreeSummary.of(address, counts).wrong

    ended = pool.run_phases(phases, width, tell, control.stop, goes_on=goes_on)
    summary = TreeSummary.of(address, ended.counts)
    on_summary(summary)
    if ended.interruption is not None:
        raise _explain(ended.interruption, address)
    summary.check(failures)


def _explain(error: BaseException, address: str) -> BaseException:
    """Return the error for a run that ended after some files were done: it must not say that nothing was."""
    if isinstance(error, Unavailable):
        words = f"{address} could not be listed any more: {error.message}"
        return Partial(words, address=address, detail=error.detail, reason="tree_service_gone")
    if not isinstance(error, AzguardError):
        return error
    return error.as_kind(
        Partial,
        message=f"some files of {address} are done, and the rest is not: {error.message}",
        address=address,
        reason=error.reason or "some_files_failed",
    )


def after(phase: Callable[[], Iterable[Job]]) -> Iterator[Job]:
    """Yield the jobs of a phase, which are looked for only when it begins."""
    yield from phase()
