"""How help is laid out: usage, summary, examples, options by group, and where to read on.

The page of every command ships with azguard, written by ``python -m docs.generate``: to show one, neither the parser
nor the command's module is imported.
"""

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TextIO

from azguard.cli.output import terminal

#: The pages of all commands and nouns: a line of JSON each, which begins with the words to type.
SHIPPED = os.path.join(os.path.dirname(__file__), "pages.jsonl")
# Below this, an option stands above its text, not beside it.
_NARROW = 60
_WIDEST, _NARROWEST = 100, 30
# A longer name of an option stands above its meaning.
_WIDEST_NAME = 30
# Fewer columns behind the words of a command are too few for its arguments.
_LEAST_BEHIND = 20
_GAP = 2
_HEADING = re.compile(r"^(Usage:|[A-Z][^\n]*:$)", re.MULTILINE)


class HelpPage(NamedTuple):
    """The help of a command or a group."""

    #: What is typed, such as ``azguard blob put``.
    path: str
    #: What may stand behind that.
    usage: str
    summary: str
    #: Command lines as they are typed.
    examples: Sequence[str]
    #: Headings, each with names and their meanings.
    sections: Sequence[tuple[str, Sequence[tuple[str, str]]]]


def find_page(path: str) -> HelpPage | None:
    """Return the page of a command or a group, by what is typed; None if that is the whole name of none."""
    start = f'{{"path": "{path}", '
    with open(SHIPPED, encoding="utf-8") as file:
        line = next((line for line in file if line.startswith(start)), None)
    return None if line is None else HelpPage(**json.loads(line))


def render_page(path: str) -> str:
    """Return the text of the page of a command or a group; ``path`` is its whole name."""
    page = find_page(path)
    assert page is not None, path
    return render(page)


def find_width() -> int:
    """Return how wide help is: as the terminal, but lines of more than 100 columns are hard to read."""
    # Where stdout goes to a pager, stderr is still the terminal.
    stream = sys.stdout if terminal.is_terminal(sys.stdout) else sys.stderr
    return max(min(terminal.width(stream), _WIDEST) - 2, _NARROWEST)


def render(page: HelpPage, width: int | None = None) -> str:
    """Return a page as text."""
    columns = width or find_width()
    parts = [_render_usage(page, columns), *_wrap_indented(page.summary, columns), ""]
    if page.examples:
        # What is to be typed is never wrapped.
        parts += ["Examples:", *(f"  {line}" for line in "\n".join(page.examples).split("\n")), ""]
    for heading, rows in page.sections:
        parts += [f"{heading}:", *_render_rows(rows, columns), ""]
    return "\n".join(parts[:-1])


def show(path: str) -> None:
    """Write the page of a command or a group to stdout."""
    sys.stdout.write(emphasize(render_page(path), sys.stdout) + "\n")


def write(page: HelpPage, stream: TextIO) -> bool:
    """Write a page to the file behind a stream, and return True.

    Raises:
        OSError: it cannot be written, or there is no file.
        AttributeError: the stream is None, since it is closed.
    """
    left = f"{emphasize(render(page), stream)}\n".encode(stream.encoding, "backslashreplace")
    while left:
        left = left[os.write(stream.fileno(), left) :]
    return True


def _render_usage(page: HelpPage, width: int) -> str:
    head = f"Usage: {page.path} "
    if width < len(head) + _LEAST_BEHIND:
        indent = " " * (len("Usage: ") + 4)
        return "\n".join([head, *textwrap.wrap(page.usage, width, **_whole(indent, indent)), ""])
    return "\n".join([*textwrap.wrap(page.usage, width, **_whole(head, " " * len(head))), ""])


def _whole(initial: str, subsequent: str) -> dict[str, Any]:
    return {"initial_indent": initial, "subsequent_indent": subsequent, "break_on_hyphens": False}


def _wrap_indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), width, **_whole("  ", "  "))


def _render_rows(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield names with their meanings: beside each other, or below each other where the terminal is narrow."""
    listed = list(rows)
    first = min(max(len(name) for name, _ in listed), _WIDEST_NAME) + _GAP
    for name, meaning in listed:
        if not meaning:
            yield from _wrap_indented(name, width)
        elif width < _NARROW:
            yield f"  {name}"
            yield from textwrap.wrap(meaning, width, **_whole("    ", "    "))
        else:
            lines = textwrap.wrap(meaning, max(width - first - _GAP, 10), **_whole("", ""))
            beside = [f"  {name:{first}}{lines.pop(0)}"] if len(name) <= first - _GAP else [f"  {name}"]
            yield from [*beside, *(f"  {'':{first}}{line}" for line in lines)]


def emphasize(text: str, stream: TextIO) -> str:
    """Return help with bold headings, if it goes to a terminal that shows them."""
    if not terminal.is_colored(stream, {"no_color": "--no-color" in sys.argv}, os.environ):
        return text
    return _HEADING.sub(lambda found: terminal.paint(found[1], "bold"), text)
