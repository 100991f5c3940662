"""The versions that a scope has seen of a resource, and its lease there; which of these guards a write, or why not."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, NotFound
from azguard.guards import etags
from azguard.guards.operations import Part

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


def version_of(seen: SeenVersion, target: Target) -> str:
    """Return the ETag of a version that is remembered. It goes out as a guard, so it must name one version."""
    if not etags.is_version(target.kind, seen.etag):
        raise Changed(
            f"the remembered version of {target} is no ETag: the cache was damaged or edited",
            address=str(target.address),
            reason="remembered_version_damaged",
        )
    return seen.etag


def two_versions(target: Target, known: Remembered) -> Changed:
    """Return the error for a file whose path had one version and whose content came with another."""
    assert known.copy is not None
    assert known.other is not None
    return Changed(
        f"two versions of {target} go with this file, so neither can guard the write",
        address=str(target.address),
        detail=(
            f"{known.copy.etag} was last read or written under this path",
            f"{known.other.etag} came with the file that was moved or linked here",
        ),
        reason="two_versions_of_file",
    )


def never_read(target: Target, part: Part, *, reason: str) -> Changed:
    """Return the error for a write that needs a version, where this scope has read none."""
    # Another read of the resource tells the version of its metadata too, but never that of its tags.
    what = f"the tags of {target} were" if part is Part.TAGS else f"{target} was"
    return Changed(
        f"{what} never read here, so no version guards this; nothing was done",
        address=str(target.address),
        reason=reason,
        values={"part": part.value},
    )


def deleted_here(error: AzguardError, target: Target, moment: str) -> NotFound:
    """Return the error that a resource is gone in the place of ``error``, where this scope deleted it at a moment."""
    return error.as_kind(NotFound, message=f"{target} is gone: you deleted it at {moment}", reason="deleted_here")
