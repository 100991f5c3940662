"""What people see of a stream: whether it is a terminal, how wide, in colour, and in which characters.

Nothing here takes time to import: errors and hints are coloured without rich. Only the colours that a terminal names
itself are used, so that its own theme makes them readable on a dark and on a light background. Yellow is not among
them, and green and cyan are never bold: many terminals show those too bright for a white background.
"""

import os
import re
import textwrap
import unicodedata
from collections.abc import Mapping
from typing import Any, TextIO

from azguard.documents import controls

_RESET = "\x1b[0m"
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "magenta": "35", "cyan": "36"}
# The first word of a message says what it is.
_LABELS = {"error": "bold red", "hint": "cyan", "warning": "bold magenta"}
_LABEL = re.compile(r"^(error|hint|warning):", re.MULTILINE)
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_DEFAULT_WIDTH = 80
# What we draw with: marks, lines and bars.
_BEYOND_ASCII = "\u2713\u2500\u2588\u2591\u2026"


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


def width(stream: TextIO, environ: Mapping[str, str] = os.environ) -> int:
    """Return how many columns a stream has: what ``COLUMNS`` says, else its terminal, else 80."""
    said = environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _DEFAULT_WIDTH
    except (OSError, ValueError):
        return _DEFAULT_WIDTH


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


def count(number: int, noun: str) -> str:
    """Return a number of things, such as ``1,024 bytes``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def paint(text: str, style: str) -> str:
    """Return a text in a style, such as ``bold red``."""
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}{_RESET}"


def paint_labels(text: str) -> str:
    """Return messages with the word coloured that begins them: error, hint or warning."""
    return _LABEL.sub(lambda found: paint(found[0], _LABELS[found[1]]), text)


def paint_diff(diff: str) -> str:
    """Return a unified diff with its lines coloured: added, removed, and where."""
    return "".join(map(_paint_line, diff.splitlines(keepends=True)))


def _paint_line(line: str) -> str:
    body = line.removesuffix("\n")
    style = "bold" if body.startswith(("--- ", "+++ ")) else _DIFF_STYLES.get(body[:1])
    return line if style is None else paint(body, style) + line[len(body) :]
