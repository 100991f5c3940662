"""A run over a tree: a few files at a time, how far it came, how each of them ended, and the summary.

A run has phases: a later one begins only if all before it went well. It ends early where the service is gone.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, GaveUp, Locked, OutcomeUnknown, Partial, Unavailable
from azguard.frozen import frozen
from azguard.leases import state as lease_state
from azguard.requests import results
from azguard.requests.deadline import Deadline
from azguard.resources import pool
from azguard.resources.pool import DEFAULT_JOBS, FAILED, UNKNOWN, Done, Job, StoppableClock, conclude
from azguard.resources.tree_store import ListedItem
from azguard.times import say_count

CREATED = "created"
REPLACED = "replaced"
#: Created or replaced: the condition of the write does not tell.
WRITTEN = "written"
UNCHANGED = "unchanged"
EXISTS = "exists"
READ = "read"
DELETED = "deleted"
SKIPPED = "skipped"
#: Why a file is skipped that was not changed here, while another wrote it there.
NEWER_THERE = "theirs is newer"
#: Why a file would be refused.
CHANGED_SINCE = "it changed since it was read here"
#: Why what was listed is skipped.
GONE_THERE = "it was deleted there since it was listed"
#: A directory that is not empty.
KEPT = "kept"
#: The service did not answer any more for those before it.
NOT_TRIED = "not tried"
#: What a dry run says would happen.
WOULD_CREATE = "would create"
WOULD_REPLACE = "would replace"
WOULD_READ = "would read"
WOULD_DELETE, WOULD_REFUSE = results.WOULD_DELETE, results.WOULD_REFUSE
# Each file waits for its own deadline. After two rounds of them the next one would wait in vain, too.
ROUNDS = 2
# Each is a request more. A tree of thousands of files that are all leased is not looked at file by file.
_MOST_HOLDERS_NAMED = 10
_LOOK_SECONDS = 2.0


@frozen
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

    #: How many files ended, and how many bytes they have.
    _files: int = 0
    _bytes: int = 0
    #: How many files and bytes there are, once they are counted.
    _totals: tuple[int | None, int] = (None, 0)
    #: How many bytes of each file in work are moved, the oldest first.
    _in_work: dict[str, int] = field(default_factory=dict)
    _is_over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, address: str) -> None:
        self.move(address, 0)

    def move(self, address: str, done: int) -> None:
        """Note how many bytes of a file are moved; fewer than before if it is begun anew."""
        with self._lock:
            self._in_work[address] = done

    def end(self, address: str, size: int) -> None:
        """Note that a file of so many bytes is in work no more, however it ended."""
        with self._lock:
            self._in_work.pop(address, None)
            self._bytes += size

    def count_end(self) -> None:
        with self._lock:
            self._files += 1

    def look(self) -> Reached:
        with self._lock:
            moved = self._bytes + sum(self._in_work.values())
            return Reached(self._files, moved, *self._totals, next(iter(self._in_work), None))

    def count_all(self, sizes: Iterable[int]) -> None:
        """Count how many files and bytes there are, beside the run; if that fails, the numbers stay unknown."""
        files = length = 0
        with suppress(AzguardError):
            for size in sizes:
                if self._is_over:
                    return
                files += 1
                length += size
            self._totals = files, length

    def close(self) -> None:
        self._is_over = True


@frozen
class TreeItem:
    """How one file of a tree ended."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.TREE_OUTCOME, columns.CONTENT_LENGTH, columns.ETAG, columns.REASON)

    address: str
    file: str | None
    outcome: str
    #: None where nothing was read or written, and where a lost answer was settled without learning it.
    etag: str | None = None
    last_modified: datetime | None = None
    content_length: int | None = None
    guard: str | None = None
    #: Why it was skipped or kept, or would be refused.
    reason: str | None = None

    def done(self) -> Done:
        """Return this end of a job; newer versions have a number of their own in the summary."""
        is_newer = (self.outcome, self.reason) == (SKIPPED, NEWER_THERE)
        return Done(self.address, f"{SKIPPED} ({NEWER_THERE})" if is_newer else self.outcome, result=self)

    @classmethod
    def of_write(cls, target: Target, file: str | None, outcome: str, written: Any) -> "TreeItem":
        """Return the item of a write that was committed."""
        return cls(
            address=str(target.address),
            file=file,
            outcome=outcome,
            etag=written.etag,
            last_modified=written.last_modified,
            content_length=getattr(written, "content_length", None),
            guard=getattr(written, "guard", None),
        )

    @classmethod
    def of_listed(
        cls,
        target: Target,
        file: Path | None,
        outcome: str,
        listed: ListedItem,
        *,
        guard: str | None = None,
        reason: str | None = None,
    ) -> "TreeItem":
        """Return the item of a file that is left alone in the version that was listed, or would be read or deleted."""
        return cls(
            address=str(target.address),
            file=None if file is None else str(file),
            outcome=outcome,
            etag=listed.etag,
            last_modified=listed.last_modified,
            content_length=listed.content_length,
            guard=guard,
            reason=reason,
        )


