"""Reads the Markdown of the pages: what the topics of ``azguard help TOPIC`` and the manual pages are made of."""

import re
from collections.abc import Iterator
from itertools import groupby

from azguard.cli.help.pages import TextBlock

_ITEM = re.compile(r"(?:- |\d+\. )")
_CELL = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")


def parse(text: str) -> list[TextBlock]:
    """Return the blocks of a text. Comments are left out."""
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    found: list[TextBlock] = []
    # Code is split off first: what is in it has no other meaning.
    for position, part in enumerate(re.split(r"^```\w*\n(.*?)^```$\n?", text, flags=re.DOTALL | re.MULTILINE)):
        if position % 2:
            found.append(TextBlock("code", tuple(part.splitlines())))
        else:
            found += map(_block, _paragraphs(part))
    return found


def _paragraphs(text: str) -> Iterator[list[str]]:
    for is_empty, lines in groupby(text.splitlines(), key=lambda line: not line.strip()):
        if not is_empty:
            yield list(lines)


def _block(lines: list[str]) -> TextBlock:
    if lines[0].startswith("#"):
        return TextBlock("heading", (_plain(lines[0].lstrip("# ")),))
    if lines[0].startswith("|"):
        rows = [_cells(line) for line in lines if not re.fullmatch(r"[|\s:-]+", line)]
        return TextBlock("table", rows=tuple(rows))
    if _ITEM.match(lines[0]):
        return TextBlock("list", tuple(map(_plain, _items(lines))))
    return TextBlock("paragraph", (_plain(" ".join(line.strip().removeprefix("> ") for line in lines)),))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(_plain(cell.strip().replace("\\|", "|")) for cell in _CELL.split(line.strip())[1:-1])


def _items(lines: list[str]) -> list[str]:
    """Return each item with its mark, on one line."""
    found: list[str] = []
    for line in lines:
        if _ITEM.match(line):
            found.append(line)
        else:
            found[-1] += f" {line.strip()}"
    return found


def _plain(text: str) -> str:
    """Return a text without the marks of Markdown; what stands between backticks stays as it is."""
    pieces = _CODE.split(_LINK.sub(r"\1", text))
    return "".join(piece if place % 2 else _STRONG.sub(r"\1\2", piece) for place, piece in enumerate(pieces))
