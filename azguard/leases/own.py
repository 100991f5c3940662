"""The leases that this machine remembers: which of them are still held, as the service says; and their release.

A lease counts as over only by proof. A resource that was deleted has no lease, and never gets that lease back. Where
another lease is held, or none, the remembered id is worth nothing, because an id is never used again. These prove
nothing: an acquire whose answer was never seen, which may still arrive; an expired lease, which its holder can renew;
an answer that does not come from the service; and a clock.

The service releases a lease that was broken, or whose term is over, without an error. If another has written since, no
lease is there any more, and the release is refused in the same words as a second copy of one that succeeded. So the
lease is looked at before the release is sent: what was not held then, no copy of this release has ended.

Not guaranteed: a lease that was released elsewhere by its id, before another wrote, counts as lost once its term is
over. The term is that of the record on this machine, so that a renewal elsewhere is not known.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from azguard import address, columns
from azguard.accounts.account import Account, Target
from azguard.address import Kind
from azguard.cache import scope
from azguard.cache.records import HeldLease
from azguard.errors import AzguardError, Locked, LockLost, NotFound, OutcomeUnknown, Unavailable
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import shown, state
from azguard.leases.actions import GONE, LeaseDone
from azguard.leases.recorded import RecordedLease
from azguard.leases.state import Action, LeaseState
from azguard.requests.deadline import Deadline
from azguard.times import iso

# The service answers each in a few milliseconds; more threads than this only wait for each other.
_PARALLEL = 8
# The codes by which the service says that the leased resource was deleted. A plain 404, or ResourceNotFound, is also
# its answer to a caller without permission.
_DELETED = ("BlobNotFound", "ContainerNotFound")
# A term counts from before the request was sent, and the service may end it up to a minute late.
_MARGIN = timedelta(seconds=60)
#: The outcome of a release of what this scope has released before.
ALREADY_RELEASED = "already_released"
# Bounded: these looks only tell a loss.
_LOOK_SECONDS = 2.0
# Times are in whole seconds, and a term counts from before the request for the lease.
_SLACK = timedelta(seconds=5)


class Standing(StrEnum):
    """What is known of a remembered lease."""

    HELD = "held"
    #: Its term is over; its holder can still renew it.
    EXPIRED = "expired"
    #: The resource was deleted.
    GONE = "gone"
    RELEASED = "released"
    BROKEN = "broken"
    #: Another lease has replaced it.
    TAKEN = "taken"
    UNKNOWN = "unknown"


# How a lease ended, by the state of the resource that it was on; an expired one can be renewed.
_OVER = {
    "available": Standing.RELEASED,
    "broken": Standing.BROKEN,
    "breaking": Standing.BROKEN,
    "leased": Standing.TAKEN,
}


@frozen
class CheckedLease:
    """A remembered lease, and what the service said of it."""

    lease: HeldLease
    standing: Standing

    @property
    def ended(self) -> bool:
        return self.standing in (Standing.GONE, *_OVER.values())


@frozen
class OwnLeaseStatus:
    """A lease this scope asked for and has not released."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        columns.STATE,
        replace(columns.HOLDER, name="scope", title="holder", rank=2),
        replace(columns.HOLDING_SINCE, rank=1),
        replace(columns.HOLDING_REASON, name="action", title="reason", rank=0),
        replace(columns.UNTIL, title="ends"),
        columns.LEASE_ID,
        columns.CONFIRMED,
    )

    address: str
    #: ``held`` or ``expired``, says the service. Where it could not be asked: ``ended`` if the term is over by this
    #: machine's clock, else ``unknown``.
    state: str
    lease_id: str
    #: False where the service's answer was not seen, so that it may or may not be held.
    confirmed: bool
    #: In seconds, or ``infinite``.
    duration: int | str
    since: str
    #: When a finite one ends at the latest if it was not renewed elsewhere.
    until: str | None
    action: str
    scope: str
    #: The CI job that took it; None if that was none.
    job: str | None
    account: str

    @classmethod
    def of(cls, known: CheckedLease, now: datetime) -> "OwnLeaseStatus":
        lease = known.lease
        until = None
        if lease.duration is not None:
            until = datetime.fromisoformat(lease.time) + timedelta(seconds=lease.duration)
        is_over = until is not None and until + _MARGIN < now
        return cls(
            address=lease.address,
            state="ended" if is_over and known.standing is Standing.UNKNOWN else known.standing.value,
            lease_id=lease.lease_id,
            confirmed=lease.confirmed,
            duration=lease.duration or "infinite",
            since=lease.time,
            until=iso(until),
            action=lease.action,
            scope=lease.scope,
            job=None if lease.job is None else scope.describe_job(lease.job),
            account=lease.account,
        )


