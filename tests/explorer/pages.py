"""The tables in docs/guarantees.md that a command writes."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"


def write_table(name: str, table: str) -> None:
    """Put a table in the place of the one that stands on the page under this name."""
    text = PAGE.read_text()
    made = find_table(name, text)
    PAGE.write_text(text.replace(made, f"\n{table}\n"))


def find_table(name: str, text: str | None = None) -> str:
    """Return the table that stands on the page under a name.

    Raises:
        ValueError: there is none.
    """
    found = re.search(rf"<!-- generated: {name} -->\n(.*?)\n<!-- end -->", text or PAGE.read_text(), re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE} has no place for the table {name!r}")
    return found[1]
