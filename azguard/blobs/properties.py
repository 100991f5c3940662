"""Blobs: thin calls into the SDK, frozen values out. Content goes through uploads and downloads."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, Gone, NotFound
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY


@dataclass(frozen=True)
class BlobShown:
    """A blob's properties."""

    COLUMNS: ClassVar = (
        columns.NAME,
        columns.ADDRESS,
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


def fetch(target: Target, conditions: Conditions, deadline: Deadline) -> Any:
    """Return the SDK's properties of a blob, the lineage in its metadata included."""
    client = target.account.blob(target.address)
    return read(
        lambda timeouts: client.get_blob_properties(headers=conditions.request_headers, **timeouts), target, deadline
    )


def fetch_tags(
    target: Target, lease_id: str | None, deadline: Deadline, condition: str | None = None
) -> dict[str, str]:
    """Return a blob's index tags. They have no version: neither ETag nor Last-Modified moves with them.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-tags
    """
    client = target.account.blob(target.address)
    # The SDK drops headers here, and the timeouts too; of an empty answer it makes None.
    found: dict[str, str] | None = read(
        lambda timeouts: client.get_blob_tags(lease=lease_id, if_tags_match_condition=condition, **timeouts),
        target,
        deadline,
    )
    return found or {}


def describe_conflict(error: Changed, target: Target, deadline: Deadline) -> Changed:
    """Add to a failed condition what is there now, if that can be learnt quickly.

    A blob that is gone is said to be gone: the service answers 412 for it as well.
    """
    from azguard.requests.settle import NOTHING_THERE  # which a read does not need

    try:
        current = error.seen or fetch(target, Conditions(), deadline.restart(seconds=min(2.0, deadline.seconds)))
    except NotFound:
        current = NOTHING_THERE
    except Exception:  # noqa: BLE001  # the explanation is optional; report the conflict even if it fails
        return error
    if current is NOTHING_THERE:
        return to_gone(target, error.expected_etag, error) if error.expected_etag else error
    now = f"now: {current.size:,} bytes, written {current.last_modified:%Y-%m-%d %H:%M:%S} UTC"
    return error.but(
        current_etag=current.etag,
        lease_state=current.lease.state,
        detail=(*error.detail, now),
    )


@contextmanager
def explain_stale_read(target: Target, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Add to the error of a failed conditional read the version it was for and the current one.

    Raises:
        Changed: with both; NotFound: there is none, for which the emulator answers 412 as well.
    """
    try:
        yield
    except Changed as error:
        if not conditions.headers:
            raise
        found = describe_conflict(error.but(expected_etag=conditions.expected_etag), target, deadline)
        if isinstance(found, Gone):
            raise NotFound(f"there is no blob {target}", str(target.address), request_id=error.request_id) from error
        raise found from error.__cause__


def to_gone(target: Target, expected_etag: str, refusal: AzguardError) -> Gone:
    """Return the error for a write that was refused because the blob is not there any more."""
    return Gone(
        f"{target} is no longer there",
        str(target.address),
        http_status=refusal.http_status,
        service_code=refusal.service_code,
        request_id=refusal.request_id,
        expected_etag=expected_etag,
    )


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
        blob_type=_value(found.blob_type),
        tier=_value(found.blob_tier),
        tag_count=found.tag_count,
        lease_status=found.lease.status,
        lease_state=found.lease.state,
        lease_duration=found.lease.duration,
        snapshot=found.snapshot,
        version_id=found.version_id,
        deleted=bool(found.deleted),
        copy_id=found.copy.id,
        copy_status=_value(found.copy.status),
        copy_progress=found.copy.progress,
        metadata={key: value for key, value in (found.metadata or {}).items() if key != KEY},
    )


def type_of(found: Any) -> str | None:
    """Return the type of a blob: BlockBlob, AppendBlob or PageBlob."""
    return _value(found.blob_type)


def encode_base64(digest: bytes | bytearray | None) -> str | None:
    """Return a digest as the service writes it."""
    if not digest:
        return None
    import base64

    return base64.b64encode(bytes(digest)).decode()


def _value(member: Any) -> str | None:
    return None if member is None else str(getattr(member, "value", member))
