"""Run one update and keep its records on this machine: the journal, the queue, and the version that was written.

Content that could not be written is saved in a file, which the error names.
"""

import os
import re
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.atomic_files import write_atomically
from azguard.errors import AzguardError, ConfigError
from azguard.folders import Folders, make_private
from azguard.frozen import frozen
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.updates import update as updates
from azguard.updates.local_runs import LocalQueue, WriteJournal
from azguard.updates.resource import (
    RAW_OP,
    CommittedVersion,
    CurrentVersion,
    UpdatableResource,
    UpdateHooks,
    UpdatePlan,
    UpdateResult,
)

# A file's name may have 255 bytes; what follows the address's last characters takes few of them.
_ADDRESS_CHARACTERS = 80
# No two files of one second have the same name.
_RANDOM_BYTES = 4


@frozen
class MergedVersion:
    """A version that another writer wrote meanwhile, and that the change was made over."""

    etag: str | None
    #: When it was written; None where the service does not tell.
    last_modified: datetime | None

    @classmethod
    def of(cls, version: CurrentVersion | None) -> "MergedVersion | None":
        return None if version is None else cls(version.etag, version.last_modified)


@frozen(kw_only=True)
class UpdateReport(Written):
    """How an update ended, as it is printed."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.ETAG)

    version_id: str | None
    #: In bytes; None where the content has no length of its own, such as metadata or an entity.
    content_length: int | None
    doubts: int
    created: bool
    op_id: str
    #: Of ``applied_before``: when the earlier run applied it, to the minute; None where that was not recorded.
    applied_at: datetime | None = None
    #: Of ``applied_before``: whether another write followed.
    written_since: bool | None = None
    #: The keys that an increment created, because nothing was there.
    created_keys: tuple[str, ...] = ()
    #: The last version of others with which the change is merged; None if no other wrote meanwhile.
    merged_with: MergedVersion | None = None
    #: The bytes of the version that was replaced, where the content has a length of its own.
    replaced_length: int | None = field(default=None, metadata=columns.UNPRINTED)

    @classmethod
    def of(cls, target: Target, op: str, ended: UpdateResult, *, has_length: bool) -> "UpdateReport":
        """Return the report of an update of a resource that ended well."""
        return cls(
            address=str(target.address),
            etag=ended.committed.etag,
            last_modified=ended.committed.last_modified,
            version_id=ended.committed.version_id,
            content_length=len(ended.content) if has_length and ended.content is not None else None,
            guard=ended.guard,
            attempts=ended.attempts,
            conflicts=ended.conflicts,
            doubts=ended.doubts,
            outcome=ended.outcome,
            created=ended.created,
            op_id=f"{RAW_OP}{op}",
            applied_at=None if ended.applied is None else ended.applied.at,
            written_since=None if ended.applied is None else ended.applied.written_since,
            created_keys=ended.created_keys,
            merged_with=MergedVersion.of(ended.merged),
            replaced_length=ended.base_length if has_length else None,
        )


class ReadRecords(Protocol):
    """What a scope has read, as far as an update records it."""

    def record_content(self, target: Target, written: CommittedVersion, content: bytes, lineage: str | None) -> None:
        """Record the version that was just written with this content."""

    def follow_parts(self, target: Target, before: str | None, after: str | None, lineage: str | None) -> None:
        """Record that a version read before was replaced by our own write of its content, which left its parts."""

    def follow(self, target: Target, before: str | None, after: str | None, lineage: str | None) -> None:
        """Record that a version read before got a new ETag by our own write, with its content unchanged."""


@frozen(kw_only=True)
class UpdateRequest:
    """One update of one resource, ready to run."""

    resource: UpdatableResource
    plan: UpdatePlan
    deadline: Deadline
    #: Whether it is the metadata that is updated; the content then stays as it is.
    is_of_metadata: bool = False
    #: Whether a command of the caller's is given the content, so that the caller has read it.
    shows_content: bool = False
    #: Keeps content that could not be written, and returns the file; None saves it in a new one.
    keep: Callable[[bytes], Path | None] | None = None

    @property
    def target(self) -> Target:
        return self.resource.target


class LocalRecords(NamedTuple):
    """Where an update keeps its records on this machine."""

    folders: Folders
    reads: ReadRecords
    hooks: UpdateHooks = UpdateHooks()


def update_and_record(request: UpdateRequest, records: LocalRecords) -> UpdateReport:
    """Apply an update exactly once and record the version that it wrote.

    Raises:
        AzguardError: as ``update`` says. If there is new content that was not written, it is saved in a file, which
            the error names in its fact ``kept``.
    """
    ended = updates.update(request.resource, request.plan, request.deadline, _hooks(request, records))
    _record(request, ended, records.reads)
    has_length = request.target.kind in (Kind.BLOB, Kind.FILE) and not request.is_of_metadata
    return UpdateReport.of(request.target, request.plan.op, ended, has_length=has_length)


def _hooks(request: UpdateRequest, records: LocalRecords) -> UpdateHooks:
    return replace(
        records.hooks,
        queue=lambda: join_queue(request, records),
        keep=lambda error, content: _save(request, records, error, content),
        journal=WriteJournal(records.folders.attempts, request.plan.op, keyed=request.plan.is_keyed),
    )


def join_queue(request: UpdateRequest, records: LocalRecords) -> AbstractContextManager[Any]:
    """Return a place in the queue of the writers of this resource on this machine."""
    key = f"{request.target.endpoint} {request.target.address}"
    return LocalQueue(records.folders.queues, key, request.deadline, records.hooks.tell)


def _save(request: UpdateRequest, records: LocalRecords, error: AzguardError, content: bytes | None) -> AzguardError:
    """Save the content that could not be written; the error tells where, and whether the op leaves a trace."""
    told = error.but(values={**error.values, "leaves_trace": request.plan.leaves_trace})
    if content is None:
        return told
    keep = request.keep or (
        lambda it: save_unwritten_content(records.folders.kept, request.target, it, records.hooks.now())
    )
    path = keep(content)
    if path is None:
        return told
    detail = (*error.detail, f"the new content is kept in {path}")
    return told.but(detail=detail, facts={**error.facts, "kept": str(path)})


def _record(request: UpdateRequest, ended: UpdateResult, reads: ReadRecords) -> None:
    if ended.content is None:
        return  # An earlier run of this key wrote it; this run read and wrote nothing.
    if request.is_of_metadata:
        # The content did not change: a scope that has read the version before has read this one too.
        reads.follow(request.target, ended.base, ended.committed.etag, ended.lineage)
        return
    if ended.outcome == "unchanged":
        # Where the op was recorded, the same content has a new version.
        if ended.attempts:
            reads.follow(request.target, ended.base, ended.committed.etag, ended.lineage)
        if not request.shows_content:
            return  # The edits saw the content, and nothing else did.
    reads.follow_parts(request.target, ended.base, ended.committed.etag, ended.lineage)
    reads.record_content(request.target, ended.committed, ended.content, ended.lineage)


def save_unwritten_content(folder: Path, target: Target, content: bytes, now: datetime) -> Path | None:
    """Write content to a new file that only its owner reads; return its path.

    The file is in ``folder``, or in the temporary folder if that fails; None if that fails too.
    """
    address = re.sub(r"[^A-Za-z0-9._-]+", "-", target.address.short)[-_ADDRESS_CHARACTERS:]
    name = f"{now:%Y%m%dT%H%M%S}-{os.urandom(_RANDOM_BYTES).hex()}-{address}"
    return _try_to_write(folder, name, content) or _try_to_write(None, name, content)


def _try_to_write(folder: Path | None, name: str, content: bytes) -> Path | None:
    try:
        if folder is not None:
            make_private(folder)
        path = (folder or Path(tempfile.gettempdir())) / name
        write_atomically(path, content, 0o600)
    except (OSError, ConfigError):
        return None
    return path
