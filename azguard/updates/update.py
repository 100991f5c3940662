"""Read-modify-write, retried on conflict, applied exactly once, even when responses get lost.

``lineage`` has the proof. In short: every write carries the op's id and the ETag it replaces. An attempt in doubt is
sent again only over the same ETag; over another one only after a recorded successor proves that the old attempt can
never be committed. What cannot be proved is reported as *unknown*.
"""

from typing import NamedTuple

from azguard.requests.deadline import Deadline
from azguard.updates.applied import Applied, check_change, find_applied
from azguard.updates.leases import GUARD_ANSWER_SECONDS
from azguard.updates.loop import Loop
from azguard.updates.plan import UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.resource import UpdatableResource
from azguard.updates.run import UpdateRun, check_fence, list_created_keys, require_existing, transform


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
            loop.run.close()
            loop.lease.release()


def preview(resource: UpdatableResource, plan: UpdatePlan, deadline: Deadline) -> Preview:
    """Return what ``plan`` would write now; nothing is written.

    Raises:
        NotFound: there is nothing, and no ``create``.
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
