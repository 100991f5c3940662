"""Find the outcome of an attempt in doubt, from the lineage or from kept versions, or decide it by a fence.

The outcome is *committed* only if our op is found. It is *never* only if a recorded successor, or a fence of ours, has
replaced the version that the attempt would have replaced. Everything else is unknown: see ``lineage``. The same is
found for an update that ended long ago.
"""

from collections.abc import Sequence
from datetime import datetime

from azguard.errors import Exists, NotFound
from azguard.frozen import frozen
from azguard.requests.calls import CallOutcome, send_once
from azguard.requests.commits import Verdict
from azguard.requests.deadline import SHORTEST_SETTLE_SECONDS, Deadline
from azguard.requests.lineage import bare, verdict_from_lineage
from azguard.requests.service_codes import is_conflict, is_lease_problem
from azguard.requests.service_errors import translate
from azguard.updates.leases import UpdateLease
from azguard.updates.resource import (
    RAW_OP,
    Applied,
    Change,
    CommittedVersion,
    CurrentVersion,
    KeptVersion,
    UpdatableResource,
    UpdateResult,
    check_change,
    find_applied,
)
from azguard.updates.run import UpdateRun

#: Why an update ends that was refused.
PERHAPS_OURS = "it was refused, but an earlier copy of the request may have been applied before"
# Between two attempts to write a fence: a few round trips.
_PAUSE_SECONDS = 0.1
COMMITTED = "committed"
NOT_COMMITTED = "not_committed"
UNKNOWN = "unknown"


def settle(run: UpdateRun, lease: UpdateLease, state: CurrentVersion, deadline: Deadline) -> UpdateResult | None:
    """Return the end if our write is found.

    If not, forget the doubt once the write can never be committed, and keep it as long as it still can.
    """
    applied = find_applied(state, run.plan.op)
    if applied is not None:
        return _end_by_own_op(run, state, applied)
    if (proved := _find_first_copy(run, lease, state, deadline)) is not None:
        return proved
    if run.doubted is None:
        return None
    parent = run.doubted.etag
    verdict = (
        judge_by_ledger(parent, state)
        if state.in_ledger is False and run.doubted is not run.unledgered
        else verdict_from_lineage(state.lineage, run.plan.op, parent, state.etag)
    )
    if verdict is Verdict.UNKNOWN and (state.version_id or run.doubted.version_id):
        verdict = _ask_kept_versions(run, parent, deadline)
    if verdict is Verdict.UNKNOWN and (proved := prove_by_lease(run, lease, run.doubted)) is not None:
        return proved
    run.note("looked", over=parent, version=state.etag, found=verdict.value)
    if verdict is Verdict.COMMITTED:
        return _end_by_kept_version(run)
    if verdict is Verdict.UNKNOWN:
        raise run.build_unknown(_describe_break(state, parent))
    if verdict is Verdict.NEVER:
        run.tell(f"settled: another write replaced {parent or 'nothing'}, so ours over it can never land")
        run.doubted = None
    else:
        run.tell(f"still open: {parent or 'nothing'} is current, so writing over it again is safe")
    return None


def _find_first_copy(
    run: UpdateRun, lease: UpdateLease, state: CurrentVersion, deadline: Deadline
) -> UpdateResult | None:
    """Return the end if our lease, or a kept version, proves that a copy of the request was committed before the one
    that was refused.

    Our op is not in the lineage. Where there is no lineage to look at, content that equals ours may be ours: then it
    stays ``refused``, and must not be written again. So it does if our lease was broken, and the lineage replaced.
    """
    refused = run.refused
    if refused is None:
        return None
    if (proved := prove_by_lease(run, lease, refused)) is not None:
        return proved
    work = run.work
    alike = work is not None and state.etag is not None and state.content == work.content
    verdict = verdict_from_lineage(state.lineage, run.plan.op, refused.etag, state.etag)
    if verdict is Verdict.UNKNOWN and state.version_id:
        verdict = _ask_kept_versions(run, refused.etag, deadline)
        if verdict is Verdict.COMMITTED:
            return _end_by_kept_version(run)
    if verdict is Verdict.NOT_YET and run.guard == "lease":
        # Copies of both requests, the acquire and the write, can come late: the version has to be replaced first.
        run.doubted = run.doubted or refused
    # Under our own lease no other writer could replace the version: what the lease does not prove in time is unknown.
    ours_alone = run.guard == "lease" and run.plan.guard_by_lease
    is_open = ours_alone or (alike and not run.plan.leaves_trace)
    if verdict is not Verdict.UNKNOWN or not is_open:
        run.refused = None
    return None


