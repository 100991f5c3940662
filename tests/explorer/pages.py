"""The tables in docs/guarantees.md that a command writes."""

import re
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"


def write_table(name: str, head: str, rows: Iterable[str], order: Iterable[str]) -> None:
    """Put rows into the table that stands on the page under this name, over those that begin alike.

    ``order`` are the first cells of all rows; others are left out.
    """
    text = PAGE.read_text()
    before = find_table(name, text)
    known = {**group(before.splitlines()[2:]), **group(rows)}
    table = "\n".join([head, *(row for each in order for row in known.get(each, ()))])
    PAGE.write_text(text.replace(before, table))


def group(rows: Iterable[str]) -> dict[str, list[str]]:
    """Return rows by their first cells."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.split(" | ", maxsplit=1)[0].removeprefix("| "), []).append(row)
    return found


def find_table(name: str, text: str | None = None) -> str:
    """Return the table that stands on the page under a name.

    Raises:
        ValueError: there is none.
    """
    found = re.search(rf"<!-- written: {name} -->\n(.*?)\n<!-- end -->", text or PAGE.read_text(), re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE} has no place for the table {name!r}")
    return found[1]
