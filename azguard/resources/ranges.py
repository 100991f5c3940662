"""The ranges of one version of a blob or a file, several asked for at a time.

What they may hold in memory is divided among the jobs of this process.
"""

import _thread
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from itertools import islice
from queue import SimpleQueue
from typing import NamedTuple

from azguard.frozen import frozen
from azguard.wire.answers import Answer

_ANSWERED_RANGE = r"bytes (\d+)-(\d+)/(\d+)"
RANGE_BYTES = 4 * 1024 * 1024
#: How many ranges are in memory at once: asked for, or waiting to be written. With 8 MiB each a get needs 115 MiB.
AT_ONCE = 6
# The ranges of other resources that this process reads at the same time, as of a tree: they share what is in memory.
_open: set["Ranges"] = set()
# With one a job could not ask for more while it works on what it has.
_LEAST = 2
# From the header malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 1024 * 1024


@frozen
class Span:
    """The bytes that are asked for: from the first, which counts from 0, to the one before ``end``."""

    start: int = 0
    #: None is the end of all.
    end: int | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether it is all of it."""
        return self.start == 0 and self.end is None


WHOLE = Span()


class Piece(NamedTuple):
    """Content, and where in the whole it begins."""

    offset: int
    content: bytes


class Ranges:
    """All ranges between two places of a blob or a file; the constructor begins to ask for them.

    ``read`` takes an offset and a length in bytes; no length is more than ``size``. Its threads are not waited for: an
    interruption, or a reader of the content that has gone, ends this process at once.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        begin: int,
        end: int,
        *,
        size: int = RANGE_BYTES,
        at_once: int | None = None,
    ) -> None:
        self._read = read
        self._end = end
        self._size = size
        self._offsets = range(begin, end, size)
        self._to_ask = iter(self._offsets)
        self._asked: SimpleQueue[int | None] = SimpleQueue()
        self._answered: SimpleQueue[Piece | BaseException] = SimpleQueue()
        _open.add(self)
        share = max(1, AT_ONCE // len(_open)) if at_once is None else at_once
        self._workers = min(share, len(self._offsets))
        self._is_closed = False
        if self._workers:
            return_large_blocks()
        for _ in range(self._workers):
            # Not threading.Thread, whose start takes locks that a signal can leave locked.
            _thread.start_new_thread(self._work, ())
        self._ask(self._workers)

    def in_order(self) -> Iterator[Piece]:
        """Yield the pieces from the first to the last."""
        early: dict[int, bytes] = {}
        for offset in self._offsets:
            while offset not in early:
                early.update((self._next_answer(),))
            yield Piece(offset, early.pop(offset))
            self._ask(1)

    def as_they_come(self) -> Iterator[Piece]:
        """Yield the pieces in the order of the answers."""
        for _ in self._offsets:
            yield self._next_answer()
            self._ask(1)

    def close(self) -> None:
        """Ask for no more."""
        _open.discard(self)
        self._is_closed = True
        for _ in range(self._workers):
            self._asked.put(None)

    def _ask(self, count: int) -> None:
        for offset in islice(self._to_ask, count):
            self._asked.put(offset)

    def _next_answer(self) -> Piece:
        answer = self._answered.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _work(self) -> None:
        while (offset := self._asked.get()) is not None and not self._is_closed:
            self._answered.put(self._answer(offset))

    def _answer(self, offset: int) -> Piece | BaseException:
        try:
            return Piece(offset, self._read(offset, min(self._size, self._end - offset)))
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
            return error


def is_answer_to(offset: int, length: int, answer: Answer) -> bool:
    """Return whether an answer is the range that was asked for; it is shorter where the content ends before."""
    answered = re.fullmatch(_ANSWERED_RANGE, answer.headers.get("Content-Range", ""))
    if answered is None or answer.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    begin, end, size = (int(number) for number in answered.groups())
    is_asked = (begin, end) == (offset, min(offset + length, size) - 1)
    return is_asked and len(answer.content) == end + 1 - begin


class Shares:
    """So many parts. A job takes what it can use of those that are free, once; it never waits while it holds some."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = count
        self._state = threading.Condition()

    @contextmanager
    def hold(self, wanted: int | None) -> Iterator[int]:
        """Yield how many parts the caller has until the block ends: all that are free, but no more than it wants.

        Waits until there are two, or as many as it wants. None is all of them.
        """
        most = self._count if wanted is None else max(1, min(wanted, self._count))
        least = min(most, _LEAST)
        with self._state:
            self._state.wait_for(lambda: self._free >= least)
            found = min(most, self._free)
            self._free -= found
        try:
            yield found
        finally:
            with self._state:
                self._free += found
                self._state.notify_all()


def return_large_blocks() -> None:
    """Have each block of a megabyte or more returned as soon as it is freed, where the C library is glibc.

    By default glibc keeps what a thread has freed for that thread: up to 16 MiB each if it was in large blocks.
    """
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    except (AttributeError, OSError, TypeError):
        pass  # Another C library. This only saves memory.