def _ask_kept_versions(run: UpdateRun, parent: str | None, deadline: Deadline) -> Verdict:
    # Without a lineage our own version looks like another writer's.
    if not run.plan.stamps:
        return Verdict.UNKNOWN
    return judge_by_versions(run.resource.list_versions(deadline), run.plan.op, parent)


def _end_by_kept_version(run: UpdateRun) -> UpdateResult:
    run.tell("settled: our write is among the kept versions")
    return run.end_written(CommittedVersion(None), None)


def prove_by_lease(run: UpdateRun, lease: UpdateLease, over: CurrentVersion | None) -> UpdateResult | None:
    """Return the end if the version we wrote over was replaced while we hold a lease on it: only we could do that."""
    etag = None if over is None else lease.new_etag(over)
    if over is None or etag is None:
        return None
    run.note("looked", over=over.etag, version=etag, found=Verdict.COMMITTED.value, where="lease")
    lineage = run.extend_lineage(over, b"" if run.work is None else run.work.content)
    run.tell(f"settled: no other writer could write under our lease, so {etag} is ours")
    return run.end_written(CommittedVersion(etag), lineage)


def supersede(run: UpdateRun, lease: UpdateLease) -> UpdateResult | None:
    """Make the attempt in doubt impossible by replacing the version it depends on, or find that it was committed.

    Returns None once it can never be committed.
    """
    patience = run.deadline.afterwards(run.deadline.settle_seconds, SHORTEST_SETTLE_SECONDS)
    lease_id = lease.in_use
    abort = run.tools.new_op()
    while True:
        # Without the caller's lease id, since that lease may have ended.
        state = run.resource.read_unleased(patience)
        run.note("read", version=state.etag)
        ended = settle(run, lease, state, patience)
        if ended is None and run.refused is not None:
            raise run.build_unknown(PERHAPS_OURS)
        if ended is not None or run.doubted is None:
            return ended
        obstacle = _find_obstacle(run, state, patience)
        if obstacle is not None:
            raise run.build_unknown(obstacle)
        lineage = state.lineage.after(abort, state.etag) if run.plan.stamps else None
        run.note("fencing", over=state.etag)
        sent = send_once(run.resource.fence(state, lineage, lease_id, patience))
        run.note("fenced", over=state.etag, outcome=sent.outcome.value, code=sent.error)
        if sent.outcome is CallOutcome.COMMITTED:
            run.tell(f"settled: {state.label} is fenced off, so our write over it can never land")
            run.doubted = None
            return None
        if sent.error is not None and sent.outcome is CallOutcome.REFUSED:
            if is_lease_problem(sent.error):
                # Our lease has ended. Another holder's lease ends soon, or this loop's time does.
                lease_id = None
            elif not is_conflict(sent.error):
                raise run.build_unknown("it could not be fenced off", translate(sent.error, run.resource.target))
        patience.pause(_PAUSE_SECONDS)


def _find_obstacle(run: UpdateRun, state: CurrentVersion, patience: Deadline) -> str | None:
    if state.etag is None and state.in_ledger is None:
        return "nothing is there, and a create that was delivered late could still make it"
    if run.doubted is run.unledgered:
        return "an earlier run sent it without a ledger, which cannot keep it out"
    return (
        "the version it was sent for could not be replaced in time, so it may still arrive" if patience.passed else None
    )


def judge_by_ledger(parent: str | None, state: CurrentVersion) -> Verdict:
    """Return the verdict on a write over ``parent`` that is not in the ledger.

    The ledger was read after the resource, so that a write over a version that had been replaced by then would be in
    it. A create can still be committed while nothing is there. Once our op is in the ledger, no attempt can be.
    """
    replaced = parent is not None and bare(parent) != bare(state.etag)
    return Verdict.NEVER if replaced else Verdict.NOT_YET


def judge_by_versions(history: Sequence[KeptVersion], op: str, parent: str | None) -> Verdict:
    """Return the verdict of the kept versions, oldest first, on ``op`` over ``parent``.

    The service keeps the versions of every program. The verdict is sound unless versions are deleted at the same time.
    """
    if any(op in version.lineage for version in history):
        return Verdict.COMMITTED
    position = next((index for index, version in enumerate(history) if version.etag == parent), None)
    if position is None or position + 1 == len(history):
        return Verdict.UNKNOWN
    return Verdict.NEVER


