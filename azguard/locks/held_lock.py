"""A lock that is held: renew its lease until told to stop, tell when it is lost, release it, end one that is overdue.

A lease without a term is looked at instead of renewed: its holder counts it as lost once it could not look for as long
as a term.

A lock that is held without a process is taken once the time is over that its holder wrote on it. The service's clock
decides: by our own ticket if we have one, else by a refusal that tells the time; never by the Date of an answer, which
a gateway may write. The holder's lease is ended by its own id, which stands in the record, and only at the very version
that carries this record. So a holder that has prolonged its time since, and the lease of a next holder, are never hit;
nor is the lease of another program that left the record of an earlier holder there.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

from azguard import times
from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, Locked, NotFound, Unavailable
from azguard.frozen import frozen
from azguard.guards import requested
from azguard.guards.resolve import Conditions
from azguard.leases import actions, owner_records, owners, state
from azguard.leases.owners import FENCE, INFINITE, Owner
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import LeaseState
from azguard.requests import commits, trace
from azguard.requests.calls import ServiceClock, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import is_lease_problem, status
from azguard.requests.service_errors import translate
from azguard.wire.client import Limits

if TYPE_CHECKING:
    from azguard.leases.process_leases import ProcessLease
    from azguard.locks.lock_blobs import LockRecord
LATE = "it could not be renewed in time"
# A renewal at a third of the term leaves time for many more before the end.
_PART_OF_TERM = 1 / 3
# The longest time between two renewals. A lease that was broken at once, or whose blob was deleted, lets the next
# holder in, and only a request shows it. A renewal shows as much as a read, and costs as much.
_LOOK_SECONDS = 5.0
# A failed renewal is repeated soon, while the term still runs.
_RETRY_SECONDS = 0.5
# A renewal is a small request; one that takes longer is better sent anew, before the term ends.
_CONNECT_SECONDS = 2.0
_ANSWER_SECONDS = 3.0
# Short, because an event waits on a clock that stops while the machine is suspended.
_TICK_SECONDS = 1.0
# Bounded: most of the time is for the release.
_RECORD_SECONDS = 2.0
BROKEN = "it was broken, and released before its end"


@frozen
class HeldLock:
    """A lock that is held: the blob, the lease, and the fence."""

    target: Target
    lease_id: str
    #: The term of the lease; of one without a term, how long it counts as held after each look.
    seconds: int
    fence: int
    #: When the lease ends, on ``times.read_boot_clock``.
    ends: float
    #: Whether a ``lock run`` around us holds and renews it.
    inherited: bool = False
    #: Whether it is held by a reader: then the target is a blob of the reader's own.
    is_shared: bool = False
    #: When it was acquired, ISO 8601 by the service's clock, if no record says that.
    since: str | None = None
    #: What the acquisition wrote on the lock; None if another run acquired it.
    record: "LockRecord | None" = None
    #: The note of a lease that has no term; None if this one has.
    note: "ProcessLease | None" = None
    #: Whether another request for its lease was sent, got no answer, and may come after the release.
    may_come_late: bool = False


class Confirmer:
    """A thread that confirms again and again that a lock is held, until it is lost; a subclass says how.

    ``on_loss`` is called once with the reason, from that thread. What fails for now is asked again.
    """

    #: How many seconds a question may be under way.
    longest_seconds: ClassVar[float]

    def __init__(
        self, on_loss: Callable[[str], None], tell: Callable[[str], None], now: Callable[[], float], due: float
    ) -> None:
        self._on_loss = on_loss
        self._tell = tell
        self._now = now
        self._due = due
        self._wake = threading.Event()
        self._is_stopped = False
        self._answered = threading.Condition()
        #: How many questions have been answered, or have failed.
        self._answers = 0
        #: Why the lock is lost; None while it is not.
        self.loss: str | None = None
        self._thread = threading.Thread(target=self._ask_until_stopped, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop asking. Wait until a question that is under way is answered, but no longer than its time."""
        self._is_stopped = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(self.longest_seconds)

    def confirm_now(self, seconds: float) -> None:
        """Ask at once, and wait at most so many seconds for the outcome."""
        with self._answered:
            before = self._answers
            self._due = self._now()
            self._wake.set()
            self._answered.wait_for(lambda: self._answers > before or self.loss is not None, seconds)

    def _ask_until_stopped(self) -> None:
        while self.loss is None and self._wait_until_due():
            self._due = self._ask()
            with self._answered:
                self._answers += 1
                self._answered.notify_all()

    def _wait_until_due(self) -> bool:
        while not self._is_stopped and (left := self._due - self._now()) > 0:
            self._wake.wait(min(left, _TICK_SECONDS))
            self._wake.clear()
        return not self._is_stopped

    def _ask(self) -> float:
        """Ask once; return when to ask again."""
        raise NotImplementedError

    def _note_loss(self, why: str) -> None:
        if not self._is_stopped:
            self.loss = why
            self._on_loss(why)


