"""``--query`` over lines: from each line, or some of the lines, and nothing that needs all of them."""

from typing import Any

import pytest

from azguard.cli.output.json_form import check_lines, pick_from_line
from azguard.errors import UsageError
from tests.support.cases import cases

LINE = {"address": "blob:c/a", "outcome": "failed", "parts": ["x", "y"], "reason": None}


@cases(
    ("query", "picked"),
    (None, [LINE]),
    ("outcome", ["failed"]),
    ("missing", [None]),
    ("[address, outcome]", [["blob:c/a", "failed"]]),
    ("parts[0]", ["x"]),
    ("parts[]", [["x", "y"]]),
    ("[].address", ["blob:c/a"]),
    ("[*].outcome", ["failed"]),
    ("[?outcome=='failed']", [LINE]),
    ("[?outcome=='created'].address", []),
    ("[].{a: address, p: parts[1]}", [{"a": "blob:c/a", "p": "y"}]),
    ("[].parts[]", ["x", "y"]),
)
def test_each_line_is_picked_from_by_itself(query: str | None, picked: list[Any]) -> None:
    check_lines(query, LINE)
    assert pick_from_line(query, LINE) == picked


@cases(
    "query",
    "[0]",
    "[0].address",
    "[-1:].address",
    "[].address | [0]",
    "length([])",
    "sort_by(@, &address)",
    "sort(@)",
)
def test_what_needs_all_lines_is_refused(query: str) -> None:
    with pytest.raises(UsageError, match="needs all lines at once"):
        check_lines(query, LINE)
