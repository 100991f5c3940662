"""One update under way: its state so far, and the errors with which it can end."""

from dataclasses import dataclass
from typing import Any

from azguard.errors import AzguardError, GaveUp, NotFound, OutcomeUnknown, TransformFailed, Unavailable, UsageError
from azguard.requests import commits, trace
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import ABSENT, Lineage
from azguard.requests.service_errors import translate
from azguard.times import say_count
from azguard.updates.local_runs import WriteJournal
from azguard.updates.resource import (
    RAW_OP,
    Applied,
    Commit,
    CommittedVersion,
    CurrentVersion,
    Leasable,
    UpdatableResource,
    UpdateHooks,
    UpdatePlan,
    UpdateResult,
    count_remembered,
)


@dataclass
class Work:
    """The new content of one attempt."""

    #: The version that the content was made from.
    base: CurrentVersion
    content: bytes
    #: The request that commits the content; None until it is prepared.
    commit: Commit | None = None

    @property
    def is_unchanged(self) -> bool:
        """Return whether the content stays, so that at most the op is written."""
        base = self.base
        return base.etag is not None and self.content == base.content and not base.must_rewrite


@dataclass
class UpdateRun:
    """An update under way."""

    resource: UpdatableResource
    plan: UpdatePlan
    deadline: Deadline
    tools: UpdateHooks
    #: The version over which an attempt of ours is in doubt. One is enough: an attempt on another version is sent only
    #: after this doubt is settled: see ``lineage``.
    doubted: CurrentVersion | None = None
    #: The version over which an earlier run sent a write of which our ledger does not tell.
    unledgered: CurrentVersion | None = None
    #: The version over which an attempt was refused, until the next read shows who replaced it.
    refused: CurrentVersion | None = None
    work: Work | None = None
    #: The version of another writer that the content is made from; None while that is the first one that was read.
    merged: CurrentVersion | None = None
    result: UpdateResult | None = None
    #: How many writes were sent.
    attempts: int = 0
    #: How many of those were refused only because of a lease.
    waits: int = 0
    conflicts: int = 0
    doubts: int = 0
    #: How many requests in a row got no answer.
    unanswered: int = 0
    #: Why the last of them got none.
    failure: BaseException | None = None
    #: Whether another holder's lease was the last obstacle.
    leased: bool = False
    guard: str = "if-match"
    #: In seconds.
    round_trip: float = 0.0
    #: The seconds from the read until the commit was ready: for the transform, and for blocks that were sent.
    work_time: float = 0.0

    def load_pending(self) -> None:
        """Load the doubt of an earlier run of the same op that was killed, or ended with an unknown outcome."""
        journal = self.tools.journal
        pending = None if journal is None else journal.read_pending()
        # Where nothing may be created, an earlier create is no attempt at this update.
        if journal is None or pending is None or (pending == ABSENT and self.plan.create is None):
            return
        self.doubted = CurrentVersion(b"", None if pending == ABSENT else f'"{pending}"', Lineage())
        if self.plan.ledger and not journal.is_in_ledger:
            self.unledgered = self.doubted
        self._check_pending(journal)
        self.tell(f"an earlier run sent a write over {self.doubted.etag or 'nothing'}: settling that first")

    def _check_pending(self, journal: WriteJournal) -> None:
        change = self.plan.compared_change
        if change is None or journal.change in (None, change.digest):
            return
        journal.close()
        target = self.resource.target
        raise UsageError(
            f"the key names another change of {target}, which an earlier run sent and whose outcome is not known, than "
            f"this one ({change.text})",
            argument="op_id",
            address=str(target.address),
            reason="key_of_another_change",
            facts={"outcome": "key_of_another_change"},
        )

    def extend_lineage(self, state: CurrentVersion, content: bytes) -> Lineage | None:
        """Return the lineage of the version that we write over ``state``; None where we stamp none."""
        plan = self.plan
        if not plan.stamps:
            return None
        lineage = state.lineage.after(plan.op, state.etag)
        if not plan.is_keyed or plan.change is None:
            return lineage
        most = count_remembered(self.resource.target.kind)
        longest = lineage.with_key(plan.op, plan.change.digest, self.tools.now(), most)
        fitting = longest.fit(self.resource.count_room(state, content))
        if len(fitting.keys) < len(longest.keys):
            count = say_count(len(fitting.keys), "key")
            self.tools.warn(f"{self.resource.target} remembers the last {count} only: there is no room for more")
        return fitting

    def note_sending(self, state: CurrentVersion) -> None:
        """Note that a write is about to be sent over a version. From now on it is in doubt, until it is settled."""
        # A create in doubt stays one: "nothing there" can come back, an ETag cannot.
        before = self.doubted
        stays = before is not None and (before.etag is None or before is self.unledgered)
        over = before if before is not None and stays else state
        if self.tools.journal is not None and self.plan.leaves_trace:
            self.tools.journal.record_sending(over.etag, self._digest, in_ledger=self._is_in_ledger(over))
        self.doubted = over

    def close(self) -> None:
        """Record for the next run of this op what is still in doubt, and delete what is settled, once that is told."""
        self._note_end()
        journal = self.tools.journal
        if journal is None:
            return
        left = self.doubted or self.refused
        if left is not None and self.plan.leaves_trace:
            journal.record_unknown(left.etag, self._digest, in_ledger=self._is_in_ledger(left))
        if left is not None:
            journal.close()
        elif self.result is not None and journal.leave():
            # A run that is killed before it has told its end leaves the record to the next one.
            self.tools.once_told(journal.forget)
        else:
            journal.forget()

    @property
    def _digest(self) -> bytes | None:
        return None if self.plan.change is None else self.plan.change.digest

    def _is_in_ledger(self, over: CurrentVersion) -> bool:
        return self.plan.ledger and over is not self.unledgered

    @property
    def unsettled(self) -> bool:
        """Return whether a write of ours may have been committed, or may still be."""
        return self.doubted is not None or self.refused is not None

    def _note_end(self) -> None:
        if self.result is None:
            self.note("settled", outcome="unknown" if self.unsettled else "not applied")
        else:
            self.note("settled", outcome=self.result.outcome, etag=self.result.committed.etag)

    def note(self, step: str, **facts: Any) -> None:
        trace.note(step, self.resource.target, op=self.plan.op, **facts)

    def tell(self, text: str) -> None:
        self.tools.tell(text)

    @property
    def leases(self) -> Leasable:
        """Return how the resource is leased; only what can be leased is refused because of a lease."""
        leases = self.resource.leases
        assert leases is not None
        return leases

    def end_written(self, committed: CommittedVersion, lineage: Lineage | str | None) -> UpdateResult:
        """End because our write is there: of new content, or of our op alone."""
        is_unchanged = self.work is not None and self.work.is_unchanged
        outcome = "unchanged" if is_unchanged else "committed"
        return self.end(committed, outcome, None if lineage is None else str(lineage))

    def end_applied(self, applied: Applied) -> UpdateResult:
        """End because an earlier run of the op is there, which is ours no more: what was made now is not written."""
        self.work = None
        return self.end(CommittedVersion(None), "applied_before", None, applied)

    def end(
        self, committed: CommittedVersion, outcome: str, lineage: str | None, applied: Applied | None = None
    ) -> UpdateResult:
        """Record the result and return it. It stands from now on, even if we are interrupted."""
        work = self.work
        self.result = UpdateResult(
            committed=committed,
            outcome=outcome,
            guard=self.final_guard,
            attempts=self.attempts,
            conflicts=self.conflicts,
            doubts=self.doubts,
            content=None if work is None else work.content,
            lineage=lineage,
            created=outcome == "committed" and work is not None and work.base.etag is None,
            base=None if work is None else work.base.etag,
            base_length=None if work is None or work.base.etag is None else len(work.base.content),
            applied=applied,
            created_keys=self._list_created_keys() if outcome == "committed" else (),
            merged=self.merged if outcome == "committed" else None,
        )
        self.doubted = self.refused = None
        commits.announce()
        self.tell(self._describe_end(outcome, committed.etag))
        return self.result

    def _list_created_keys(self) -> tuple[str, ...]:
        work = self.work
        return () if work is None else list_created_keys(self.plan, work.base, work.content)

    @property
    def final_guard(self) -> str:
        if self.plan.fence is not None:
            return "fence"
        if self.plan.guard_name is not None:
            return self.plan.guard_name
        if self.plan.ledger:
            return "ledger"
        return "lease" if self.plan.guard_by_lease and not self.attempts else self.guard

    def _describe_end(self, outcome: str, etag: str | None) -> str:
        counts = (("attempt", self.attempts), ("conflict", self.conflicts), ("doubt", self.doubts))
        shown = ", ".join(say_count(count, what) for what, count in counts)
        return f"done: {outcome}{f' as {etag}' if etag and outcome == 'committed' else ''} ({shown})"

    def build_gave_up(self) -> AzguardError:
        """Return the error for an update whose time or attempts are used up; it is settled before it is raised."""
        target = self.resource.target
        if self.failure is not None:
            failure = translate(self.failure, target)
            if isinstance(failure, Unavailable):
                return failure
        why = "was leased by another holder" if self.leased else "was still contended"
        return GaveUp(
            f"{target} {why} after {say_count(self.attempts, 'attempt')}; nothing was applied",
            address=str(target.address),
            reason="update_leased" if self.leased else "update_gave_up",
            facts={"outcome": "gave_up"},
        )

    def build_unknown(self, why: str, cause: BaseException | None = None) -> OutcomeUnknown:
        """Return the error for an update that was sent, and whose outcome cannot be known."""
        target = self.resource.target
        said = (str(cause),) if isinstance(cause, AzguardError) else ()
        return OutcomeUnknown(
            f"the update of {target} was sent, and whether it was applied cannot be known",
            address=str(target.address),
            detail=(why, *said),
            facts={"outcome": "unknown"},
        )

    def collect_facts(self) -> dict[str, object]:
        return {
            "op_id": f"{RAW_OP}{self.plan.op}",
            "attempts": self.attempts,
            "conflicts": self.conflicts,
            "doubts": self.doubts,
            "base_etag": None if self.work is None else self.work.base.etag,
        }


