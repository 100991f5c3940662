"""The metadata of a share, a directory or a file: reading them, and replacing all of them.

A lease guards those of a share or a file. A directory has none, so that azguard can only compare and then write.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.documents import metadata as rules
from azguard.files import directories, guarding, writes
from azguard.files.described import drop_own
from azguard.files.guarding import Guarding
from azguard.files.writes import FileWrite, Held
from azguard.leases.owners import OF_LOCK, OWNER
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op, with_lineage


@dataclass(frozen=True)
class FileMetadata:
    """The metadata of a share, a directory or a file, and the version that they are of."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    address: str
    etag: str
    last_modified: datetime
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class MetadataWritten:
    """Metadata that were replaced; the content stays."""

    written: WriteResult
    #: The ETag of the version that they replaced; None if that is not known.
    before: str | None
    lineage: str


def get(target: Target, conditions: Conditions, deadline: Deadline) -> tuple[FileMetadata, str | None]:
    """Return the metadata, and the lineage.

    Raises:
        NotFound: it is not there.
    """
    found = writes.fetch(target, conditions.lease_id, deadline)
    shown = FileMetadata(
        address=str(target.address),
        etag=quote(found.etag),
        last_modified=found.last_modified,
        metadata=drop_own(found.metadata),
    )
    return shown, (found.metadata or {}).get(KEY)


def replace_all(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> MetadataWritten:
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
        found = directories.require_version(target, conditions, deadline)
        if found is None:
            found = writes.fetch(target, conditions.lease_id, deadline)
        return _replace(target, wanted, conditions, found, None, deadline)
    with guarding.hold(target, conditions, guarding_by, deadline) as held:
        return _replace(target, wanted, conditions, held.found, held, held.lease.patience)


def _replace(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, found: Any, held: Held | None, deadline: Deadline
) -> MetadataWritten:
    op = fresh_op()
    before: Mapping[str, str] = found.metadata or {}
    own = [key for key in OF_LOCK if held is None or not held.has_note or key != OWNER]
    given = {key.lower() for key in wanted}
    kept = {key: value for key, value in before.items() if key.lower() in own and key.lower() not in given}
    stamped = with_lineage({**kept, **wanted}, Lineage.find(before).after(op, found.etag))
    rules.check_size(stamped, own=(*kept, KEY))

    def send(headers: Mapping[str, str], patience: Deadline) -> Any:
        return find_setter(target)(dict(stamped), headers=dict(headers), **write_timeouts(patience))

    write = FileWrite(target=target, conditions=conditions, send=send, op=op)
    written = writes.send(write, held, deadline)
    return MetadataWritten(written, conditions.expected_etag, stamped[KEY])


def find_setter(target: Target) -> Any:
    """Return the SDK's function that replaces the metadata of a share, a directory or a file."""
    if target.kind is Kind.SHARE:
        return target.account.share(target.address).set_share_metadata
    if target.kind is Kind.DIR:
        return target.account.directory(target.address).set_directory_metadata
    return target.account.file(target.address).set_file_metadata
