"""Directories and files as commands show them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.guards.versions import quote_etag
from azguard.leases.owners import OWNER
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.requests.results import MetadataShown

_OWN = (KEY, OWNER)
_PAGE = 5000
_INCLUDED = ["timestamps", "Etag", "Attributes", "PermissionKey"]


@dataclass(frozen=True, kw_only=True)
class DirectoryShown(MetadataShown):
    """A directory's properties."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.LAST_MODIFIED, columns.ETAG, columns.ATTRIBUTES)

    name: str
    share: str
    attributes: str | None
    created: datetime | None
    written: datetime | None
    changed: datetime | None
    permission_key: str | None
    file_id: str | None
    parent_id: str | None


@dataclass(frozen=True, kw_only=True)
class FileShown(MetadataShown):
    """A file's properties."""

    COLUMNS: ClassVar = (
        columns.ADDRESS, columns.CONTENT_LENGTH, columns.CONTENT_TYPE, columns.LAST_MODIFIED, columns.ETAG,
        columns.LEASE_STATE,
    )  # fmt: skip

    name: str
    share: str
    content_length: int
    content_type: str | None
    content_encoding: str | None
    content_language: str | None
    content_disposition: str | None
    cache_control: str | None
    content_md5: str | None
    attributes: str | None
    created: datetime | None
    #: When its content was written last, as SMB clients see it.
    written: datetime | None
    changed: datetime | None
    permission_key: str | None
    file_id: str | None
    parent_id: str | None
    lease_status: str | None
    lease_state: str | None
    lease_duration: str | None
    copy_id: str | None
    copy_status: str | None
    copy_progress: str | None


@dataclass(frozen=True)
class EntryListed:
    """A directory or a file of a list, which tells neither metadata nor leases."""

    COLUMNS: ClassVar = (
        columns.TYPE, columns.NAME, columns.ADDRESS, columns.CONTENT_LENGTH, columns.LAST_MODIFIED, columns.ETAG,
    )  # fmt: skip

    address: str
    name: str
    #: ``dir`` or ``file``.
    type: str
    etag: str | None
    last_modified: datetime | None
    #: None of a directory.
    content_length: int | None
    attributes: str | None
    created: datetime | None
    written: datetime | None
    changed: datetime | None
    permission_key: str | None
    file_id: str | None


def describe_directory(address: Address, found: Any) -> DirectoryShown:
    """Return the SDK's properties of a directory as a plain value."""
    return DirectoryShown(**_describe_both(address, found))


def describe_file(address: Address, found: Any) -> FileShown:
    """Return the SDK's properties of a file as a plain value."""
    settings, lease, copied = found.content_settings, found.lease, found.copy
    return FileShown(
        **_describe_both(address, found),
        content_length=found.size,
        content_type=settings.content_type or None,
        content_encoding=settings.content_encoding or None,
        content_language=settings.content_language or None,
        content_disposition=settings.content_disposition or None,
        cache_control=settings.cache_control or None,
        content_md5=_encode(settings.content_md5),
        lease_status=lease.status,
        lease_state=lease.state,
        lease_duration=lease.duration,
        copy_id=copied.id,
        copy_status=copied.status,
        copy_progress=copied.progress,
    )


def _describe_both(address: Address, found: Any) -> dict[str, Any]:
    """Describe what a directory and a file have both."""
    return {
        "address": str(address),
        "name": address.path.rpartition("/")[2],
        "share": address.container,
        "etag": quote_etag(found.etag),
        "last_modified": found.last_modified,
        "attributes": found.file_attributes,
        "created": found.creation_time,
        "written": found.last_write_time,
        "changed": found.change_time,
        "permission_key": found.permission_key,
        "file_id": found.file_id,
        "parent_id": found.parent_id,
        "metadata": drop_own(found.metadata),
    }


def _describe_entry(address: Address, found: Any) -> EntryListed:
    """Return one item of the SDK's listing as a plain value."""
    return EntryListed(
        address=str(address),
        name=found.name,
        type=address.kind.value,
        etag=quote_etag(found.etag) if found.etag else None,
        last_modified=found.last_modified,
        content_length=None if found.is_directory else found.size,
        attributes=found.file_attributes,
        created=found.creation_time,
        written=found.last_write_time,
        changed=found.change_time,
        permission_key=found.permission_key,
        file_id=found.file_id,
    )


def drop_own(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return metadata without azguard's own entries."""
    return {key: value for key, value in (metadata or {}).items() if key.lower() not in _OWN}


def _encode(digest: bytes | None) -> str | None:
    import base64

    return None if not digest else base64.b64encode(bytes(digest)).decode()


def list_entries(
    target: Target, deadline: Deadline, *, prefix: str | None, limit: int | None, kind: Kind | None = None
) -> Iterator[EntryListed]:
    """Yield what is in a directory or share, of one kind or both. Nothing below its directories is listed.

    Raises:
        NotFound: there is no such share or directory.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-directories-and-files
    """
    address = target.address
    found = target.account.directory(address).list_directories_and_files(
        name_starts_with=prefix,
        include=_INCLUDED,
        include_extended_info=True,
        results_per_page=_PAGE if limit is None or kind is not None else min(limit, _PAGE),
        **page_timeouts(deadline),
    )
    start = f"{address.path}/" if address.path else ""
    every = (
        _describe_entry(
            Address(
                Kind.DIR if item.is_directory else Kind.FILE,
                (address.container, start + item.name),
                address.snapshot,
            ),
            item,
        )
        for item in pages(found, target, deadline)
    )
    yield from islice((each for each in every if kind is None or each.type == kind), limit)