def require_existing(resource: UpdatableResource, plan: UpdatePlan, state: CurrentVersion) -> None:
    """Refuse to update what does not exist and may not be created."""
    if state.etag is None and plan.create is None:
        raise NotFound(
            f"there is no {resource.target.kind.noun} {resource.target}",
            address=str(resource.target.address),
            http_status=404,
            reason="update_of_nothing",
        )


def list_created_keys(plan: UpdatePlan, state: CurrentVersion, made: bytes) -> tuple[str, ...]:
    """Return the keys that are new in the content and may be a mistake; none where the resource itself is new."""
    return () if state.etag is None else plan.list_created(state.content, made)


def check_fence(resource: UpdatableResource, plan: UpdatePlan, state: CurrentVersion) -> None:
    """Refuse to write over what a holder with a higher fence has written."""
    if plan.fence is not None:
        from azguard.guards import fences

        fences.refuse_higher(resource.target, plan.fence, state.fence)


def transform(resource: UpdatableResource, plan: UpdatePlan, state: CurrentVersion) -> bytes:
    """Return the new content for a state: the transform of what is there, or of what to start from."""
    plan.see(state)
    source = plan.create if state.etag is None and plan.create is not None else state.source
    try:
        return resource.canonicalize(plan.make(source, state.content_type))
    except RecursionError:
        raise TransformFailed(
            "the content, or what is to be made of it, is nested too deeply",
            address=str(resource.target.address),
            reason="transform_nested_too_deeply",
        ) from None
