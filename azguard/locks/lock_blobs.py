"""The blobs that locks are: their names, how they are made, and what is written on them under the lease."""

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azguard import blobs, lease_state, owners
from azguard.account import Target
from azguard.address import Address, Kind
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.errors import Changed, Exists, NotFound, OutcomeUnknown, UsageError
from azguard.lineage import KEY, Lineage, new_op
from azguard.owners import FENCE, SLOTS, Owner
from azguard.settled import Look, judge, write
from azguard.transmission import write_timeouts

# Where the locks of tables are kept, unless another container is named.
CONTAINER = "locks"
_NEW = Conditions({"If-None-Match": "*"}, "if-none-match")


@dataclass(frozen=True)
class Version:
    """A version of a lock blob: its ETag, and the metadata that came with it."""

    etag: str
    metadata: Mapping[str, str]


def designated(table: Target, container: str) -> Target:
    """Return the blob that stands for a table, which has no lease of its own.

    Source: https://learn.microsoft.com/azure/storage/blobs/concurrency-manage
    """
    return Target(table.account, Address(Kind.BLOB, (container, f"table/{table.address.name}")))


def slots(target: Target, count: int) -> list[Target]:
    """Return the blobs of a lock that so many may hold; the first is the lock's own, so that all meet there."""
    container, name = target.address.container, target.address.name
    more = [Address(Kind.BLOB, (container, f"{name}.slot{number}")) for number in range(2, count + 1)]
    return [target, *(Target(target.account, each) for each in more)]


def agree(target: Target, count: int, create: bool, deadline: Deadline) -> None:
    """See that the lock is one of ``count`` slots; where there is none yet, it becomes one.

    Raises:
        UsageError: it is a lock of another number of slots.
        NotFound: there is none, and none may be made.
    """
    while True:
        try:
            found = seen(target, deadline)
        except NotFound:
            if not create:
                raise
            make(target, deadline, {SLOTS: str(count)})
            continue
        check(target, found.metadata, count)
        if owners.number(found.metadata, SLOTS) is not None:
            return
        try:
            _set(target, found, {SLOTS: str(count)}, Conditions({"If-Match": found.etag}), deadline)
        except Changed:
            continue


def check(target: Target, metadata: Mapping[str, str], count: int) -> None:
    """Refuse a lock that others hold with another number of slots.

    Raises:
        UsageError: that is the case.
    """
    theirs = owners.number(metadata, SLOTS) or (1 if owners.number(metadata, FENCE) is not None else count)
    if theirs != count:
        raise UsageError(
            f"{target} is a lock of {theirs} {'slot' if theirs == 1 else 'slots'}, not of {count}",
            address=str(target.address),
            hint=f"all its holders must agree: --slots {theirs}, or another name",
        )


def make(target: Target, deadline: Deadline, metadata: Mapping[str, str] | None = None) -> Version | None:
    """Create a lock blob, and its container, if they are missing; return the new blob, None if it was there."""
    from azguard import containers, uploads  # a lock is made once and acquired often

    settings = uploads.Settings(content_type="application/octet-stream", metadata=dict(metadata or {}))
    upload = uploads.Upload.stamped(target, settings, _NEW, deadline, new_op(os.urandom(12)))
    try:
        made = uploads.put(upload, io.BytesIO(), lambda done: None)
    except Exists:
        return None
    except NotFound:
        container = Target(target.account, Address(Kind.CONTAINER, (target.address.container,)))
        try:
            containers.create(container, {}, None, deadline, new_op(os.urandom(12)))
        except (Exists, OutcomeUnknown):
            pass  # it is there, or the next request tells that it is not
        return None
    except OutcomeUnknown:
        return None  # the same
    return None if made.etag is None else Version(made.etag, upload.metadata)


def seen(target: Target, deadline: Deadline, lease_id: str | None = None) -> Version:
    """Return what is there; with ``lease_id`` only while that is the lease held on it."""
    found = lease_state.look(target, deadline, lease_id)
    return Version(found.etag, found.metadata)


def stamp(target: Target, lease_id: str, owner: Owner, count: int, known: Version | None, deadline: Deadline) -> int:
    """Write the owner's record and the next fence under the lease, and return the fence.

    ``known`` is the version that is there, if that is known. Other metadata stays, and the content is not touched.

    Raises:
        Locked: the lease is not held any more.
        UsageError: it is a lock of another number of slots.
    """
    while True:
        version = known or seen(target, deadline, lease_id)
        check(target, version.metadata, count)
        fence = (owners.number(version.metadata, FENCE) or 0) + 1
        added = {owners.OWNER: owner.as_metadata(), FENCE: str(fence), **({SLOTS: str(count)} if count > 1 else {})}
        conditions = Conditions({"If-Match": version.etag}, lease_id=lease_id)
        try:
            _set(target, version, added, conditions, deadline)
        except Changed:
            known = None  # written before the lease was ours
            continue
        return fence


def _set(
    target: Target, version: Version, added: Mapping[str, str], conditions: Conditions, deadline: Deadline
) -> None:
    """Add to the metadata of one version; like every write of azguard's it goes into the lineage."""
    op = new_op(os.urandom(12))
    client = target.account.blob(target.address)
    others = {key: value for key, value in version.metadata.items() if key.lower() not in (*added, KEY)}
    lineage = Lineage.parse(version.metadata.get(KEY)).after(op, version.etag)
    metadata = {**others, **added, KEY: str(lineage)}

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
