"""Durations as they are shown."""

import pytest

from azguard.errors import UsageError
from azguard.times import parse_duration, parse_http_date, span
from tests.support.cases import cases


@cases(
    ("seconds", "text"),
    (-3, "0s"), (0, "0s"), (0.4, "0s"), (0.6, "1s"), (59, "59s"), (60, "1m"), (61, "1m1s"), (3600, "1h"),
    (3601, "1h"), (3661, "1h1m"), (86399, "23h59m"), (86400, "1d"), (90000, "1d1h"), (10**7, "115d17h"),
)  # fmt: skip
def test_a_duration_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


@cases("text", "1s", "1m1s", "1h", "23h59m", "115d17h")
def test_what_is_shown_can_be_typed(text: str) -> None:
    assert span(parse_duration(text)) == text


@cases("text", "36501d", "9999999999999", "9" * 5000, "999999999d999h")
def test_a_duration_that_no_clock_can_tell_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="more than 100 years"):
        parse_duration(text, "--for")


@cases("text", "", "soon", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00")
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_http_date(text, "until")
