"""Results that are printed as they come read as if they were printed together."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.cli.output import json_form
from azguard.cli.output.json_form import to_json_form
from azguard.cli.output.results import Output
from azguard.columns import ADDRESS, Column
from tests.support.cases import cases

MANY = 2500


@dataclass(frozen=True)
class Row:
    """A result."""

    COLUMNS: ClassVar = (ADDRESS, Column("kind"))

    address: str
    kind: str


def list_rows(count: int = MANY) -> Iterator[Row]:
    """Yield rows; a late one has a value that is longer than those before."""
    for number in range(count):
        yield Row(f"blob:site/{number:04}", "longer than the heading" if number == MANY - 1 else "file")


def show(capsys: pytest.CaptureFixture[str], output: Output, count: int = MANY) -> str:
    """Return what is printed of so many rows."""
    output.show_each(list_rows(count))
    return capsys.readouterr().out


def test_a_table_of_many_rows_has_the_columns_of_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = (show(capsys, Output("table"), count).splitlines() for count in (900, MANY))
    assert many[: len(few) - 1] == few[:-1]
    assert many[-2:] == [" blob:site/2499   longer than the heading", ""]
    assert len(many) == len(few) - 900 + MANY


@cases("query", "[].address", "[*].[address, kind]", "[?kind!='file'].address", "[?kind=='none']", "[].nothing")
def test_a_query_of_lines_picks_from_many_as_from_all(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = Output("json", query).pick(to_json_form(list(list_rows())))
    assert show(capsys, Output("json", query)) == json.dumps(every, indent=2) + "\n"
    assert show(capsys, Output("tsv", query)) == "".join(f"{json_form.to_tsv(each)}\n" for each in every)


def test_a_query_that_finds_nothing_by_a_name_that_no_row_has_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Output("json", "[].nothing").show_each(list_rows())
    assert "the result has no nothing" in capsys.readouterr().err


def test_a_query_that_needs_all_results_gets_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, Output("json", "length([])")) == f"{MANY}\n"


PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(PLAIN)
def test_json_of_several_lines_is_that_of_the_standard_library(value: Any) -> None:
    assert json_form.to_json(value, "\n") == json.dumps(value, indent=2, ensure_ascii=False)
