"""A lease that keeps others out between a comparison and a write, where the service itself does not compare.

Acquire it with an id that is recorded first, compare, write under it, give it back. A crash in between leaves a record
by which the lease can be found and released; one with a term also ends by itself.

Not guaranteed: it keeps out only what the service refuses without the lease id: see ``Operation.lease``.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Locked, OutcomeUnknown, Unavailable
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import actions, state
from azguard.leases.process_leases import ProcessLease, ProcessLeases
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import SHORTEST, kind_of
from azguard.requests import commits
from azguard.requests.deadline import Deadline

# A writer that dies blocks others no longer; and it is long enough to compare and write.
_SECONDS = SHORTEST
# The lease of another guarded write lasts a few round trips. One that lasts longer is a lock.
_OTHERS_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
# A lease under which several writes follow each other is renewed once it is this old.
_RENEW_SECONDS = 5.0


@frozen
class Term:
    """How long a lease lasts, where its kind has a term, and how long to wait for that of another guarded write."""

    seconds: int = _SECONDS
    others_seconds: float = _OTHERS_SECONDS


WRITE_TERM = Term()


@dataclass
class GuardLease:
    """A lease that is held while a write is guarded."""

    target: Target
    lease_id: str
    #: Whether it was acquired for this write; else it is the caller's.
    is_own: bool
    deadline: Deadline
    records: LeaseRecords
    #: Where our own is noted; None if it is not.
    processes: ProcessLeases | None = None
    #: When it ends at the latest, by the deadline's clock; None if it has no term, or the term is not known here.
    ends: float | None = None
    #: When it was acquired or renewed last, by the deadline's clock.
    since: float = field(init=False)
    #: Whether it has ended, as with its resource, so that there is nothing to give back.
    is_gone: bool = field(default=False, init=False)
    #: Whether a copy of the request for it may come late, and acquire it again once it is given back.
    may_come_late: bool = field(default=False, init=False)
    #: The note of it, by which the next azguard ends it if we are killed.
    note: ProcessLease | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.since = self.deadline.clock()

    @property
    def is_running(self) -> bool:
        """Return whether the lease is our own and its term is certainly not over."""
        return self.is_own and (self.ends is None or self.deadline.clock() < self.ends)

    def end_with_resource(self) -> None:
        """Note that what was leased is deleted or replaced: the lease is over, and the record of its holder gone."""
        self.is_gone = True
        self.end_record()

    def end_record(self) -> None:
        """Note that the record of the holder is not there, and cannot come any more."""
        if self.note is not None:
            self.note.end_record()

    @property
    def patience(self) -> Deadline:
        """Return a deadline by which a lost answer is noticed while the lease still proves whose a write was."""
        silence = min(self.deadline.answer_seconds, _SECONDS / 3)
        return replace(self.deadline, seconds=self.deadline.remaining, answer_seconds=silence)

    def acquire(self, seconds: int | None, etag: str | None, others_seconds: float) -> None:
        """Record a lease of our own, and acquire it; if that fails, nothing of it is left."""
        if self.processes is not None:
            self.note = self.processes.open(self.target, self.lease_id)
        self.records.add(self.target, self.lease_id, seconds)
        self.ends = None if seconds is None else self.deadline.clock() + seconds
        try:
            attempts = _acquire(self.target, self.lease_id, seconds, self.deadline, etag, others_seconds)
            self.may_come_late = attempts > 1
            if self.note is not None:
                self.note.note_attempts(attempts)
        except OutcomeUnknown as error:
            self._give_up()
            raise _build_unavailable(self.target, error) from error
        except AzguardError:
            self._forget()
            raise
        except BaseException:
            # Interrupted, it may be under way still, and come after the release.
            self._give_up()
            raise
        self.records.confirm(self.target, self.lease_id)

    def renew_if_old(self, deadline: Deadline) -> None:
        """Renew a lease of our own between two writes, long before its end; ``deadline`` counts for the next one.

        Raises:
            Locked: it is not held any more.
            Unavailable: whether it was renewed cannot be known; the next write was not sent.
        """
        self.deadline = deadline
        begun = deadline.clock()
        if not self.is_own or begun - self.since < _RENEW_SECONDS:
            return
        try:
            with commits.suppress():
                actions.renew(self.target, Conditions(lease_id=self.lease_id), deadline)
        except OutcomeUnknown as error:
            raise _build_unavailable(self.target, error) from error
        self.since = begun
        self.ends = None if self.ends is None else begun + _SECONDS

    def change_id(self, deadline: Deadline) -> None:
        """Give a lease of our own another id, so that a request under the old one that comes late is refused.

        Raises:
            Locked: it is not held any more.
            Unavailable: whether it was done cannot be known; the lease was given back.
        """
        new = replace(self, lease_id=str(uuid.uuid4()), deadline=deadline)
        if self.processes is not None:
            new.note = self.processes.open(self.target, new.lease_id)
            if self.note is not None:
                new.note.carry_on(self.note)
        self.records.add(self.target, new.lease_id, None if self.ends is None else _SECONDS)
        try:
            with commits.suppress():
                held = Conditions(lease_id=self.lease_id)
                attempts = actions.change(self.target, new.lease_id, held, deadline).attempts
        except BaseException as error:
            if new.note is not None and self.note is not None:
                new.note.leave_to(self.note)
            # The old id first: once that is released, a change that comes late is refused.
            self.give_back()
            new.give_back()
            if isinstance(error, OutcomeUnknown):
                raise _build_unavailable(self.target, error) from error
            raise
        if new.note is not None:
            new.note.note_attempts(attempts)
        self.records.confirm(self.target, new.lease_id)
        self.end_record()
        self._forget()
        self.lease_id, self.note, self.is_gone = new.lease_id, new.note, False

    def give_back(self) -> None:
        """Release a lease of our own, and raise no error; its note is left if it may be held still."""
        if self.is_gone or actions.give_back(self.target, self.lease_id, self.deadline):
            self._forget()
            return
        if self.note is not None:
            self.note.close(is_released=False)
        if not kind_of(self.target).finite:
            self.records.note_left(self.target)

    def _give_up(self) -> None:
        """Give back a lease that may be granted still: where it ends by itself, its id is kept meanwhile."""
        if self.note is not None:
            self.note.may_come_late()
        if not kind_of(self.target).finite:
            self.give_back()
        elif actions.give_back(self.target, self.lease_id, self.deadline, was_acquired=False):
            self._forget()
        else:
            self.records.give_up(self.target, self.lease_id, _SECONDS)

    def _forget(self) -> None:
        self.is_gone = True
        self.records.remove(self.target, self.lease_id)
        if self.note is not None:
            self.note.close(is_released=True)


@contextmanager
def hold(
    target: Target,
    lease_id: str | None,
    records: LeaseRecords,
    deadline: Deadline,
    etag: str | None = None,
    *,
    processes: ProcessLeases | None = None,
    term: Term = WRITE_TERM,
) -> Iterator[GuardLease]:
    """Hold a lease on a resource: the one that the caller holds already, or our own, which is given back at the end.

    ``processes`` keeps the note of ours, by which the next azguard on this machine ends it if we are killed.
    With an ``etag`` our own is acquired on that version alone, so that no late request acquires it once that is
    replaced. Without one, a lease that was asked for twice gets another id: a late request would bring it back after
    another program has broken it, and written.

    Raises:
        Changed: it is another version.
        Locked: another holds it.
        Unavailable: whether it was granted cannot be known; nothing was written.
    """
    if lease_id is not None:
        yield GuardLease(target, lease_id, is_own=False, deadline=deadline, records=records)
        return
    held = GuardLease(target, str(uuid.uuid4()), is_own=True, deadline=deadline, records=records, processes=processes)
    held.acquire(term.seconds if kind_of(target).finite else None, etag, term.others_seconds)
    if held.may_come_late and etag is None:
        held.change_id(deadline)
    try:
        yield held
    finally:
        held.give_back()


def _build_unavailable(target: Target, error: OutcomeUnknown) -> Unavailable:
    # Unknown is only whether it is leased now; the write that the lease is for was not sent.
    return Unavailable(f"no lease on {target} could be had in time", str(target.address), detail=error.detail)


def _acquire(
    target: Target, lease_id: str, seconds: int | None, deadline: Deadline, etag: str | None, others_seconds: float
) -> int:
    """Acquire it, and return how often that was sent; while another guarded write holds one, wait for a moment."""
    on = Conditions() if etag is None else Conditions({"If-Match": etag}, "if-match", etag)
    others = deadline.restart(seconds=min(others_seconds, deadline.remaining))
    while True:
        try:
            with commits.suppress():
                return actions.acquire(target, lease_id, seconds, on, deadline).attempts
        except Locked as error:
            if error.service_code != "LeaseAlreadyPresent" or others.passed or not _is_short(target, deadline):
                raise
        others.pause(_PAUSE_SECONDS)


def _is_short(target: Target, deadline: Deadline) -> bool:
    """Return whether the lease in the way may be that of another guarded write, which has a term where that exists."""
    if not kind_of(target).finite:
        return True
    try:
        return state.look(target, deadline).duration != "infinite"
    except AzguardError:
        return False
