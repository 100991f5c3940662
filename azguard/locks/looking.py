"""Locks as operators see them: who holds them, since when, with which fence."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from azguard import blobs, lease_state, owners
from azguard.account import Target
from azguard.blobs import BlobShown
from azguard.deadline import Deadline
from azguard.errors import NotFound
from azguard.lease_state import LeaseState
from azguard.locks import lock_blobs
from azguard.owners import FENCE, SLOTS, Owner


@dataclass(frozen=True)
class LockShown:
    """A lock. ``owner`` is who took it last, and ``age`` how long ago, in seconds; ``held_by`` who holds it now.

    ``lease_state`` and ``lease_duration`` are the service's words for the lease.
    """

    address: str
    held: bool
    held_by: str | None
    owner: Owner | None
    age: int | None
    fence: int | None
    lease_state: str
    lease_duration: str | None
    etag: str
    last_modified: datetime


def show(target: Target, now: datetime, deadline: Deadline) -> list[LockShown]:
    """Return a lock, or each slot of it that was ever taken; ``now`` is what ages are counted to.

    Raises:
        NotFound: there is no such lock.
    """
    first = lease_state.look(target, deadline)
    found = [_shown(first, now)]
    for slot in lock_blobs.slots(target, owners.number(first.metadata, SLOTS) or 1)[1:]:
        try:
            found.append(_shown(lease_state.look(slot, deadline), now))
        except NotFound:
            continue
    return found


def listed(container: Target, now: datetime, deadline: Deadline, prefix: str | None) -> Iterator[LockShown]:
    """Yield the locks in a container, in order of name, page by page: the blobs that were ever locked."""
    for item in blobs.listed(container, deadline, prefix=prefix, include=["metadata"]):
        if isinstance(item, BlobShown) and {FENCE, SLOTS} & {key.lower() for key in item.metadata}:
            yield _shown(_state(item), now)


def _shown(state: LeaseState, now: datetime) -> LockShown:
    owner = owners.owner(state.metadata)
    age = None if owner is None else owners.age(owner.since, now)
    return LockShown(
        address=state.address,
        held=not state.free,
        held_by=None if owner is None or state.free else f"{owner.who}@{owner.host}",
        owner=owner,
        age=None if age is None else round(age),
        fence=owners.number(state.metadata, FENCE),
        lease_state=state.state,
        lease_duration=state.duration,
        etag=state.etag,
        last_modified=state.last_modified,
    )


def _state(blob: BlobShown) -> LeaseState:
    assert blob.last_modified is not None  # what has metadata is more than uncommitted blocks
    return LeaseState(
        address=blob.address,
        state=str(blob.lease_state),
        status=str(blob.lease_status),
        duration=blob.lease_duration,
        etag=str(blob.etag),
        last_modified=blob.last_modified,
        metadata=blob.metadata,
    )
