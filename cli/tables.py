"""Results for people on a terminal, by rich."""

from typing import Any

# Columns a list of resources shows first, and all that fits; --query or -o json shows the rest.
_FIRST = (
    "name",
    "address",
    "state",
    "etag",
    "last_modified",
    "content_length",
    "content_type",
    "lease_state",
)


def show(value: Any, color: bool) -> None:
    """Print a value as a panel of keys and values, or as a table if it is a list of objects."""
    from rich.console import Console

    console = Console(highlight=False, no_color=not color, soft_wrap=False)
    if isinstance(value, dict):
        console.print(_panel(value))
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        console.print(_table(value))
    elif isinstance(value, list):
        for row in value:
            console.print(_text(row), markup=False)
        if not value:
            console.print("(none)", style="dim")
    elif value is not None:
        console.print(_text(value), markup=False)


def _panel(value: dict[str, Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for key, each in value.items():
        if each is not None and each != {} and each != []:
            table.add_row(key.replace("_", " "), Text(_text(each)))
    return table


def _table(rows: list[dict[str, Any]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    keys = [key for key in rows[0] if any(row.get(key) not in (None, {}, []) for row in rows)]
    first = [key for key in _FIRST if key in keys]
    shown = (first or keys)[:7]
    table = Table(box=box.SIMPLE, pad_edge=False, header_style="bold")
    for key in shown:
        table.add_column(key.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(row.get(key))) for key in shown))
    return table


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "  ".join(f"{key}={_text(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    # A blob's name or metadata must not be able to drive the terminal.
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in str(value))
