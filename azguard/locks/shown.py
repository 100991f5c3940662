"""Locks as people see them: what ``lock show``, ``hold``, ``check``, ``release`` print of them."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import Forbidden, NotFound, Unauthenticated
from azguard.frozen import frozen
from azguard.leases import owners, shown
from azguard.leases import state as lease_state
from azguard.leases.owners import SLOTS, Owner
from azguard.leases.shown import LeaseFacts
from azguard.locks import lock_blobs, queue
from azguard.locks.queue import QueueLook, Reader
from azguard.requests.deadline import Deadline
from azguard.times import iso


@frozen
class Waiter:
    """A run that waits for a lock, or that reads under it."""

    #: Its place in the queue, from 1 on; None of a reader.
    place: int | None
    #: Who it is, as ``user@host``; None if its record cannot be read.
    who: str | None
    #: Since when by the service's clock, ISO 8601.
    since: str | None
    reason: str | None
    run: str | None
    is_shared: bool
    #: The blob whose lease says that it is there.
    address: str


@frozen(kw_only=True)
class LockFacts(LeaseFacts):
    """What ``lock show`` prints of a lock."""

    LAST: ClassVar = (*LeaseFacts.LAST, "sequence", "readers", "waiters")

    #: The highest sequence number that has held it.
    sequence: int | None
    #: Those that read under it now.
    readers: tuple[Waiter, ...]
    #: In order; None if the caller may not list the container.
    waiters: tuple[Waiter, ...] | None


@frozen
class HoldResult:
    """What ``lock hold`` prints."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.STATE, columns.FENCE, columns.PID, columns.UNTIL, columns.LEASE_ID)

    address: str
    state: str
    lease_id: str
    fence: int | None
    #: The term of the lease in seconds, or ``infinite``.
    duration: int | str | None
    #: By the service's clock.
    since: str | None
    #: When it is released at the latest.
    until: str | None
    #: The process that renews it, its log, and the record of both.
    pid: int | None
    log: str | None
    holder_file: str | None
    #: Where the variables for later steps were written.
    exported: tuple[str, ...]
    #: ``held``; ``already_held`` by an earlier step of this job; ``prolonged``, of a lock without a process.
    outcome: str


@frozen
class CheckResult:
    """What ``lock check`` prints of a lock that is held."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.STATE, columns.FENCE, columns.SECONDS_LEFT, columns.UNTIL)

    address: str
    state: str
    lease_id: str
    fence: int | None
    #: How many seconds the lease lasts unless it is renewed; None if it is infinite, or not known on this machine.
    seconds_left: int | None
    #: When it is released at the latest.
    until: str | None
    #: The process that renews it.
    pid: int | None


@frozen
class ReleaseResult:
    """What ``lock release`` did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.STATE, columns.FENCE, columns.LEASE_ID)

    address: str
    state: str = field(init=False, default="free")
    lease_id: str
    fence: int | None
    #: ``released`` or ``already_released``.
    outcome: str


def show(target: Target, deadline: Deadline) -> Sequence[LeaseFacts]:
    """Return a lock, or each slot of it that was ever taken.

    Raises:
        NotFound: there is no such lock.
    """
    seen = _look_at_queue(target, deadline)
    # A direct read says more than a listing, which has no error for a missing lock.
    first = lease_state.look(target, deadline) if seen is None or seen.lock is None else seen.lock
    highest = owners.read_sequence(first.metadata)
    of_lock = shown.summarize(first)
    found: list[LeaseFacts] = [
        LockFacts(
            **vars(of_lock),
            sequence=None if highest is None else highest.number,
            readers=() if seen is None else tuple(_describe_reader(each) for each in seen.readers if each.is_inside),
            waiters=None if seen is None else tuple(_describe_waiters(seen)),
        )
    ]
    slots = 1 if target.kind is not Kind.BLOB else owners.read_number(first.metadata, SLOTS) or 1
    for slot in lock_blobs.list_slots(target, slots)[1:]:
        try:
            found.append(shown.summarize(lease_state.look(slot, deadline)))
        except NotFound:
            continue
    return found


def _look_at_queue(target: Target, deadline: Deadline) -> QueueLook | None:
    if target.kind is not Kind.BLOB:
        return None
    try:
        return queue.look(target, deadline)
    except (Forbidden, Unauthenticated):
        return None


def _describe_waiters(seen: QueueLook) -> Iterator[Waiter]:
    for place, each in enumerate(seen.seen_at(seen.answered_at).waiters, start=1):
        yield _describe(place, each.owner, iso(each.since), each.target, is_shared=each.is_shared)


def _describe_reader(reader: Reader) -> Waiter:
    owner = owners.read_owner(reader.state.metadata)
    return _describe(None, owner, iso(reader.state.last_modified), reader.target, is_shared=True)


def _describe(place: int | None, owner: Owner | None, since: str | None, blob: Target, *, is_shared: bool) -> Waiter:
    return Waiter(
        place=place,
        who=None if owner is None else owner.name,
        since=since,
        reason=None if owner is None else owner.reason,
        run=None if owner is None else owner.run,
        is_shared=is_shared,
        address=str(blob.address),
    )
