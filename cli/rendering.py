"""Results for people on a terminal, by rich."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from azguard.cli import terminal
from azguard.cli.layout import Layout
from azguard.columns import Unit
from azguard.documents import controls
from azguard.times import span

# So many fields of a result that names no columns fit most terminals.
_MOST_FIELDS = 7
# The first column may be folded down to this width; the others are shown whole or not at all.
_NARROWEST = 20
# So much is shown at least of a text that is cut.
_SHORTEST_TEXT = 16
_GAP = 3
_MARKED_STYLE = "bold magenta"
# PartitionKey and RowKey.
_KEYS_OF_AN_ENTITY = 2
# The fraction of a second in a time. One of seven digits is part of the id of a snapshot or version.
_FRACTION = re.compile(r"(?<=^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{1,6}(?=(Z|\+00:00)$)")
# A line below the headings and none elsewhere, as rich's own box SIMPLE in ASCII.
_ASCII_LINES = "    \n    \n -- \n    \n    \n    \n    \n    \n"


def show(value: Any, layout: Layout, *, color: bool) -> None:
    """Print a value as a panel of keys and values, or as a table if it is a list of objects."""
    sys.stdout.write("".join(f"{line}\n" for line in render(value, layout, color=color)))


def render(value: Any, layout: Layout, *, color: bool) -> list[str]:
    """Return the lines of a panel, or of a table, as wide as the terminal."""
    from rich.console import Console

    console = Console(
        highlight=False,
        no_color=not color,
        force_terminal=color,
        color_system="standard" if color else None,
        width=terminal.width(sys.stdout),
        soft_wrap=False,
    )
    with console.capture() as shown:
        if isinstance(value, dict):
            console.print(_panel(value, layout))
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            keys = fitting(value, layout, console.width)
            console.print(_table(value, keys, layout, console.width))
            if layout.is_verbatim and (left_out := len(_said(value, layout)) - len(keys)):
                console.print(f"{terminal.count(left_out, 'more column')}: -o yaml shows all", style="dim")
        elif isinstance(value, list):
            for row in value:
                console.print(_text(row, layout), markup=False)
            if not value:
                console.print("(none)", style="dim")
        elif value is not None:
            console.print(_text(value, layout), markup=False)
    # Without the blanks that fill each line: they get in the way of copying.
    return [line.rstrip() for line in shown.get().splitlines()]


def shows_all(rows: list[dict[str, Any]], layout: Layout) -> bool:
    """Return whether this terminal is wide enough for every field of a list of results."""
    return not rows or set(_said(rows, layout)) <= set(fitting(rows, layout, terminal.width(sys.stdout)))


def fitting(rows: list[dict[str, Any]], layout: Layout, width: int) -> list[str]:
    """Return the columns that say something and fit into so many characters; the address, which may fold, stays."""
    keys = _said(rows, layout)
    replaced = {each.replaces for each in layout.columns if each.name in keys}
    keys = [key for key in keys if key not in replaced]
    known = [each.name for each in layout.columns if each.name in keys]
    keys = known or keys[:_MOST_FIELDS]
    ranked = [(each.rank, each.name) for each in layout.columns if each.rank is not None]
    # Without ranks the last column goes first.
    dispensable = [key for _, key in sorted(ranked)] if known else keys[_folding(layout) :][::-1]
    for key in dispensable:
        if _measure_width(rows, keys, layout) <= width:
            break
        if key in keys[1:]:
            keys.remove(key)
    return keys


def _said(rows: list[dict[str, Any]], layout: Layout) -> list[str]:
    """Return the fields that say something in at least one row."""
    every = dict.fromkeys(key for row in rows for key in row)
    return [key for key in every if any(_says(key, row.get(key), layout) for row in rows)]


def _folding(layout: Layout) -> int:
    """Return how many columns at the left are the address, which is folded where it is long and never left out.

    A list of ranges has no address, and a number is never folded.
    """
    if layout.is_verbatim:
        return _KEYS_OF_AN_ENTITY
    return 0 if layout.columns and layout.columns[0].unit is not None else 1


def _panel(value: dict[str, Any], layout: Layout) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, shown, style in _rows(value, layout, layout.is_verbatim):
        table.add_row(Text(label), Text(shown, style=style))
    return table


def _rows(value: dict[str, Any], layout: Layout, is_verbatim: bool, indent: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield label, text and style of each row of a panel; a result within the result is indented below its name."""
    for key, each in value.items():
        if each is None or each in ({}, []):
            continue
        label = indent + (key if is_verbatim else key.replace("_", " "))
        if isinstance(each, dict):
            yield label, "", ""
            yield from _rows(each, layout, is_verbatim or key in layout.verbatim, f"{indent}  ")
        elif is_verbatim:
            yield label, _text(each, layout), ""
        else:
            yield label, _with_unit(key, each, layout), _style(key, each, layout)


