"""The service's clock: which times of an answer are believed, and which prove nothing."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from azguard import times
from azguard.address import Kind
from azguard.errors import Unavailable
from azguard.requests import calls
from azguard.requests.calls import ServiceClock
from azguard.requests.service_codes import Answers
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.support.lease_script import MESSAGE, Answer, it_is, scripted

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = {"Authorization": "SharedKey acc:xyz"}
TOLD = "2026-11-21T12:00:00.1234567Z"
CODE = b"<Error><Message>No.\nRequestId:1\nTime:2026-11-21T12:00:00.1234567Z</Message></Error>"


def hear(minutes: int, status: int = 200, body: bytes = b"", **sent: str) -> Answers:
    """Return what is heard of an answer whose Date is so many minutes ahead of the clock that signed the request."""
    request = SimpleNamespace(headers={"x-ms-date": format_datetime(NOW, usegmt=True), **sent})
    date = {"Date": format_datetime(NOW + timedelta(minutes=minutes), usegmt=True)}
    answer = SimpleNamespace(status_code=status, headers=date, request=request, body=lambda: body)
    answers = Answers()
    answers.hear(SimpleNamespace(http_response=answer))
    return answers


@cases(
    ("minutes", "status", "sent", "is_believed"),
    [
        (0, 200, KEY, True),
        (15, 200, KEY, True),
        (-15, 404, KEY, True),
        # The service accepted the key, so that the clock that signed is right to a quarter of an hour.
        (16, 200, KEY, False),
        (-120, 404, KEY, False),
        # It did not, perhaps for the clock that signed; and other credentials prove nothing.
        (120, 403, KEY, True),
        (120, 200, {}, True),
        (120, 200, {"Authorization": "Bearer xyz"}, True),
    ],
)
def test_a_date_is_believed_unless_it_is_proved_wrong(
    minutes: int, status: int, sent: dict[str, str], *, is_believed: bool
) -> None:
    assert hear(minutes, status, b"", **sent).date == (NOW + timedelta(minutes=minutes) if is_believed else None)


@cases(
    ("status", "body", "moment"),
    [
        (404, CODE, datetime.fromisoformat(TOLD)),
        (200, CODE, None),
        (404, b"", None),
        (404, b"\xff<html>Time: soon</html>", None),
        (404, b"Time:2026-99-21T12:00:00Z", None),
    ],
)
def test_a_refusal_tells_when_the_service_wrote_it(status: int, body: bytes, moment: datetime | None) -> None:
    assert hear(120, status, body).refused_at == moment


@cases(
    ("answer", "moment"),
    [
        (it_is(TOLD), datetime.fromisoformat(TOLD)),
        ((403, "AuthorizationFailure", it_is(TOLD)[2]), datetime.fromisoformat(TOLD)),
        ((404, "BlobNotFound", {MESSAGE: "", "Date": "Sat, 21 Nov 2026 12:00:00 GMT"}), None),
    ],
)
def test_the_time_is_asked_for_by_a_read_that_is_refused(answer: Answer, moment: datetime | None) -> None:
    target, service = scripted(Kind.BLOB, answer)
    assert (calls.ask_service_time(target.account, Kind.BLOB, Clock().deadline()), service.asked) == (
        moment,
        [("GET", None)],
    )


def test_a_service_that_does_not_answer_is_no_clock_that_is_unknown() -> None:
    target, _ = scripted(Kind.BLOB, *[(503, "ServerBusy", it_is(TOLD)[2])] * 99)
    with pytest.raises(Unavailable):
        calls.ask_service_time(target.account, Kind.BLOB, Clock().deadline(1))


def test_a_clock_is_asked_for_once_and_counts_on() -> None:
    ours = Clock()
    target, service = scripted(Kind.BLOB, (404, "BlobNotFound", {}), it_is(TOLD))
    clock, known = ServiceClock(ours), []
    for _ in range(4):
        clock.learn(target.account, Kind.BLOB, ours.deadline())
        known.append(clock.read())
        ours.sleep(60)
    moment = datetime.fromisoformat(TOLD)
    assert known == [None, moment, moment + timedelta(minutes=1), moment + timedelta(minutes=2)]
    assert (len(service.asked), clock.read(ours() - 180)) == (2, moment)


@cases(
    ("text", "moment"),
    [
        ("Sat, 21 Nov 2026 12:00:00 GMT", NOW), ("Sat, 21 Nov 2026 12:00:00 -0000", NOW), (None, None), ("", None),
        ("soon", None), ("Sat, 99 Nov 2026 12:00:00 GMT", None), ("Sat, 21 Nov 99999999999 12:00:00 GMT", None),
    ],
)  # fmt: skip
def test_a_date_is_read_or_missing(text: str | None, moment: datetime | None) -> None:
    assert times.find_http_date(text) == moment
