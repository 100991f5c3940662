"""The text of ``azguard help TOPIC``, as it is shipped, and of a docstring.

The docstring of a command is its help. The first paragraph is the summary. ``Examples:`` and ``Topics:`` begin
paragraphs of their own. All other paragraphs are notes: ``azguard help COMMAND`` and the manual page show them,
``COMMAND --help`` does not.
"""

import inspect
import json
import re
import textwrap
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from azguard.cli.help import layout
from azguard.frozen import frozen

#: Each topic, and what it is about. In the order of the list.
TOPICS = {
    "addresses": "How to name a blob, a container, a table, an entity.",
    "accounts": "How to choose the storage account, and as whom.",
    "options": "The options of all commands: account, output, scope.",
    "conditions": "What guards a write, and how to choose it.",
    "scopes": "How azguard knows what you read last.",
    "updates": "How safe-update works, and what stays as it is.",
    "paths": "How --set, --unset and --increment name a value.",
    "tables": "Entities: their types, their limits, the ledger.",
    "queues": "Queues and messages: receipts, encodings, limits.",
    "worker": "A worker for a queue: the exit protocol, slow commands, how it ends.",
    "once": "How a message has its effect once, although it comes twice.",
    "files": "File shares: what guards a write, and who has a file open.",
    "appends": "How many writers add lines to one log.",
    "copies": "How a blob is copied, and what guards both sides.",
    "snapshots": "How to keep a blob, and put it back.",
    "trees": "How whole folders move: --recursive.",
    "leases": "How to keep other writers out for a while.",
    "locks": "How one job runs at a time.",
    "smb-locks": "How to lock a file that programs use over SMB.",
    "fences": "How the storage refuses a holder that is too late.",
    "output": "Formats, --query, colours, what goes where.",
    "exit-status": "What an exit status tells a script.",
    "environment": "The environment variables.",
    "guarantees": "What azguard promises, and what it does not.",
}
#: The text of all topics: a line of JSON each, which begins with the name. ``python -m docs.generate`` writes it.
SHIPPED = Path(__file__).parent / "topics.jsonl"
# A column of a table is not made narrower than this: its lines would hold one word each.
_NARROWEST_PAGE = 12
_GAP = 2
_PAIR = 2


def find_topic(name: str) -> "list[TextBlock]":
    """Return the text of a topic."""
    start = f'["{name}", '
    with SHIPPED.open(encoding="utf-8") as file:
        line = next(line for line in file if line.startswith(start))
    return [TextBlock(*block) for block in json.loads(line)[1]]


def render_topic(name: str, width: int) -> str:
    """Return the text of a topic as help shows it."""
    return f"{TOPICS[name]}\n\n{render_page(find_topic(name), width)}"


class TextBlock(NamedTuple):
    """A heading, a paragraph, the items of a list, a table, or code."""

    kind: Literal["heading", "paragraph", "list", "table", "code"]
    #: The text, line by line: of code as it stands, of a list an item each, else one line.
    lines: Sequence[str] = ()
    #: The cells of a table, its head first.
    rows: Sequence[Sequence[str]] = ()


def render_page(blocks: Sequence[TextBlock], width: int) -> str:
    """Return blocks as plain text; a heading begins at the left, all else is indented."""
    parts: list[str] = []
    for block in blocks:
        if block.kind == "heading":
            parts.append(f"{block.lines[0]}:")
            continue
        text = textwrap.indent("\n".join(_lines(block, width - _GAP)), " " * _GAP)
        # A heading stands right above what it is of.
        is_first = bool(parts) and parts[-1].endswith(":") and not parts[-1].startswith(" ")
        if is_first and "\n" not in parts[-1]:
            parts[-1] += f"\n{text}"
        else:
            parts.append(text)
    return "\n\n".join(parts)


def _lines(block: TextBlock, width: int) -> list[str]:
    if block.kind == "code":
        return [line for each in block.lines for line in _code(each, width)]
    if block.kind == "table":
        # The meaning of two columns is plain without their head.
        return _table(block.rows if len(block.rows[0]) > _PAIR else block.rows[1:], width)
    if block.kind == "list":
        return [line for item in block.lines for line in _wrap(item, width, " " * len(item.split(" ")[0]) + " ")]
    return _wrap(block.lines[0], width)


def _code(line: str, width: int) -> list[str]:
    """Return a command line as it is, but a remark that is too far to the right above it."""
    remark = re.fullmatch(r"(\S.*?)\s+(# .*)", line)
    return [remark[2], remark[1]] if remark and len(line) > width else [line]


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table: in columns if there is room for them, else each row as a paragraph below its first cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = width - _GAP * (len(widths) - 1)
    while sum(widths) > room:
        widest = widths.index(max(widths))
        widths[widest] -= 1
        if widths[widest] < _NARROWEST_PAGE:
            return _stack(rows if len(rows[0]) == _PAIR else rows[1:], width)
    return [line for row in rows for line in _row(row, widths)]


def _row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [_wrap(cell, wide) or [""] for cell, wide in zip(row, widths, strict=True)]
    if any(len(line) > wide for cell, wide in zip(cells, widths, strict=True) for line in cell):
        return _stack([row], sum(widths) + _GAP * (len(widths) - 1))
    height = max(map(len, cells))
    padded = [[*cell, *[""] * (height - len(cell))] for cell in cells]
    lines = zip(*padded, strict=True)
    return [
        (" " * _GAP).join(cell.ljust(wide) for cell, wide in zip(line, widths, strict=True)).rstrip() for line in lines
    ]


def _stack(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    found: list[str] = []
    for row in rows:
        found.append(row[0])
        rest = "; ".join(cell for cell in row[1:] if cell)
        found += _wrap(f"    {rest}", width, "    ")
    return found


_EXAMPLES, _TOPICS = "Examples:", "Topics:"


@frozen
class HelpText:
    """The help of a command or a group, as its docstring has it."""

    text: str

    @property
    def summary(self) -> str:
        """Return the description of the command or group, in one sentence or two."""
        return self._paragraphs[0] if self._paragraphs else ""

    @property
    def notes(self) -> list[str]:
        """Return the notes on the command or group, paragraph by paragraph."""
        return [each for each in self._paragraphs[1:] if not each.startswith((_EXAMPLES, _TOPICS))]

    @property
    def examples(self) -> list[str]:
        """Return the command lines to show, as they are typed; one may take several lines."""
        lines = textwrap.dedent("\n".join(self._after(_EXAMPLES).splitlines()[1:]))
        return re.findall(r"(?:[^\n]*\\\n)*[^\n]+", lines)

    @property
    def topics(self) -> list[str]:
        """Return the topics that explain more."""
        return self._after(_TOPICS).removeprefix(_TOPICS).replace(",", " ").split()

    @cached_property
    def _paragraphs(self) -> list[str]:
        return [each for each in re.split(r"\n\s*\n", inspect.cleandoc(self.text)) if each]

    def _after(self, start: str) -> str:
        return next((each for each in self._paragraphs if each.startswith(start)), "")


def with_notes(shown: str, text: HelpText) -> str:
    """Return the help of a command and what else there is to know of it."""
    notes = render_page([TextBlock("paragraph", (" ".join(each.split()),)) for each in text.notes], layout.find_width())
    return f"{shown}\n\nNotes:\n{notes}"
