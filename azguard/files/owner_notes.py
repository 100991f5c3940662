"""The record of who holds the lease of a guarded write, in the metadata of a file.

The lease of a file has no end. If its holder dies, an operator on another machine can judge by the record whether to
break it.
"""

import copy
from collections.abc import Mapping
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError
from azguard.files import writes
from azguard.files.writes import FileWrite, Held
from azguard.leases.owner_records import Moved
from azguard.leases.owners import OWNER, Owner
from azguard.requests import commits
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op
from azguard.requests.written import WriteResult

# Bounded: a record that stays behind says that the lease is held, which anyone can see is not so.
_WITHDRAW_SECONDS = 3.0


def leave(target: Target, held: Held, owner: Owner, deadline: Deadline) -> Held:
    """Write the record under the lease, and return the version that carries it.

    Raises:
        Locked: the lease is not held any more.
        OutcomeUnknown: it was sent, and whether it was applied cannot be known.
    """
    metadata, done = _change(target, held, owner.as_metadata(), deadline)
    found = copy.copy(held.found)
    found.metadata = metadata
    found.etag = done.etag or writes.fetch(target, held.lease.lease_id, deadline).etag
    return Held(held.lease, found, has_note=True)


def remove(target: Target, held: Held, deadline: Deadline) -> WriteResult:
    """Remove the record from the version that is there now, and return the version without it.

    Raises:
        Locked: the lease is not held any more.
        OutcomeUnknown: it was sent, and whether it was applied cannot be known.
    """
    now = Held(held.lease, writes.fetch(target, held.lease.lease_id, deadline))
    _, done = _change(target, now, None, deadline)
    return done


def withdraw(target: Target, held: Held, before: str, deadline: Deadline) -> Moved | None:
    """Remove the record after a write that was not done; return how that moved the version, None if it failed.

    ``before`` is the ETag before the record was written.
    """
    patience = deadline.restart(seconds=_WITHDRAW_SECONDS)
    try:
        now = Held(held.lease, writes.fetch(target, held.lease.lease_id, patience))
        metadata, done = _change(target, now, None, patience)
    except AzguardError:
        return None
    return Moved(quote(before), done.etag, done.last_modified, metadata[KEY])


def _change(
    target: Target, held: Held, record: str | None, deadline: Deadline
) -> tuple[Mapping[str, str], WriteResult]:
    """Write the record, or remove it; like every write of azguard's, that goes into the lineage."""
    op = fresh_op()
    known: Mapping[str, str] = held.found.metadata or {}
    kept = {key: value for key, value in known.items() if key.lower() not in (OWNER, KEY)}
    lineage = Lineage.parse(known.get(KEY)).after(op, held.found.etag)
    metadata = {**kept, **({} if record is None else {OWNER: record}), KEY: str(lineage)}
    client = target.account.file(target.address)

    def send(headers: Mapping[str, str], deadline: Deadline) -> Any:
        return client.set_file_metadata(dict(metadata), headers=dict(headers), **write_timeouts(deadline))

    write = FileWrite(target=target, conditions=Conditions(guard="lease"), send=send, op=op)
    with commits.suppress():
        return metadata, writes.send(write, held, deadline)
