"""What a scope knows of a resource: the versions it has seen, and the lease it holds."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

BLOCK_BLOB = "BlockBlob"


class SeenVersion(NamedTuple):
    """A version that this scope has seen."""

    etag: str
    #: The azguard lineage that it carried.
    lineage: str | None = None
    last_modified: str | None = None
    #: In bytes.
    length: int | None = None
    #: The properties of an entity that were seen; None is all. What was seen in part could not be written back whole.
    selected: str | None = None
    #: Of a blob: BlockBlob, AppendBlob or PageBlob.
    blob_type: str = BLOCK_BLOB
    #: Of a message: until when no other reader can receive it.
    hidden_until: datetime | None = None
    #: When this scope deleted it; None where it did not.
    deleted: str | None = None

    @property
    def partial(self) -> bool:
        """Return whether only some properties were seen."""
        return self.selected is not None


class Remembered(NamedTuple):
    """What this scope knows of a resource."""

    #: What it last read or wrote, which is ``@last``.
    last: SeenVersion | None = None
    #: The version that the copy being written came with: it guards by default, whatever was read since.
    copy: SeenVersion | None = None
    #: The version that the file itself came with, where its path had another one: then neither guards.
    other: SeenVersion | None = None
    #: The id of the lease it holds.
    lease: str | None = None
    #: The version that it deleted, where it has seen none since.
    deleted: SeenVersion | None = None

    @property
    def guard(self) -> SeenVersion | None:
        """Return the version that guards a write without a condition of its own."""
        return self.copy or self.last

    def lineage(self, etag: str | None) -> str | None:
        """Return the lineage of a version, if it is known."""
        return next((seen.lineage for seen in self._find(etag) if seen.lineage is not None), None)

    def length(self, etag: str | None) -> int | None:
        """Return the bytes of a version, if they are known."""
        return next((seen.length for seen in self._find(etag) if seen.length is not None), None)

    def blob_type(self, etag: str | None) -> str | None:
        """Return the type of a version of a blob, if the version is known."""
        return next((seen.blob_type for seen in self._find(etag)), None)

    def find_deletion(self, etag: str | None) -> str | None:
        """Return when this scope deleted a version, if it did."""
        return self.deleted.deleted if self.deleted is not None and self.deleted.etag == etag else None

    def _find(self, etag: str | None) -> Iterator[SeenVersion]:
        return (seen for seen in (self.copy, self.other, self.last) if seen is not None and seen.etag == etag)