def _end_by_own_op(run: UpdateRun, state: CurrentVersion, applied: Applied) -> UpdateResult:
    where = "ledger" if state.in_ledger else "lineage"
    _check_change(run, state, applied)
    run.note("looked", version=state.etag, found=Verdict.COMMITTED.value, where=where)
    if not run.attempts:
        run.tell(f"the {where} has this op: it was done before")
        _warn_of_earlier_run(run, applied)
        return run.end_applied(applied)
    run.tell(f"settled: our write is in the {where}")
    if _is_ours(run, state):
        return run.end_written(CommittedVersion(state.etag, state.last_modified, state.version_id), state.lineage)
    return run.end_written(CommittedVersion(None), None)


def _check_change(run: UpdateRun, state: CurrentVersion, applied: Applied) -> None:
    try:
        check_change(run.resource.target, applied, run.plan.compared_change)
    except Exists:
        # No attempt is made over a version with our op, so that each of ours was over one that is replaced.
        if state.lineage.binds:
            run.doubted = run.refused = None
        raise


def _warn_of_earlier_run(run: UpdateRun, applied: Applied) -> None:
    if run.plan.compared_change is not None and applied.change is None:
        run.tools.warn("the change of this key was not recorded, so it cannot be compared with the new one")
    if applied.written_since:
        run.tools.warn("another write followed the change of this key, so the content may differ from it")


def _is_ours(run: UpdateRun, state: CurrentVersion) -> bool:
    """Return whether we wrote the current version, rather than another writer who kept our lineage."""
    work = run.work
    return (
        work is not None
        and state.lineage == work.base.lineage.after(run.plan.op, work.base.etag)
        and (state.content, state.preserved) == (work.content, work.base.preserved)
    )


def _describe_break(state: CurrentVersion, parent: str | None) -> str:
    if state.etag is None:
        return "it is gone: another writer deleted it, before or after our write"
    if parent is None:
        return "it was created meanwhile, which does not tell whether ours was there before, and deleted"
    return f"a writer that keeps no lineage replaced {parent}, or our write on it"


@frozen
class UpdateStatus:
    """The outcome of an op: committed, not_committed or unknown."""

    address: str
    op_id: str
    outcome: str
    #: When it was committed, to the minute; None where that is not known.
    applied_at: datetime | None = None
    #: Whether another write followed; None where it was not committed.
    written_since: bool | None = None
    #: Of an unknown outcome: when the oldest key was applied that is remembered; older ones are forgotten.
    oldest_key: datetime | None = None


def find_status(
    resource: UpdatableResource, op: str, deadline: Deadline, *, is_keyed: bool = False, change: Change | None = None
) -> UpdateStatus:
    """Return the outcome of an op: not_committed if it is not in the history since the creation.

    ``is_keyed`` says that the op is that of a key, which is remembered longer.

    Raises:
        NotFound: there is nothing, or not any more, and no kept version tells.
        Exists: the key names another change than ``change``.
    """
    target = resource.target
    state = resource.read(deadline)
    address, op_id = str(target.address), f"{RAW_OP}{op}"
    applied = find_applied(state, op)
    if applied is not None:
        check_change(target, applied, change)
        return UpdateStatus(address, op_id, COMMITTED, applied.at, applied.written_since)
    if _is_never_forgotten(state, is_keyed=is_keyed):
        return UpdateStatus(address, op_id, NOT_COMMITTED)
    if _is_in_kept_versions(resource, state, op, deadline):
        return UpdateStatus(address, op_id, COMMITTED, written_since=True)
    if state.etag is None:
        raise NotFound(f"there is no {target.kind.noun} {target}", address=address, http_status=404)
    return UpdateStatus(address, op_id, UNKNOWN, oldest_key=state.lineage.keys.find_oldest())


def _is_never_forgotten(state: CurrentVersion, *, is_keyed: bool) -> bool:
    lineage = state.lineage
    has_key = is_keyed and lineage.binds and lineage.has_all_keys
    return lineage.reaches_creation or has_key or state.in_ledger is False


def _is_in_kept_versions(resource: UpdatableResource, state: CurrentVersion, op: str, deadline: Deadline) -> bool:
    if state.etag is not None and not state.version_id:
        return False
    return any(op in kept.lineage for kept in resource.list_versions(deadline))
