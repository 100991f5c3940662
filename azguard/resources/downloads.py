"""Content out of a blob or a file: one version of it, read in ranges; and which ranges hold data.

The first range tells the version; each further one is of that version, so that what is delivered is no mixture of two.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import BadRequest
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.calls import follow
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.requests.results import Shown
from azguard.resources import properties
from azguard.resources.ranges import RANGE_BYTES, WHOLE, Piece, Ranges, Span
from azguard.times import say_count
from azguard.wire import xml
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.failures import Unreadable
from azguard.wire.rows import Operation

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

#: The device of a local file, and its number there.
Inode = tuple[int, int]
_CLEARED = "ClearRange"
_TAGS = ("PageRange", "Range", _CLEARED)


@frozen(kw_only=True)
class Got(Shown):
    """What a get wrote to its output."""

    #: Of the blob or the file.
    content_length: int
    #: Where the bytes that were asked for begin, and how many were delivered.
    start: int
    length: int
    content_type: str | None
    #: Of the bytes that were delivered.
    content_hash: str
    file: str | None
    metadata: Mapping[str, str]
    #: Of the file that was written, as long as it had no other name than a temporary one.
    inode: Inode | None = field(default=None, metadata=columns.UNPRINTED)


class Download(ABC):
    """One version of a blob or a file, being read; the constructor reads its first range."""

    #: The most that one range has.
    range_bytes: int = RANGE_BYTES

    def __init__(
        self,
        target: Target,
        conditions: Conditions,
        patience: Callable[[], Deadline],
        span: Span = WHOLE,
        at_once: int | None = None,
    ) -> None:
        self.target = target
        self.conditions = conditions
        #: Returns the deadline of one range.
        self.patience = patience
        self._span = span
        #: How many further ranges are in memory at once.
        self._at_once = at_once
        self._first, self.properties = self.read_first()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.read_pieces(in_order=True):
            yield piece.content

    def read_pieces(self, *, in_order: bool) -> Iterator[Piece]:
        """Yield the bytes that were asked for once, in order or as the answers come; the first range is the first.

        Raises:
            Changed: the blob or the file was overwritten meanwhile.
        """
        start = self._span.start
        first = Piece(0, self._first)
        self._first = b""
        begin = start + len(first.content)
        ranges = Ranges(self._read_range, begin, start + self.size, size=self.range_bytes, at_once=self._at_once)
        with closing(ranges) as rest:
            yield first
            del first
            for piece in rest.in_order() if in_order else rest.as_they_come():
                yield piece if not start else Piece(piece.offset - start, piece.content)

    @property
    def size(self) -> int:
        """Return how many bytes are to be delivered."""
        size: int = self.properties.size
        return (size if self._span.end is None else min(size, self._span.end)) - self._span.start

    @property
    def lineage(self) -> str | None:
        value: str | None = (self.properties.metadata or {}).get(KEY)
        return value

    def describe(self, file: Path | None, content_hash: str, inode: Inode | None) -> dict[str, Any]:
        """Return the fields of ``Got`` but the metadata, once the content is delivered."""
        found = self.properties
        return {
            "address": str(self.target.address),
            "etag": found.etag,
            "last_modified": found.last_modified,
            "content_length": found.size,
            "start": self._span.start,
            "length": self.size,
            "content_type": found.content_settings.content_type or None,
            "content_hash": content_hash,
            "file": None if file is None else str(file),
            "inode": inode,
        }

    @abstractmethod
    def result(self, file: Path | None, content_hash: str, inode: Inode | None = None) -> Got:
        """Return the result of the download, once the content is delivered."""

    @abstractmethod
    def ask(self, offset: int, length: int, etag: str | None) -> Answer:
        """Ask for a range of the version ``etag``, of any where that is None; it is shorter where the content ends.

        Raises:
            Changed: it is another version.
            Unavailable: the answer is of another range.
        """

    def read_first(self) -> tuple[bytes, Answer]:
        """Return the content of the first range, and the properties that came with it."""
        start, most = self._span.start, self.range_bytes
        length = most if self._span.end is None else min(most, self._span.end - start)
        while True:
            try:
                found = self.ask(start, length, None)
            except BadRequest as error:
                if error.http_status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise
            else:
                return found.take_content(), found
            # What ends there has no such range. If another writer made it longer meanwhile, it has one now.
            found = properties.fetch(self.target, self.conditions, self.patience())
            if found.size == start:
                return b"", found
            if found.size < start:
                told = f"{self.target} has only {say_count(found.size, 'byte')}"
                raise BadRequest(told, str(self.target.address), reason="range_beyond_end")

    def _read_range(self, offset: int, length: int) -> bytes:
        return self.ask(offset, length, self.properties.etag).content


@frozen
class DataRange:
    """A range of a page blob or of a file."""

    COLUMNS: ClassVar = (columns.RANGE_START, columns.RANGE_END, columns.RANGE_LENGTH, columns.CLEARED)

    #: The first byte, and the last one.
    start: int
    end: int
    length: int
    #: Whether it was cleared since the snapshot that it is compared with.
    cleared: bool


def walk_ranges(
    operation: Operation, target: Target, headers: Mapping[str, str], deadline: Deadline, **asked: Any
) -> Iterator[DataRange]:
    """Yield the ranges that hold data, and those that were cleared, in order."""

    def ask(marker: str | None, timeouts: Limits) -> tuple[list[DataRange], str | None]:
        answer = call(operation, target, timeouts, headers=headers, marker=marker, **asked)
        root = xml.parse(answer, "list of ranges")
        try:
            found = [_parse_range(each) for each in root if each.tag in _TAGS]
        except ValueError as error:
            raise Unreadable(f"the answer is no list of ranges: {error}") from error
        return sorted(found, key=lambda each: each.start), root.findtext("NextMarker") or None

    return (each for page, _ in follow(ask, target, deadline) for each in page)


def name_range(offset: int | None, length: int | None) -> str | None:
    """Return bytes as a header names them; ``length`` is None up to the end. None is all of them."""
    if offset is None and length is None:
        return None
    start = offset or 0
    return f"bytes={start}-{'' if length is None else start + length - 1}"


def _parse_range(found: "Element") -> DataRange:
    start, end = int(found.findtext("Start", "")), int(found.findtext("End", ""))
    return DataRange(start, end, end - start + 1, found.tag == _CLEARED)
