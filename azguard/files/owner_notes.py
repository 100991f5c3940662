"""The record of who holds the lease of a guarded write, in the metadata of a file.

The lease of a file has no end. If its holder dies, an operator on another machine can judge by the record whether to
break it.
"""

import copy

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError
from azguard.files import writes
from azguard.files.writes import Held
from azguard.leases import owner_records
from azguard.leases.owner_records import Moved, Version
from azguard.leases.owners import OWNER, Owner
from azguard.requests import commits
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY

#: The service's code where the metadata have no room for the record: the lease guards without it, too.
NO_ROOM = "MetadataTooLarge"
# Bounded: a record that stays behind says that the lease is held, which anyone can see is not so.
_WITHDRAW_SECONDS = 3.0


def leave(target: Target, held: Held, owner: Owner, deadline: Deadline) -> Held:
    """Write the record under the lease, and return the version that carries it.

    Raises:
        BadRequest: the metadata have no room for it.
        Locked: the lease is not held any more.
        OutcomeUnknown: it was sent, and whether it was applied cannot be known.
    """
    lease_id = held.lease.lease_id
    version = Version(held.found.etag, held.found.metadata or {}, held.answered_at)
    tied = owner_records.set_service_time(owner, version).tie_to_lease(lease_id, None)
    added = {OWNER: tied.as_metadata()}
    with commits.step():
        moved = owner_records.change_metadata(target, version, added, Conditions(lease_id=lease_id), deadline)
        tied, moved = owner_records.correct_time(target, lease_id, tied, moved, deadline)
    record = tied.as_metadata()
    found = copy.copy(held.found)
    kept = {key: value for key, value in version.metadata.items() if key.lower() not in (OWNER, KEY)}
    found.metadata = {**kept, OWNER: record, KEY: moved.lineage}
    found.etag = moved.after or writes.fetch(target, lease_id, deadline).etag
    return Held(held.lease, found, has_note=True, answered_at=held.answered_at, may_move=moved.attempts > 1)


def remove(target: Target, held: Held, deadline: Deadline) -> WriteResult:
    """Remove the record from the version that is there now, and return the version without it.

    Raises:
        Locked: the lease is not held any more.
        OutcomeUnknown: it was sent, and whether it was applied cannot be known.
    """
    with commits.suppress():
        moved = owner_records.remove(target, held.lease.lease_id, deadline)
    return WriteResult(
        address=str(target.address),
        etag=None if moved is None else moved.after,
        last_modified=None if moved is None else moved.last_modified,
        guard="lease",
        attempts=1,
    )


def withdraw(target: Target, held: Held, before: str, deadline: Deadline) -> Moved | None:
    """Remove the record after a write that was not done; return how that moved the version, None if it failed.

    ``before`` is the ETag before the record was written.
    """
    try:
        done = remove(target, held, deadline.afterwards(_WITHDRAW_SECONDS))
        found = writes.fetch(target, held.lease.lease_id, deadline)
    except AzguardError:
        return None
    return Moved(before, done.etag, done.last_modified, (found.metadata or {}).get(KEY, ""))
