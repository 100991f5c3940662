"""``lock hold --sticky``: a lock without a process, until it is released, or until a time that stands on it.

The lease is acquired as for any other holder, with a term. Under it the record is written, and only then the same lease
is made infinite. A run that is killed on the way leaves a lease that ends by itself.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, ConfigError, Locked, NotFound, Unavailable, UsageError
from azguard.guards.resolve import Conditions
from azguard.leases import actions, owner_records
from azguard.leases import state as lease_state
from azguard.leases.owner_records import Moved, Version
from azguard.leases.owners import Owner
from azguard.locks import held_lock, lock_blobs, log
from azguard.locks.acquire import LockAcquisition
from azguard.locks.background_holder import HoldPlan
from azguard.locks.held_lock import HeldLock
from azguard.locks.hold_records import HoldRecord, HoldState
from azguard.locks.job_locks import JobLock
from azguard.locks.lock_blobs import ANSWER_SECONDS
from azguard.processes.signals import ignore_ending, raise_at_end
from azguard.requests import calls, commits
from azguard.requests.deadline import Deadline
from azguard.times import find_moment, iso
from azguard.wire.rows import Condition

# Bounded: an infinite lease that is not given back here has its record, and is released by its id.
_RELEASE_SECONDS = 5.0
_INFINITE = "infinite"


@dataclass(frozen=True)
class HeldUntil:
    """When a lock without a process may be taken by the next holder."""

    moment: datetime | None = None
    #: How many seconds after it was taken, where no moment is given.
    seconds: float | None = None

    def write_on(self, owner: Owner, lease_id: str) -> Owner:
        """Return the record of a holder with its end."""
        since = find_moment(owner.since)
        if since is None:
            raise AzguardError("the service did not tell the time")
        end = self.moment
        if self.seconds is not None:
            end = since + timedelta(seconds=self.seconds)
        if end is not None and end <= since:
            raise UsageError(
                f"{iso(end)} is over: it is {iso(since)}, by the service's clock", reason="sticky_until_is_over"
            )
        lasting = replace(owner, pid=None, until=iso(end), lease_id=None if end is None else lease_id)
        return lasting.tie_to_lease(lease_id, None)


@dataclass(frozen=True)
class StickyHold:
    """A lock to hold without a process."""

    plan: HoldPlan
    until: HeldUntil

    def hold(self, publish: Callable[[HoldRecord], None]) -> HoldRecord:
        """Acquire the lock for ever, or until its time is over, and return the record of it.

        ``publish`` tells the steps that follow. If it fails, the lock is released.

        Raises:
            GaveUp: it is busy, and the time for waiting is over.
            UsageError: its time would be over already.
            ConfigError: the record of it cannot be written.
        """
        plan = self.plan
        held: HeldLock | None = None
        with commits.suppress():
            try:
                # A signal that came during a write is raised once that is settled, and with the lock held.
                with raise_at_end():
                    deadline = Deadline(plan.wait, answer_seconds=ANSWER_SECONDS)
                    held = LockAcquisition(plan.request, plan.settings, deadline).run()
                    record = self._stay(held)
                with ignore_ending():
                    publish(record)
            except BaseException:
                with ignore_ending():
                    if held is not None:
                        self._give_back(held)
                raise
        commits.announce()
        return record

    def find_own(self) -> JobLock | None:
        """Return the lock if this job holds it without a process already."""
        target = self.plan.request.target
        for record in self.plan.holds.list_own(self.plan.own):
            if (record.endpoint, record.address) == (target.endpoint, str(target.address)):
                is_own = record.pid is None and record.state is HoldState.HELD
                return JobLock(target, record.lease_id, record.fence, record) if is_own else None
        return None

    def prolong(self, lock: JobLock) -> JobLock | None:
        """Write another end and another reason on a lock that this scope holds so; None if it was broken meanwhile.

        Raises:
            UsageError: its time would be over already.
            Changed: a run with a higher sequence number has held it.
        """
        assert lock.hold is not None
        plan = self.plan
        patience = plan.settings.patience_now()
        try:
            lock_blobs.leave_sequence(plan.request, lock.target, lock.lease_id, plan.settings)
            found = lease_state.look(lock.target, patience, lock.lease_id)
            if found.state != "leased":
                self.plan.holds.close(lock.hold, HoldState.LOST, f"its lease is {found.state}")
                return None
            now = calls.ask_service_time(lock.target.account, lock.target.kind, patience)
            version = Version(found.etag, found.metadata, now)
            owner = self.until.write_on(owner_records.set_service_time(plan.settings.owner, version), lock.lease_id)
            moved = owner_records.leave(lock.target, lock.lease_id, owner, patience)
            if found.duration != _INFINITE:  # The run that took it was killed before that.
                self._make_infinite(lock.target, lock.lease_id, owner, moved)
        except (Locked, NotFound) as error:
            self.plan.holds.close(lock.hold, HoldState.LOST, error.message)
            return None
        self.plan.settings.records.record_move(lock.target, moved)
        record = replace(lock.hold, until=owner.until, version=moved.after)
        with suppress(ConfigError):  # It is prolonged all the same: the time stands on the lock itself.
            plan.holds.save(record)
        return replace(lock, hold=record)

    def _stay(self, held: HeldLock) -> HoldRecord:
        """Write the end on the lock, and make its lease infinite."""
        assert held.record is not None
        plan = self.plan
        owner = self.until.write_on(held.record.owner, held.lease_id)
        moved = owner_records.leave(held.target, held.lease_id, owner, plan.settings.patience_now())
        plan.settings.records.record_move(held.target, moved)
        record = replace(plan.build_record(held), until=owner.until, version=moved.after)
        plan.holds.prune()
        plan.holds.save(record)
        plan.settings.records.add(held.target, held.lease_id, None)
        self._make_infinite(held.target, held.lease_id, owner, moved)
        plan.settings.records.confirm(held.target, held.lease_id)
        before = log.build_before(held.target, held.record)
        if before is not None and plan.settings.keeps_log:
            log.append(held.target, before, plan.settings.say)
        return record

    def _make_infinite(self, target: Target, lease_id: str, owner: Owner, moved: Moved) -> None:
        """Acquire the same lease without a term: the service takes the same id again."""
        patience = self.plan.settings.patience_now()
        # Of the version with our record alone: the id of a lease that has ended is taken again, too.
        version = moved.after or owner_records.read_version(target, patience, lease_id).etag
        tied = Conditions({Condition.IF_MATCH.header: version}, "if-match", version)
        sent = 0
        while True:
            try:
                sent += actions.acquire(target, lease_id, None, tied, patience).attempts
            except Changed as error:
                raise _build_unavailable(target, "ended before it was made infinite") from error
            # After a lost answer, that the lease is held does not show with which term.
            if lease_state.look(target, patience, lease_id).duration == _INFINITE:
                break
            if patience.passed:
                raise _build_unavailable(target, "could not be made infinite")
        if sent > 1:
            # One that comes late, after the release, would lock it for ever, were it of a version that is still there.
            again = owner_records.leave(target, lease_id, owner, patience)
            self.plan.settings.records.record_move(target, again)

    def _give_back(self, held: HeldLock) -> None:
        deadline = Deadline(_RELEASE_SECONDS, answer_seconds=ANSWER_SECONDS)
        records = self.plan.settings.records
        if not held_lock.give_back(held.target, held.lease_id, records, deadline):
            return
        held_lock.forget(held, records)
        known = self.plan.holds.find(held.lease_id)
        if known is not None:
            self.plan.holds.close(known, HoldState.RELEASED)


def _build_unavailable(target: Target, why: str) -> Unavailable:
    return Unavailable(f"the lease on {target} {why}", address=str(target.address))
