"""What an update reports."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.updates.op_ids import RAW_OP
from azguard.updates.plan import UpdateResult
from azguard.updates.resource import CurrentVersion


@dataclass(frozen=True)
class MergedVersion:
    """A version that another writer wrote meanwhile, and that the change was made over."""

    etag: str | None
    #: When it was written; None where the service does not tell.
    last_modified: datetime | None

    @classmethod
    def of(cls, version: CurrentVersion | None) -> "MergedVersion | None":
        """Return it; None where there is none."""
        return None if version is None else cls(version.etag, version.last_modified)


@dataclass(frozen=True)
class UpdateReport:
    """How an update ended, as it is printed."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.ETAG)

    address: str
    etag: str | None
    last_modified: datetime | None
    version_id: str | None
    #: In bytes; None where the content has no length of its own, such as metadata or an entity.
    content_length: int | None
    guard: str
    attempts: int
    conflicts: int
    doubts: int
    outcome: str
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
