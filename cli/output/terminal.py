"""What people see of a stream: whether it is a terminal, how wide, in colour, and in which characters.

And what is drawn on it in the same place again and again: a line, a progress bar, a table.

Nothing here takes time to import: errors and hints are coloured without rich. Only the colours that a terminal names
itself are used, so that its own theme makes them readable on a dark and on a light background. Yellow is not among
them, and green and cyan are never bold: many terminals show those too bright for a white background.
"""

import os
import re
import sys
import textwrap
import time
import unicodedata
from collections.abc import Mapping
from typing import Any, Self, TextIO

from azguard.documents import controls

_RESET = "\x1b[0m"
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "magenta": "35", "cyan": "36"}
# The first word of a message says what it is.
_LABELS = {"error": "bold red", "hint": "cyan", "warning": "bold magenta"}
_LABEL = r"(?m)^(error|hint|warning):"
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_DEFAULT_WIDTH = 80
_DEFAULT_HEIGHT = 24
# The prompt of the shell, and the line that says what was left out.
_SPARE_LINES = 2
# What we draw with: marks, lines and bars.
_BEYOND_ASCII = "\u2713\u2500\u2588\u2591\u2026"
#: What is over before is not worth a line.
QUIET_SECONDS = 0.7
REDRAW_SECONDS = 0.1
_BAR = 20
#: What erases the line of a terminal that the cursor is in.
ERASE = "\r\033[K"
# Less than this is sent in a moment, and would be shown as 0 MiB.
_MEBIBYTE = 1024**2


def is_colored(stream: TextIO, shared: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Return whether a stream gets colours: ``--no-color`` and ``NO_COLOR`` outrank ``FORCE_COLOR``."""
    if shared.get("no_color") or environ.get("NO_COLOR"):
        return False
    if forced := environ.get("FORCE_COLOR"):
        return forced != "0"
    return is_terminal(stream) and environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Return whether a person looks at a stream; one that is closed is no terminal."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def is_ascii(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a stream can show ASCII alone, by its encoding or by the locale.

    In the C locale Python writes UTF-8 all the same, which what reads it may not expect.
    """
    if environ.get("LC_ALL") in ("C", "POSIX"):
        return True
    try:
        _BEYOND_ASCII.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def spell(text: str, stream: TextIO) -> str:
    """Return a message in characters that a stream can show, and none that would drive a terminal."""
    text = controls.escape(text)
    return text.replace("\u2026", "...") if is_ascii(stream) else text


def width(stream: TextIO, environ: Mapping[str, str] = os.environ, *, elsewhere: int = _DEFAULT_WIDTH) -> int:
    """Return how many columns a stream has: the number in ``COLUMNS``, else its terminal's, else ``elsewhere``."""
    said = environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or elsewhere
    except (OSError, ValueError):
        return elsewhere


def printable(text: str) -> str:
    """Return a line without what would drive the terminal: a blob's name must not be able to."""
    return controls.escape(text).replace("\t", "\\t").replace("\n", "\\n")


def measure(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_measure_one, text))


