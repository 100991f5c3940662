"""Deleting a blob; after a lost answer or a refusal, finding out whether the delete was ours."""

from typing import NamedTuple

from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.errors import UsageError
from azguard.guards.resolve import Conditions
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.requests.results import WOULD_DELETE, WOULD_REFUSE, Written, without_time
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import lifecycles, properties
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_DELETE


class BlobBefore(NamedTuple):
    """What was there before the delete was sent."""

    #: None if the caller may not read.
    etag: str | None
    #: Whether our lease keeps all others from deleting it.
    alone: bool = False
    #: Whether it was not the version any more that the delete is for, which does not come back.
    is_another: bool = False


def delete(
    target: Target, conditions: Conditions, snapshots: str | None, deadline: Deadline, *, listed: str | None = None
) -> Written:
    """Delete a blob. ``snapshots`` is None, ``include`` or ``only``; ``listed`` is the ETag that was just listed.

    Raises:
        Changed: it is no longer the version the condition names.
        LockLost: a holder with a higher fence has written it.
        NotFound: there is none.
        OutcomeUnknown: the answer was lost, or the request was refused, and the blob that was there before is gone: by
            us or by another. Only an infinite lease tells. Or only its snapshots were to be deleted, of which nothing
            tells.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-blob
    """
    if snapshots is not None and target.address.snapshot is not None:
        raise UsageError(f"{target} is itself a snapshot, which has none", reason="snapshot_has_no_snapshots")
    before = _look_before(target, conditions, listed, deadline)

    def attempt(under: Conditions) -> Settled[None]:
        return _attempt(target, under, snapshots, deadline, before)

    with refusals.explain_refusal(target, conditions, deadline):
        settled, conditions = refusals.write_fenced(target, conditions, deadline, attempt, creates=False)
    return without_time(target, conditions.guard, settled.attempts)


def preview(target: Target, conditions: Conditions, deadline: Deadline) -> Written:
    """Return the result of a delete without sending it. Not guaranteed: snapshots and fences are not checked.

    Raises:
        Changed: it is no longer the version the condition names.
        NotFound: there is none.
    """
    with refusals.explain_refusal(target, conditions, deadline):
        found = properties.fetch(target, conditions, deadline)
    is_free = conditions.lease_id is not None or found.lease.status != "locked"
    return Written(
        **properties.describe_version(target.address, found),
        guard=conditions.guard,
        attempts=0,
        outcome=WOULD_DELETE if is_free else WOULD_REFUSE,
    )


def _look_before(target: Target, conditions: Conditions, listed: str | None, deadline: Deadline) -> BlobBefore:
    """Look at the blob before the delete, since a deleted blob tells nothing."""
    if listed is not None and conditions.lease_id is None:
        return BlobBefore(listed)
    under = Conditions(lease_id=conditions.lease_id)
    with refusals.explain_gone(target, conditions.expected_etag):
        found = lifecycles.look_before(lambda: properties.fetch(target, under, deadline))
    if found is None:
        return BlobBefore(None)
    # An infinite lease cannot expire meanwhile; breaking it is taking over by force.
    alone = conditions.lease_id is not None and found.lease.duration == "infinite"
    return BlobBefore(found.etag, alone, is_another=conditions.expected_etag not in (None, found.etag))


def _attempt(
    target: Target, conditions: Conditions, snapshots: str | None, deadline: Deadline, before: BlobBefore
) -> Settled[None]:
    request = WriteRequest[None](
        operation=BLOB_DELETE,
        target=target,
        send=lambda: send(target, conditions, snapshots, deadline),
        look=lambda patience: _find_outcome(target, conditions, patience, before),
        expected_etag=conditions.expected_etag,
        # The lease ends with the blob, so a late delete under it finds nothing that it could delete. Snapshots leave
        # lease and ETag as they are: a late delete of them would delete those that are made meanwhile, too.
        resend=snapshots != "only" and (conditions.lease_id is not None or conditions.expected_etag is not None),
    )
    return send_until_settled(request, deadline)


def send(target: Target, conditions: Conditions, snapshots: str | None, deadline: Deadline) -> None:
    """Send a Delete Blob once."""
    headers = conditions.request_headers
    call(BLOB_DELETE, target, write_timeouts(deadline), headers=headers, delete_snapshots=snapshots)


def _find_outcome(target: Target, conditions: Conditions, patience: Deadline, before: BlobBefore) -> Finding[None]:
    """Return who deleted the blob, or who wrote it: a copy of the delete may have come before that."""
    expected_etag = conditions.expected_etag
    current = lifecycles.look_after(lambda: properties.fetch(target, Conditions(), patience))
    if before.is_another:
        return Finding(Verdict.NEVER, seen=current or NOTHING_THERE)
    if current is None:
        verdict = Verdict.COMMITTED if before.alone else Verdict.UNKNOWN
        return Finding(verdict, seen=NOTHING_THERE, may_be_ours=before.etag is not None)
    if current.etag == expected_etag or (expected_etag is None and conditions.lease_id is not None):
        return Finding(Verdict.NOT_YET, seen=current)
    history = Lineage.find(current.metadata)
    if expected_etag is not None and history.successor(expected_etag) is not None:
        return Finding(Verdict.NEVER, seen=current)
    return Finding(Verdict.UNKNOWN, seen=current, may_be_ours=before.etag not in (None, current.etag))
