"""Read-modify-write, retried on conflict, applied exactly once, even when responses get lost.

``lineage`` has the proof. In short: every write carries the op's id and the ETag it replaces. An attempt in doubt is
sent again only over the same ETag; over another one only after a recorded successor proves that the old attempt can
never be committed. What cannot be proved is reported as *unknown*.
"""

from typing import NamedTuple

from azguard.errors import AzguardError, Changed, GaveUp, Locked, NotFound, OutcomeUnknown, Unavailable
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, CallResult, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.requests.service_codes import is_conflict, is_lease_problem, is_perhaps_ours
from azguard.requests.service_errors import translate
from azguard.times import say_count
from azguard.updates.doubt import PERHAPS_OURS, prove_by_lease, settle, supersede
from azguard.updates.leases import GUARD_ANSWER_SECONDS, OthersLease, UpdateLease
from azguard.updates.resource import (
    Applied,
    CommittedVersion,
    CurrentVersion,
    UpdatableResource,
    UpdateHooks,
    UpdatePlan,
    UpdateResult,
    check_change,
    find_applied,
)
from azguard.updates.run import UpdateRun, Work, check_fence, list_created_keys, require_existing, transform
from azguard.wire import client

# A conflict is retried within so many round trips, however often it happened, so that losers do not wait longest.
# Measured on 4 hosts of 8 writers (benchmarks/contention.py): 5 round trips need 4.1 requests per commit, 8 need 3.8.
_WINDOW_ROUND_TRIPS = 8.0
# And never later than this, however slow the transform: slow work acquires a lease instead of waiting longer.
_WINDOW_SECONDS = 1.0
# Without an answer the service may be overloaded: ask again soon, then less and less often.
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
# Errors that end an update while its work is worth keeping.
_WORTH_KEEPING = (GaveUp, Unavailable, OutcomeUnknown, Locked)


