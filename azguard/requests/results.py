"""Results: what commands show of a resource that was read, and of a write that is done.

A result inherits what all of its kind have, and declares what is its own. JSON shows first what is in ``FIRST``, then
what is the result's own, in the order of its class, then what is in ``LAST``.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from azguard import columns
from azguard.frozen import frozen

if TYPE_CHECKING:
    from azguard.accounts.account import Target

#: The outcome of a create that found something, and left it alone.
EXISTS = "exists"


@frozen(kw_only=True)
class Shown:
    """A resource, or a part of it, as it was read."""

    FIRST: ClassVar[tuple[str, ...]] = ("address", "name", "share", "container", "type", "etag", "last_modified")
    LAST: ClassVar[tuple[str, ...]] = ("policies", "metadata")

    address: str
    #: None of what a listing tells no version of, such as a blob of uncommitted blocks.
    etag: str | None
    #: None where there is none, and where something on the way has removed it.
    last_modified: datetime | None


@frozen(kw_only=True)
class MetadataShown(Shown):
    """The metadata of a resource, without azguard's own, and the version that they are of."""

    COLUMNS: ClassVar[tuple[columns.Column, ...]] = (columns.ADDRESS, columns.ETAG)

    metadata: Mapping[str, str]


#: How a write would end that is only looked at.
WOULD_DELETE, WOULD_REFUSE = "would delete", "would refuse"
WOULD_RENAME, WOULD_ABORT, WOULD_CLEAR = "would rename", "would abort", "would clear"


@frozen(kw_only=True)
class Written:
    """What a write or a delete did."""

    FIRST: ClassVar[tuple[str, ...]] = (
        *("line", "op", "address", "previous_address", "source", "source_etag", "lease_id"),
        *("etag", "last_modified", "version_id"),
    )
    LAST: ClassVar[tuple[str, ...]] = (
        *("copy_id", "copy_status", "guard", "attempts", "conflicts", "doubts", "outcome", "created"),
        *("op_id", "applied_at", "written_since", "created_keys", "merged_with", "snapshot", "broken"),
    )

    address: str
    #: None after a delete, where there is none, and where a lost answer was settled but later writes hide the ETag.
    etag: str | None = None
    last_modified: datetime | None = None
    guard: str
    attempts: int
    conflicts: int = 0
    outcome: str = "committed"


@frozen(kw_only=True)
class ContentWritten(Written):
    """A write after which the content has this many bytes."""

    COLUMNS: ClassVar[tuple[columns.Column, ...]] = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.ETAG)

    content_length: int


@frozen(kw_only=True)
class ContentPut(ContentWritten):
    """What a put wrote."""

    content_type: str | None
    content_hash: str
    created: bool | None
    #: The bytes of the version that was replaced; None where they are not known.
    replaced_length: int | None = field(default=None, metadata=columns.UNPRINTED)


@frozen(kw_only=True)
class SnapshotMade(Written):
    """A snapshot that was made; ``etag`` is its own."""

    COLUMNS: ClassVar[tuple[columns.Column, ...]] = (columns.ADDRESS, columns.SNAPSHOT, columns.ETAG)
    FIRST: ClassVar = ("address", "snapshot", "snapshot_address", "base_etag", "etag", "last_modified")

    #: The time that names the snapshot among those of the resource.
    snapshot: str
    #: The address of the snapshot, which every command takes that reads such a resource.
    snapshot_address: str


def without_time(target: "Target", guard: str, attempts: int, etag: str | None = None) -> Written:
    """Return a write that was committed of what has no Last-Modified."""
    return Written(
        address=str(target.address),
        etag=etag,
        guard=guard,
        attempts=attempts,
    )
