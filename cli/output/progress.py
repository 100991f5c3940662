"""A progress bar on stderr, only on a terminal, and only for what takes a while."""

import sys
import threading
import time
from types import TracebackType
from typing import Self

from azguard.cli.output import terminal

#: What is over before is not worth a line.
QUIET_SECONDS = 0.7
REDRAW_SECONDS = 0.1
_BAR = 20
#: What erases the line of a terminal that the cursor is in.
ERASE = "\r\033[K"
# Less than this is sent in a moment, and would be shown as 0 MiB.
_MEBIBYTE = 1024**2


class LiveLine:
    """One line on stderr that is drawn again and again. Threads may use it at the same time."""

    def __init__(self) -> None:
        #: What is on the terminal.
        self._text = ""
        self._is_over = False
        self._lock = threading.Lock()

    @staticmethod
    def room() -> int:
        """Return how many columns it may have: one less than the terminal, which else begins another line."""
        return terminal.width(sys.stderr) - 1

    def draw(self, text: str) -> None:
        """Draw it in the place of what was drawn before, no longer than the terminal is wide."""
        with self._lock:
            if not self._is_over:
                self._write(terminal.cut(text, self.room()))

    def redraw(self) -> None:
        """Draw it again below what was printed in its place."""
        with self._lock:
            if self._text:
                self._write(self._text)

    def erase(self) -> None:
        """Erase it, so that another line can take its place."""
        with self._lock:
            if self._text:
                self._write("")

    def close(self) -> None:
        """Erase it, and draw it no more."""
        self._is_over = True
        self.erase()

    def _write(self, text: str) -> None:
        self._text = text
        sys.stderr.write(f"{ERASE}{text}")
        sys.stderr.flush()


class Progress:
    """Counts bytes; draws one line on stderr once the work takes longer than a moment."""

    def __init__(self, title: str, total: int | None, enabled: bool) -> None:
        self._title, self._total, self._enabled = terminal.printable(title), total, enabled
        self._began = time.monotonic()
        self._next = self._began + QUIET_SECONDS
        self._line = LiveLine()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.close()

    def at(self, done: int, total: int | None = None) -> None:
        """Say how many bytes are done, of how many."""
        whole = total or self._total
        if not self._enabled or time.monotonic() < self._next or (whole is not None and whole < _MEBIBYTE):
            return
        self._next = time.monotonic() + REDRAW_SECONDS
        numbers = self._count(done, whole)
        # A long name must not push the numbers off the line.
        title = terminal.cut(self._title, max(0, self._line.room() - terminal.measure(numbers)))
        self._line.draw(f"{title}{numbers}")

    def _count(self, done: int, whole: int | None) -> str:
        rate = f"{_size(done / max(0.001, time.monotonic() - self._began))} MiB/s"
        if not whole:
            return f"  {_size(done)} MiB  {rate}"
        share = min(done, whole) / whole
        return f"  {bar(share)} {int(100 * share):3} %  {_size(done)} of {_size(whole)} MiB  {rate}"


def bar(share: float) -> str:
    """Return a bar of which that share is full."""
    filled = int(_BAR * share)
    full, empty = "#-" if terminal.is_ascii(sys.stderr) else "█░"
    return full * filled + empty * (_BAR - filled)


def _size(count: float) -> str:
    return f"{count / _MEBIBYTE:,.0f}"
