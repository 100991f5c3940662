"""The key of a message, and how a table keeps it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.errors import UsageError
from azguard.worker.once import KeyRule, escape
from tests.support.cases import cases

ROW_KEY = re.compile(r"[A-Za-z0-9._:~-]{0,400}")


@cases(
    ("expression", "body", "key"),
    [
        (None, b"anything", "the-id"),
        ("id", b'{"id": "a/b"}', "a/b"),
        ("id", b'{"id": " "}', " "),
        ("id", b'{"id": 17}', "17"),
        ("id", b'{"id": "17"}', "17"),
        ("order.id", b'{"order": {"id": "x"}}', "x"),
        ("[order, step]", b'{"order": 7, "step": "ship"}', '[7,"ship"]'),
        ("@", b'{"b": 1, "a": 2}', '{"a":2,"b":1}'),
        ("@", b"0", "0"),
    ],
)
def test_a_key_is_the_id_or_what_the_expression_finds(expression: str | None, body: bytes, key: str) -> None:
    assert KeyRule(expression).choose(body, "the-id") == key


@cases(
    ("body", "reason"),
    [
        (b"", "once_body_not_json"),
        (b"resize 17", "once_body_not_json"),
        (b"\xff", "once_body_not_json"),
        (b"[" * 100_000, "once_body_not_json"),
        (b"{}", "once_key_missing"),
        (b"[1]", "once_key_missing"),
        (b'{"id": null}', "once_key_missing"),
        (b'{"id": ""}', "once_key_missing"),
        (b'{"id": []}', "once_key_missing"),
        (b'{"id": {}}', "once_key_missing"),
        (b'{"id": true}', "once_key_missing"),
        (b'{"id": [1, null]}', "once_key_missing"),
    ],
)
def test_a_body_without_a_key_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        KeyRule("id").choose(body, "the-id")
    assert refused.value.reason == reason


@cases("expression", ["length(id)", "contains('x', id)"])
def test_an_expression_that_fails_on_a_body_finds_no_key(expression: str) -> None:
    with pytest.raises(UsageError) as refused:
        KeyRule(expression).choose(b'{"id": 1}', "the-id")
    assert refused.value.reason == "once_key_missing"


@cases("expression", ["", "[", "a b"])
def test_what_is_no_expression_is_refused_at_once(expression: str) -> None:
    with pytest.raises(UsageError) as refused:
        KeyRule(expression)
    assert refused.value.reason == "once_key_malformed"


@cases(
    ("key", "row"),
    [("order:17", "order:17"), ("a/b", "a~2fb"), ("~", "~7e"), ("é", "~c3~a9"), ("a b", "a~20b"), ("", "")],
)
def test_a_row_key_shows_its_key(key: str, row: str) -> None:
    assert escape(key) == row


def test_a_long_key_is_kept_as_its_hash() -> None:
    assert escape("x" * 301) == "~~sha256~e4c11e4fa5423893d1927ae29ada0b6e2da560b5fa44ddc2c09fcd4734a9d9a6"


@given(st.text(), st.text())
def test_two_keys_never_share_a_row_key_that_any_table_takes(first: str, second: str) -> None:
    assert ROW_KEY.fullmatch(escape(first))
    assert (escape(first) == escape(second)) == (first == second)


@given(st.text(st.characters(exclude_categories=()), min_size=1))
def test_any_text_of_json_has_a_row_key(key: str) -> None:
    assert ROW_KEY.fullmatch(escape(key))
