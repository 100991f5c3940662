"""How results are laid out: each type lists its own columns, and they are fields of it."""

import ast
import importlib
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import pytest

from azguard import columns
from azguard.blobs.listing import BlobPrefix
from azguard.blobs.properties import BlobShown
from azguard.cli import layout, rendering
from azguard.cli.layout import Layout
from azguard.tables.reads import PrintedEntity
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
        getattr(importlib.import_module(name), node.name)
        for name, path in MODULES.items()
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and "COLUMNS: ClassVar" in ast.unparse(node)
    ]


@pytest.mark.parametrize("kind", [each for each in kinds() if is_dataclass(each)])
def test_the_columns_of_a_result_are_fields_of_it(kind: Any) -> None:
    assert {each.name for each in kind.COLUMNS} <= {each.name for each in fields(kind)}


def test_a_list_of_two_types_has_the_columns_of_the_one_that_has_more() -> None:
    blob: Any = BlobShown(**dict.fromkeys((each.name for each in fields(BlobShown)), None))  # type: ignore[arg-type]
    assert layout.of([BlobPrefix("blob:site/a/", "a/"), blob]).columns == BlobShown.COLUMNS


def test_a_result_within_a_result_is_shown_by_its_own_columns() -> None:
    found = layout.of(Outer("blob:site/a", Inner(60)))
    assert (found.columns, found.by_name["age"]) == (Outer.COLUMNS, columns.AGE)


def test_a_plain_mapping_has_no_columns() -> None:
    assert layout.of({"forgotten": 1}) == Layout()


def test_the_properties_of_an_entity_are_shown_as_they_are() -> None:
    rows = [PrintedEntity(RowKey="1", name="n", address="a", file_name="f", lease_state="available")]
    found = layout.of(rows)
    assert rendering.fitting([dict(row) for row in rows], found, 20) == list(rows[0])


def test_a_narrow_table_leaves_out_columns_by_their_rank() -> None:
    row = {"address": "blob:site/a", "last_modified": "2026-11-21T10:00:00Z", "file": "/tmp/a"}
    wanted = Layout((columns.ADDRESS, columns.LAST_MODIFIED, columns.FILE))
    shown = [rendering.fitting([row], wanted, width) for width in (60, 40, 20)]
    assert shown == [["address", "last_modified", "file"], ["address", "last_modified"], ["address"]]