def choose_box() -> Any:
    """Return the lines of a table: one below the headings, in characters that stdout can show."""
    from rich import box

    return box.Box(_ASCII_LINES, ascii=True) if terminal.is_ascii(sys.stdout) else box.SIMPLE


def _table(rows: list[dict[str, Any]], keys: list[str], layout: Layout, width: int) -> Any:
    from rich.table import Table

    table = Table(box=choose_box(), pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="bold")
    room = _measure_room(rows, keys, layout, width)
    for index, key in enumerate(keys):
        table.add_column(
            _title(key, layout),
            overflow=_overflow(key, layout),
            max_width=room if _is_cut(key, layout) else None,
            no_wrap=index >= _folding(layout),
            justify="left" if _unit(key, layout) is None else "right",
            style="bold" if not index else None,
        )
    for row in rows:
        table.add_row(*(_text_of_cell(key, row.get(key), layout) for key in keys))
    return table


def _measure_width(rows: list[dict[str, Any]], keys: list[str], layout: Layout) -> int:
    widths = _measure(rows, keys, layout)
    folding = _folding(layout)
    return sum(min(each, _NARROWEST) for each in widths[:folding]) + sum(widths[folding:]) + _margin(keys)


def _measure(rows: list[dict[str, Any]], keys: list[str], layout: Layout) -> list[int]:
    """Return how wide each column has to be."""
    widths = [max(len(_title(key, layout)), *(len(_cell(key, row.get(key), layout)) for row in rows)) for key in keys]
    return [
        min(width, _SHORTEST_TEXT) if _is_cut(key, layout) else width for key, width in zip(keys, widths, strict=True)
    ]


def _margin(keys: list[str]) -> int:
    # The box has a blank at either side.
    return 2 + _GAP * (len(keys) - 1)


def _measure_room(rows: list[dict[str, Any]], keys: list[str], layout: Layout, width: int) -> int:
    """Return how wide a text that is cut may be, so that the other columns are shown whole."""
    cut = [key for key in keys if _is_cut(key, layout)]
    others = [key for key in keys if key not in cut]
    left = width - sum(_measure(rows, others, layout)) - _margin(keys)
    return max(_SHORTEST_TEXT, left // max(1, len(cut)))


def _says(key: str, value: Any, layout: Layout) -> bool:
    column = layout.by_name.get(key)
    return value not in (None, {}, []) and (column is None or column.usual is None or value != column.usual)


def _title(key: str, layout: Layout) -> str:
    if layout.is_verbatim:
        return key
    column = layout.by_name.get(key)
    title = None if column is None else column.title
    return (title or key).replace("_", " ")


def _unit(key: str, layout: Layout) -> Unit | None:
    column = layout.by_name.get(key)
    return None if column is None else column.unit


def _is_cut(key: str, layout: Layout) -> bool:
    column = layout.by_name.get(key)
    return column is not None and column.is_cut


def _overflow(key: str, layout: Layout) -> Any:
    if not _is_cut(key, layout):
        return "fold"
    return "crop" if terminal.is_ascii(sys.stdout) else "ellipsis"


def _style(key: str, value: Any, layout: Layout) -> str:
    column = layout.by_name.get(key)
    return _MARKED_STYLE if column is not None and value in column.marked else ""


def _text_of_cell(key: str, value: Any, layout: Layout) -> Any:
    from rich.text import Text

    shown = _cell(key, value, layout)
    if _is_cut(key, layout):
        shown = shown.replace("\n", "\\n")
    return Text(shown, style=_style(key, value, layout))


def _cell(key: str, value: Any, layout: Layout) -> str:
    is_count = _unit(key, layout) in (Unit.ITEMS, Unit.BYTES) and isinstance(value, int)
    return f"{value:,}" if is_count else _value(key, value, layout)


def _value(key: str, value: Any, layout: Layout) -> str:
    if _unit(key, layout) is Unit.SECONDS and isinstance(value, int):
        return span(value)
    if not layout.is_verbatim and key not in layout.verbatim and isinstance(value, str):
        value = _FRACTION.sub("", value)
    return _text(value, layout)


def _with_unit(key: str, value: Any, layout: Layout) -> str:
    """Return a value as a panel shows it, where no heading says what it counts."""
    if _unit(key, layout) is Unit.BYTES and isinstance(value, int):
        return terminal.count(value, "byte")
    return _cell(key, value, layout)


def _member(key: str, value: Any, layout: Layout) -> str:
    return f"({_text(value, layout)})" if isinstance(value, dict) else _value(key, value, layout)


def _text(value: Any, layout: Layout) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "  ".join(f"{key}={_member(key, each, layout)}" for key, each in value.items() if each is not None)
    if isinstance(value, list):
        return ", ".join(_text(each, layout) for each in value)
    # A blob's name or metadata must not be able to drive the terminal.
    return controls.escape(str(value)).replace("\t", "\\t")
