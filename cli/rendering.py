"""Results for people on a terminal, by rich."""

import sys
from typing import Any

from azguard.times import span

# The columns of a list of resources, from left to right. --query or -o json shows the rest.
_COLUMNS = (
    "name",
    "address",
    "state",
    "held_by",
    "age",
    "clock",
    "fence",
    "content_length",
    "last_modified",
    "etag",
    "content_type",
    "lease_state",
    "holder",
    "lease_id",
    "confirmed",
    "until",
    "file",
)
# What is left out first where the terminal is too narrow for a line per resource.
_DISPENSABLE = (
    "file", "clock", "holder", "content_type", "until", "confirmed", "lease_state", "last_modified", "content_length",
)  # fmt: skip
_RIGHT = ("content_length", "age", "fence")
_SECONDS = ("age",)
# What says nothing as long as it is so in every line.
_USUAL = (("lease_state", "available"), ("clock", "service"))
_TITLES = {"content_length": "bytes", "content_type": "type", "lease_state": "lease", "held_by": "by"}
_IN_ENTITIES = "RowKey"
# The first column may be folded down to this width; the others are shown whole or not at all.
_NARROWEST = 20
_GAP = 3


def show(value: Any, color: bool) -> None:
    """Print a value as a panel of keys and values, or as a table if it is a list of objects."""
    from rich.console import Console

    console = Console(highlight=False, no_color=not color, soft_wrap=False)
    with console.capture() as shown:
        if isinstance(value, dict):
            console.print(_panel(value))
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            console.print(_table(value, console.width))
        elif isinstance(value, list):
            for row in value:
                console.print(_text(row), markup=False)
            if not value:
                console.print("(none)", style="dim")
        elif value is not None:
            console.print(_text(value), markup=False)
    # Without the blanks that fill each line: they get in the way of copying.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in shown.get().splitlines()))


def shows_all(rows: list[dict[str, Any]]) -> bool:
    """Return whether this terminal is wide enough for every property of a list of entities."""
    from rich.console import Console

    said = {key for row in rows for key in row if _says(key, row[key])}
    return not rows or said <= set(fitting(rows, Console().width))


def _panel(value: dict[str, Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for key, each in value.items():
        if each is not None and each not in ({}, []):
            table.add_row(Text(key if _IN_ENTITIES in value else key.replace("_", " ")), Text(_value(key, each)))
    return table


def _table(rows: list[dict[str, Any]], width: int) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    keys = fitting(rows, width)
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="bold")
    for index, key in enumerate(keys):
        table.add_column(
            key if _IN_ENTITIES in keys else _title(key),
            overflow="fold",
            no_wrap=bool(index) and len(keys) > 1,
            justify="right" if key in _RIGHT else "left",
            style="bold" if not index else None,
        )
    for row in rows:
        table.add_row(*(Text(_cell(key, row.get(key))) for key in keys))
    return table


def fitting(rows: list[dict[str, Any]], width: int) -> list[str]:
    """Return the columns that say something and fit into so many characters beside a first one that may fold."""
    every = dict.fromkeys(key for row in rows for key in row)
    keys = [key for key in every if any(_says(key, row.get(key)) for row in rows)]
    if "name" in keys and "address" in keys:
        keys.remove("address")  # it is the name once more
    # An entity may call its properties as it likes.
    known = [] if _IN_ENTITIES in every else [key for key in _COLUMNS if key in keys]
    keys = known or keys[:7]
    for key in _DISPENSABLE:
        if _needed(rows, keys) <= width:
            break
        if key in keys[1:]:
            keys.remove(key)
    return keys


def _needed(rows: list[dict[str, Any]], keys: list[str]) -> int:
    widths = [max(len(_title(key)), *(len(_cell(key, row.get(key))) for row in rows)) for key in keys]
    return min(widths[0], _NARROWEST) + sum(each + _GAP for each in widths[1:])


def _says(key: str, value: Any) -> bool:
    return value not in (None, {}, []) and (key, value) not in _USUAL


def _title(key: str) -> str:
    return _TITLES.get(key, key).replace("_", " ")


def _cell(key: str, value: Any) -> str:
    counted = key in _RIGHT and key not in _SECONDS and isinstance(value, int)
    return f"{value:,}" if counted else _value(key, value)


def _value(key: str, value: Any) -> str:
    return span(value) if key in _SECONDS and isinstance(value, int) else _text(value)


def _member(key: str, value: Any) -> str:
    return f"({_text(value)})" if isinstance(value, dict) else _value(key, value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "  ".join(f"{key}={_member(key, each)}" for key, each in value.items() if each is not None)
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    # A blob's name or metadata must not be able to drive the terminal.
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in str(value))
