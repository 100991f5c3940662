"""Three-way merges: what is put together, what is a conflict, and what must never get lost."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from azguard.documents import diffs
from azguard.documents.diffs import Merged
from tests.support.cases import cases

LINES = b"a\nb\nc\nd\ne\n"


@cases(
    ("ours", "theirs", "merged"),
    [
        (b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n", b"A\nb\nc\nd\nE\n"),
        (b"a\nx\nb\nc\nd\ne\n", b"a\nb\nc\ne\n", b"a\nx\nb\nc\ne\n"),
        (b"a\nb\nC\nd\ne\n", b"a\nb\nC\nd\ne\n", b"a\nb\nC\nd\ne\n"),
        (b"A\nb\nC\nd\ne\n", b"A\nb\nc\nd\nE\n", b"A\nb\nC\nd\nE\n"),
        (b"b\nc\nd\ne\n", b"a\nb\nc\nd\n", b"b\nc\nd\n"),
        (LINES, b"x\n", b"x\n"),
        (b"x\n", LINES, b"x\n"),
        (b"a\nb\nc\nd\ne", b"A\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne"),
    ],
)
def test_changes_of_other_lines_are_put_together(ours: bytes, theirs: bytes, merged: bytes) -> None:
    assert diffs.merge(LINES, ours, theirs) == Merged(merged, 0)


@cases(
    ("base", "ours", "theirs", "merged"),
    [
        (LINES, b"a\nb\nX\nd\ne\n", b"a\nb\nY\nd\ne\n",
         b"a\nb\n<<<<<<< yours\nX\n=======\nY\n>>>>>>> theirs\nd\ne\n"),
        (b"a\n", b"a\nx", b"a\ny", b"a\n<<<<<<< yours\nx\n=======\ny\n>>>>>>> theirs\n"),
        (b"a\r\n", b"x\r\n", b"y\r\n", b"<<<<<<< yours\r\nx\r\n=======\r\ny\r\n>>>>>>> theirs\r\n"),
        (b"", b"x\n", b"y\n", b"<<<<<<< yours\nx\n=======\ny\n>>>>>>> theirs\n"),
        (b"a\n", b"", b"b\n", b"<<<<<<< yours\n=======\nb\n>>>>>>> theirs\n"),
        (b"\x00\xff\n", b"\x01\n", b"\x02\n", b"<<<<<<< yours\n\x01\n=======\n\x02\n>>>>>>> theirs\n"),
    ],
)  # fmt: skip
def test_changes_of_the_same_lines_stand_side_by_side(base: bytes, ours: bytes, theirs: bytes, merged: bytes) -> None:
    made = diffs.merge(base, ours, theirs)
    assert (made, diffs.has_marks(made.content)) == (Merged(merged, 1), True)


@cases(
    ("base", "ours", "theirs", "merged"),
    [
        ('{"a": 1, "b": 2}', '{"a": 5, "b": 2}', '{"a": 1, "b": 7}', '{"a": 5, "b": 7}'),
        ('{"a": 1}', '{"a": 1, "x": 1}', '{"a": 1, "y": 2}', '{"a": 1, "y": 2, "x": 1}'),
        ('{"a": {"x": 1, "y": 1}}', '{"a": {"x": 2, "y": 1}}', '{"a": {"x": 1}}', '{"a": {"x": 2}}'),
        ('{"a": 1, "b": 2}', '{"b": 2}', '{"a": 1, "b": 3}', '{"b": 3}'),
        ('{"a": 1.0}', '{"a": 1.0, "b": 1e3}', '{\n "a": 1.0, "c": 0\n}', '{\n "a": 1.0, "c": 0, "b": 1e3\n}'),
        ('{"a": 1}', '{"a": {"x": 1}}', '{"a": {"y": 1}}', '{"a": {"y": 1, "x": 1}}'),
    ],
)
def test_members_of_json_are_merged_wherever_they_stand(base: str, ours: str, theirs: str, merged: str) -> None:
    assert diffs.merge(base.encode(), ours.encode(), theirs.encode()) == Merged(merged.encode(), 0)


@cases(
    ("ours", "theirs"),
    [
        ('{"a": 5}', '{"a": 7}'),
        ("{}", '{"a": 7}'),
        ('{"a": [1]}', '{"a": [2]}'),
        ('{"a": 5}', "[]"),
        ("no", '{"a": 2}'),
    ],
)
def test_json_that_was_changed_in_the_same_place_is_a_conflict(ours: str, theirs: str) -> None:
    assert diffs.merge(b'{"a": 1}', ours.encode(), theirs.encode()).conflicts == 1


VERSIONS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"x\n"]), max_size=8).map(b"".join)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3) | st.just({"x": 1}), max_size=4)


@given(VERSIONS, VERSIONS)
def test_one_change_alone_is_taken_as_it_is(base: bytes, changed: bytes) -> None:
    assert [diffs.merge(base, *sides) for sides in ((changed, base), (base, changed), (changed, changed))] == [
        Merged(changed, 0)
    ] * 3


@given(VERSIONS, VERSIONS, VERSIONS)
def test_no_line_that_was_added_gets_lost(base: bytes, ours: bytes, theirs: bytes) -> None:
    merged = diffs.merge(base, ours, theirs).content.splitlines()
    for line in {*ours.splitlines(), *theirs.splitlines()} - {*base.splitlines()}:
        assert line in merged


@given(OBJECTS, OBJECTS, OBJECTS)
def test_a_merge_of_members_has_each_change(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    made = diffs.merge(*(json.dumps(each).encode() for each in (base, ours, theirs)))
    if made.conflicts:
        return
    found = json.loads(made.content)
    for side in (ours, theirs):
        flat = {name: value for name, value in side.items() if value != base.get(name) and not isinstance(value, dict)}
        assert flat.items() <= found.items()
