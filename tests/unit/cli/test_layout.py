"""How results are laid out: each type lists its own columns, and they are fields of it."""

import importlib
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import pytest

from azguard import columns
from azguard.blobs.listing import BlobPrefix, BlobShown
from azguard.cli.output import rendering, terminal
from azguard.cli.output.rendering import Layout
from azguard.resources.downloads import DataRange
from azguard.tables.entities import PrintedEntity
from tests.support.cases import cases
from tests.unit.test_layers import MODULES


@dataclass(frozen=True)
class Inner:
    """A result within another."""

    age: int
    COLUMNS: ClassVar = (columns.AGE,)


@dataclass(frozen=True)
class Outer:
    """A result with another in it."""

    address: str
    inner: Inner
    COLUMNS: ClassVar = (columns.ADDRESS,)


def kinds() -> list[type]:
    """Return every result type of the core that lists columns."""
    return [
        found
        for name, path in MODULES.items()
        if "COLUMNS: ClassVar" in path.read_text(encoding="utf-8")
        for found in vars(importlib.import_module(name)).values()
        if isinstance(found, type) and found.__module__ == name and "COLUMNS" in vars(found)
    ]


@cases("kind", *[each for each in kinds() if is_dataclass(each)])
def test_the_columns_of_a_result_are_fields_of_it(kind: Any) -> None:
    assert {each.name for each in kind.COLUMNS} <= {each.name for each in fields(kind)}


def test_a_list_of_two_types_has_the_columns_of_the_one_that_has_more() -> None:
    blob: Any = BlobShown(**dict.fromkeys((each.name for each in fields(BlobShown)), None))  # type: ignore[arg-type]  # every field is None
    assert rendering.of([BlobPrefix("blob:site/a/", "a/"), blob]).columns == BlobShown.COLUMNS


def test_a_result_within_a_result_is_shown_by_its_own_columns() -> None:
    found = rendering.of(Outer("blob:site/a", Inner(60)))
    assert (found.columns, found.find("age")) == (Outer.COLUMNS, columns.AGE)


def test_a_plain_mapping_has_no_columns() -> None:
    assert rendering.of({"forgotten": 1}) == Layout()


def test_the_properties_of_an_entity_are_shown_as_they_are() -> None:
    rows = [PrintedEntity(RowKey="1", name="n", address="a", file_name="f", lease_state="available")]
    found = rendering.of(rows)
    assert rendering.fitting([dict(row) for row in rows], found, 200) == list(rows[0])


def test_a_narrow_table_of_entities_keeps_both_keys() -> None:
    row = {"PartitionKey": "p" * 30, "RowKey": "r" * 30, "name": "n", "total": 123456}
    shown = [rendering.fitting([row], Layout(is_verbatim=True), width) for width in (80, 54, 20)]
    assert shown == [list(row), ["PartitionKey", "RowKey", "name"], ["PartitionKey", "RowKey"]]


def test_a_narrow_table_of_entities_says_what_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rendering.show([{"PartitionKey": "eu", "RowKey": "1", "name": "n" * 30}], Layout(is_verbatim=True), color=False)
    assert capsys.readouterr().out.splitlines()[-1] == "1 more column: -o yaml shows all"


def test_a_panel_has_units_and_no_microseconds_and_leaves_metadata_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    moment = "2026-11-21T10:00:00.123456Z"
    value = {"content_length": 1234, "age": 60, "until": moment, "metadata": {"age": moment}, "owner": {"who": "me"}}
    wanted = Layout(columns=(columns.CONTENT_LENGTH, columns.AGE), verbatim=frozenset({"metadata"}))
    rendering.show(value, wanted, color=False)
    assert capsys.readouterr().out.splitlines() == [
        "content length  1,234 bytes",
        "age             1m",
        "until           2026-11-21T10:00:00Z",
        "metadata",
        f"  age           {moment}",
        "owner",
        "  who           me",
    ]


def test_a_terminal_that_shows_ascii_alone_gets_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    rendering.show([{"address": "blob:site/a", "etag": "1"}], Layout((columns.ADDRESS, columns.ETAG)), color=False)
    shown = capsys.readouterr().out
    assert (shown.isascii(), "-----" in shown) == (True, True)


def test_the_fields_with_names_of_the_users_own_are_known_by_their_type() -> None:
    none: dict[str, Any] = dict.fromkeys(each.name for each in fields(BlobShown))
    blob = BlobShown(**{**none, "metadata": {"a": "b"}})
    assert rendering.of(blob).verbatim == {"metadata"}


def test_a_narrow_table_leaves_out_columns_by_their_rank() -> None:
    row = {"address": "blob:site/a", "last_modified": "2026-11-21T10:00:00Z", "file": "/tmp/a"}
    wanted = Layout((columns.ADDRESS, columns.LAST_MODIFIED, columns.FILE))
    shown = [rendering.fitting([row], wanted, width) for width in (60, 40, 20)]
    assert shown == [["address", "last_modified", "file"], ["address", "last_modified"], ["address"]]


def test_a_narrow_table_of_ranges_breaks_no_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    length = 2**40
    row = {"start": length // 2, "end": length - 1, "length": length // 2}
    rendering.show([row], Layout(DataRange.COLUMNS), color=False)
    assert capsys.readouterr().out.splitlines()[-2].split() == ["549,755,813,888", "1,099,511,627,775"]


@pytest.mark.parametrize("language", ["C.UTF-8", "C"])
def test_a_long_text_is_cut_so_that_the_other_columns_stay_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LC_ALL", language)
    row = {"address": "message:jobs/1", "dequeue_count": 1, "content": "one\ntwo\t" + 100 * "x"}
    rendering.show([row], Layout((columns.ADDRESS, columns.DEQUEUES, columns.CONTENT)), color=False)
    shown = capsys.readouterr().out.splitlines()[-2]
    end = "x" if language == "C" else "…"
    assert (len(shown) <= 60, shown.split(), shown[-1]) == (
        True, ["message:jobs/1", "1", f"one\\ntwo\\t{shown.split('t')[-1]}"], end,
    )  # fmt: skip


_LONG = "blob:site/" + "x" * 40
_ID = "df5d4530-4c89-405c-8401-518d245e3407"


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        # The address does not fit beside the id, and stands in a line of its own.
        (80, [f" {_LONG}", "               held    " + _ID]),
        # Nothing fits beside the id: one below the other.
        (45, ["address", f"  {_LONG}", "state     held", "lease id", f"  {_ID}"]),
    ],
)
def test_no_id_and_no_address_is_cut_or_wrapped(
    width: int, lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    wanted = Layout((columns.ADDRESS, columns.STATE, columns.Column(name="lease_id", title="lease id")))
    row = {"address": _LONG, "state": "held", "lease_id": _ID}
    rendering.show([row, {**row, "address": "blob:site/a"}], wanted, color=False)
    shown = capsys.readouterr().out.splitlines()
    assert [each for each in lines if each not in shown] == []


@pytest.mark.parametrize("text", ["\u65e5\u672c\u8a9e.txt", "e\u0301.txt", "plain.txt"])
def test_a_column_is_as_wide_as_a_terminal_shows_it(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    rendering.show([{"address": text, "state": "held"}], Layout((columns.ADDRESS, columns.STATE)), color=False)
    head, _, row = capsys.readouterr().out.splitlines()[1:4]
    before, after = row.split("held")
    assert (terminal.measure(before), after) == (head.index("state"), "")
