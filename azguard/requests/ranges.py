"""The rest of one version of a blob or a file, several ranges of it being asked for at a time."""

import _thread
from collections.abc import Callable, Iterator
from itertools import islice
from queue import SimpleQueue
from typing import NamedTuple

from azguard.processes.memory import return_large_blocks

RANGE_BYTES = 4 * 1024 * 1024
#: How many ranges are in memory at once: asked for, or waiting to be written. With 8 MiB each a get needs 115 MiB.
AT_ONCE = 6
# The ranges of other resources that this process reads at the same time, as of a tree: they share what is in memory.
_open: set["Ranges"] = set()


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
