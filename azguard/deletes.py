"""Deleting a blob, and whose delete it was that a lost answer leaves behind."""

from azguard import blobs, fenced_writes
from azguard.account import Target
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.errors import Changed, NotFound, UsageError
from azguard.lineage import KEY, Lineage
from azguard.settled import NOTHING_THERE, Look, Settled, Verdict, Written, write
from azguard.transmission import write_timeouts


def delete(target: Target, conditions: Conditions, snapshots: str | None, deadline: Deadline) -> Written:
    """Delete a blob. ``snapshots`` is None, ``include`` or ``only``.

    Raises:
        Changed: it is no longer the version the condition names.
        LockLost: a holder with a higher fence has written it.
        OutcomeUnknown: the answer was lost, and the blob is gone: by us or by another. Only an infinite lease tells.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-blob
    """
    if snapshots is not None and target.address.snapshot is not None:
        raise UsageError(f"{target} is itself a snapshot, which has none", hint="leave --delete-snapshots out")
    leased = conditions.lease_id is not None
    # Known before, because afterwards there is nothing to ask: an infinite lease cannot have lapsed meanwhile.
    alone = leased and _held_for_ever(target, conditions, deadline)

    def attempt(under: Conditions) -> Settled[None]:
        return _settled(target, under, snapshots, deadline, alone=alone)

    try:
        settled, conditions = fenced_writes.write(target, conditions, deadline, attempt, creates=False)
    except Changed as error:
        raise blobs.explained(error, target, deadline) from error
    return Written(str(target.address), None, None, conditions.guard, settled.attempts)


def _settled(
    target: Target, conditions: Conditions, snapshots: str | None, deadline: Deadline, *, alone: bool
) -> Settled[None]:
    client = target.account.blob(target.address)
    return write(
        lambda: client.delete_blob(
            delete_snapshots=snapshots, headers=conditions.request_headers, **write_timeouts(deadline)
        ),
        lambda patience: _deleted(target, conditions, patience, alone=alone),
        target,
        deadline,
        expected_etag=conditions.expected_etag,
        # The lease ends with the blob, so a late delete under it finds nothing that it could delete.
        resend=conditions.lease_id is not None or conditions.expected_etag is not None,
    )


def _held_for_ever(target: Target, conditions: Conditions, deadline: Deadline) -> bool:
    """Return whether the lease is held and infinite; whoever breaks such a lease takes over by force.

    Raises:
        Locked: it is not held.
    """
    found = blobs.properties(target, Conditions(lease_id=conditions.lease_id), deadline)
    return bool(found.lease.duration == "infinite")


def _deleted(target: Target, conditions: Conditions, patience: Deadline, *, alone: bool) -> Look[None]:
    """Return who deleted the blob; ``alone`` says that nobody else could."""
    expected_etag = conditions.expected_etag
    try:
        current = blobs.properties(target, Conditions(), patience)
    except NotFound:
        return Look(Verdict.COMMITTED if alone else Verdict.UNKNOWN, seen=NOTHING_THERE)
    if expected_etag is None:
        return Look(Verdict.UNKNOWN if conditions.lease_id is None else Verdict.NOT_YET, seen=current)
    if current.etag == expected_etag:
        return Look(Verdict.NOT_YET, seen=current)
    history = Lineage.parse((current.metadata or {}).get(KEY))
    replaced = history.successor(expected_etag) is not None
    return Look(Verdict.NEVER if replaced else Verdict.UNKNOWN, seen=current)
