"""Readers beside each other under a lock, and no writer beside them.

A reader holds a lease on a blob of its own beside the lock, ``NAME!reader-…``. A writer holds the lease on the lock.
Each first takes its lease and then looks for the other side: a reader whether the lock is leased, a writer whether
readers are there. Of two that come at the same time, one at least so sees the other, because the service does one
request after the other. A reader that sees a writer goes back to wait. A writer keeps its lease, which lets no new
reader in, and waits until the readers inside have ended.

A lease that has ended can be renewed as long as nothing was done to its blob. So neither side counts it as ended before
that is impossible: a writer deletes the blob of such a reader, and a reader acquires the lease of such a writer and
breaks it.

A lock that readers were ever under is marked, as one of a single slot. A writer finds the mark when it writes its
record, so that a lock without readers costs a writer no look.
"""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import Changed, Locked, NotFound, UsageError
from azguard.guards.resolve import Conditions
from azguard.leases import actions, owner_records, owners
from azguard.leases.owners import FENCE, OWNER, READER, SHARED, SLOTS
from azguard.leases.state import SHORTEST, Action, LeaseState
from azguard.locks import environment, lock_blobs, queue
from azguard.locks.environment import OuterLock
from azguard.locks.held_lock import HeldLock
from azguard.locks.lock_blobs import AcquireSettings, LockRequest, RequestTime
from azguard.locks.queue import QueueLook, Reader
from azguard.locks.waiter import QueuePlace
from azguard.requests import commits
from azguard.requests.calls import describe, send_once
from azguard.requests.service_codes import is_lease_problem, status
from azguard.times import iso
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.blobs import BLOB_DELETE

# The look at the writer comes before the first renewal is due.
_PART_OF_TERM = 1 / 3
# Bounded: a lease that is not released expires on its own.
_RELEASE_SECONDS = 2.0
# With slots there would be more blobs for a reader to look at.
_MARK = {SHARED: "1", SLOTS: "1"}
# A lease that has ended and was acquired or broken since cannot be renewed.
_CERTAINLY_FREE = ("available", "broken")
_RENEW_SECONDS = 5.0


class ReaderLease:
    """The lease by which one acquisition reads under a lock."""

    def __init__(self, request: LockRequest, settings: AcquireSettings, time: RequestTime) -> None:
        self._lock = request.target
        self._settings = settings
        self._time = time
        #: The blob asked for last, and the id of its lease; None if none may be ours.
        self._blob: Target | None = None
        self._lease_id = ""

    def ask(self, seen: QueueLook) -> HeldLock | None:
        """Read under the lock, if no writer holds it; None if one does, or came at the same time.

        Raises:
            NotFound: there is no lock blob, and none may be made.
            UsageError: its other holders use it with slots.
            Unavailable, OutcomeUnknown: the service does not answer.
        """
        self.release()
        if not self._prepare(seen.lock):
            return None
        sent_at = self._settings.now()
        try:
            blob = self._lease_own_blob()
        except (Locked, NotFound):
            return None  # A writer deleted it before it was leased.
        now = queue.look(self._lock, self._time.start())
        if now.lock is not None:
            lock_blobs.check_slots(self._lock, now.lock.metadata, 1)
        is_in_time = self._settings.now() < sent_at + self._settings.seconds * _PART_OF_TERM
        lock = now.lock
        if lock is None or lock.state not in _CERTAINLY_FREE or not _is_marked(lock) or not is_in_time:
            self.release()
            return None
        return HeldLock(
            target=blob,
            lease_id=self._lease_id,
            seconds=self._settings.seconds,
            fence=owners.read_number(lock.metadata, FENCE) or 0,
            ends=sent_at + self._settings.seconds,
            is_shared=True,
            since=iso(lock.answered_at),
        )

    def release(self) -> None:
        """Release the lease that was asked for, and delete its blob. Raise nothing; it ends by itself."""
        if self._blob is None:
            return
        time = self._time.start_in_any_case(_RELEASE_SECONDS)
        if actions.give_back(self._blob, self._lease_id, time, time.remaining):
            self._settings.records.remove(self._blob, self._lease_id)
            delete(self._blob)
        self._blob = None

    def _prepare(self, lock: LeaseState | None) -> bool:
        """Make the lock, mark it, and make sure that no writer holds it; return whether that is so."""
        if lock is None:
            if not self._settings.create:
                raise NotFound(f"there is no {self._lock.address}", str(self._lock.address), reason="lock_blob_missing")
            with commits.suppress():
                lock_blobs.create_lock_blob(self._lock, self._time.start(), _MARK)
            return True  # Whether it is there now, the look that follows shows.
        lock_blobs.check_slots(self._lock, lock.metadata, 1)
        if lock.state == "expired":
            return self._end_for_good(lock)
        return lock.free and (_is_marked(lock) or self._mark(lock))

    def _mark(self, lock: LeaseState) -> bool:
        # A write makes a lock that was broken like one that was released. With the next fence it is not that of before.
        fence = owners.read_number(lock.metadata, FENCE)
        mark = _MARK if fence is None or lock.state != "broken" else {**_MARK, FENCE: str(fence + 1)}
        tied = Conditions({"If-Match": lock.etag})
        try:
            moved = owner_records.change_metadata(self._lock, lock.version, mark, tied, self._time.start())
        except (Changed, Locked, NotFound):
            return False  # A writer came first.
        self._settings.records.record_move(self._lock, moved)
        return True

    def _end_for_good(self, lock: LeaseState) -> bool:
        """Make sure that the last holder of the lock cannot renew its lease any more; then look again.

        A lease of ours takes the place of the holder's, and is broken. Released, it would leave the lock as the holder
        leaves one that it was not lost to. One that is not broken ends by itself.
        """
        lease_id, timeouts = str(uuid.uuid4()), self._time.timeouts()
        sent = send_once(lambda: actions.acquire_once(self._lock, lease_id, SHORTEST, timeouts))
        if sent.error is None:
            # Of this version alone: one that comes late hits no next holder who has left its record.
            tied = {"If-Match": lock.etag}
            send_once(lambda: actions.transmit(self._lock, Action.BREAK, timeouts, tied, lease_break_period=0))
        return False

    def _lease_own_blob(self) -> Target:
        """Make a blob that no other has the name of, and acquire its lease."""
        self._lease_id = str(uuid.uuid4())
        self._blob = blob = queue.name_reader(self._lock, uuid.uuid4().hex)
        self._settings.records.add(blob, self._lease_id, self._settings.seconds)
        owner = self._settings.owner.tie_to_lease(self._lease_id, self._settings.seconds)
        metadata = {READER: "1", OWNER: owner.as_metadata()}
        with commits.suppress():
            lock_blobs.create_lock_blob(blob, self._time.start(), metadata)
            actions.acquire(blob, self._lease_id, self._settings.seconds, Conditions(), self._time.start())
        self._settings.records.confirm(blob, self._lease_id)
        return blob


