"""docs/from-az.md has every command of az for blobs and containers, and none of ours that there is not.

The commands of az, with their options that are about other writers, are those that ``az storage blob --help`` and so on
show in the version that tests/data/az_storage.json names.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.support.cases import cases
from tests.support.command_tree import COMMANDS, find_name
from tests.support.places import REPOSITORY
from tests.unit.cli.test_guesses import answer

_PAGE = (REPOSITORY / "docs/from-az.md").read_text(encoding="utf-8")
_AZ: dict[str, Any] = json.loads((REPOSITORY / "tests/data/az_storage.json").read_text(encoding="utf-8"))
_THEIRS: dict[str, list[str]] = _AZ["commands"]
_OURS = dict(COMMANDS)


def find_code(text: str) -> list[str]:
    """Return what stands in code within the lines of a text."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


@dataclass(frozen=True)
class Row:
    """A row of a table: a command line or an option of az, and what the page says of it."""

    theirs: str
    ours: str

    @property
    def name(self) -> str:
        """Return its command of az, without ``az storage``."""
        return find_name(self.theirs.removeprefix("az storage "), _THEIRS) or "no command of az"

    def __str__(self) -> str:
        return self.theirs


_TABLES = [line.split("|") for line in _PAGE.splitlines() if line.startswith("| ")]
ROWS = [Row(each, ours.strip()) for _, theirs, ours, *_ in _TABLES for each in find_code(theirs)]
COMMAND_ROWS = [row for row in ROWS if re.match(r"az storage (blob|container) ", row.theirs)]
# By the name of its command; of several rows the first.
FIRST_ROWS = {row.name: row for row in reversed(COMMAND_ROWS)}.values()


def test_every_command_of_az_has_a_row_and_no_other() -> None:
    assert {row.name for row in COMMAND_ROWS} == set(_THEIRS)


def test_every_option_of_az_about_other_writers_has_a_row() -> None:
    told = {row.theirs for row in ROWS if row.theirs.startswith("--")}
    assert {option for options in _THEIRS.values() for option in options} - told == set()


@cases("line", *sorted({each for each in find_code(_PAGE) if each.startswith("azguard ")}))
def test_every_command_line_of_ours_can_be_typed(line: str) -> None:
    name = find_name(line.removeprefix("azguard "), _OURS)
    assert name is not None
    own = line.partition(" -- ")[0].split()
    unknown = {word for word in own if word.startswith("--")} - set(_OURS[name].list_options())
    assert unknown == set()


@cases("row", *FIRST_ROWS, ids=str)
def test_a_line_of_az_is_answered_on_the_command_line_as_the_page_says(row: Row) -> None:
    """The page and the hints are two ways to ask one question; further rows of a command are its special cases."""
    if row.ours.startswith("none"):
        assert answer(f"azguard {row.theirs}").startswith("azguard does not do that yet; use az storage ")
    else:
        assert answer(f"azguard {row.theirs}") == find_code(row.ours)[0]