def check_each(
    leases: Sequence[HeldLease],
    account: Account | None,
    deadline: Callable[[], Deadline],
    forget: Callable[[CheckedLease], None],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[OwnLeaseStatus]:
    """Yield the status of each lease that is still held, or may be; ``forget`` is given those that certainly are not.

    Only leases of ``account`` are asked for; with None, none is.
    """
    for known in ask_each(leases, account, deadline):
        if known.ended:
            forget(known)
        else:
            yield OwnLeaseStatus.of(known, now())


def ask_each(
    leases: Sequence[HeldLease], account: Account | None, deadline: Callable[[], Deadline]
) -> Iterator[CheckedLease]:
    """Yield each lease with what the service says of it, in the order given.

    Only leases of ``account`` are asked for. Where the service does not answer once, it is not asked again.
    """
    endpoints = set() if account is None else set(account.endpoints.values())
    silent = threading.Event()

    def look(lease: HeldLease) -> CheckedLease:
        if account is None or lease.account not in endpoints or silent.is_set():
            return CheckedLease(lease, Standing.UNKNOWN)
        try:
            return CheckedLease(
                lease, _find_standing(Target(account, address.parse(lease.address).address), lease, deadline())
            )
        except Unavailable:
            silent.set()
        except AzguardError:
            pass  # Its state stays unknown: the list is of what is remembered.
        return CheckedLease(lease, Standing.UNKNOWN)

    from concurrent.futures import ThreadPoolExecutor  # which one lease does not need

    with ThreadPoolExecutor(min(_PARALLEL, max(1, len(leases)))) as pool:
        yield from pool.map(look, leases)


def _find_standing(target: Target, lease: HeldLease, deadline: Deadline) -> Standing:
    try:
        state.look(target, deadline, lease.lease_id)
    except NotFound as error:
        return Standing.GONE if error.service_code in _DELETED and lease.confirmed else Standing.UNKNOWN
    except Locked as error:
        if not lease.confirmed or not (error.service_code or "").startswith("Lease"):
            return Standing.UNKNOWN
        return _OVER.get(state.look(target, deadline).state or "", Standing.EXPIRED)
    return Standing.HELD


def release(
    lease: RecordedLease, conditions: Conditions, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> LeaseDone:
    """Release the lease that ``conditions`` names.

    Where it is held no more, and nothing proves a loss, the outcome is ``gone``; if this scope has released it before,
    it is ``already_released``.

    Raises:
        Locked: another lease is held, and this scope knows of none with this id.
        LockLost: it was broken; its term was over, and another has written since; or another has taken the lease.
        NotFound: there is no such resource.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
    """
    target, records, lease_id = lease.target, lease.records, str(conditions.lease_id)
    found = records.find_held(target)
    known = found if found is not None and found.lease_id == lease_id else None
    under_way = _Release(
        lease=lease,
        known=known,
        was_sent=records.find_released(target) == lease_id,
        before=_look_before(lease, lease_id),
        now=now,
    )
    records.note_release(target, lease_id)
    try:
        return under_way.conclude(under_way.send(conditions))
    except OutcomeUnknown:
        raise
    except AzguardError:
        records.forget_release(target)
        raise


@frozen(kw_only=True)
class _Release:
    lease: RecordedLease
    #: The lease as this scope has asked for it; None if it knows none with this id.
    known: HeldLease | None
    #: Whether a release of it was sent before. That may have ended it: then nothing proves a loss.
    was_sent: bool
    #: The state before the release, with the id of the lease if that was held; None if it could not be read.
    before: LeaseState | None
    now: Callable[[], datetime]

    @property
    def _granted(self) -> HeldLease | None:
        """Return the lease that this scope has had, unless a release that was sent before may have ended it."""
        return self.known if self.known is not None and self.known.confirmed and not self.was_sent else None

    def send(self, conditions: Conditions) -> LeaseDone:
        """Release the lease.

        Raises:
            LockLost: it was not held until then.
        """
        before = self.before
        try:
            done = self.lease.release(conditions)
        except Locked as error:
            if self.was_sent or (before is not None and before.lease_id is not None):
                return _build_gone(self.lease.target, conditions)
            if self._granted is not None and before is not None and not before.free:
                raise _build_lost(before, self.lease.target, "another holds it now") from error
            raise
        if before is not None and before.lease_id is None and (loss := self._find_loss(before, done)) is not None:
            raise _build_lost(before, self.lease.target, loss)
        return done

    def conclude(self, done: LeaseDone) -> LeaseDone:
        """Return the result, and warn where it is not known how the lease ended."""
        target = self.lease.target
        if done.outcome != GONE:
            if self.before is None:
                self.lease.warn(f"the lease of {target} is released; whether it was held until then could not be asked")
            return done
        if self.was_sent and self.known is None:
            return replace(done, outcome=ALREADY_RELEASED)
        self.lease.records.forget_release(target)
        self.lease.warn(f"the lease of {target} was held no more: it was released before, or it was lost")
        return done

    def _find_loss(self, before: LeaseState, done: LeaseDone) -> str | None:
        """Return why a lease was not held until its release; None if nothing proves that."""
        # Only its own id releases a lease that is broken.
        if before.state == "broken" and done.outcome != GONE:
            return "it was broken"
        # The lease of a container guards its deletion alone.
        is_guarded = self.lease.target.kind is not Kind.CONTAINER
        if self._granted is None or not is_guarded or not before.free:
            return None
        is_ours = self.lease.records.knows(self.lease.target, before.etag)
        if not is_ours and self._is_written_after_term(self._granted, before):
            return "its term was over, and another has written since"
        return None

    def _is_written_after_term(self, known: HeldLease, before: LeaseState) -> bool:
        """Return whether the resource was written after the end of the term, by the service's own time."""
        if known.duration is None:
            return False
        over = self.now() - datetime.fromisoformat(known.time) - timedelta(seconds=known.duration)
        try:
            told = shown.ask_time(before, self.lease.target, self.lease.deadline.briefly(_LOOK_SECONDS)).answered_at
        except AzguardError:
            return False
        return told is not None and over > _SLACK and before.last_modified > told - over + _SLACK


def _look_before(lease: RecordedLease, lease_id: str) -> LeaseState | None:
    within = lease.deadline.briefly(_LOOK_SECONDS)
    try:
        return state.look(lease.target, within, lease_id)
    except Locked:
        with suppress(AzguardError):
            return state.look(lease.target, within)
    except AzguardError:
        return None
    return None


def _build_lost(before: LeaseState, target: Target, why: str) -> LockLost:
    return LockLost(
        f"the lease of {target} was not held until its release: {why}",
        address=str(target.address),
        lease_state=before.state,
        current_etag=before.etag,
        detail=() if before.free else before.held_by,
        reason="lock_lost_before_release",
    )


def _build_gone(target: Target, conditions: Conditions) -> LeaseDone:
    return LeaseDone(
        address=str(target.address),
        lease_id=conditions.lease_id,
        action=Action.RELEASE.value,
        guard=conditions.guard,
        attempts=1,
        outcome=GONE,
    )
