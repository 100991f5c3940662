"""What a filter may print over which content."""

import pytest

from azguard.documents.formats import OutputRule
from azguard.errors import TransformFailed
from tests.support.cases import cases

OBJECT = b'{"a": 1}'


def refused(source: bytes, output: bytes, name: str = "config", content_type: str | None = None) -> bool:
    try:
        OutputRule(name).check(source, output, content_type)
    except TransformFailed:
        return True
    return False


@cases(
    ("source", "name", "content_type"),
    (OBJECT, "config", None),
    (b"[]", "config", "application/octet-stream"),
    (b' \n\t{"a": 1}\n', "notes.txt", "text/plain"),
    (b"\xef\xbb\xbf[1]", "config", None),
    (b"5", "a.json", None),
    (b'"word"', "A.JSON", None),
    (b"5", "counter", "application/json; charset=utf-8"),
    (b"null", "counter", "application/problem+json"),
)
def test_what_was_json_must_stay_json(source: bytes, name: str, content_type: str | None) -> None:
    assert refused(source, b"not json", name, content_type)


@cases(
    ("source", "name", "content_type"),
    (b"5", "version", None),
    (b"true", "flag", "text/plain"),
    (b"[section]\nkey=1\n", "app.ini", None),
    (b"{a: 1}", "config.yaml", None),
    (b"{}", "values.yaml", None),
    (b"{}", "values", "application/yaml"),
    (OBJECT, "events.jsonl", None),
    (OBJECT, "events", "application/x-ndjson"),
    (OBJECT + b"\n" + OBJECT, "events.log", None),
    (b'{"a": 1, "a": 2}', "twice.json", None),
    (b'{"a": NaN}', "python.json", None),
    (b"// comment\n{}", "settings.json", None),
    (b"\xff\xfe{\x00}\x00", "utf16.json", None),
    (b"", "new.json", None),
    (b"[" * 100_000, "deep", None),
)
def test_what_was_no_json_may_become_anything(source: bytes, name: str, content_type: str | None) -> None:
    assert not refused(source, b"not json", name, content_type)


@cases(
    "output",
    b"\n",
    b"{",
    OBJECT + OBJECT,
    OBJECT[:-1],
    b'{"a": NaN}',
    b"\xff",
    b"[" * 100_000,
    b'{"a": 1, "a": 2}',
)
def test_this_is_no_json(output: bytes) -> None:
    assert refused(OBJECT, output)


@cases("output", b"5", b"[]", b'\xef\xbb\xbf{"a": 2}\n', b"1" * 10_000, b'{"a": 1e999}')
def test_this_is_json(output: bytes) -> None:
    assert not refused(OBJECT, output)


def test_nothing_may_follow_only_nothing() -> None:
    assert [refused(source, b"", "a.txt") for source in (b"text", b"\n", b"")] == [True, True, False]


def test_each_rule_is_lifted_by_its_own_option() -> None:
    OutputRule("a.json", allow_empty=True).check(OBJECT, b"", None)
    OutputRule("a.json", any_content=True).check(OBJECT, b"text", None)
    with pytest.raises(TransformFailed, match="printed nothing"):
        OutputRule("a.json", any_content=True).check(OBJECT, b"", None)
    with pytest.raises(TransformFailed, match="was JSON"):
        OutputRule("a.json", allow_empty=True).check(OBJECT, b"text", None)
