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
    known = {find_first(row): row for row in [*before.strip().splitlines()[2:], *rows]}
    table = "\n".join([head, *(known[each] for each in order if each in known)])
    PAGE.write_text(text.replace(before, table))


def find_first(row: str) -> str:
    """Return the first cell of a row."""
    return row.split(" | ", maxsplit=1)[0].removeprefix("| ")


def find_table(name: str, text: str | None = None) -> str:
    """Return the table that stands on the page under a name.

    Raises:
        ValueError: there is none.
    """
    found = re.search(rf"<!-- written: {name} -->\n(.*?)\n<!-- end -->", text or PAGE.read_text(), re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE} has no place for the table {name!r}")
    return found[1]
