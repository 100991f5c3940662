"""Diffs for people: readable, complete, and unable to drive the terminal."""

import hashlib

from azguard.documents.diffs import compare
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
    [
        (b"", b'{"a":1}', '@@ -0,0 +1,3 @@\n+{\n+  "a": 1\n+}\n\\ No newline at end of file\n'),
        (b'{"a":1}\n', b'{\n  "a": 2\n}\n', '@@ -1,3 +1,3 @@\n {\n-  "a": 1\n+  "a": 2\n }\n'),
    ],
)
def test_one_side_on_one_line_is_enough(old: bytes, new: bytes, body: str) -> None:
    assert compare(old, new, "x").split("\n", 2)[2] == body


@cases(
    ("old", "new", "body"),
    [
        (b'{"a":1}\n', b'{"a": 1}\n', '@@ -1 +1 @@\n-{"a":1}\n+{"a": 1}\n'),
        (b"{broken}\n", b'{"a": 1}\n', '@@ -1 +1 @@\n-{broken}\n+{"a": 1}\n'),
        (b'{\n  "a": 1\n}\n', b'{\n  "a": 2\n}\n', '@@ -1,3 +1,3 @@\n {\n-  "a": 1\n+  "a": 2\n }\n'),
    ],
)
def test_json_is_shown_as_it_is_where_that_tells_more(old: bytes, new: bytes, body: str) -> None:
    assert compare(old, new, "x") == f"--- x (current)\n+++ x (new)\n{body}"


@cases("old", [b"\xff" * 10, b"text\0text."])
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
