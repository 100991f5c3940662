"""Results for people on a terminal: a panel of one result, a table of many.

No id, ETag, address or number is cut or wrapped: what does not fit beside the others stands below them.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from azguard.cli.output import terminal
from azguard.columns import Column, Unit
from azguard.documents import controls
from azguard.frozen import frozen
from azguard.times import say_count, span

# So many fields of a result that names no columns fit most terminals.
_MOST_FIELDS = 7
# The first column may be as narrow as this, with longer names in lines of their own; the others are shown whole.
_NARROWEST = 20
# So much is shown at least of a text that is cut.
_SHORTEST_TEXT = 16
_GAP = 3
_PANEL_GAP = 2
_PLAIN = Column("")
_MARKED_STYLE = "bold magenta"
# PartitionKey and RowKey.
_KEYS_OF_AN_ENTITY = 2
# The fraction of a second in a time. One of seven digits is part of the id of a snapshot or version.
_FRACTION = re.compile(r"(?<=^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{1,6}(?=(Z|\+00:00)$)")


@frozen
class Layout:
    """The columns of a result, and how their values are shown."""

    #: The columns of a list, from left to right; without any, the first fields that there are.
    columns: tuple[Column, ...] = ()
    #: The columns of results within the result.
    inner: tuple[Column, ...] = ()
    #: Whether the fields have names of the user's own, as the properties of an entity have.
    is_verbatim: bool = False
    #: The fields that hold names and values of the user's own, such as metadata.
    verbatim: frozenset[str] = frozenset()

    @cached_property
    def _by_name(self) -> Mapping[str, Column]:
        return {each.name: each for each in (*self.inner, *self.columns)}

    def find(self, name: str) -> Column:
        """Return the column of this name; one without anything of its own, if there is none."""
        return self._by_name.get(name, _PLAIN)


def of(result: object) -> Layout:
    """Return the layout of a result, or of a list of results."""
    rows = result if isinstance(result, (list, tuple)) else [result]
    kinds = dict.fromkeys(map(type, rows))
    # A list may hold two types, of which one has some of the columns of the other.
    return Layout(
        columns=max(map(_columns, kinds), key=len, default=()),
        inner=tuple(column for kind in dict.fromkeys(_kinds(rows)) for column in _columns(kind)),
        verbatim=frozenset(_names_of_mappings(rows)),
        is_verbatim=any(getattr(kind, "IS_VERBATIM", False) for kind in kinds),
    )


def _columns(kind: type) -> tuple[Column, ...]:
    found: tuple[Column, ...] = getattr(kind, "COLUMNS", ())
    return found


def _kinds(values: Sequence[object]) -> Iterator[type]:
    for value in values:
        yield type(value)
        if is_dataclass(value) and not isinstance(value, type):
            yield from _kinds([getattr(value, each.name) for each in fields(value)])


def _names_of_mappings(values: Sequence[object]) -> Iterator[str]:
    for value in values:
        if is_dataclass(value) and not isinstance(value, type):
            for each in fields(value):
                found = getattr(value, each.name)
                if isinstance(found, Mapping):
                    yield each.name
                yield from _names_of_mappings([found])


class StyledText(NamedTuple):
    """A piece of a line, in one style."""

    text: str
    style: str = ""

    def paint(self, *, color: bool) -> str:
        return terminal.paint(self.text, self.style) if color and self.style and self.text else self.text


Line = list[StyledText]


def show(value: Any, layout: Layout, *, color: bool) -> None:
    """Print a value as a panel of keys and values, or as a table if it is a list of objects."""
    sys.stdout.write("".join(f"{line}\n" for line in render(value, layout, color=color)))


def render(value: Any, layout: Layout, *, color: bool) -> list[str]:
    """Return the lines of a panel, or of a table, as wide as the terminal."""
    width = _width()
    if isinstance(value, dict):
        lines = _panel(list(_rows(value, layout, layout.is_verbatim)), width)
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        lines = list(_list(iter([value]), layout, width))
    elif isinstance(value, list):
        lines = [[StyledText(_text(row, layout))] for row in value] or [[StyledText("(none)", "dim")]]
    else:
        lines = [] if value is None else [[StyledText(_text(value, layout))]]
    return [_paint(line, color=color) for line in lines]


def show_chunks(chunks: Iterator[list[dict[str, Any]]], layout: Layout, *, color: bool) -> None:
    """Print a table of many rows, chunk by chunk."""
    for line in _list(chunks, layout, _width()):
        sys.stdout.write(f"{_paint(line, color=color)}\n")


def _width() -> int:
    # A pipe or a file has no width: there no column is left out, and no line is folded.
    return terminal.width(sys.stdout, elsewhere=sys.maxsize)


def _paint(line: Line, *, color: bool) -> str:
    # Without the blanks that fill each line: they get in the way of copying.
    return "".join(piece.paint(color=color) for piece in line).rstrip()


def _list(chunks: Iterator[list[dict[str, Any]]], layout: Layout, width: int) -> Iterator[Line]:
    """Yield a table; where not even its fewest columns fit, the fields of each row below each other.

    The rows of the first chunk say which columns there are.
    """
    first = next(chunks)
    keys = fitting(first, layout, width)
    rows = chain(first, chain.from_iterable(chunks))
    if _measure_width(first, keys, layout) > width:
        for row in rows:
            yield from _stack(row, fitting(first, layout, sys.maxsize), layout, width)
        return
    table = _Table(first, keys, layout, width)
    yield from table.head()
    for row in rows:
        yield from table.lines_of(row)
    yield []
    if layout.is_verbatim and (left_out := len(_said(first, layout)) - len(keys)):
        yield [StyledText(f"{say_count(left_out, 'more column')}: -o yaml shows all", "dim")]


def _stack(row: dict[str, Any], keys: list[str], layout: Layout, width: int) -> list[Line]:
    said = [key for key in keys if _says(key, row.get(key), layout)]
    cells = [
        (_title(key, layout), _shorten(key, row[key], layout, width), _style(key, row[key], layout)) for key in said
    ]
    return [*_panel(cells, width), []]


def find_left_out(rows: list[dict[str, Any]], first: list[dict[str, Any]], layout: Layout) -> set[str]:
    """Return the fields of some rows that this terminal does not show, in a table whose columns the first rows say."""
    return set(_said(rows, layout)) - set(fitting(first, layout, _width()))


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
    every = dict.fromkeys(key for row in rows for key in row)
    return [key for key in every if any(_says(key, row.get(key), layout) for row in rows)]


def _folding(layout: Layout) -> int:
    """Return how many columns at the left are the address, which is folded where it is long and never left out.

    A list of ranges has no address, and a number is never folded.
    """
    if layout.is_verbatim:
        return _KEYS_OF_AN_ENTITY
    return 0 if layout.columns and layout.columns[0].unit is not None else 1


def _panel(rows: list[tuple[str, str, str]], width: int) -> list[Line]:
    """Return labels with their values; a value stands below its label where there is no room beside it."""
    column = min(max((terminal.measure(label) for label, _, _ in rows), default=0), width // 2)
    room = width - column - _PANEL_GAP
    lines: list[Line] = []
    for label, shown, style in rows:
        beside = terminal.wrap(shown, room)
        if terminal.measure(label) <= column and max(map(terminal.measure, beside), default=0) <= room:
            first, *others = beside or [""]
            lines.append([StyledText(terminal.pad(label, column + _PANEL_GAP), "bold"), StyledText(first, style)])
            lines += [[StyledText(" " * (column + _PANEL_GAP) + each, style)] for each in others]
        else:
            lines.append([StyledText(label, "bold")])
            lines += [[StyledText(" " * _PANEL_GAP + each, style)] for each in terminal.wrap(shown, width - _PANEL_GAP)]
    return lines


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


class _Table:
    """A table whose columns are as wide as some rows of it need; a cell that needs more moves the rest of its line."""

    def __init__(self, rows: list[dict[str, Any]], keys: list[str], layout: Layout, width: int) -> None:
        self._keys, self._layout = keys, layout
        self._room = _measure_room(rows, keys, layout, width)
        self._titles = [_title(key, layout) for key in keys]
        columns = list(zip(self._titles, *map(self._cells, rows), strict=True))
        self._widths = [max(map(terminal.measure, column)) for column in columns]
        self._folding = min(_folding(layout), len(keys))
        most = _narrow(self._widths[: self._folding], width - _margin(keys) - sum(self._widths[self._folding :]))
        # As narrow as what fits into it: a name that does not stands in a line of its own.
        self._widths[: self._folding] = [
            max([terminal.measure(cell) for cell in column if terminal.measure(cell) <= limit], default=limit)
            for column, limit in zip(columns, most, strict=False)
        ]
        self._rights = [layout.find(key).unit is not None for key in keys]

    def head(self) -> list[Line]:
        rule = ("-" if terminal.is_ascii(sys.stdout) else "\u2500") * (sum(self._widths) + _margin(self._keys) - 1)
        titles = [StyledText(each, "bold") for each in self._titles]
        return [[], _row(titles, self._widths, self._rights), [StyledText(f" {rule}")]]

    def lines_of(self, row: dict[str, Any]) -> list[Line]:
        styles = [_style(key, row.get(key), self._layout) for key in self._keys]
        styles[0] = styles[0] or "bold"
        return _rows_of(list(map(StyledText, self._cells(row), styles)), self._widths, self._rights, self._folding)

    def _cells(self, row: dict[str, Any]) -> list[str]:
        return [_shorten(key, row.get(key), self._layout, self._room) for key in self._keys]


def _narrow(widths: list[int], room: int) -> list[int]:
    """Return the widths of the columns at the left, as narrow as it takes for all to have room."""
    found = list(widths)
    for index in sorted(range(len(found)), key=found.__getitem__, reverse=True):
        spare = max(0, found[index] - _NARROWEST)
        found[index] -= min(spare, max(0, sum(found) - room))
    return found


def _rows_of(pieces: Line, widths: list[int], rights: list[bool], folding: int) -> list[Line]:
    """Return one row: the columns at the left in lines of their own where one of them does not fit into its own."""
    if all(terminal.measure(piece.text) <= width for piece, width in zip(pieces[:folding], widths, strict=False)):
        return [_row(pieces, widths, rights)]
    others = [StyledText("")] * folding + pieces[folding:]
    above: list[Line] = [[StyledText(" "), piece] for piece in pieces[:folding] if piece.text]
    return [*above, _row(others, widths, rights)] if any(each.text for each in others) else above


def _row(pieces: Line, widths: list[int], rights: list[bool]) -> Line:
    line: Line = [StyledText(" ")]
    for piece, width, is_right in zip(pieces, widths, rights, strict=True):
        blanks = StyledText(" " * (width - terminal.measure(piece.text)))
        line += [blanks, piece] if is_right else [piece, blanks]
        line.append(StyledText(" " * _GAP))
    return line


def _measure_width(rows: list[dict[str, Any]], keys: list[str], layout: Layout) -> int:
    widths = _measure(rows, keys, layout)
    folding = _folding(layout)
    return sum(min(each, _NARROWEST) for each in widths[:folding]) + sum(widths[folding:]) + _margin(keys)


def _measure(rows: list[dict[str, Any]], keys: list[str], layout: Layout) -> list[int]:
    """Return how wide each column has to be."""
    widths = [
        max(
            terminal.measure(_title(key, layout)),
            *(terminal.measure(_one_line(key, row.get(key), layout)) for row in rows),
        )
        for key in keys
    ]
    return [
        min(width, _SHORTEST_TEXT) if layout.find(key).is_cut else width
        for key, width in zip(keys, widths, strict=True)
    ]


def _margin(keys: list[str]) -> int:
    # The box has a blank at either side.
    return 2 + _GAP * (len(keys) - 1)


def _measure_room(rows: list[dict[str, Any]], keys: list[str], layout: Layout, width: int) -> int:
    """Return how wide a text that is cut may be, so that the other columns are shown whole."""
    cut = [key for key in keys if layout.find(key).is_cut]
    others = [key for key in keys if key not in cut]
    widths = _measure(rows, others, layout)
    folding = min(_folding(layout), len(others))
    least = sum(widths[folding:]) + _SHORTEST_TEXT * len(cut) + _margin(keys)
    widths[:folding] = _narrow(widths[:folding], width - least)
    left = width - sum(widths) - _margin(keys)
    return max(_SHORTEST_TEXT, left // max(1, len(cut)))


def _says(key: str, value: Any, layout: Layout) -> bool:
    usual = layout.find(key).usual
    return value not in (None, {}, []) and (usual is None or value != usual)


def _title(key: str, layout: Layout) -> str:
    return key if layout.is_verbatim else (layout.find(key).title or key).replace("_", " ")


def _style(key: str, value: Any, layout: Layout) -> str:
    return _MARKED_STYLE if value in layout.find(key).marked else ""


def _shorten(key: str, value: Any, layout: Layout, room: int) -> str:
    """Return a cell in one line; of a text of any length, as much as there is room for."""
    shown = _one_line(key, value, layout)
    if not layout.find(key).is_cut or terminal.measure(shown) <= room:
        return shown
    mark = "" if terminal.is_ascii(sys.stdout) else "\u2026"
    return terminal.cut(shown, room - len(mark)) + mark


def _one_line(key: str, value: Any, layout: Layout) -> str:
    return _cell(key, value, layout).replace("\n", "\\n")


def _cell(key: str, value: Any, layout: Layout) -> str:
    is_count = layout.find(key).unit in (Unit.ITEMS, Unit.BYTES) and isinstance(value, int)
    return f"{value:,}" if is_count else _value(key, value, layout)


def _value(key: str, value: Any, layout: Layout) -> str:
    if layout.find(key).unit is Unit.SECONDS and isinstance(value, int):
        return span(value)
    if not layout.is_verbatim and key not in layout.verbatim and isinstance(value, str):
        value = _FRACTION.sub("", value)
    return _text(value, layout)


def _with_unit(key: str, value: Any, layout: Layout) -> str:
    """Return a value as a panel shows it, where no heading says what it counts."""
    if layout.find(key).unit is Unit.BYTES and isinstance(value, int):
        return say_count(value, "byte")
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