@dataclass
class Failures:
    """Of which kinds the failures of a run are."""

    exit_codes: set[int] = field(default_factory=set)
    reasons: set[str | None] = field(default_factory=set)
    #: Whether another run may do what this one did not.
    is_retriable: bool = False

    def note(self, done: Done) -> None:
        if done.error is not None:
            self.exit_codes.add(done.error.exit_code)
            self.reasons.add(done.error.reason)
            self.is_retriable |= done.error.retriable or done.outcome == UNKNOWN

    def build_error(self, message: str, address: str) -> AzguardError:
        """Return the error that stands for all: where another writer is the cause of each, it is a conflict, too."""
        if self.exit_codes == {Changed.exit_code}:
            is_here = self.reasons == {"copy_changed_here"}
            return Changed(message, address=address, reason="copies_changed_here" if is_here else "tree_conflicts")
        return Partial(message, address=address, reason="some_files_busy" if self.is_retriable else "some_files_failed")


@frozen
class TreeSummary:
    """How many files of a tree ended in which way."""

    address: str
    #: How many of each outcome; only those that there were.
    outcomes: dict[str, int]

    @classmethod
    def of(cls, address: str, counts: Counter[str]) -> "TreeSummary":
        return cls(address, {outcome: count for outcome, count in sorted(counts.items()) if count})

    @property
    def wrong(self) -> int:
        """Return how many failed, have an outcome that is not known, or were not tried."""
        return sum(self.outcomes.get(each, 0) for each in (FAILED, UNKNOWN, NOT_TRIED))

    def check(self, failures: Failures) -> None:
        """Refuse to call it done if not all files ended well.

        Raises:
            Changed: some failed, and all of these are conflicts.
            Partial: some failed, were not tried, or their outcome is unknown.
        """
        if not self.wrong:
            return
        total = sum(self.outcomes.values())
        counts = [f"{self.outcomes[each]} {each}" for each in (FAILED, UNKNOWN, NOT_TRIED) if self.outcomes.get(each)]
        message = f"{self.wrong} of {say_count(total, 'file')} of {self.address}: {', '.join(counts)}"
        if NOT_TRIED in self.outcomes:
            gone = f"{message}, since the service did not answer any more"
            raise Partial(gone, address=self.address, reason="tree_service_gone")
        raise failures.build_error(message, self.address)


@dataclass
class Outage:
    """Whether the service is gone, as far as the ends of files tell. Threads may use it at the same time."""

    #: After so many files in a row that did not reach it.
    most: int
    _in_a_row: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_certain(self) -> bool:
        """Return whether no other file is to be tried."""
        return self._in_a_row >= self.most

    def note(self, done: Done) -> None:
        """Count a file that did not reach the service; one that was answered proves that the service is there."""
        with self._lock:
            if _is_lost(done.error):
                self._in_a_row += 1
            elif _is_answered(done) and not self.is_certain:
                self._in_a_row = 0


def _is_lost(error: AzguardError | None) -> bool:
    is_unanswered = isinstance(error, OutcomeUnknown) and isinstance(error.__cause__, Unavailable)
    return is_unanswered or isinstance(error, Unavailable)


def _is_answered(done: Done) -> bool:
    """Return whether the end of a file needed an answer: what only this machine says proves nothing."""
    return done.outcome != UNCHANGED if done.error is None else done.error.http_status is not None


@frozen
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
    #: Records what is gathered to be recorded of the files that ended.
    settle: Callable[[], None] = lambda: None
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

    ended = pool.run_phases(phases, width, tell, control.stop, goes_on=goes_on, settle=control.settle)
    summary = TreeSummary.of(address, ended.counts)
    on_summary(summary)
    if ended.interruption is not None:
        raise _explain(ended.interruption, address)
    summary.check(failures)


def _explain(error: BaseException, address: str) -> BaseException:
    """Return the error for a run that ended after some files were done: a partial success."""
    if isinstance(error, Unavailable):
        words = f"{address} could not be listed any more: {error.message}"
        return Partial(words, address=address, detail=error.detail, reason="tree_service_gone")
    if not isinstance(error, AzguardError):
        return error
    words = f"some files of {address} are done, and the rest is not: {error.message}"
    return error.as_kind(Partial, message=words, address=address, reason=error.reason or "some_files_failed")


def after(phase: Callable[[], Iterable[Job]]) -> Iterator[Job]:
    """Yield the jobs of a phase, which are looked for only when it begins."""
    yield from phase()
