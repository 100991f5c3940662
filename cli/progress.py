"""A progress bar on stderr, only on a terminal, and only for what takes a while."""

import sys
import time
from types import TracebackType
from typing import Self

from azguard.cli import terminal

_QUIET_SECONDS = 0.7
_REDRAW_SECONDS = 0.1
_BAR = 20
#: What erases the line of a terminal that the cursor is in.
ERASE = "\r\033[K"
# Less than this is sent in a moment, and would be shown as 0 MiB.
_MEBIBYTE = 1024**2


class Progress:
    """Counts bytes; draws one line on stderr once the work takes longer than a moment."""

    def __init__(self, title: str, total: int | None, enabled: bool) -> None:
        self._title, self._total, self._enabled = terminal.printable(title), total, enabled
        self._began = time.monotonic()
        self._next = self._began + _QUIET_SECONDS
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.erase()

    def erase(self) -> None:
        """Erase the line, so that another one can take its place."""
        if self._drawn:
            self._drawn = False
            sys.stderr.write(ERASE)
            sys.stderr.flush()

    def at(self, done: int, total: int | None = None) -> None:
        """Say how many bytes are done, of how many."""
        whole = total or self._total
        if not self._enabled or time.monotonic() < self._next or (whole is not None and whole < _MEBIBYTE):
            return
        self._next = time.monotonic() + _REDRAW_SECONDS
        self._drawn = True
        width = terminal.width(sys.stderr) - 1
        sys.stderr.write(f"{ERASE}{self._line(done, whole)[:width]}")
        sys.stderr.flush()

    def _line(self, done: int, whole: int | None) -> str:
        rate = f"{_size(done / max(0.001, time.monotonic() - self._began))} MiB/s"
        if not whole:
            return f"{self._title}  {_size(done)} MiB  {rate}"
        filled = _BAR * min(done, whole) // whole
        full, empty = "#-" if terminal.is_ascii(sys.stderr) else "█░"
        bar = full * filled + empty * (_BAR - filled)
        return f"{self._title}  {bar} {100 * done // whole:3} %  {_size(done)} of {_size(whole)} MiB  {rate}"


def _size(count: float) -> str:
    return f"{count / _MEBIBYTE:,.0f}"
