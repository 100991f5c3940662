"""Diffs for people, and three-way merges: complete, and nothing gets lost."""

import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from azguard.documents import diffs
from azguard.documents.diffs import Merged, compare
from tests.support.cases import cases


def test_equal_contents_have_no_difference() -> None:
    assert compare(b"\x00\xff", b"\x00\xff", "x") == ""


def test_text_is_shown_as_a_unified_diff() -> None:
    old = "".join(f"line {number}\n" for number in range(1, 10))
    assert compare(old.encode(), old.replace("5", "five").encode(), "site/notes.txt") == (
        "--- site/notes.txt (current)\n"
        "+++ site/notes.txt (new)\n"
        "@@ -2,7 +2,7 @@\n"
        " line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8\n"
    )


def test_a_missing_newline_at_the_end_is_marked_as_git_does() -> None:
    assert compare(b"a", b"a\nb\n", "x") == (
        "--- x (current)\n+++ x (new)\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n"
    )


def test_one_line_json_is_shown_on_many_lines() -> None:
    remark = "; one-line JSON shown on many lines"
    assert compare(b'{"a":1.0,"b":[1e3]}\n', b'{"a":1.10,"b":[1e3]}\n', "x") == (
        f"--- x (current{remark})\n+++ x (new{remark})\n"
        '@@ -1,5 +1,5 @@\n {\n-  "a": 1.0,\n+  "a": 1.10,\n   "b": [\n     1e3\n   ]\n'
    )


@cases(
    ("old", "new", "body"),
    (b"", b'{"a":1}', '@@ -0,0 +1,3 @@\n+{\n+  "a": 1\n+}\n\\ No newline at end of file\n'),
    (b'{"a":1}\n', b'{\n  "a": 2\n}\n', '@@ -1,3 +1,3 @@\n {\n-  "a": 1\n+  "a": 2\n }\n'),
)
def test_one_side_on_one_line_is_enough(old: bytes, new: bytes, body: str) -> None:
    assert compare(old, new, "x").split("\n", 2)[2] == body


@cases(
    ("old", "new", "body"),
    (b'{"a":1}\n', b'{"a": 1}\n', '@@ -1 +1 @@\n-{"a":1}\n+{"a": 1}\n'),
    (b"{broken}\n", b'{"a": 1}\n', '@@ -1 +1 @@\n-{broken}\n+{"a": 1}\n'),
    (b'{\n  "a": 1\n}\n', b'{\n  "a": 2\n}\n', '@@ -1,3 +1,3 @@\n {\n-  "a": 1\n+  "a": 2\n }\n'),
)
def test_json_is_shown_as_it_is_where_that_tells_more(old: bytes, new: bytes, body: str) -> None:
    assert compare(old, new, "x") == f"--- x (current)\n+++ x (new)\n{body}"


@cases("old", b"\xff" * 10, b"text\0text.")
def test_of_binary_content_sizes_and_hashes_are_shown(old: bytes) -> None:
    before, after = (hashlib.sha256(content).hexdigest()[:16] for content in (old, b"hello, world"))
    assert compare(old, b"hello, world", "x") == f"binary: 10 -> 12 bytes (sha256 {before}… -> {after}…)\n"


def test_content_cannot_drive_the_terminal() -> None:
    hostile = "\x1b[2J\x07\x9b2J\r\x7f\u202e\u2028\ufeff\u00ad\U000e0041"
    kept = "\tcaf\u00e9 \u65e5\u672c \U0001f469\u200d\U0001f4bb \\x1b"
    assert compare(b"", f"{hostile}{kept}\n".encode(), "x\x1b[1m\n") == (
        "--- x\\x1b[1m\\x0a (current)\n+++ x\\x1b[1m\\x0a (new)\n@@ -0,0 +1 @@\n"
        f"+\\x1b[2J\\x07\\x9b2J\\x0d\\x7f\\u202e\\u2028\\ufeff\\xad\\U000e0041{kept}\n"
    )


def test_a_control_character_differs_from_its_spelling() -> None:
    assert compare(b"\x1b\n", b"\\x1b\n", "x").split("\n")[3:] == ["-\\x1b", "+\\x1b", ""]


