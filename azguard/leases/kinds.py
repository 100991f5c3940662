"""The kinds of resources that have leases, one row for each, with the SDK's client of a lease."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import UsageError
from azguard.wire.operations.blobs import (
    BLOB_GET_PROPERTIES,
    BLOB_LEASE_ACQUIRE,
    BLOB_LEASE_BREAK,
    BLOB_LEASE_CHANGE,
    BLOB_LEASE_RELEASE,
    BLOB_LEASE_RENEW,
)
from azguard.wire.operations.containers import (
    CONTAINER_GET_PROPERTIES,
    CONTAINER_LEASE_ACQUIRE,
    CONTAINER_LEASE_BREAK,
    CONTAINER_LEASE_CHANGE,
    CONTAINER_LEASE_RELEASE,
    CONTAINER_LEASE_RENEW,
)
from azguard.wire.operations.shares import (
    FILE_GET_PROPERTIES,
    FILE_LEASE_ACQUIRE,
    FILE_LEASE_BREAK,
    FILE_LEASE_CHANGE,
    FILE_LEASE_RELEASE,
    SHARE_GET_PROPERTIES,
    SHARE_LEASE_ACQUIRE,
    SHARE_LEASE_BREAK,
    SHARE_LEASE_CHANGE,
    SHARE_LEASE_RELEASE,
    SHARE_LEASE_RENEW,
)
from azguard.wire.rows import Operation


class FileLease:
    """A lease on a share or a file."""

    def __init__(self, client: Any, lease_id: str | None) -> None:
        from azure.storage.fileshare import ShareLeaseClient

        self._lease = ShareLeaseClient(client, lease_id)

    @property
    def etag(self) -> str | None:
        return self._lease.etag

    @property
    def last_modified(self) -> datetime | None:
        return self._lease.last_modified

    def acquire(self, seconds: int, **settings: Any) -> None:
        """Acquire it for so many seconds; -1 is for ever."""
        self._lease.acquire(lease_duration=seconds, **settings)

    def renew(self, **settings: Any) -> None:
        """Renew it."""
        self._lease.renew(**settings)

    def change(self, proposed: str, **settings: Any) -> None:
        """Give it another id."""
        self._lease.change(proposed, **settings)

    def release(self, **settings: Any) -> None:
        """Release it."""
        self._lease.release(**settings)

    def break_lease(self, period: int | None, **settings: Any) -> int:
        """Break it; return how many seconds it still lasts."""
        # The SDK refuses a period for a file, whose lease ends at once, and takes None for none.
        return self._lease.break_lease(lease_break_period=period, **settings)


class Action(StrEnum):
    """What can be done to a lease."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


@dataclass(frozen=True)
class LeaseKind:
    """How one kind of resource is leased: its operations, and the SDK's clients."""

    #: The operations of the actions that this kind has.
    actions: Mapping[Action, Operation]
    #: The operation that reads the state of the lease.
    read: Operation
    #: Returns the SDK's client of a resource.
    client: Callable[[Target], Any]
    #: Returns the method of that client that reads the properties.
    properties: Callable[[Any], Callable[..., Any]]
    #: Returns the SDK's client of a lease on it.
    lease: Callable[[Any, str | None], Any]
    #: Whether a lease can have a term at all.
    finite: bool = True


def _blob_lease(client: Any, lease_id: str | None) -> Any:
    from azure.storage.blob import BlobLeaseClient

    return BlobLeaseClient(client, lease_id)


# One entry for each kind of resource; all else is the same for every kind.
KINDS = {
    Kind.BLOB: LeaseKind(
        actions={
            Action.ACQUIRE: BLOB_LEASE_ACQUIRE,
            Action.RENEW: BLOB_LEASE_RENEW,
            Action.CHANGE: BLOB_LEASE_CHANGE,
            Action.RELEASE: BLOB_LEASE_RELEASE,
            Action.BREAK: BLOB_LEASE_BREAK,
        },
        read=BLOB_GET_PROPERTIES,
        client=lambda target: target.account.blob(target.address),
        properties=lambda client: client.get_blob_properties,
        lease=_blob_lease,
    ),
    Kind.CONTAINER: LeaseKind(
        actions={
            Action.ACQUIRE: CONTAINER_LEASE_ACQUIRE,
            Action.RENEW: CONTAINER_LEASE_RENEW,
            Action.CHANGE: CONTAINER_LEASE_CHANGE,
            Action.RELEASE: CONTAINER_LEASE_RELEASE,
            Action.BREAK: CONTAINER_LEASE_BREAK,
        },
        read=CONTAINER_GET_PROPERTIES,
        client=lambda target: target.account.container(target.address),
        properties=lambda client: client.get_container_properties,
        lease=_blob_lease,
    ),
    Kind.SHARE: LeaseKind(
        actions={
            Action.ACQUIRE: SHARE_LEASE_ACQUIRE,
            Action.RENEW: SHARE_LEASE_RENEW,
            Action.CHANGE: SHARE_LEASE_CHANGE,
            Action.RELEASE: SHARE_LEASE_RELEASE,
            Action.BREAK: SHARE_LEASE_BREAK,
        },
        read=SHARE_GET_PROPERTIES,
        client=lambda target: target.account.share(target.address),
        properties=lambda client: client.get_share_properties,
        lease=FileLease,
    ),
    # The lease of a file has no term, so that it cannot be renewed.
    Kind.FILE: LeaseKind(
        actions={
            Action.ACQUIRE: FILE_LEASE_ACQUIRE,
            Action.CHANGE: FILE_LEASE_CHANGE,
            Action.RELEASE: FILE_LEASE_RELEASE,
            Action.BREAK: FILE_LEASE_BREAK,
        },
        read=FILE_GET_PROPERTIES,
        client=lambda target: target.account.file(target.address),
        properties=lambda client: client.get_file_properties,
        lease=FileLease,
        finite=False,
    ),
}


def operation_of(target: Target, action: Action | None = None) -> Operation:
    """Return the row of the operations table; without an action, the row that reads the lease.

    Raises:
        UsageError: this kind of resource has no leases, or no such action.
    """
    kind = kind_of(target)
    if action is None:
        return kind.read
    if action not in kind.actions:
        raise UsageError(
            f"the lease of a {target.kind} cannot be {action}ed: it has no term",
            address=str(target.address),
            reason="lease_lasts_until_released",
        )
    return kind.actions[action]


def kind_of(target: Target) -> LeaseKind:
    """Return how this kind of resource is leased.

    Raises:
        UsageError: it has no leases, or none that azguard knows.
    """
    kind = KINDS.get(target.kind)
    if kind is None:
        raise UsageError(
            f"{target.kind.one} cannot be leased with azguard",
            address=str(target.address),
            reason="kind_without_lease",
        )
    return kind