class Renewer(Confirmer):
    """Renews one lease.

    ``on_renewal`` is called with the new end of the lease, from the thread. The lease counts as lost only when the
    service says so. Until a request succeeds, the last end stands.
    """

    longest_seconds = _CONNECT_SECONDS + _ANSWER_SECONDS + 1

    def __init__(
        self,
        held: HeldLock,
        *,
        on_renewal: Callable[[float], None] = lambda ends: None,
        on_loss: Callable[[str], None] = lambda why: None,
        tell: Callable[[str], None],
        now: Callable[[], float] = times.read_boot_clock,
    ) -> None:
        self._held = held
        self._on_renewal = on_renewal
        #: When the lease ends unless it is renewed.
        self.ends = held.ends
        self._period = min(held.seconds * _PART_OF_TERM, _LOOK_SECONDS)
        #: Why the latest renewal failed; None if it did not.
        self.failure: AzguardError | None = None
        super().__init__(on_loss, tell, now, held.ends - held.seconds + self._period)

    def _ask(self) -> float:
        sent_at = self._now()
        sent = send_once(self._renew)
        if sent.error is None:
            self.failure = None
            if self._held.may_come_late and self._was_held_by_another():
                self._note_loss("it was broken, and another has held it since")
            elif not self._is_stopped:
                self.ends = sent_at + self._held.seconds
                self._on_renewal(self.ends)
            return sent_at + self._period
        if _is_definite(sent.error):
            if not self._is_stopped:
                trace.note("lost", self._held.target, lease=self._held.lease_id, code=sent.error)
            self._note_loss(translate(sent.error, self._held.target).message)
        elif not self._is_stopped:
            self.failure = translate(sent.error, self._held.target)
            self._tell(f"lease: not renewed, {describe(sent)}; trying again")
        return self._now() + _RETRY_SECONDS

    def _was_held_by_another(self) -> bool:
        """Return whether the fence has risen: a late copy of our request acquires again what was broken."""
        with suppress(AzguardError):
            found = state.look(self._held.target, Deadline(_ANSWER_SECONDS), self._held.lease_id)
            return (owners.read_number(found.metadata, FENCE) or 0) > self._held.fence
        return False

    def _renew(self) -> None:
        timeouts = Limits(_CONNECT_SECONDS, _ANSWER_SECONDS)
        actions.renew_once(self._held.target, self._held.lease_id, timeouts)


def describe_late(renewers: Iterable[Renewer]) -> tuple[str, ...]:
    """Return why leases were not renewed in time, for people: a line each."""
    failures = [renewer.failure for renewer in renewers if renewer.failure is not None]
    lines = [f"the last renewal failed: {'; '.join((each.message, *each.detail))}" for each in failures]
    return (LATE, *dict.fromkeys(lines))


def _is_definite(error: Any) -> bool:
    """Return whether the service said that the lease is not held: broken, gone to another, or the blob deleted."""
    return is_lease_problem(error) or status(error) == HTTPStatus.NOT_FOUND


def release(target: Target, lease_id: str, records: LeaseRecords, patience: Deadline) -> LeaseState:
    """Release a lease, if it is still held, and return the state in which it was found before.

    The record of its holder speaks for no lease from then on: the next holder may be a program that leaves none.

    To be called when what ran under it has ended: what is refused after the look was not lost before that end. The
    network may have sent the release twice, and another may hold the lock by now.
    """
    # Looked at first: the service releases a broken lease without an error.
    found = state.look(target, patience, lease_id)
    if find_loss(found) is None:
        _end_record(target, lease_id, found, records, patience)
    with suppress(Locked, NotFound):
        actions.release(target, Conditions(lease_id=lease_id), patience)
    return found


