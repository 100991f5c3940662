"""The record of who holds a lease, written into a blob's metadata under that lease."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from azguard import blobs, lease_state
from azguard.account import Target
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.lineage import KEY, Lineage, new_op
from azguard.owners import SERVICE_CLOCK, Owner
from azguard.settled import Look, judge, write
from azguard.times import iso
from azguard.transmission import write_timeouts


@dataclass(frozen=True)
class Version:
    """A version of a blob: its ETag, and the metadata that came with it."""

    etag: str
    metadata: Mapping[str, str]
    #: The service's clock when it said so; None if it did not tell.
    answered_at: datetime | None = None


def seen(target: Target, deadline: Deadline, lease_id: str | None = None) -> Version:
    """Return what is there; with ``lease_id`` only while that is the lease held on it.

    Raises:
        Locked: ``lease_id`` is not held.
        NotFound: there is no such blob.
    """
    found = lease_state.look(target, deadline, lease_id)
    return Version(found.etag, found.metadata, found.answered_at)


def dated(owner: Owner, version: Version) -> Owner:
    """Return the record with the service's time instead of the holder's, where the service told it."""
    if version.answered_at is None:
        return owner
    return replace(owner, since=iso(version.answered_at), clock=SERVICE_CLOCK)


def change(
    target: Target,
    version: Version,
    added: Mapping[str, str | None],
    conditions: Conditions,
    deadline: Deadline,
) -> None:
    """Change the metadata of one version; None removes a key. Like every write of azguard's it goes into the lineage.

    Raises:
        Changed: it is no longer that version.
        Locked: the lease that ``conditions`` names is not held.
        OutcomeUnknown: it was sent, and whether it was applied cannot be known.
    """
    op = new_op(os.urandom(12))
    client = target.account.blob(target.address)
    others = {key: value for key, value in version.metadata.items() if key.lower() not in (*added, KEY)}
    lineage = Lineage.parse(version.metadata.get(KEY)).after(op, version.etag)
    kept = {key: value for key, value in added.items() if value is not None}
    metadata = {**others, **kept, KEY: str(lineage)}

    def look(patience: Deadline) -> Look[Any]:
        found = seen(target, patience, conditions.lease_id)
        return Look(judge(Lineage.parse(found.metadata.get(KEY)), op, version.etag, found.etag))

    write(
        lambda: client.set_blob_metadata(metadata, headers=blobs.headers(conditions), **write_timeouts(deadline)),
        look,
        target,
        deadline,
        expected_etag=version.etag,
    )
