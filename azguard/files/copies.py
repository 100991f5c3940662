"""A file as a copy of another file or of a blob, by the service itself.

The service's Copy File replaces whatever is at its destination, compares nothing, and may take hours. So the service
copies into a temporary file. Once that copy has ended and is checked, the file is put in its place as any new version
is. While the service copies, nothing is seen at the destination, and nothing is leased.

Source: https://learn.microsoft.com/rest/api/storageservices/copy-file
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import UsageError
from azguard.files import copy_runs, placing, writes
from azguard.files.copy_runs import Begun, FileCopy, FileCopySettings, FileSource
from azguard.files.guarding import Guarding
from azguard.files.placing import NewVersion
from azguard.files.properties import SmbProperties
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.requests.settle import Settled
from azguard.resources import copies
from azguard.resources.copies import SUCCESS, Copied, CopyAborted, CopyDestination


@dataclass(frozen=True, kw_only=True)
class FileCopied(Copied):
    """What a copy wrote; one that is pending is never at the destination."""

    content_type: str | None
    #: The bytes of the version that was replaced.
    replaced_length: int | None = field(default=None, metadata=columns.UNPRINTED)
    lineage: str | None = field(default=None, metadata=columns.UNPRINTED)


def copy(given: FileCopy, guarding_by: Guarding, tell: Callable[[int, int | None], None]) -> FileCopied:
    """Copy a file; ``tell`` is given the bytes that are copied, and how many there are.

    Interrupted, or if it fails, the copy is stopped and nothing is written.

    Raises:
        Changed: the destination is no longer the version that the conditions name, or the source was changed.
        Exists: create-only, and the destination exists.
        Locked: the destination is leased, or another program has it open.
        NotFound, Forbidden: the source, or the directory of the destination.
        GaveUp: the service did not copy in time.
        OutcomeUnknown: the answer was lost, and it cannot be known whether the copy was put in its place.
    """
    if given.source.address == given.target.address and given.source.account is given.target.account:
        raise UsageError("the two addresses are the same", address=str(given.target.address))
    source = copy_runs.read_version(given.source, given.source_etag, given.deadline)
    metadata = source.metadata if given.settings.metadata is None else given.settings.metadata
    version = NewVersion(
        target=given.target,
        metadata=metadata,
        conditions=given.conditions,
        deadline=given.deadline,
        op=given.op,
    )
    version, found = placing.look_early(version, guarding_by)
    with ExitStack() as stack:
        begun = copy_runs.begin(given, guarding_by.temporary, stack)
        copy_runs.await_end(begun, source, tell)
        copy_runs.keep_apart(begun)
        copy_runs.check_unchanged(given.source, source, given.deadline.fresh())
        smb = _choose_smb(given.settings, source, found)
        settled, after = placing.put_in_place(version, begun.made, found, guarding_by, smb)
        # Renamed, it is not there any more.
        begun.made.forget()
        stack.pop_all()
    begun.remove_doubtful()
    return _to_copied(begun, version, source, settled, after, found)


def abort(target: Target, copy_id: str | None, conditions: Conditions, deadline: Deadline) -> CopyAborted:
    """Stop a pending copy: the one with this id, or the one that the file shows. It leaves an empty file.

    Raises:
        Changed: the copy has ended, or the file is the destination of another copy.
        NotFound: there is no file, or it is not the destination of a copy.
        Locked: the file is leased, and its lease id was not given.
    Source: https://learn.microsoft.com/rest/api/storageservices/abort-copy-file
    """
    return copies.abort(_describe(target, conditions), copy_id, deadline)


def _describe(target: Target, conditions: Conditions) -> CopyDestination:
    return CopyDestination(
        target,
        fetch=lambda patience: writes.fetch(target, None, patience),
        client=target.account.file(target.address),
        headers=conditions.request_headers,
        guard=conditions.guard,
    )


def _choose_smb(settings: FileCopySettings, source: FileSource, found: Any | None) -> dict[str, Any]:
    """Return attributes, times and permission: as given, else those of the source or of the version replaced."""
    chosen = placing.choose_smb(SmbProperties(), found)
    if settings.keeps_info:
        chosen.update(source.smb)
    if settings.keeps_permission:
        chosen.pop("permission_key", None)
    return {**chosen, **placing.choose_smb(settings.smb, None)}


def _to_copied(
    begun: Begun,
    version: NewVersion,
    source: FileSource,
    settled: Settled[Any],
    metadata: Mapping[str, str],
    found: Any | None,
) -> FileCopied:
    given, etag = begun.given, settled.answer.get("etag")
    return FileCopied(
        address=str(given.target.address),
        source=copies.describe(given.source, given.target),
        source_etag=source.etag,
        etag=None if etag is None else quote_etag(etag),
        last_modified=settled.answer.get("last_modified"),
        content_length=source.size,
        content_type=source.content_type,
        copy_id=begun.copy_id,
        copy_status=SUCCESS,
        guard=given.conditions.guard,
        attempts=settled.attempts,
        created=version.is_creation,
        replaced_length=None if found is None else found.size,
        lineage=metadata[KEY],
    )
