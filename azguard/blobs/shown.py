"""One blob as commands show it: its properties and metadata as a frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address
from azguard.blobs.properties import encode_base64, explain_stale_read, fetch, name_of, type_of
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage


@dataclass(frozen=True)
class BlobShown:
    """A blob's properties."""

    COLUMNS: ClassVar = (
        columns.NAME,
        columns.ADDRESS,
        columns.SNAPSHOT,
        columns.VERSION,
        columns.CONTENT_LENGTH,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.CONTENT_TYPE,
        columns.LEASE_STATE,
    )

    address: str
    name: str
    container: str
    #: None where there are only uncommitted blocks.
    etag: str | None
    last_modified: datetime | None
    created: datetime | None
    content_length: int
    content_type: str | None
    content_encoding: str | None
    content_language: str | None
    content_disposition: str | None
    cache_control: str | None
    content_md5: str | None
    blob_type: str | None
    tier: str | None
    tag_count: int | None
    lease_status: str | None
    lease_state: str | None
    lease_duration: str | None
    snapshot: str | None
    version_id: str | None
    deleted: bool
    #: Of the copy that wrote it, or is writing it; None where no copy did, or a later write has replaced it.
    copy_id: str | None
    copy_status: str | None
    #: The bytes copied, and how many there are, such as ``12/40``.
    copy_progress: str | None
    metadata: Mapping[str, str]


def show(target: Target, conditions: Conditions, deadline: Deadline) -> BlobShown:
    """Return a blob's properties and metadata; its content is not read.

    Raises:
        NotModified: a conditional read found nothing newer.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-properties
    """
    with explain_stale_read(target, conditions, deadline):
        return from_sdk(target.address, fetch(target, conditions, deadline))


def from_sdk(address: Address, found: Any) -> BlobShown:
    """Return the SDK's properties as a plain value; azguard's own metadata key stays out."""
    settings = found.content_settings
    return BlobShown(
        address=str(address),
        name=address.name,
        container=address.container,
        etag=quote(found.etag) if found.etag else None,
        last_modified=found.last_modified,
        created=found.creation_time,
        content_length=found.size,
        content_type=settings.content_type,
        content_encoding=settings.content_encoding or None,
        content_language=settings.content_language or None,
        content_disposition=settings.content_disposition or None,
        cache_control=settings.cache_control or None,
        content_md5=encode_base64(settings.content_md5),
        blob_type=type_of(found),
        tier=name_of(found.blob_tier),
        tag_count=found.tag_count,
        lease_status=found.lease.status,
        lease_state=found.lease.state,
        lease_duration=found.lease.duration,
        snapshot=found.snapshot,
        version_id=found.version_id,
        deleted=bool(found.deleted),
        copy_id=found.copy.id,
        copy_status=name_of(found.copy.status),
        copy_progress=found.copy.progress,
        metadata=drop_lineage(found.metadata),
    )
