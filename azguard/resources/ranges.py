"""Which ranges of a page blob or of a file hold data; the rest is zeros, and takes no room."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.requests.calls import follow
from azguard.requests.deadline import Deadline
from azguard.wire import xml
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.failures import Unreadable
from azguard.wire.rows import Operation

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_CLEARED = "ClearRange"
_TAGS = ("PageRange", "Range", _CLEARED)


@dataclass(frozen=True)
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