def find_around(lock: Target, environ: Mapping[str, str]) -> tuple[Target, OuterLock] | None:
    """Return the blob and the lease by which what is around us holds a lock, or reads under it; None if none does."""
    if (alone := environment.find_outer_lock(lock, environ)) is not None:
        return lock, alone
    for line in environment.read_lines(environ):
        if line.endpoint == lock.endpoint and queue.is_reader_of(line.lock, lock):
            blob = Target(lock.account, Address(Kind.BLOB, (lock.address.container, line.lock.partition("/")[2])))
            around = environment.find_outer_lock(blob, environ)
            return None if around is None else (blob, around)
    return None


def check_reads(request: LockRequest) -> None:
    """Refuse to hold a lock alone inside a command or a job that reads under it: it would wait for its own end.

    Raises:
        UsageError: the lock is asked for alone.
    """
    if not request.is_shared:
        raise UsageError(
            f"the run around this one reads under {request.target.address}, so this one cannot hold it alone",
            address=str(request.target.address),
            reason="lock_shared_around",
        )


def _is_inside(reader: Reader, time: RequestTime) -> bool:
    """Return whether a reader is under the lock; the blob of one whose lease has ended is deleted, and gone then."""
    if reader.is_inside:
        return True
    headers = {"If-Match": reader.state.etag}
    sent = send_once(lambda: call(BLOB_DELETE, reader.target, time.timeouts(), headers=headers))
    return sent.error is not None and status(sent.error) != HTTPStatus.NOT_FOUND


def delete(blob: Target) -> None:
    """Delete the blob of a reader that has released its lease. Its name is never used again. Raise nothing."""
    send_once(lambda: call(BLOB_DELETE, blob, Limits(2, 3)))


def _is_marked(lock: LeaseState) -> bool:
    return bool(owners.find_value(lock.metadata, SHARED))


class Draining:
    """The wait of a writer for the readers inside; its lease lets no new one in, and is renewed meanwhile."""

    def __init__(self, held: HeldLock, settings: AcquireSettings, time: RequestTime) -> None:
        self.held = held
        #: Since when, on the clock by which leases end.
        self.began_at = held.ends - held.seconds
        self._settings = settings
        self._time = time
        #: How many readers were inside when it was looked last.
        self.readers = 0
        #: Whether the service said that the lease is not ours any more.
        self.is_lost = False

    def may_have_readers(self, place: QueuePlace | None) -> bool:
        """Return whether the lock ever had readers, by its mark or by what was seen of it."""
        is_marked = self.held.record is not None and self.held.record.is_shared
        seen = None if place is None else place.seen
        return is_marked or (seen is not None and bool(seen.readers))

    def is_done(self) -> bool:
        """Return whether no reader is inside any more, and the lease is still ours.

        Raises:
            Forbidden, Unauthenticated: the caller may not list the container.
            Unavailable: the service does not answer.
        """
        # After the lease was granted, so that a reader that this does not see will see the lease.
        seen = queue.look(self.held.target, self._time.start())
        self.readers = len(seen.readers)
        # Readers that have died are not inside, and cannot come back after this.
        is_empty = not any(_is_inside(reader, self._time) for reader in seen.readers)
        self._renew()
        return is_empty and not self.is_lost and self._settings.now() < self._renewed_at + self.held.seconds / 3

    @property
    def _renewed_at(self) -> float:
        return self.held.ends - self.held.seconds

    def _renew(self) -> None:
        now = self._settings.now()
        if now - self._renewed_at < min(_RENEW_SECONDS, self.held.seconds / 3):
            return
        held = self.held
        sent = send_once(lambda: actions.renew_once(held.target, held.lease_id, self._time.timeouts()))
        if sent.error is None:
            self.held = replace(held, ends=now + held.seconds)
            return
        self._settings.tell(f"lock: {held.target}: {describe(sent)}")
        self.is_lost = is_lease_problem(sent.error) or status(sent.error) == HTTPStatus.NOT_FOUND
