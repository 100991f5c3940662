"""A progress bar on stderr, only on a terminal, and only for what takes a while."""

import sys
import time
from types import TracebackType

_QUIET_SECONDS = 0.7
_REDRAW_SECONDS = 0.1


class Progress:
    """Counts bytes; draws one line on stderr once the work takes longer than a moment."""

    def __init__(self, title: str, total: int | None, enabled: bool) -> None:
        self._title, self._total, self._enabled = title, total, enabled
        self._next = time.monotonic() + _QUIET_SECONDS
        self._drawn = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def at(self, done: int, total: int | None = None) -> None:
        """Say how many bytes are done, of how many."""
        if not self._enabled or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _REDRAW_SECONDS
        self._drawn = True
        whole = total or self._total
        share = f" of {_size(whole)} ({100 * done // whole} %)" if whole else ""
        sys.stderr.write(f"\r\033[K{self._title}: {_size(done)}{share}")
        sys.stderr.flush()


def _size(count: int) -> str:
    return f"{count / 1024**2:,.1f} MiB"
