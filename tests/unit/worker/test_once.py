"""The key of a message, how a table keeps it, and when the claim of another worker is over."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import ConfigError, UsageError
from azguard.requests.lineage import Lineage
from azguard.tables.entities import Stored
from azguard.worker.handling import ClaimHold
from azguard.worker.once import KeyRule, OnceTable, escape
from azguard.worker.settings import Claimed, DoneBefore, HeldByAnother, MessageFacts
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, Clock

ROW_KEY = re.compile(r"[A-Za-z0-9._:~-]{0,400}")


@cases(
    ("expression", "body", "key"),
    (None, b"anything", "the-id"),
    ("id", b'{"id": "a/b"}', "a/b"),
    ("id", b'{"id": " "}', " "),
    ("id", b'{"id": 17}', "17"),
    ("id", b'{"id": "17"}', "17"),
    ("order.id", b'{"order": {"id": "x"}}', "x"),
    ("[order, step]", b'{"order": 7, "step": "ship"}', '[7,"ship"]'),
    ("@", b'{"b": 1, "a": 2}', '{"a":2,"b":1}'),
    ("@", b"0", "0"),
)
def test_a_key_is_the_id_or_what_the_expression_finds(expression: str | None, body: bytes, key: str) -> None:
    assert KeyRule(expression).choose(body, "the-id") == key


@cases(
    ("body", "reason"),
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
)
def test_a_body_without_a_key_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        KeyRule("id").choose(body, "the-id")
    assert refused.value.reason == reason


@cases("expression", "length(id)", "contains('x', id)")
def test_an_expression_that_fails_on_a_body_finds_no_key(expression: str) -> None:
    with pytest.raises(UsageError) as refused:
        KeyRule(expression).choose(b'{"id": 1}', "the-id")
    assert refused.value.reason == "once_key_missing"


@cases(
    ("key", "row"),
    ("order:17", "order:17"),
    ("a/b", "a~2fb"),
    ("~", "~7e"),
    ("é", "~c3~a9"),
    ("a b", "a~20b"),
    ("", ""),
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


WRITTEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
ONCE = OnceTable(Target(TARGET.account, Address(Kind.TABLE, ("once",))), "me")
SECONDS = 30


def claimed() -> Stored:
    row = {"PartitionKey": "jobs", "RowKey": "k", "state": "claimed", "claim": "c", "by": "they", "seconds": SECONDS}
    return Stored(row, f"""W/"datetime'{WRITTEN:%Y-%m-%dT%H}%3A00%3A00.0Z'\"""", Lineage())


@cases(
    ("after", "is_free"), (0.0, False), (SECONDS, False), (SECONDS + 2.9, False), (SECONDS + 3.0, True), (None, False)
)
def test_a_claim_is_taken_over_only_once_it_is_certainly_over(after: float | None, is_free: bool) -> None:
    # None is a service that does not tell its time.
    now = None if after is None else WRITTEN + timedelta(seconds=after)
    found = ONCE._judge("k", claimed(), None, now)
    assert found == (None if is_free else HeldByAnother("k", WRITTEN + timedelta(seconds=SECONDS + 3), "they"))


@cases("term", "soon", "Infinity", 1e300)
def test_a_row_whose_term_is_none_was_written_by_no_worker(term: object) -> None:
    found = claimed()
    found.entity["seconds"] = term
    with pytest.raises(ConfigError, match="no worker wrote"):
        ONCE._judge("k", found, None, WRITTEN)


@cases(
    ("body", "digest", "differs_from"),
    ("a", "a", None),
    ("a", "b", "m1"),
    (None, "b", None),
    ("a", None, None),
    (None, None, None),
)
def test_a_done_key_says_whether_its_body_is_known_to_be_another_one(
    body: str | None, digest: str | None, differs_from: str | None
) -> None:
    found = claimed()
    found.entity.update({"state": "done", "message": "m1"} | ({} if body is None else {"body": body}))
    assert ONCE._judge("k", found, digest, None) == DoneBefore("k", differs_from)


class SlowClaims:
    """Claims whose answers take five seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def claim(self, key: str, *_arguments: object) -> Claimed:
        self._clock.sleep(5)
        return Claimed(key)

    def extend(self, claimed: Claimed, *_arguments: object) -> Claimed:
        self._clock.sleep(5)
        return claimed


def test_the_owner_of_a_claim_counts_from_before_it_was_asked_for() -> None:
    clock = Clock()
    began = clock()
    hold = ClaimHold(SlowClaims(clock), SECONDS, clock)  # type: ignore[arg-type]  # of the claims only these are asked for
    hold.take(lambda: "k", MessageFacts("jobs", "1", 1, WRITTEN, WRITTEN))
    ends = [hold.ends - began]
    hold.extend()
    assert [*ends, hold.ends - began] == [SECONDS, SECONDS + 5]