class Loop:
    """The loop over one run."""

    def __init__(self, run: UpdateRun) -> None:
        self.run = run
        self.lease = UpdateLease(run)
        self._others = OthersLease(run)

    def until_done(self) -> UpdateResult:
        """Repeat until the update is committed, changes nothing, or fails; failures may leave a write in doubt."""
        run = self.run
        while True:
            state = self._read()
            ended = settle(run, self.lease, state, run.deadline)
            if ended is not None:
                return ended
            if run.doubted is None:
                require_existing(run.resource, run.plan, state)
            check_fence(run.resource, run.plan, state)
            self._check_limits()
            if self.lease.is_due(state) and not self._acquire_lease(state):
                continue
            work = self._make_content(state)
            if work.is_unchanged and not run.plan.is_remembered:
                ended = self._end_unchanged(state)
            else:
                ended = self._attempt(state, work)
            if ended is not None:
                return ended

    def leave(self, error: BaseException) -> UpdateResult:
        """Raise ``error``, but first settle a write in doubt, by finding it or by a fence; return the end if found."""
        run = self.run
        if run.result is not None:
            commits.announce()
            return run.result
        if run.unsettled and not isinstance(error, OutcomeUnknown):
            run.tell("leaving, but first: settling the write in doubt")
            end = self._settle_before_leaving(error)
            if isinstance(end, UpdateResult):
                return end
            error = end
        if isinstance(error, _WORTH_KEEPING):
            told = error.but(facts={**error.facts, **run.collect_facts()})
            raise run.tools.keep(told, None if run.work is None else run.work.content) from error.__cause__
        raise error

    def _settle_before_leaving(self, error: BaseException) -> UpdateResult | BaseException:
        """Return the end of an update that is committed all the same, or the error to leave with."""
        run = self.run
        try:
            ended = supersede(run, self.lease)
        except OutcomeUnknown as failure:
            return failure
        except KeyboardInterrupt as interruption:
            if run.result is not None or not isinstance(error, KeyboardInterrupt):
                return self.leave(interruption)
            return run.build_unknown("interrupted again before it was settled")  # Do not ask a third time.
        except AzguardError as failure:
            return run.build_unknown("its outcome could not be asked for", failure) if run.unsettled else failure
        return error if ended is None else ended

    # The steps of one round.

    def _read(self) -> CurrentVersion:
        run = self.run
        patience = run.deadline
        reach = run.plan.reach_seconds
        if reach is not None and not run.unsettled:
            patience = run.deadline.restart(seconds=min(reach, max(1.0, run.deadline.remaining)))
        began = run.deadline.clock()
        try:
            state = run.resource.read(patience)
        except Changed:  # Other writers overwrite it faster than it can be read.
            raise run.build_gave_up() from None
        run.round_trip = run.deadline.clock() - began
        run.note("read", version=state.etag)
        run.tell(f"read {state.label}" + (", leased" if state.lease_duration else ""))
        return state

    def _check_limits(self) -> None:
        run = self.run
        most = run.plan.max_attempts
        # An attempt that was refused because of a lease does not count.
        if run.deadline.passed or (most is not None and run.attempts - run.waits >= most):
            raise run.build_gave_up()

    def _make_content(self, state: CurrentVersion) -> Work:
        """Return the new content; the transform runs once per version of the content."""
        run = self.run
        if run.work is None or run.work.base.etag != state.etag:
            began = run.deadline.clock()
            content = transform(run.resource, run.plan, state)
            run.work_time = run.deadline.clock() - began
            # What another write of ours is there after, ends the update before.
            run.merged = None if run.work is None or state.etag is None else state
            run.work = Work(state, content)
        return run.work

    def _end_unchanged(self, state: CurrentVersion) -> UpdateResult | None:
        run = self.run
        # This run has no attempt in doubt on this version: it would have sent this very content, and sent none. But an
        # earlier run of the key may have sent other content, which could still be committed.
        if run.doubted is not None:
            return supersede(run, self.lease)
        return run.end(
            CommittedVersion(state.etag, state.last_modified, state.version_id), "unchanged", str(state.lineage) or None
        )

    def _attempt(self, state: CurrentVersion, work: Work) -> UpdateResult | None:
        """Send one attempt; return the end of the update, or None to start over."""
        run = self.run
        if run.refused is not None:
            raise run.build_unknown(PERHAPS_OURS)
        lineage = run.extend_lineage(state, work.content)
        if not self._prepare(state, work, lineage):
            return None
        if self.lease.is_wanted(state) and not self._acquire_lease(state):
            return None
        sent = self._transmit(state, work)
        if sent.outcome is CallOutcome.COMMITTED:
            return run.end_written(sent.answer or CommittedVersion(None), lineage)
        if sent.outcome is CallOutcome.REFUSED and sent.error is not None and is_lease_problem(sent.error):
            run.waits += 1
        # A refusal because of the lease says that the lease is not ours any more, so that it proves nothing.
        silent = sent.outcome is CallOutcome.NOT_SENT or (sent.error is not None and is_lease_problem(sent.error))
        proved = None if silent else prove_by_lease(run, self.lease, run.doubted or run.refused)
        if proved is None:
            self._handle_failure(state, sent)
        return proved

    def _acquire_lease(self, state: CurrentVersion) -> bool:
        asked = self.lease.acquire(state)
        if asked.outcome is not CallOutcome.COMMITTED:
            self._handle_failure(state, asked)
        return self.lease.held

    def _prepare(self, state: CurrentVersion, work: Work, lineage: Lineage | None) -> bool:
        """Send what must precede the commit, once per version; return whether there is something to commit."""
        if work.commit is not None:
            return True
        try:
            self._prepare_commit(state, work, lineage)
        except Changed:
            self._start_over("another writer's commit discarded our blocks")
        except Locked as error:
            self._wait_for_lease(state, error)
        except NotFound:
            if state.etag is None:
                raise
            self._start_over(f"{state.label} was deleted")
        return work.commit is not None

    def _prepare_commit(self, state: CurrentVersion, work: Work, lineage: Lineage | None) -> None:
        run = self.run
        began = run.deadline.clock()
        try:
            if work.is_unchanged:
                work.commit = run.resource.mark(state, lineage, self.lease.in_use, run.deadline)
            else:
                work.commit = run.resource.prepare(state, work.content, lineage, self.lease.in_use, run.deadline)
        finally:
            run.work_time += run.deadline.clock() - began  # Blocks sent in vain cost as much as a slow transform.

    def _transmit(self, state: CurrentVersion, work: Work) -> CallResult[CommittedVersion]:
        """Send the commit once.

        The attempt is in doubt from before it is sent until the end of the update is recorded, so that Ctrl-C at any
        moment finds it in doubt.
        """
        run = self.run
        commit = work.commit
        lease_id = self.lease.in_use
        assert commit is not None
        run.guard = self._choose_guard(state)
        what = "that it is done" if work.is_unchanged else say_count(len(work.content), "byte")
        run.tell(f"attempt {run.attempts + 1}: writing {what} over {state.label}")
        before = run.doubted
        run.note_sending(state)
        run.attempts += 1
        run.note("sending", over=state.etag, guard=run.final_guard)
        sent = send_once(lambda: commit(lease_id))
        run.note("sent", over=state.etag, outcome=sent.outcome.value, code=sent.error)
        attempt = run.attempts
        if sent.outcome is CallOutcome.NOT_SENT:
            run.attempts -= 1
        if sent.outcome is CallOutcome.REFUSED and sent.error and is_perhaps_ours(sent.error, run.resource.target):
            run.refused = state  # Perhaps the second copy of the request was refused after the first was committed.
        if sent.outcome in (CallOutcome.REFUSED, CallOutcome.NOT_SENT):
            run.doubted = before  # This attempt was not committed; an earlier one on the same version still can be.
        if sent.outcome is CallOutcome.IN_DOUBT:
            run.doubts += 1
        if sent.outcome is not CallOutcome.COMMITTED:  # A commit is told with the end, once that is recorded.
            run.tell(f"attempt {attempt}: {describe(sent)}")
        return sent

    def _choose_guard(self, state: CurrentVersion) -> str:
        # A lease of the caller's is sent as well, but only one of our own was acquired for this very version.
        if self.lease.held:
            return "lease"
        return "if-match" if state.etag else "if-none-match"

    # Failures of a step.

    def _handle_failure(self, state: CurrentVersion, sent: CallResult[CommittedVersion] | CallResult[None]) -> None:
        run = self.run
        error = sent.error
        assert error is not None
        if sent.outcome is not CallOutcome.REFUSED:
            self._back_off(error)
        elif is_lease_problem(error):
            self._wait_for_lease(state, error)
        elif is_conflict(error):
            self._start_over(f"another writer wrote over {state.label}")
        else:
            raise translate(error, run.resource.target, expected_etag=state.etag)

    def _back_off(self, error: BaseException) -> None:
        run = self.run
        run.failure = error
        asked = client.find_pause_seconds(run.resource.target.endpoint)
        if asked >= run.deadline.remaining:
            raise run.build_gave_up()
        window = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**run.unanswered)
        run.unanswered += 1
        self._pause(window, f"doubt {run.doubts}: reading again" if run.doubted else "asking again", asked)

    def _wait_for_lease(self, state: CurrentVersion, error: BaseException) -> None:
        self._reset_failures()
        self.lease.held = False
        work = self.run.work
        if work is not None:
            # Prepare again: a holder can change tags, for example, without making a new version.
            work.commit = None
        self._others.wait(state, error)

    def _start_over(self, why: str) -> None:
        run = self.run
        self._reset_failures()
        run.conflicts += 1
        run.leased = False
        if run.work is not None:
            run.work.commit = None  # The other writer may have discarded what was prepared.
        base = run.round_trip + run.work_time
        window = min(_WINDOW_SECONDS, _WINDOW_ROUND_TRIPS * base, 0.5 * base * 2**run.conflicts)
        self._pause(window, f"conflict {run.conflicts}: {why}; starting over")

    def _pause(self, window: float, why: str, asked: float = 0.0) -> None:
        """Pause for a random time in the later half of the window, and at least as long as the service asked for.

        A writer that starts over at once conflicts again: 4 hosts of 8 writers needed 4.4 requests per commit when the
        time was anywhere in the window, and 3.8 when it was in the later half.
        """
        seconds = max(asked, self.run.tools.chance.uniform(0.5, 1.0) * window)
        self.run.tell(f"{why} in {seconds:.3f} s")
        self.run.deadline.pause(seconds)

    def _reset_failures(self) -> None:
        self.run.failure = None
        self.run.unanswered = 0