def _measure_one(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, room: int) -> str:
    """Return as much of the beginning of a text as so many columns hold."""
    while measure(text) > room:
        text = text[: min(len(text) - 1, max(room, len(text) // 2))]
    return text


def wrap(text: str, room: int) -> list[str]:
    """Return a text in lines of so many columns; no word is cut, so that an id or an ETag can be copied."""
    lines: list[str] = []
    for line in text.split("\n"):
        fits = measure(line) <= room
        lines += [line] if fits else textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False)
    return lines


def pad(text: str, columns: int) -> str:
    """Return a text with blanks behind it, so many columns wide."""
    return text + " " * (columns - measure(text))


def paint(text: str, style: str) -> str:
    """Return a text in a style, such as ``bold red``."""
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}{_RESET}"


def paint_labels(text: str) -> str:
    """Return messages with the word coloured that begins them: error, hint or warning."""
    return re.sub(_LABEL, lambda found: paint(found[0], _LABELS[found[1]]), text)


def paint_diff(diff: str) -> str:
    """Return a unified diff with its lines coloured: added, removed, and where."""
    return "".join(map(_paint_line, diff.splitlines(keepends=True)))


def _paint_line(line: str) -> str:
    body = line.removesuffix("\n")
    style = "bold" if body.startswith(("--- ", "+++ ")) else _DIFF_STYLES.get(body[:1])
    return line if style is None else paint(body, style) + line[len(body) :]


class LiveLine:
    """One line on stderr that is drawn again and again. Threads may use it at the same time."""

    def __init__(self) -> None:
        import threading  # which help does not need

        #: What is on the terminal.
        self._text = ""
        self._is_over = False
        self._lock = threading.Lock()

    @staticmethod
    def room() -> int:
        """Return how many columns it may have: one less than the terminal, which else begins another line."""
        return width(sys.stderr) - 1

    def draw(self, text: str) -> None:
        """Draw it in the place of what was drawn before, no longer than the terminal is wide."""
        with self._lock:
            if not self._is_over:
                self._write(cut(text, self.room()))

    def redraw(self) -> None:
        """Draw it again below what was printed in its place."""
        with self._lock:
            if self._text:
                self._write(self._text)

    def erase(self) -> None:
        with self._lock:
            if self._text:
                self._write("")

    def close(self) -> None:
        self._is_over = True
        self.erase()

    def _write(self, text: str) -> None:
        self._text = text
        sys.stderr.write(f"{ERASE}{text}")
        sys.stderr.flush()


class Progress:
    """Counts bytes, or what has a unit; draws one line on stderr once the work takes longer than a moment."""

    def __init__(self, title: str, total: int | None, enabled: bool, unit: str | None = None) -> None:
        self._title, self._total, self._enabled = printable(title), total, enabled
        self._unit = unit
        self._began = time.monotonic()
        self._next = self._began + QUIET_SECONDS
        self._line = LiveLine()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()

    def hide(self) -> None:
        self._line.erase()

    def at(self, done: int, total: int | None = None) -> None:
        whole = total or self._total
        if not self._enabled or time.monotonic() < self._next or (whole is not None and whole < _MEBIBYTE):
            return
        self._next = time.monotonic() + REDRAW_SECONDS
        numbers = self._count(done, whole)
        # A long name must not push the numbers off the line.
        title = cut(self._title, max(0, self._line.room() - measure(numbers)))
        self._line.draw(f"{title}{numbers}")

    def _count(self, done: int, whole: int | None) -> str:
        per_second = done / max(0.001, time.monotonic() - self._began)
        if self._unit is not None:
            return f"  {done:,} {self._unit}  {per_second:,.0f}/s"
        rate = f"{_size(per_second)} MiB/s"
        if not whole:
            return f"  {_size(done)} MiB  {rate}"
        share = min(done, whole) / whole
        return f"  {bar(share)} {int(100 * share):3} %  {_size(done)} of {_size(whole)} MiB  {rate}"


def bar(share: float) -> str:
    """Return a bar of which that share is full."""
    filled = int(_BAR * share)
    full, empty = "#-" if is_ascii(sys.stderr) else "█░"
    return full * filled + empty * (_BAR - filled)


def _size(count: float) -> str:
    return f"{count / _MEBIBYTE:,.0f}"


class Screen:
    """Lines on a terminal that are drawn again in the same place."""

    def __init__(self) -> None:
        self._drawn = 0

    def draw(self, lines: list[str]) -> None:
        """Draw the lines in the place of those before, as many as fit."""
        most = max(1, _height() - _SPARE_LINES)
        if len(lines) > most:
            lines = [*lines[:most], f"and {len(lines) - most} more: make the window higher"]
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        sys.stdout.write(f"{up}\x1b[J" + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)


def _height() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or _DEFAULT_HEIGHT
    except (OSError, ValueError):
        return _DEFAULT_HEIGHT
