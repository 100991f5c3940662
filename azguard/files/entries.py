"""Directories and files: as commands show and list them; their headers, attributes and times; and the metadata of both
and of a share.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.files import guarding, writes
from azguard.files.guarding import Guarding, Held
from azguard.files.writes import FileWrite
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases.owners import OF_LOCK, OWNER
from azguard.requests.calls import walk_pages
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, fresh_op
from azguard.requests.results import MetadataShown, Shown, Written
from azguard.resources import parts, properties
from azguard.resources.parts import Rewritten
from azguard.resources.properties import ContentHeaders, ContentShown, CopyShown, LeaseShown, describe_content
from azguard.wire.answers import Answer
from azguard.wire.operations.shares import DIRECTORY_LIST, DIRECTORY_SET_PROPERTIES, FILE_SET_PROPERTIES
from azguard.wire.xml import Listed

_OWN = (KEY, OWNER)
_PAGE = 5000
# What a new version has of the one that it replaces, if nothing else is given.
_KEPT = ("attributes", "created", "permission_key")
_INCLUDED = "timestamps,Etag,Attributes,PermissionKey"


@frozen(kw_only=True)
class _EntryShown(Shown):
    """What a list tells of a directory and of a file."""

    name: str
    attributes: str | None
    created: datetime | None
    #: When the content of a file was written last, as SMB clients see it.
    written: datetime | None
    changed: datetime | None
    permission_key: str | None
    file_id: str | None


@frozen(kw_only=True)
class DirectoryShown(_EntryShown, MetadataShown):
    """A directory's properties."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.LAST_MODIFIED, columns.ETAG, columns.ATTRIBUTES)

    share: str
    parent_id: str | None


@frozen(kw_only=True)
class FileShown(CopyShown, LeaseShown, _EntryShown, ContentShown):
    """A file's properties."""

    COLUMNS: ClassVar = (
        columns.ADDRESS, columns.CONTENT_LENGTH, columns.CONTENT_TYPE, columns.LAST_MODIFIED, columns.ETAG,
        columns.LEASE_STATE,
    )  # fmt: skip
    LAST: ClassVar = (
        *("parent_id", "lease_status", "lease_state", "lease_duration"),
        *("copy_id", "copy_status", "copy_progress", "metadata"),
    )

    share: str
    parent_id: str | None


@frozen(kw_only=True)
class EntryListed(_EntryShown):
    """A directory or a file of a list, which tells neither metadata nor leases."""

    COLUMNS: ClassVar = (
        columns.TYPE, columns.NAME, columns.ADDRESS, columns.CONTENT_LENGTH, columns.LAST_MODIFIED, columns.ETAG,
    )  # fmt: skip
    FIRST: ClassVar = (*Shown.FIRST, "content_length")

    #: ``dir`` or ``file``.
    type: str
    #: None of a directory.
    content_length: int | None


def describe_directory(address: Address, found: Any) -> DirectoryShown:
    """Return the properties of a directory as a plain value."""
    return DirectoryShown(**_describe_one(address, found))


def describe_file(address: Address, found: Any) -> FileShown:
    """Return the properties of a file as a plain value."""
    return FileShown(**_describe_one(address, found), **describe_content(found))


def _describe_one(address: Address, found: Any) -> dict[str, Any]:
    return {
        **_describe(address, found),
        "name": address.path.rpartition("/")[2],
        "share": address.container,
        "parent_id": found.parent_id,
        "metadata": drop_own(found.metadata),
    }


def _describe_entry(address: Address, found: Listed) -> EntryListed:
    return EntryListed(
        **_describe(address, found),
        name=found.name,
        type=address.kind.value,
        content_length=None if address.kind is Kind.DIR else found.size,
    )


def _describe(address: Address, found: Any) -> dict[str, Any]:
    smb = ("attributes", "created", "written", "changed", "permission_key", "file_id")
    return properties.describe_version(address, found) | {name: getattr(found, name) for name in smb}


