"""What is leased, and how: the kinds of resource that have leases, and the state of one.

Source: https://learn.microsoft.com/rest/api/storageservices/lease-blob and /lease-container
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from azguard import blobs, operations, owners
from azguard.account import Target
from azguard.address import Kind
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.errors import UsageError
from azguard.operations import Operation
from azguard.owners import Holder
from azguard.service_dates import Answers
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
    """A lease as the service tells it: neither its id nor how long it still lasts can be asked.

    ``state`` is available, leased, breaking, broken or expired; ``duration`` is infinite or fixed.
    """

    address: str
    state: str
    status: str
    duration: str | None
    etag: str
    last_modified: datetime
    metadata: Mapping[str, str]
    #: The service's clock when it answered; None if the answer did not say.
    answered_at: datetime | None = None

    @property
    def free(self) -> bool:
        """Return whether it can be acquired: it was never held, was released, has ended or is broken."""
        return self.status != "locked"

    @property
    def holder(self) -> Holder | None:
        """Return who says to hold it; a record can be left over from an earlier holder."""
        return owners.holder(self.metadata)


@dataclass(frozen=True)
class Way:
    """How one kind of resource is leased: its operations, and the SDK's clients.

    ``finite`` says whether a lease can have a term at all.
    """

    actions: Mapping[Action, Operation]
    read: Operation
    client: Callable[[Target], Any]
    properties: Callable[[Any], Callable[..., Any]]
    lease: Callable[[Any, str | None], Any]
    finite: bool = True


def _blob_lease(client: Any, lease_id: str | None) -> Any:
    from azure.storage.blob import BlobLeaseClient

    return BlobLeaseClient(client, lease_id)


# One entry for each kind of resource; all else is the same for every kind.
WAYS = {
    Kind.BLOB: Way(
        {
            Action.ACQUIRE: operations.BLOB_LEASE_ACQUIRE,
            Action.RENEW: operations.BLOB_LEASE_RENEW,
            Action.CHANGE: operations.BLOB_LEASE_CHANGE,
            Action.RELEASE: operations.BLOB_LEASE_RELEASE,
            Action.BREAK: operations.BLOB_LEASE_BREAK,
        },
        operations.BLOB_GET_PROPERTIES,
        lambda target: target.account.blob(target.address),
        lambda client: client.get_blob_properties,
        _blob_lease,
    ),
    Kind.CONTAINER: Way(
        {
            Action.ACQUIRE: operations.CONTAINER_LEASE_ACQUIRE,
            Action.RENEW: operations.CONTAINER_LEASE_RENEW,
            Action.CHANGE: operations.CONTAINER_LEASE_CHANGE,
            Action.RELEASE: operations.CONTAINER_LEASE_RELEASE,
            Action.BREAK: operations.CONTAINER_LEASE_BREAK,
        },
        operations.CONTAINER_GET_PROPERTIES,
        lambda target: target.account.container(target.address),
        lambda client: client.get_container_properties,
        _blob_lease,
    ),
}


def operation(target: Target, action: Action | None = None) -> Operation:
    """Return the row of the operations table; without an action that of looking at the lease.

    Raises:
        UsageError: this kind of resource has no leases, or no such action.
    """
    way = way_of(target)
    if action is None:
        return way.read
    if action not in way.actions:
        raise UsageError(
            f"the lease of a {target.kind} cannot be {action}ed: it has no term",
            address=str(target.address),
            hint="leave it out: it lasts until it is released or broken",
        )
    return way.actions[action]


def look(
    target: Target, deadline: Deadline, lease_id: str | None = None, conditions: Conditions | None = None
) -> LeaseState:
    """Return the state of a lease; with ``lease_id`` only if that is the one held now.

    Raises:
        Locked: ``lease_id`` is not held.
        NotFound: there is no such resource.
    """
    way = way_of(target)
    conditions = conditions or Conditions()
    headers = dict(conditions.headers)
    if lease_id is not None:
        headers["x-ms-lease-id"] = lease_id
    asked, answers = way.properties(way.client(target)), Answers()
    with blobs.both_versions_told(target, conditions, deadline):
        found = read(
            lambda timeouts: asked(headers=dict(headers), raw_response_hook=answers.hear, **timeouts), target, deadline
        )
    return LeaseState(
        address=str(target.address),
        state=str(found.lease.state),
        status=str(found.lease.status),
        duration=found.lease.duration,
        etag=found.etag,
        last_modified=found.last_modified,
        metadata=found.metadata or {},
        answered_at=answers.date,
    )


def client(target: Target, lease_id: str | None) -> Any:
    """Return the SDK's client of one lease."""
    way = way_of(target)
    return way.lease(way.client(target), lease_id)


def way_of(target: Target) -> Way:
    """Return how this kind of resource is leased.

    Raises:
        UsageError: it has no leases, or none that azguard knows.
    """
    way = WAYS.get(target.kind)
    if way is None:
        raise UsageError(
            f"a {target.kind} cannot be leased with azguard",
            address=str(target.address),
            hint="blob:CONTAINER/NAME or container:NAME",
        )
    return way