def test_line_ends_are_shown_where_they_differ_and_only_there() -> None:
    assert [
        compare(b"a\r\nb\r\n", b"a\r\nc\r\n", "x").split("\n")[3:],
        compare(b"a\r\nb\r\n", b"a\nb\r\n", "x").split("\n")[3:],
    ] == [[" a", "-b", "+c", ""], ["-a\\x0d", "+a", " b\\x0d", ""]]


LINES = b"a\nb\nc\nd\ne\n"


@cases(
    ("ours", "theirs", "merged"),
    (b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n", b"A\nb\nc\nd\nE\n"),
    (b"a\nx\nb\nc\nd\ne\n", b"a\nb\nc\ne\n", b"a\nx\nb\nc\ne\n"),
    (b"a\nb\nC\nd\ne\n", b"a\nb\nC\nd\ne\n", b"a\nb\nC\nd\ne\n"),
    (b"A\nb\nC\nd\ne\n", b"A\nb\nc\nd\nE\n", b"A\nb\nC\nd\nE\n"),
    (b"b\nc\nd\ne\n", b"a\nb\nc\nd\n", b"b\nc\nd\n"),
    (LINES, b"x\n", b"x\n"),
    (b"x\n", LINES, b"x\n"),
    (b"a\nb\nc\nd\ne", b"A\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne"),
)
def test_changes_of_other_lines_are_put_together(ours: bytes, theirs: bytes, merged: bytes) -> None:
    assert diffs.merge(LINES, ours, theirs) == Merged(merged, 0)


@cases(
    ("base", "ours", "theirs", "merged"),
    (LINES, b"a\nb\nX\nd\ne\n", b"a\nb\nY\nd\ne\n",
     b"a\nb\n<<<<<<< yours\nX\n=======\nY\n>>>>>>> theirs\nd\ne\n"),
    (b"a\n", b"a\nx", b"a\ny", b"a\n<<<<<<< yours\nx\n=======\ny\n>>>>>>> theirs\n"),
    (b"a\r\n", b"x\r\n", b"y\r\n", b"<<<<<<< yours\r\nx\r\n=======\r\ny\r\n>>>>>>> theirs\r\n"),
    (b"", b"x\n", b"y\n", b"<<<<<<< yours\nx\n=======\ny\n>>>>>>> theirs\n"),
    (b"a\n", b"", b"b\n", b"<<<<<<< yours\n=======\nb\n>>>>>>> theirs\n"),
    (b"\x00\xff\n", b"\x01\n", b"\x02\n", b"<<<<<<< yours\n\x01\n=======\n\x02\n>>>>>>> theirs\n"),
)  # fmt: skip
def test_changes_of_the_same_lines_stand_side_by_side(base: bytes, ours: bytes, theirs: bytes, merged: bytes) -> None:
    made = diffs.merge(base, ours, theirs)
    assert (made, diffs.has_marks(made.content)) == (Merged(merged, 1), True)


@cases(
    ("base", "ours", "theirs", "merged"),
    ('{"a": 1, "b": 2}', '{"a": 5, "b": 2}', '{"a": 1, "b": 7}', '{"a": 5, "b": 7}'),
    ('{"a": 1}', '{"a": 1, "x": 1}', '{"a": 1, "y": 2}', '{"a": 1, "y": 2, "x": 1}'),
    ('{"a": {"x": 1, "y": 1}}', '{"a": {"x": 2, "y": 1}}', '{"a": {"x": 1}}', '{"a": {"x": 2}}'),
    ('{"a": 1, "b": 2}', '{"b": 2}', '{"a": 1, "b": 3}', '{"b": 3}'),
    ('{"a": 1.0}', '{"a": 1.0, "b": 1e3}', '{\n "a": 1.0, "c": 0\n}', '{\n "a": 1.0, "c": 0, "b": 1e3\n}'),
    ('{"a": 1}', '{"a": {"x": 1}}', '{"a": {"y": 1}}', '{"a": {"y": 1, "x": 1}}'),
)
def test_members_of_json_are_merged_wherever_they_stand(base: str, ours: str, theirs: str, merged: str) -> None:
    assert diffs.merge(base.encode(), ours.encode(), theirs.encode()) == Merged(merged.encode(), 0)


@cases(
    ("ours", "theirs"),
    ('{"a": 5}', '{"a": 7}'),
    ("{}", '{"a": 7}'),
    ('{"a": [1]}', '{"a": [2]}'),
    ('{"a": 5}', "[]"),
    ("no", '{"a": 2}'),
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