def drop_own(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return metadata without azguard's own entries."""
    return {key: value for key, value in (metadata or {}).items() if key.lower() not in _OWN}


def list_entries(
    target: Target, deadline: Deadline, *, prefix: str | None, limit: int | None, kind: Kind | None = None
) -> Iterator[EntryListed]:
    """Yield the entries of a directory or share, of one kind or both. Nothing below its directories is listed.

    Raises:
        NotFound: there is no such share or directory.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-directories-and-files
    """
    address = target.address
    most = _PAGE if limit is None or kind is not None else min(limit, _PAGE)
    pages = walk_pages(
        DIRECTORY_LIST,
        target,
        deadline,
        "Entries",
        "Directory",
        "File",
        prefix=prefix,
        include=_INCLUDED,
        maxresults=most,
    )
    start = f"{address.path}/" if address.path else ""
    every = (
        _describe_entry(
            Address(
                Kind.DIR if item.tag == "Directory" else Kind.FILE,
                (address.container, start + item.name),
                address.snapshot,
            ),
            item,
        )
        for page in pages
        for item in page.items
    )
    yield from islice((each for each in every if kind is None or each.type == kind), limit)


@frozen
class SmbProperties:
    """What SMB clients see of a file or directory; None stays as it is. The times are ISO 8601."""

    attributes: str | None = None
    created: str | None = None
    written: str | None = None
    changed: str | None = None
    permission_key: str | None = None


def choose_smb(given: SmbProperties, found: Answer | None, kept: tuple[str, ...] = _KEPT) -> dict[str, Any]:
    """Return the properties for SMB clients, as they are sent: as given, else those of ``found`` that are kept."""
    told = {} if found is None else {name: found[name] for name in kept if found[name]}
    if "attributes" in told:
        told["attributes"] = told["attributes"].replace(" ", "")
    return {**told, **{name: value for name, value in vars(given).items() if value is not None}}


def change_file(
    target: Target,
    wanted: tuple[ContentHeaders, SmbProperties],
    conditions: Conditions,
    guarding_by: Guarding,
    deadline: Deadline,
) -> Written:
    """Change content headers, attributes and times of a file; the others stay.

    Raises:
        Changed: it is not the version that the conditions name.
        Locked: another holds the lease, or has the file open.
        OutcomeUnknown: the answer was lost, and no lease tells whose the properties are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-file-properties
    """
    headers, smb = wanted
    if "readonly" in (smb.attributes or "").lower():
        # The record of the lease's holder could not be removed from a file that is read-only.
        guarding_by = replace(guarding_by, owner=None)
    # The service clears each content header that is not sent.
    found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    settings = {**vars(smb), **headers.over(found).given}
    return writes.perform(FILE_SET_PROPERTIES, target, conditions, guarding_by, deadline, **settings)


def change_directory(target: Target, smb: SmbProperties, conditions: Conditions, deadline: Deadline) -> Written:
    """Change attributes and times of a directory; the others stay.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost. Nothing tells whose the properties are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-directory-properties
    """
    guarding.require_version(target, conditions, deadline)
    write = FileWrite(target=target, conditions=conditions, operation=DIRECTORY_SET_PROPERTIES, given=vars(smb))
    return writes.send(write, None, deadline)


def replace_metadata(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> Rewritten:
    """Replace the metadata.

    Raises:
        Changed: it is not the version that the conditions name.
        Locked: another holds the lease, or has the file open.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-file-metadata
    """
    if target.kind is not Kind.DIR:
        conditions = guarding.take_over(target, conditions, guarding_by, deadline)
    if target.kind is Kind.DIR or conditions.expected_etag is None:
        found = guarding.require_version(target, conditions, deadline)
        if found is None:
            found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
        return _replace_file_metadata(target, wanted, conditions, found, None, deadline)
    with guarding.hold(target, conditions, guarding_by, deadline) as held:
        return _replace_file_metadata(target, wanted, conditions, held.found, held, held.lease.patience)


def _replace_file_metadata(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, found: Any, held: Held | None, deadline: Deadline
) -> Rewritten:
    op = fresh_op()
    own = [key for key in OF_LOCK if held is None or not held.has_note or key != OWNER]
    stamped = parts.stamp(wanted, found.metadata, op, found.etag, own)
    write = FileWrite(
        target=target,
        conditions=conditions,
        operation=parts.find_setter(target),
        given={"metadata": stamped},
        op=op,
    )
    written = writes.send(write, held, deadline)
    if held is not None:
        # It is not among them.
        held.lease.end_record()
    return Rewritten(written, conditions.expected_etag, stamped[KEY])
