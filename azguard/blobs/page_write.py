"""One write of pages: where, under which conditions, and what it wrote. Pages are ranges of 512 bytes."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.blobs.upload import Settings
from azguard.conditions.operations import SEQUENCE
from azguard.conditions.resolve import Conditions
from azguard.errors import UsageError
from azguard.requests.deadline import Deadline

PAGE_BLOB = "PageBlob"
#: The length of a page.
PAGE_BYTES = 512
#: The most that one Put Page takes.
PIECE_BYTES = 4 * 1024 * 1024
#: The longest page blob: 8 TiB.
MOST_BYTES = 8 * 1024**4


@dataclass(frozen=True)
class PagesWritten:
    """What a write of pages did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.OFFSET, columns.WRITTEN_BYTES, columns.ETAG)

    address: str
    #: None where a lost answer was settled without learning it.
    etag: str | None
    last_modified: datetime | None
    blob_type: str
    #: The byte at which the first page begins.
    offset: int
    written_bytes: int
    #: None where a lost answer was settled.
    sequence_number: int | None
    guard: str
    attempts: int
    conflicts: int
    outcome: str
    #: Whether the blob was created for it.
    created: bool


@dataclass(frozen=True, kw_only=True)
class PageWrite:
    """One write of pages that is not sent yet."""

    target: Target
    conditions: Conditions
    #: How long one piece is tried for.
    deadline: Deadline
    offset: int
    #: Whether no condition is wanted, so that no lease of our own is acquired either.
    is_unconditional: bool = False
    #: The length of the blob to create where there is none; None creates none.
    create_bytes: int | None = None
    settings: Settings | None = None

    def build_headers(self, etag: str, *, is_first: bool) -> dict[str, str]:
        """Return the condition headers of one piece; ``etag`` is of the version that was found, or of our last piece.

        Sequence numbers are compared beside an ETag, and no other condition is.
        """
        if self.is_unconditional:
            return {}
        numbers = {each.header for each in SEQUENCE}
        own = self.conditions.without_source().headers
        beside = {name: value for name, value in own.items() if name in numbers}
        if is_first and len(beside) < len(own):
            return dict(own)
        return {**beside, "If-Match": etag}


def check_range(offset: int, length: int | None, argument: str = "length") -> None:
    """Refuse a range that does not consist of whole pages; ``argument`` is the name of its length.

    Raises:
        UsageError: one of the two is no multiple of 512.
    """
    for name, number in (("offset", offset), (argument, length or 0)):
        if number % PAGE_BYTES:
            # No content is no page.
            below = max(number - number % PAGE_BYTES, 0 if name == "offset" else PAGE_BYTES)
            raise UsageError(
                f"{name} {number:,} is no multiple of {PAGE_BYTES}: a page has {PAGE_BYTES} bytes",
                argument=name,
                reason="not_whole_pages",
                values={"below": below, "above": below + PAGE_BYTES},
            )
