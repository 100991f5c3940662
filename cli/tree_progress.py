"""How far a run over a tree came, in one line of a terminal."""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from azguard.cli import progress, terminal
from azguard.times import span

if TYPE_CHECKING:
    from azguard.requests.pool import Done
    from azguard.trees.runs import Headway, Reached

# A narrower terminal has no room for a bar beside the numbers.
_BAR_COLUMNS = 100
# Less of a name tells nothing.
_LEAST_NAME = 8
_UNITS = {"GiB": 1024**3, "MiB": 1024**2, "KiB": 1024}
# The speed of that time tells when all is done: what was left alone at the beginning took no time.
_WINDOW_SECONDS = 20.0
# A file takes a request even if it is empty. The request takes as long as so many bytes, roughly.
_REQUEST_BYTES = 64 * 1024


class TreeProgress:
    """Draws one line on stderr, again and again, once the run takes longer than a moment."""

    def __init__(
        self, command: str, address: str, headway: "Headway", sizes: Iterable[int] | None, *, enabled: bool
    ) -> None:
        self._verb = command.rpartition(" ")[2]
        self._prefix = address.partition(":")[2]
        self._headway, self._sizes, self._enabled = headway, sizes, enabled
        self._line = progress.LiveLine()
        self._over = threading.Event()
        self._pace = Pace()

    def __enter__(self) -> Self:
        if self._enabled:
            _begin(self._watch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Erase the line, and draw it no more."""
        self._over.set()
        self._headway.close()
        self._line.close()

    def keep_below(self, show: Callable[["Done"], None]) -> Callable[["Done"], None]:
        """Return what prints the line of a file in place of this one, which is drawn again below it."""

        def show_above(done: "Done") -> None:
            show(done)
            self._line.redraw()

        return show_above

    def _watch(self) -> None:
        """Draw the line until the run is over. The files are counted only now: a short run needs no second listing."""
        if self._over.wait(progress.QUIET_SECONDS):
            return
        if self._sizes is not None:
            sizes = self._sizes
            _begin(lambda: self._headway.count_all(sizes))
        while not self._over.wait(progress.REDRAW_SECONDS):
            reached = self._headway.look()
            left = self._pace.estimate(time.monotonic(), reached)
            self._line.draw(describe(self._verb, reached, left, self._prefix, self._line.room()))


def _begin(work: Callable[[], None]) -> None:
    """Begin a thread that no end of the process waits for; where the system has none left, no line is drawn."""
    with suppress(RuntimeError):
        threading.Thread(target=work, daemon=True).start()


class Pace:
    """How fast a run is, as its last seconds tell."""

    def __init__(self) -> None:
        self._looks = deque[tuple[float, int]]()

    def estimate(self, now: float, reached: "Reached") -> float | None:
        """Return in how many seconds all is done; None where that is not known."""
        done = _weigh(reached.files, reached.bytes)
        self._looks.append((now, done))
        while now - self._looks[0][0] > _WINDOW_SECONDS:
            self._looks.popleft()
        began, before = self._looks[0]
        if reached.total_files is None or done <= before:
            return None
        left = max(0, _weigh(reached.total_files, reached.total_bytes) - done)
        return left * (now - began) / (done - before)


def _weigh(files: int, length: int) -> int:
    return files * _REQUEST_BYTES + length


def describe(verb: str, reached: "Reached", left: float | None, prefix: str, room: int) -> str:
    """Return the line, in so many columns; in a narrow terminal the last parts are missing."""
    line = verb
    for part in _list_parts(reached, left, has_bar=room >= _BAR_COLUMNS - 1):
        if terminal.measure(f"{line}  {part}") > room:
            return line
        line = f"{line}  {part}"
    name = terminal.printable((reached.name or "").partition(":")[2].removeprefix(prefix))
    columns = room - terminal.measure(f"{line}  ")
    return f"{line}  {_end_of(name, columns)}" if name and columns >= _LEAST_NAME else line


def _list_parts(reached: "Reached", left: float | None, *, has_bar: bool) -> list[str]:
    files, total = reached.files, reached.total_files
    # There are more lines than files where a mirror deletes, and where files came in the meantime.
    if total is None or files > total:
        moved = [_show_size(reached.bytes, reached.bytes)] if reached.bytes else []
        return [terminal.count(files, "file"), *moved]
    whole = reached.total_bytes
    length = min(reached.bytes, whole)
    share = length / whole if whole else files / max(1, total)
    parts = [f"{int(100 * share)} %", f"{files:,} of {terminal.count(total, 'file')}"]
    if has_bar:
        parts.insert(0, progress.bar(share))
    if whole:
        parts.append(f"{_show_size(length, whole, has_unit=False)} of {_show_size(whole, whole)}")
    return parts if left is None else [*parts, f"{span(left)} left"]


def _show_size(length: int, whole: int, *, has_unit: bool = True) -> str:
    """Return a number of bytes in the unit that suits the whole."""
    unit = next((name for name, size in _UNITS.items() if whole >= size), "KiB")
    return f"{length / _UNITS[unit]:,.1f}{f' {unit}' if has_unit else ''}"


def _end_of(text: str, columns: int) -> str:
    """Return as much of the end of a text as so many columns hold: what tells files of a folder apart."""
    if terminal.measure(text) <= columns:
        return text
    mark = "..." if terminal.is_ascii(sys.stderr) else "…"
    return mark + terminal.cut(text[::-1], columns - len(mark))[::-1]