class Preview(NamedTuple):
    """What an update would do: the content before and after; ``before`` is None where there is nothing."""

    etag: str | None
    before: bytes | None
    after: bytes
    #: What an earlier run of the op did, so that the update would do nothing.
    applied: Applied | None = None
    #: What ``UpdatePlan.list_created`` finds in it.
    created_keys: tuple[str, ...] = ()


def update(
    resource: UpdatableResource, plan: UpdatePlan, deadline: Deadline, tools: UpdateHooks | None = None
) -> UpdateResult:
    """Apply ``plan.transform`` to a resource exactly once.

    However the update ends, a write in doubt is settled first, and a lease that it acquired is released.

    Raises:
        NotFound: there is nothing, and no ``create``.
        TransformFailed: the transform failed; nothing was written.
        Locked: another holder has a lease.
        LockLost: a holder with a higher fence has written; ours was not applied.
        GaveUp: contended until the deadline; provably not applied.
        Unavailable: no answer until the deadline; provably not applied.
        OutcomeUnknown: it cannot be known whether it was applied.
        Exists: an earlier run applied another change under the same key.
        UsageError: an earlier run sent another change under the same key, and its outcome is not known.
    """
    tools = tools or UpdateHooks()
    if plan.guard_by_lease:
        deadline = deadline.limit_answers(GUARD_ANSWER_SECONDS)
    with tools.queue():
        loop = Loop(UpdateRun(resource, plan, deadline, tools))
        loop.run.load_pending()
        try:
            return loop.until_done()
        except BaseException as error:  # noqa: BLE001  # leave() raises it again, unless the update is committed.
            return loop.leave(error)
        finally:
            # Before the records on this machine say that it is done: a run killed in this release has not reported it.
            loop.lease.release()
            loop.run.close()


def preview(resource: UpdatableResource, plan: UpdatePlan, deadline: Deadline) -> Preview:
    """Return the preview of the write that ``plan`` would do now; nothing is written.

    Raises:
        NotFound: the resource does not exist, and ``create`` is not set.
        TransformFailed: the transform failed.
        LockLost: a holder with a higher fence has written.
        Exists: an earlier run applied another change under the same key.
    """
    state = resource.read(deadline)
    applied = find_applied(state, plan.op)
    if applied is not None:
        check_change(resource.target, applied, plan.compared_change)
        return Preview(state.etag, state.content, state.content, applied)
    require_existing(resource, plan, state)
    check_fence(resource, plan, state)
    made = transform(resource, plan, state)
    before = None if state.etag is None else state.content
    return Preview(state.etag, before, made, created_keys=list_created_keys(plan, state, made))
