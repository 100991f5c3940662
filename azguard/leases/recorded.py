"""Acquire, renew, change and release a lease, with its record in the cache of a scope.

The record is written before the lease is asked for, so that a lease left behind by a crash can be found and released.
"""

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cache.etag_cache import EtagCache
from azguard.cache.reads import Reads
from azguard.cache.records import GIVEN_UP, WITH_REASON, HeldLease, Key
from azguard.errors import AzguardError, Forbidden, Locked, NotFound, OutcomeUnknown
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import actions, owner_records
from azguard.leases.actions import LeaseDone
from azguard.leases.owner_records import Moved
from azguard.leases.owners import Owner
from azguard.leases.shown import build_gave_up, wait_until_free
from azguard.leases.state import LeaseState, Version
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY

# No network keeps a request for so long.
_LATEST = timedelta(hours=1)
# The service's codes for a lease of another holder: such a lease can be waited for.
_HELD_BY_ANOTHER = ("LeaseAlreadyPresent", "LeaseIsBreakingAndCannotBeAcquired")


class LeaseRecords:
    """The cache of this scope, as the place where leases are written down.

    ``tell_given_up`` is called with a lease that was given up although a request for it may still come, and with its
    term; ``tell_left`` with a lease without a term that could not be given back.
    """

    def __init__(
        self, reads: Reads, tell_given_up: Callable[[Target, int | None], None], tell_left: Callable[[Target], None]
    ) -> None:
        self._reads = reads
        self._tell_given_up = tell_given_up
        self._tell_left = tell_left

    @property
    def _cache(self) -> EtagCache:
        return self._reads.open_cache()

    def find_held(self, target: Target) -> HeldLease | None:
        """Return the newest lease that was asked for and is not known to be released."""
        return self._cache.find_held(Key.of(target))

    def find_released(self, target: Target) -> str | None:
        """Return the id of the last lease for which a release was sent, unless another was asked for since."""
        return self._cache.find_released(Key.of(target))

    def note_release(self, target: Target, lease_id: str) -> None:
        """Record that a release is about to be sent."""
        self._cache.record_release(Key.of(target), lease_id, self._reads.command)

    def forget_release(self, target: Target) -> None:
        """Record that no release of this scope is known to have ended a lease."""
        self._cache.forget_release(Key.of(target))

    def knows(self, target: Target, etag: str) -> bool:
        """Return whether this version is the last that this scope has read or written."""
        last = self._reads.find_last(target)
        return last is not None and last.etag == etag

    def add(self, target: Target, lease_id: str, seconds: int | None, *, has_reason: bool = False) -> None:
        """Record a lease before it is asked for; ``seconds`` None is infinite, or not known."""
        action = self._reads.command + (WITH_REASON if has_reason else "")
        self._cache.record_lease(Key.of(target), lease_id, duration=seconds, action=action)

    def confirm(self, target: Target, lease_id: str, since: datetime | None = None) -> None:
        """Record that it was granted; ``since`` is the moment from which its term counts, by default unchanged."""
        self._cache.confirm(Key.of(target), lease_id, since=since)

    def remove(self, target: Target, lease_id: str) -> None:
        """Delete the record of a lease that is not held any more."""
        self._cache.forget_lease(Key.of(target), lease_id)

    def give_up(self, target: Target, lease_id: str, seconds: int | None, *, is_told: bool = True) -> None:
        """Record that a lease was given up although a request for it may still come, and tell people."""
        # What was seen of it before does not count any more.
        self._cache.forget_lease(Key.of(target), lease_id)
        self._cache.record_lease(Key.of(target), lease_id, duration=seconds, action=self._reads.command + GIVEN_UP)
        if is_told:
            self._tell_given_up(target, seconds)

    def find_given_up(self, target: Target) -> list[str]:
        """Return the ids of the leases of this scope that were given up so in the last hour; forget those before."""
        key, found = Key.of(target), list[str]()
        for each in self._cache.list_given_up(key):
            if datetime.fromisoformat(each.time) + _LATEST > datetime.now(UTC):
                found.append(each.lease_id)
            else:
                self._cache.forget_lease(key, each.lease_id)
        return found

    def note_left(self, target: Target) -> None:
        self._tell_left(target)

    def record_move(self, target: Target, moved: Moved) -> None:
        """Move on what this scope has read, if that is the version whose metadata changed: the content is the same."""
        self._reads.follow(target, moved.before, moved.after, moved.lineage)

    def record_creation(self, target: Target, made: Version) -> None:
        """Write down the empty version that we have made, as any other write of this scope."""
        lineage = made.metadata.get(KEY)
        self._cache.record(Key.of(target), etag=made.etag, length=0, lineage=lineage, command=self._reads.command)