def give_back(target: Target, lease_id: str, records: LeaseRecords, patience: Deadline) -> bool:
    """Release a lock that is not to be held after all, without an error; return whether it is known not to be held."""
    with suppress(AzguardError):
        within = patience.restart(seconds=patience.remaining / 3)
        _end_record(target, lease_id, state.look(target, within, lease_id), records, patience)
    return actions.give_back(target, lease_id, patience, patience.remaining)


def forget(held: HeldLock, records: LeaseRecords) -> None:
    """Forget the lease of a lock that is not held any more, unless a request for it may come late."""
    if held.may_come_late:
        records.give_up(held.target, held.lease_id, held.seconds, is_told=False)
    else:
        records.remove(held.target, held.lease_id)


def was_released(found: LeaseState, fence: int | None, version: str | None = None) -> bool:
    """Return whether a lock that is not held any more was released by its id, and not lost.

    A lease that was released leaves this state, and the next holder raises the fence. A write to what is not leased any
    more leaves this state, too: ``version`` is the one with the holder's record, where that is known. Only a release of
    azguard's lets that record speak for no lease.

    Not guaranteed: where it is not known, a lock is called released that was lost, and then written without a lock.
    """
    if found.state != "available" or fence is None or owners.read_number(found.metadata, FENCE) != fence:
        return False
    owner = owners.read_owner(found.metadata)
    is_ended = owner is not None and owner.lease == ""
    return version is None or found.etag == version or is_ended


def find_loss(found: LeaseState) -> str | None:
    """Return why a lock is lost whose lease was found so; None if it was not."""
    return BROKEN if found.state == "breaking" else None


def _end_record(target: Target, lease_id: str, found: LeaseState, records: LeaseRecords, patience: Deadline) -> None:
    """Let the record speak for no lease any more; it is not worth the release if that fails."""
    if not owner_records.can_carry(target) or owners.is_reader(found.metadata):
        return  # The blob of a reader is deleted.
    within = patience.restart(seconds=min(_RECORD_SECONDS, patience.remaining / 2))
    with suppress(AzguardError), commits.suppress():
        moved = owner_records.end(target, lease_id, within, found.version)
        if moved is not None:
            records.record_move(target, moved)


class OverdueLock:
    """A lock that is waited for, which may be overdue."""

    def __init__(self, target: Target, clock: ServiceClock, say: Callable[[str], None]) -> None:
        self._target = target
        self._clock = clock
        self._say = say
        #: The versions whose lease has ended, or is another's: nothing is to be done about them any more.
        self._settled: set[str] = set()

    def end(self, state: LeaseState | None, deadline: Deadline) -> bool:
        """End the lease if its holder's time is over; return whether that was done."""
        owner = None if state is None else _find_holder(state)
        if state is None or owner is None or state.etag in self._settled or not self._is_over(owner, deadline):
            return False
        conditions = Conditions({"If-Match": state.etag}, "if-match", state.etag, lease_id=owner.lease_id)
        try:
            with commits.suppress():
                actions.release(self._target, conditions, deadline)
        except (Changed, Locked, NotFound):
            self._settled.add(state.etag)
            return False  # Its holder has prolonged it, or another waiter was first.
        except AzguardError:
            return False  # The next attempt shows.
        self._settled.add(state.etag)
        self._say(f"the time of its holder is over, so {self._target.address} is free: {owner}")
        return True

    def _is_over(self, owner: Owner, deadline: Deadline) -> bool:
        try:
            self._clock.learn(self._target.account, self._target.kind, deadline)
        except Unavailable:
            return False  # The next attempt shows.
        end, now = times.find_moment(owner.until), self._clock.read()
        return end is not None and now is not None and end < now


def _find_holder(state: LeaseState) -> Owner | None:
    if state.state != "leased" or state.duration != INFINITE:
        return None
    owner = owners.read_owner(state.metadata)
    return owner if owner is not None and requested.is_guid(owner.lease_id or "") else None
