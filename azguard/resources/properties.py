"""The properties of a resource: asked for, and what those of several services have in common, as they are shown."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.calls import read
from azguard.requests.commits import look_under
from azguard.requests.deadline import Deadline
from azguard.requests.results import MetadataShown
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.operations.queues import QUEUE_GET_METADATA


def fetch(target: Target, conditions: Conditions, deadline: Deadline) -> Answer:
    """Return the properties of a resource, the lineage in its metadata included.

    Raises:
        NotFound: there is none.
        Locked: the lease that the conditions name is not held.
    Source: the pages Get Container Properties, Get Blob Properties, Get Share Properties, Get Directory Properties, Get
        File Properties and Get Queue Metadata of https://learn.microsoft.com/rest/api/storageservices/
    """
    from azguard.wire.catalogue import ALL  # which a write of content does not need

    operation = QUEUE_GET_METADATA if target.kind is Kind.QUEUE else ALL[f"{target.kind.noun}.get_properties"]
    headers = conditions.request_headers
    return read(lambda timeouts: call(operation, target, timeouts, headers=headers), target, deadline)


def find(target: Target, deadline: Deadline, lease_id: str | None = None) -> Answer | None:
    """Return the properties of a resource as ``fetch`` does; None if there is none."""
    try:
        return fetch(target, Conditions(lease_id=lease_id), deadline)
    except NotFound:
        return None


def fetch_whatever_lease(target: Target, lease_id: str | None, deadline: Deadline) -> tuple[Answer, bool]:
    """Return the properties of a resource, asked under a lease id as long as that lease is held, and whether it is."""
    return look_under(lease_id, lambda under: fetch(target, Conditions(lease_id=under), deadline))


@frozen
class ContentHeaders:
    """The content headers of a blob or a file; None is not set."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    #: In base64.
    content_md5: str | None = None

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return those of the properties that were found."""
        settings = found.content_settings
        return cls(
            settings.content_type or None,
            settings.content_encoding or None,
            settings.content_language or None,
            settings.content_disposition or None,
            settings.cache_control or None,
            encode_md5(settings.content_md5),
        )

    @property
    def given(self) -> dict[str, Any]:
        """Return those that are set."""
        values = {each.name: getattr(self, each.name) for each in fields(ContentHeaders)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, found: Any) -> "ContentHeaders":
        """Return these, and those that were found where none is set here: what is not sent is cleared."""
        return ContentHeaders(**{**ContentHeaders.of(found).given, **self.given})


def encode_md5(digest: bytes | bytearray | None) -> str | None:
    """Return a digest as the service writes it."""
    if not digest:
        return None
    import base64

    return base64.b64encode(bytes(digest)).decode()


@frozen(kw_only=True)
class ContentShown(MetadataShown):
    """Content, and its headers."""

    content_length: int
    content_type: str | None
    content_encoding: str | None
    content_language: str | None
    content_disposition: str | None
    cache_control: str | None
    content_md5: str | None


@frozen(kw_only=True)
class LeaseShown(MetadataShown):
    """What can be leased."""

    lease_status: str | None
    lease_state: str | None
    lease_duration: str | None


@frozen(kw_only=True)
class KeptShown(LeaseShown):
    """What can be brought back after it was deleted."""

    LAST: ClassVar = (
        *("lease_status", "lease_state", "lease_duration"),
        *("deleted", "deleted_version", "remaining_retention_days", "metadata"),
    )

    #: Whether it was deleted, and can be brought back still.
    deleted: bool
    #: By which it is brought back.
    deleted_version: str | None
    remaining_retention_days: int | None


@frozen(kw_only=True)
class CopyShown(MetadataShown):
    """What the service can copy into."""

    #: Of the copy that wrote it, or is writing it; None where no copy did, or a later write has replaced it.
    copy_id: str | None
    copy_status: str | None
    #: The bytes copied, and how many there are, such as ``12/40``.
    copy_progress: str | None


def describe_version(address: Address, found: Any) -> dict[str, Any]:
    """Return the address, ETag and time of what was found, the first fields of ``Shown`` and ``Written``."""
    return {"address": str(address), "etag": found.etag, "last_modified": found.last_modified}


def describe_lease(found: Any) -> dict[str, str | None]:
    """Return the fields of ``LeaseShown`` in the properties of a resource."""
    lease = found.lease
    return {"lease_status": lease.status, "lease_state": lease.state, "lease_duration": lease.duration}


def describe_kept(address: Address, found: Any) -> dict[str, Any]:
    """Return the fields of ``KeptShown`` in the properties of a resource; only a listing tells of deleted ones."""
    return {
        **describe_version(address, found),
        **describe_lease(found),
        "deleted": bool(getattr(found, "deleted", False)),
        "deleted_version": getattr(found, "deleted_version", None),
        "remaining_retention_days": getattr(found, "remaining_retention_days", None),
    }


def describe_content(found: Any) -> dict[str, Any]:
    """Return the content, the lease and the copy in the properties of a blob or a file."""
    copy = found.copy
    return {
        "content_length": found.size,
        **vars(ContentHeaders.of(found)),
        **describe_lease(found),
        "copy_id": copy.id,
        "copy_status": copy.status,
        "copy_progress": copy.progress,
    }


def has_metadata(found: Any, wanted: Mapping[str, str]) -> bool:
    """Return whether a resource has these metadata and no others; their names have no case."""
    lower, theirs = ({name.lower(): value for name, value in each.items()} for each in (wanted, found.metadata))
    return lower == theirs