@frozen
class LeaseRequest:
    """A lease to acquire."""

    lease_id: str
    #: Its term; None is for ever.
    seconds: int | None
    conditions: Conditions
    #: What to leave in the resource's metadata, if anything.
    owner: Owner | None = None
    #: Whether the caller has chosen the id, which stays then.
    is_named: bool = False


@frozen
class RecordedLease:
    """The lease of one resource, with its record."""

    target: Target
    records: LeaseRecords
    deadline: Deadline
    #: Called with what people must know although it is no error.
    warn: Callable[[str], None]
    #: Called with the lease of another holder that is waited for.
    tell: Callable[[LeaseState], None]

    def acquire_when_free(
        self,
        request: LeaseRequest,
        patience: Deadline,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> LeaseDone:
        """Acquire the lease; while another holds it, wait.

        Raises:
            GaveUp: another still holds it when the time is up.
        """
        while True:
            try:
                return self.acquire(request)
            except Locked as error:
                if error.service_code not in _HELD_BY_ANOTHER:
                    raise
                if patience.passed:
                    raise build_gave_up(self.target, patience, error.lease_state, error.detail) from error
            wait_until_free(self.target, patience, self.tell, uniform)

    def acquire(self, request: LeaseRequest) -> LeaseDone:
        """Acquire the lease.

        Raises:
            Locked: another holds it.
            OutcomeUnknown: it was sent, and whether it was granted cannot be known. The record stays.
        """
        lease_id = request.lease_id
        owner = request.owner
        before = self.records.find_held(self.target)
        was_ours = before is not None and before.lease_id == lease_id
        self.records.add(self.target, lease_id, request.seconds, has_reason=owner is not None)
        try:
            done = actions.acquire(self.target, lease_id, request.seconds, request.conditions, self.deadline.fresh())
            self.records.confirm(self.target, lease_id)
        except OutcomeUnknown:
            raise
        except KeyboardInterrupt:
            # The request may be under way still. Then the record is all by which the lease can be released.
            if not was_ours:
                self._give_back(lease_id, was_acquired=False)
            raise
        except AzguardError as error:
            if not was_ours:
                self.records.remove(self.target, lease_id)
            is_held = error.service_code == "LeaseAlreadyPresent"
            if is_held and release_given_up(self.target, self.records, self.deadline):
                return self.acquire(request)
            if before is not None and is_held:
                raise error.but(reason="lease_is_own") from error
            raise
        if done.attempts > 1:
            self.warn("an answer was lost, and its request may come late: after a release, look whether it is leased")
        if owner is not None:
            return self._leave_record(request, owner, done, was_ours=was_ours)
        return done if was_ours else self._end_earlier_record(done)

    def renew(self, conditions: Conditions) -> LeaseDone:
        """Renew the lease that ``conditions`` names, and record since when its term counts.

        Raises:
            Locked: it is not held.
        """
        lease_id = str(conditions.lease_id)
        known = self._find_record(conditions)
        sent_at = datetime.now(UTC)
        with self._drop_if_not_held(lease_id):
            done = actions.renew(self.target, conditions, self.deadline)
        self.records.confirm(self.target, lease_id, sent_at)
        return _add_term(done, known)

    def change(self, conditions: Conditions, proposed: str) -> LeaseDone:
        """Change the id of the lease that ``conditions`` names; both ids are kept until it is known which one holds.

        Raises:
            Locked: it is not held.
        """
        lease_id = str(conditions.lease_id)
        known = self._find_record(conditions)
        # A change does not renew the lease. Where its term is not known, the record stays until the release.
        seconds = None if known is None else known.duration
        since = None if known is None else datetime.fromisoformat(known.time)
        # A change that is repeated finds the new id already in place: its one record stays.
        is_other = proposed != lease_id
        has_reason = known is not None and known.has_reason
        # Under the old id: a copy that comes late is refused once the id is changed.
        if has_reason and is_other and not conditions.headers:
            self._change_record(lambda within: owner_records.move(self.target, lease_id, proposed, within))
        self.records.add(self.target, proposed, seconds, has_reason=has_reason)
        try:
            with self._drop_if_not_held(lease_id):
                done = actions.change(self.target, proposed, conditions, self.deadline)
        except OutcomeUnknown:
            raise
        # Interrupted, the change is known not to be done: the state was read after the interruption.
        except (AzguardError, KeyboardInterrupt):
            if is_other or known is None:
                self.records.remove(self.target, proposed)
            raise
        self.records.confirm(self.target, proposed, since)
        if is_other:
            self.records.remove(self.target, lease_id)
        return _add_term(done, known)

    def release(self, conditions: Conditions) -> LeaseDone:
        """Release the lease that ``conditions`` names, after removing the owner record that was left with it.

        Raises:
            Locked: it is not held.
        """
        lease_id = str(conditions.lease_id)
        known = self._find_record(conditions)
        # Removing the record makes a new version, for which a condition of the caller's would not hold.
        if not conditions.headers:
            if known is not None and known.has_reason:
                self._change_record(lambda within: owner_records.remove(self.target, lease_id, within))
            else:
                self._end_record(lease_id)
        with self._drop_if_not_held(lease_id):
            done = actions.release(self.target, conditions, self.deadline)
        self.records.remove(self.target, lease_id)
        return done

    def _find_record(self, conditions: Conditions) -> HeldLease | None:
        found = self.records.find_held(self.target)
        return found if found is not None and found.lease_id == conditions.lease_id else None

    def _give_back(self, lease_id: str, *, was_acquired: bool = True) -> bool:
        is_free = actions.give_back(self.target, lease_id, self.deadline, was_acquired=was_acquired)
        if is_free:
            self.records.remove(self.target, lease_id)
        return is_free

    def _leave_record(self, request: LeaseRequest, owner: Owner, done: LeaseDone, *, was_ours: bool) -> LeaseDone:
        """Write the owner record under a lease just acquired. If that fails, release the lease if it is new."""
        lease_id = str(done.lease_id)
        owner = owner.tie_to_lease(lease_id, request.seconds)
        try:
            moved = owner_records.leave(self.target, lease_id, owner, self.deadline.fresh())
        except BaseException as error:
            if was_ours or not self._give_back(lease_id) or not isinstance(error, AzguardError):
                raise
            detail = "the record could not be written, and the lease was given back"
            raise error.but(detail=(*error.detail, detail)) from error
        self.records.record_move(self.target, moved)
        if moved.attempts > 1 and self.target.kind is not Kind.BLOB:
            done = self._exclude_late(request, done)
        return _add_version(done, moved)

    def _exclude_late(self, request: LeaseRequest, done: LeaseDone) -> LeaseDone:
        """Change the id of the lease, so that a copy of the record that comes late undoes nothing written under it.

        Of a share or a file the service compares no version. An id that the caller has chosen stays.
        """
        if request.is_named:
            self.warn(
                f"an answer was lost, and its request may come late: it would undo other metadata of {self.target}"
            )
            return done
        old, new = str(done.lease_id), str(uuid.uuid4())
        try:
            return replace(done, lease_id=self.change(Conditions(lease_id=old), new).lease_id)
        except BaseException:
            # The old id first: once that is released, a change that comes late is refused.
            for lease_id in (old, new):
                self._give_back(lease_id)
            raise

    def _end_earlier_record(self, done: LeaseDone) -> LeaseDone:
        """See that no record of an earlier holder speaks for a lease just acquired, which has none."""
        lease_id = str(done.lease_id)
        try:
            moved = self._end_record(lease_id)
        except KeyboardInterrupt:
            self._give_back(lease_id)
            raise
        return done if moved is None else _add_version(done, moved)

    def _end_record(self, lease_id: str) -> Moved | None:
        """Let the record that is there speak for no lease any more, if there is one that may be read."""
        if not owner_records.can_carry(self.target):
            return None

        def end(within: Deadline) -> Moved | None:
            with suppress(Forbidden):
                return owner_records.end(self.target, lease_id, within)
            return None

        return self._change_record(end)

    def _change_record(self, change: Callable[[Deadline], Moved | None]) -> Moved | None:
        """Change the owner record under a lease that is held; that this fails is no error."""
        try:
            moved = change(self.deadline.fresh())
        except (Locked, NotFound):
            return None  # The operation on the lease reports it.
        except AzguardError as error:
            self.warn(f"the record of who held {self.target} stays there: {error.message}")
            return None
        if moved is not None:
            self.records.record_move(self.target, moved)
        return moved

    @contextmanager
    def _drop_if_not_held(self, lease_id: str) -> Iterator[None]:
        """Delete the record of a lease that proves not to be held; one that is being broken is held until its end."""
        try:
            yield
        except (Locked, NotFound) as error:
            if isinstance(error, NotFound) or (error.service_code or "").startswith("LeaseIdMismatch"):
                self.records.remove(self.target, lease_id)
            raise


def release_given_up(target: Target, records: LeaseRecords, deadline: Deadline) -> bool:
    """Release what requests that came late have acquired for this scope; return whether there was such a lease."""
    found = False
    for lease_id in records.find_given_up(target):
        # That it is refused proves nothing: the request may come later still.
        if actions.give_back(target, lease_id, deadline, was_acquired=False):
            records.remove(target, lease_id)
            found = True
    return found


def _add_version(done: LeaseDone, moved: Moved) -> LeaseDone:
    return replace(done, etag=moved.after, last_modified=moved.last_modified or done.last_modified)


def _add_term(done: LeaseDone, known: HeldLease | None) -> LeaseDone:
    return done if known is None else replace(done, duration=known.duration or "infinite")
