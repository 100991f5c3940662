"""Deleting a blob; after a lost answer, finding out whether the delete was ours."""

from azguard.accounts.target import Target
from azguard.blobs import fenced_writes, properties
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, NotFound, UsageError
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.requests.verdicts import Verdict
from azguard.requests.written import WriteResult


def delete(target: Target, conditions: Conditions, snapshots: str | None, deadline: Deadline) -> WriteResult:
    """Delete a blob. ``snapshots`` is None, ``include`` or ``only``.

    Raises:
        Changed: it is no longer the version the condition names.
        LockLost: a holder with a higher fence has written it.
        OutcomeUnknown: the answer was lost, and the blob is gone: by us or by another. Only an infinite lease tells. Or
            only its snapshots were to be deleted, of which nothing tells.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-blob
    """
    if snapshots is not None and target.address.snapshot is not None:
        raise UsageError(f"{target} is itself a snapshot, which has none", reason="snapshot_has_no_snapshots")
    leased = conditions.lease_id is not None
    # Asked before the delete, since a deleted blob tells nothing; an infinite lease cannot have expired meanwhile.
    alone = leased and _is_held_for_ever(target, conditions, deadline)

    def attempt(under: Conditions) -> Settled[None]:
        return _attempt(target, under, snapshots, deadline, alone=alone)

    try:
        settled, conditions = fenced_writes.write(target, conditions, deadline, attempt, creates=False)
    except Changed as error:
        raise properties.describe_conflict(error, target, deadline) from error
    return WriteResult(
        address=str(target.address),
        etag=None,
        last_modified=None,
        guard=conditions.guard,
        attempts=settled.attempts,
    )


def _attempt(
    target: Target, conditions: Conditions, snapshots: str | None, deadline: Deadline, *, alone: bool
) -> Settled[None]:
    client = target.account.blob(target.address)
    request = WriteRequest(
        target=target,
        send=lambda: client.delete_blob(
            delete_snapshots=snapshots, headers=conditions.request_headers, **write_timeouts(deadline)
        ),
        look=lambda patience: _find_outcome(target, conditions, patience, alone=alone),
        expected_etag=conditions.expected_etag,
        # The lease ends with the blob, so a late delete under it finds nothing that it could delete. Snapshots leave
        # lease and ETag as they are: a late delete of them would delete those that are made meanwhile, too.
        resend=snapshots != "only" and (conditions.lease_id is not None or conditions.expected_etag is not None),
    )
    return send_until_settled(request, deadline)


def _is_held_for_ever(target: Target, conditions: Conditions, deadline: Deadline) -> bool:
    """Return whether the lease is held and infinite; breaking such a lease is taking over by force.

    Raises:
        Locked: it is not held.
    """
    found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    return bool(found.lease.duration == "infinite")


def _find_outcome(target: Target, conditions: Conditions, patience: Deadline, *, alone: bool) -> Finding[None]:
    """Return who deleted the blob; ``alone`` says that no other writer could."""
    expected_etag = conditions.expected_etag
    try:
        current = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.COMMITTED if alone else Verdict.UNKNOWN, seen=NOTHING_THERE)
    if expected_etag is None:
        return Finding(Verdict.UNKNOWN if conditions.lease_id is None else Verdict.NOT_YET, seen=current)
    if current.etag == expected_etag:
        return Finding(Verdict.NOT_YET, seen=current)
    history = Lineage.parse((current.metadata or {}).get(KEY))
    replaced = history.successor(expected_etag) is not None
    return Finding(Verdict.NEVER if replaced else Verdict.UNKNOWN, seen=current)
