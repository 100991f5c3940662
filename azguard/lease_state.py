"""What is leased, and how: the kinds of resource that have leases, and the state of one.

Source: https://learn.microsoft.com/rest/api/storageservices/lease-blob and /lease-container
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from azguard import operations
from azguard.account import Target
from azguard.address import Kind
from azguard.blobs import BlobShown
from azguard.deadline import Deadline
from azguard.errors import UsageError
from azguard.operations import Operation
from azguard.transmission import read


class Action(StrEnum):
    """What can be done to a lease."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


@dataclass(frozen=True)
class LeaseState:
    """A lease as the service tells it: neither its id nor how long it still lasts can be asked."""

    address: str
    state: str
    status: str
    duration: str | None
    etag: str
    last_modified: datetime | None
    metadata: Mapping[str, str]

    @property
    def free(self) -> bool:
        """Return whether anybody may acquire it: it was never held, was released, has ended or is broken."""
        return self.status != "locked"


@dataclass(frozen=True)
class _Way:
    """How one kind of resource is leased: its operations, and the SDK's client."""

    operations: Mapping[Action, Operation]
    client: Callable[[Target], Any]
    properties: Callable[[Any], Callable[..., Any]]


_WAYS = {
    Kind.BLOB: _Way(
        {
            Action.ACQUIRE: operations.BLOB_LEASE_ACQUIRE,
            Action.RENEW: operations.BLOB_LEASE_RENEW,
            Action.CHANGE: operations.BLOB_LEASE_CHANGE,
            Action.RELEASE: operations.BLOB_LEASE_RELEASE,
            Action.BREAK: operations.BLOB_LEASE_BREAK,
        },
        lambda target: target.account.blob(target.address),
        lambda client: client.get_blob_properties,
    ),
    Kind.CONTAINER: _Way(
        {
            Action.ACQUIRE: operations.CONTAINER_LEASE_ACQUIRE,
            Action.RENEW: operations.CONTAINER_LEASE_RENEW,
            Action.CHANGE: operations.CONTAINER_LEASE_CHANGE,
            Action.RELEASE: operations.CONTAINER_LEASE_RELEASE,
            Action.BREAK: operations.CONTAINER_LEASE_BREAK,
        },
        lambda target: target.account.container(target.address),
        lambda client: client.get_container_properties,
    ),
}


def operation(target: Target, action: Action) -> Operation:
    """Return the row of the operations table.

    Raises:
        UsageError: this kind of resource has no leases.
    """
    return _way(target).operations[action]


def look(target: Target, deadline: Deadline, lease_id: str | None = None) -> LeaseState:
    """Return the state of a lease; with ``lease_id`` only if that is the one held now.

    Raises:
        Locked: ``lease_id`` is not held.
        NotFound: there is no such resource.
    """
    way = _way(target)
    headers = {} if lease_id is None else {"x-ms-lease-id": lease_id}
    asked = way.properties(way.client(target))
    found = read(lambda timeouts: asked(headers=dict(headers), **timeouts), target, deadline)
    return LeaseState(
        address=str(target.address),
        state=str(found.lease.state),
        status=str(found.lease.status),
        duration=found.lease.duration,
        etag=found.etag,
        last_modified=found.last_modified,
        metadata=found.metadata or {},
    )


def of_listed(blob: BlobShown) -> LeaseState:
    """Return the state of the lease on a blob that a listing told, with its metadata included."""
    return LeaseState(
        address=blob.address,
        state=str(blob.lease_state),
        status=str(blob.lease_status),
        duration=blob.lease_duration,
        etag=str(blob.etag),
        last_modified=blob.last_modified,
        metadata=blob.metadata,
    )


def client(target: Target, lease_id: str | None) -> Any:
    """Return the SDK's client of one lease."""
    from azure.storage.blob import BlobLeaseClient

    return BlobLeaseClient(_way(target).client(target), lease_id)


def _way(target: Target) -> _Way:
    way = _WAYS.get(target.kind)
    if way is None:
        raise UsageError(
            f"a {target.kind} cannot be leased with azguard",
            address=str(target.address),
            hint="blob:CONTAINER/NAME or container:NAME",
        )
    return way
