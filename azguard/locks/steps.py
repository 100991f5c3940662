"""A lock that is held for the later steps of a job: taken with a process that renews it or without one, and released.

A step does not see the variables that it leaves itself. A second ``lock hold`` in it, or a release of one of two locks,
would so wipe out what the first has left.

**Sticky.** A lock without a process lasts until it is released, or until a time that stands on it. The lease is
acquired as for any other holder, with a term. Under it the record is written, and only then the same lease is made
infinite. A run that is killed on the way leaves a lease that ends by itself.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from azguard.accounts.account import Target
from azguard.cache import scope
from azguard.errors import (
    AzguardError,
    Changed,
    ConfigError,
    GaveUp,
    Locked,
    LockLost,
    NotFound,
    OutcomeUnknown,
    Unavailable,
    UsageError,
)
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import actions, owner_records, owners
from azguard.leases import state as lease_state
from azguard.leases.owner_records import Moved
from azguard.leases.owners import INFINITE, OWNER, Owner
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import LONGEST
from azguard.locks import (
    background_holder,
    environment,
    held_lock,
    job_locks,
    lock_blobs,
    log,
    queue,
    readers,
    slot_leases,
)
from azguard.locks.acquire import LockAcquisition
from azguard.locks.background_holder import HoldPlan
from azguard.locks.environment import LockLine, StepVariables
from azguard.locks.held_lock import HeldLock
from azguard.locks.hold_records import HoldRecord, HoldRecords, HoldState
from azguard.locks.job_locks import JobLock
from azguard.locks.lock_blobs import ANSWER_SECONDS
from azguard.locks.shown import HoldResult, ReleaseResult
from azguard.processes.signals import ignore_ending, raise_at_end
from azguard.requests import calls, commits
from azguard.requests.deadline import Deadline
from azguard.times import iso
from azguard.wire.rows import Condition

# Bounded: an infinite lease that is not given back here has its record, and is released by its id.
_RELEASE_SECONDS = 5.0


@frozen
class HeldUntil:
    """When a lock without a process may be taken by the next holder."""

    moment: datetime | None = None
    #: How many seconds after it was taken, where no moment is given.
    seconds: float | None = None

    def write_on(self, owner: Owner, lease_id: str) -> Owner:
        """Return the record of a holder with its end."""
        since = datetime.fromisoformat(str(owner.since))
        end = self.moment
        if self.seconds is not None:
            end = since + timedelta(seconds=self.seconds)
        if end is not None and end <= since:
            raise UsageError(
                f"{iso(end)} is over: it is {iso(since)}, by the service's clock", reason="sticky_until_is_over"
            )
        lasting = replace(owner, pid=None, until=iso(end), lease_id=None if end is None else lease_id)
        return lasting.tie_to_lease(lease_id, None)


@frozen
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
        taken: list[HeldLock] = []
        with commits.suppress():
            try:
                # A signal that came during a write is raised once that is settled, and with the lock held.
                with raise_at_end():
                    deadline = Deadline(plan.wait, answer_seconds=ANSWER_SECONDS)
                    taken.append(LockAcquisition(plan.request, plan.settings, deadline).run())
                    self._exclude_late(taken)
                    record = self._stay(taken[-1])
                with ignore_ending():
                    publish(record)
            except BaseException as error:
                with ignore_ending():
                    is_free = self._give_back_all(taken)
                if is_free and isinstance(error, OutcomeUnknown):
                    raise slot_leases.explain_not_acquired(error) from error
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
            version = replace(found.version, answered_at=now)
            owner = self.until.write_on(owner_records.set_service_time(plan.settings.owner, version), lock.lease_id)
            moved = owner_records.leave(lock.target, lock.lease_id, owner, patience)
            if found.duration != INFINITE:  # The run that took it was killed before that.
                self._make_infinite(lock.target, lock.lease_id, owner, moved)
        except (Locked, NotFound) as error:
            _end_left_record(lock.target, lock.lease_id, patience.fresh())
            self.plan.holds.close(lock.hold, HoldState.LOST, error.message)
            return None
        self.plan.settings.records.record_move(lock.target, moved)
        record = replace(lock.hold, until=owner.until, version=moved.after)
        with suppress(ConfigError):  # It is prolonged all the same: the time stands on the lock itself.
            plan.holds.save(record)
        return replace(lock, hold=record)

    def _exclude_late(self, taken: list[HeldLock]) -> None:
        """Change an id for which a request may come late: it would give the lease a term. In doubt, both are taken."""
        (held,) = taken
        if not held.may_come_late:
            return
        settings, lease_id = self.plan.settings, str(uuid.uuid4())
        settings.records.add(held.target, lease_id, held.seconds)
        taken.append(replace(held, lease_id=lease_id, may_come_late=False))
        actions.change(held.target, lease_id, Conditions(lease_id=held.lease_id), settings.patience_now())
        settings.records.remove(held.target, held.lease_id)  # One that comes after the release ends with its term.
        taken.remove(held)

    def _stay(self, held: HeldLock) -> HoldRecord:
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
        version = moved.after or lease_state.look(target, patience, lease_id).etag
        tied = Conditions({Condition.IF_MATCH.header: version}, "if-match", version)
        sent = 0
        while True:
            try:
                sent += actions.acquire(target, lease_id, None, tied, patience).attempts
            except Changed as error:
                raise _build_unavailable(target, "ended before it was made infinite") from error
            # After a lost answer, that the lease is held does not show with which term.
            if lease_state.look(target, patience, lease_id).duration == INFINITE:
                break
            if patience.passed:
                raise _build_unavailable(target, "could not be made infinite")
        if sent > 1:
            # One that comes late, after the release, would lock it for ever, were it of a version that is still there.
            again = owner_records.leave(target, lease_id, owner, patience)
            self.plan.settings.records.record_move(target, again)

    def _give_back_all(self, taken: list[HeldLock]) -> bool:
        """Release what was taken; return whether something was, and all is known not to be held.

        Once the first id is released, a change of it that comes late is refused.
        """
        return bool(taken) and all(list(map(self._give_back, taken)))

    def _give_back(self, held: HeldLock) -> bool:
        """Release a lock that could not be held so; return whether it is known not to be held."""
        deadline = Deadline(_RELEASE_SECONDS, answer_seconds=ANSWER_SECONDS)
        records = self.plan.settings.records
        # Before the release, which ends a lease that came late, and after it, for one that was lost only then.
        _end_left_record(held.target, held.lease_id, deadline.fresh())
        is_free = held_lock.give_back(held.target, held.lease_id, records, deadline.fresh())
        _end_left_record(held.target, held.lease_id, deadline.fresh())
        if not is_free:
            return False
        held_lock.forget(held, records)
        known = self.plan.holds.find(held.lease_id)
        if known is not None:
            self.plan.holds.close(known, HoldState.RELEASED)
        return True


def _end_left_record(target: Target, lease_id: str, patience: Deadline) -> None:
    """End the record of a lease that was lost: a request that comes late would lock its version for ever."""
    with suppress(AzguardError):  # Another holder writes its own record.
        found = lease_state.look(target, patience).version
        owner = owners.read_owner(found.metadata)
        if owner is not None and owner.lease == owners.make_digest(lease_id):
            tied = Conditions({Condition.IF_MATCH.header: found.etag}, "if-match", found.etag)
            owner_records.change_metadata(target, found, {OWNER: owner.end().as_metadata()}, tied, patience)


def _build_unavailable(target: Target, why: str) -> Unavailable:
    return Unavailable(f"the lease on {target} {why}", address=str(target.address))


@frozen
class StepHold:
    """A lock to hold for later steps."""

    plan: HoldPlan
    #: After this time the next holder may take it, of a lock without a process; None with one.
    until: HeldUntil | None
    variables: StepVariables
    environ: Mapping[str, str]
    #: Called before the lock is asked for.
    begin: Callable[[], None]
    #: The exit status if others hold it.
    busy_status: int

    def take(self) -> HoldResult:
        """Hold the lock, and tell later steps.

        Raises:
            GaveUp: others hold it, and the time for waiting is over.
            Locked: this job holds it, and its environment does not say so.
            UsageError: this job holds it with a process, and it is to be held without.
        """
        plan = self.plan
        sticky = None if self.until is None else StickyHold(plan, self.until)
        around = job_locks.find_held_around(plan.request.target, self.environ, plan.holds)
        if around is not None and (sticky is None or not around.is_sticky):
            return self._confirm(around)
        self.begin()
        if sticky is not None and (own := sticky.find_own()) is not None:
            prolonged = sticky.prolong(own)
            if prolonged is not None:
                return self._describe(prolonged, (), "prolonged")
        plan.settings.refuse_own(plan.request, plan.wait)
        exported: list[str] = []

        def publish(held: HoldRecord) -> None:
            lines = _list_lines(self.environ, self.variables, plan.holds)
            others = [line for line in lines if line.lock != held.address]
            exported.extend(self.variables.write(environment.export_lines([*others, _describe_line(held)])))

        try:
            held = background_holder.hold(plan, publish) if sticky is None else sticky.hold(publish)
        except GaveUp as error:
            words = f"{plan.request.target.address} is held by others; this job does not hold it"
            raise error.but(message=words, exit_status=self.busy_status) from error
        return self._describe(job_locks.of_hold(plan.request.target, held), tuple(exported), "held")

    def _confirm(self, around: JobLock) -> HoldResult:
        request = self.plan.request
        if queue.is_reader_of(str(around.target.address), request.target):
            readers.check_reads(request)
        job_locks.confirm(around, request, self.plan.settings)
        if self.until is not None:
            raise UsageError(f"this job holds {around.target} already", reason="sticky_lock_held")
        return self._describe(around, (), "already_held")

    def _describe(self, lock: JobLock, exported: tuple[str, ...], outcome: str) -> HoldResult:
        hold = lock.hold
        return HoldResult(
            address=str(lock.target.address),
            state="held",
            lease_id=lock.lease_id,
            fence=lock.fence,
            duration=None if hold is None else hold.seconds or "infinite",
            since=None if hold is None else hold.since,
            until=None if hold is None else hold.until,
            pid=None if hold is None else hold.pid,
            log=None if hold is None else hold.log,
            holder_file=None if hold is None else str(self.plan.holds.file(hold.lease_id, "json")),
            exported=exported,
            outcome=outcome,
        )


@frozen
class StepRelease:
    """Locks to release, so that later steps do not find them any more."""

    locks: Iterable[JobLock]
    variables: StepVariables
    environ: Mapping[str, str]
    holds: HoldRecords
    records: LeaseRecords

    def make(self, deadline: Deadline, say: Callable[[str], None]) -> list[ReleaseResult]:
        """Release the locks. One that fails does not keep the others from being released.

        Raises:
            LockLost: one was lost before.
        """
        done: list[ReleaseResult] = []
        failed: list[AzguardError] = []
        over: set[str] = set()
        lines = _list_lines(self.environ, self.variables, self.holds)
        for each in self.locks:
            try:
                done.append(job_locks.release(each, self.holds, self.records, deadline.fresh(), say))
                over.add(each.lease_id)
            except AzguardError as error:
                failed.append(error)
                if isinstance(error, LockLost):
                    over.add(each.lease_id)
        self.variables.write(environment.export_lines([line for line in lines if line.lease_id not in over]))
        if failed:
            for one in done:
                say(f"{one.outcome.replace('_', ' ')}: {one.address}")
            first, *others = failed
            raise first.but(detail=(*first.detail, *(error.message for error in others)))
        return done


def _list_lines(environ: Mapping[str, str], variables: StepVariables, holds: HoldRecords) -> list[LockLine]:
    """Return the locks that later steps find now: of each lock, what was left last."""
    around = environment.read_lines(environ)
    # A shell may still have the variables of a lock that was released, or whose loss was told.
    found = {line.lock: line for line in around if not ((hold := holds.find(line.lease_id)) and hold.is_over)}
    ids = {line.lease_id for line in around}
    for hold in holds.list_unreleased():
        if hold.lease_id not in ids and _is_told(hold, variables):
            found[hold.address] = _describe_line(hold)
    return list(found.values())


def _is_told(hold: HoldRecord, variables: StepVariables) -> bool:
    # One that was lost counts too: the steps that follow have to know. A file may be of a job that is long over, or of
    # one that runs beside this one.
    in_file = hold.is_kept and scope.is_own_job(hold.job, variables.job) and variables.is_in_file(hold.lease_id)
    return in_file or variables.is_of_step(hold.lease_id, hold.job)


def _describe_line(hold: HoldRecord) -> LockLine:
    duration = LONGEST if hold.seconds is None else hold.seconds
    return LockLine(hold.address, hold.endpoint, hold.lease_id, str(hold.fence), str(duration))
