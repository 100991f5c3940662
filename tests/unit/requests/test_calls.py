"""What an answer, or none, says of the request it came from, and which of its times are believed."""

import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest

from azguard import times
from azguard.address import Kind
from azguard.errors import AzguardError, ConfigError, LoginFailed, Unavailable
from azguard.requests import calls
from azguard.requests.calls import CallOutcome, ServiceClock, describe, follow, outcome_of, read, send_once
from azguard.requests.commits import WriteRefused
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import find_time
from azguard.requests.service_errors import translate
from azguard.wire import answers
from azguard.wire.failures import (
    Broken,
    BrokenAnswer,
    NotConnected,
    NotOfTheService,
    Refusal,
    Response,
    SentRequest,
    ServiceRefusal,
    Stage,
    Unreadable,
)
from azguard.wire.operations.queues import QUEUE_LIST
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, Clock
from tests.support.lease_script import MESSAGE, Answer, it_is, scripted

# By these the service, or what stands before it, says that nothing was done; every other status leaves a doubt.
SAY_NO = {304, 400, 401, 403, 404, 405, 407, 409, 411, 412, 413, 414, 415, 416, 431}


def test_each_status_that_says_no_is_a_refusal_and_every_other_leaves_a_doubt() -> None:
    refused = {code for code in range(100, 600) if outcome_of(Refusal(code, "Code")) is CallOutcome.REFUSED}
    in_doubt = {code for code in range(100, 600) if outcome_of(Refusal(code, "Code")) is CallOutcome.IN_DOUBT}
    assert (refused, in_doubt) == (SAY_NO, set(range(100, 600)) - SAY_NO)


EMULATOR_CANNOT = (Refusal(501, "APINotImplemented"), Refusal(500, "FeatureNotSupported"))


def test_what_the_emulator_does_not_know_it_does_not_do() -> None:
    assert [outcome_of(each) for each in EMULATOR_CANNOT] == [CallOutcome.REFUSED] * 2


def test_a_write_of_several_requests_that_is_refused_leaves_no_doubt() -> None:
    assert outcome_of(WriteRefused("no")) is CallOutcome.REFUSED


def test_an_account_that_cannot_be_asked_like_that_ends_a_write() -> None:
    def call() -> None:
        raise ConfigError("no such endpoint")

    with pytest.raises(ConfigError):
        send_once(call)


def test_without_a_connection_or_a_token_nothing_was_sent() -> None:
    errors = (NotConnected(Stage.HOST, ConnectionRefusedError("Connection refused")), LoginFailed("no token"))
    assert [outcome_of(each) for each in errors] == [CallOutcome.NOT_SENT] * 2


def test_every_other_error_leaves_a_doubt() -> None:
    leaked = (AttributeError("leaked"), TimeoutError())  # with words, and without any
    errors = (BrokenAnswer(Broken.TIMED_OUT), NotOfTheService(200, {}), Unreadable("cut"), *leaked)
    assert [outcome_of(each) for each in errors] == [CallOutcome.IN_DOUBT] * 5


def test_what_became_of_a_request_is_told_with_the_reason() -> None:
    def failing(error: Exception) -> str:
        def call() -> None:
            raise error

        return describe(send_once(call))

    assert [
        describe(send_once(lambda: 1)),
        failing(Refusal(412, "ConditionNotMet")),
        failing(Refusal(503, "")),
        failing(BrokenAnswer(Broken.TIMED_OUT)),
        failing(NotConnected(Stage.HOST, OSError("refused"))),
    ] == [
        "committed",
        "refused (ConditionNotMet)",
        "in doubt (HTTP 503)",
        "in doubt (no answer)",
        "not sent (no connection)",
    ]


def made_again(error: BaseException) -> bool:
    """Return whether a read that fails once in this way is made again."""
    errors = [error]

    def call(timeouts: object) -> str:
        if errors:
            raise errors.pop()
        return "content"

    try:
        return read(call, TARGET, Clock().deadline(60)) == "content"
    except AzguardError:
        return False


def test_a_read_is_made_again_after_a_failure_that_passes_and_after_no_other() -> None:
    again = {code for code in range(400, 600) if made_again(Refusal(code, "Code"))}
    assert again == {408, 429, *range(500, 600)}
    assert [made_again(each) for each in EMULATOR_CANNOT] == [False] * 2


def test_a_read_that_something_else_answered_is_made_again_only_if_that_may_pass() -> None:
    again = {code for code in range(200, 600) if made_again(NotOfTheService(code, {"Content-Type": "text/html"}))}
    assert again == {408, 429, *range(500, 600)}


def test_a_read_is_not_made_again_where_the_settings_of_this_machine_must_change() -> None:
    broken = NotConnected(Stage.TLS, ssl.SSLError("handshake failure"))
    untrusted = NotConnected(Stage.TLS, ssl.SSLCertVerificationError("self-signed certificate"))
    tunnel = NotConnected(Stage.TUNNEL, OSError("403"), status=403)
    errors = (broken, OSError("reset"), Unreadable("cut"), untrusted, tunnel, ValueError("ours"))
    assert [made_again(each) for each in errors] == [True, True, True, False, False, False]


def test_a_read_is_made_again_ever_less_often_and_at_least_every_two_seconds() -> None:
    clock = Clock()
    moments: list[float] = []

    def call(timeouts: object) -> None:
        moments.append(clock())
        raise Refusal(503, "ServerBusy")

    with pytest.raises(Unavailable):
        read(call, TARGET, clock.deadline(10.0))
    pauses = [after - before for before, after in pairwise(moments)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0])


def test_no_read_is_made_again_where_its_pause_would_outlast_the_deadline() -> None:
    calls = []

    def call(timeouts: object) -> None:
        calls.append(timeouts)
        raise Refusal(503, "ServerBusy")

    clock = Clock()
    with pytest.raises(Unavailable):
        read(call, TARGET, clock.deadline(0.0625))
    assert (len(calls), clock()) == (1, 1000.0)


def list_items(deadline: Deadline, *pages: list[str] | Exception, seconds: float = 0.0) -> Iterator[str]:
    """Yield the items of a listing; a page that is an error is raised, and each takes so long."""
    left = list(pages)

    def ask(marker: int | None, timeouts: object) -> tuple[list[str], int | None]:
        deadline.sleep(seconds)
        page = left.pop(0)
        if isinstance(page, Exception):
            raise page
        return page, len(left) or None

    return (item for page, _ in follow(ask, TARGET, deadline) for item in page)


def test_a_listing_has_the_items_of_every_page_also_after_one_that_failed_or_is_empty() -> None:
    pages: tuple[list[str] | Exception, ...] = (
        ["a", "b"],
        Refusal(503, "ServerBusy"),
        [],
        BrokenAnswer(Broken.TIMED_OUT),
        ["c"],
    )
    assert list(list_items(Clock().deadline(60), *pages)) == ["a", "b", "c"]


def test_a_listing_of_which_a_page_is_refused_fails_and_is_not_cut_short() -> None:
    found = list_items(Clock().deadline(60), ["a"], Refusal(403, "AuthorizationFailure"), ["b"])
    assert next(found) == "a"
    with pytest.raises(AzguardError) as caught:
        next(found)
    assert caught.value.kind == "forbidden"


def test_each_page_of_a_listing_has_the_whole_time() -> None:
    busy = Refusal(503, "ServerBusy")
    assert list(list_items(Clock().deadline(9.0), ["a"], busy, ["b"], busy, ["c"], seconds=4.0)) == ["a", "b", "c"]


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = {"Authorization": "SharedKey acc:xyz"}
TOLD = "2026-11-21T12:00:00.1234567Z"
CODE = b"<Error><Message>No.\nRequestId:1\nTime:2026-11-21T12:00:00.1234567Z</Message></Error>"


def respond(minutes: int, status: int, sent: Mapping[str, str], body: bytes = b"") -> Response:
    """Return an answer whose Date is so many minutes ahead of the clock that signed the request."""
    request = SentRequest("GET", "", {"x-ms-date": format_datetime(NOW, usegmt=True), **sent})
    date = {"Date": format_datetime(NOW + timedelta(minutes=minutes), usegmt=True)}
    return Response(request, status, "", date, body)


@cases(
    ("minutes", "sent", "is_believed"),
    (0, KEY, True),
    (15, KEY, True),
    (-15, KEY, True),
    # The service accepted the key, so that the clock that signed is right to a quarter of an hour.
    (16, KEY, False),
    (-120, KEY, False),
    # Other credentials prove nothing.
    (120, {}, True),
    (120, {"Authorization": "Bearer xyz"}, True),
)
def test_a_date_holds_until_disproved(minutes: int, sent: dict[str, str], *, is_believed: bool) -> None:
    found = answers.Answer(QUEUE_LIST, respond(minutes, 200, sent)).date
    assert found == (NOW + timedelta(minutes=minutes) if is_believed else None)


@cases(
    ("body", "moment"),
    (CODE, datetime.fromisoformat(TOLD)),
    (b"", None),
    (b"\xff<html>Time: soon</html>", None),
    (b"<Error><Message>Time:2026-99-21T12:00:00Z</Message></Error>", None),
)
def test_a_refusal_tells_when_the_service_wrote_it(body: bytes, moment: datetime | None) -> None:
    error = ServiceRefusal(respond(120, 404, {}, body))
    assert find_time(translate(error, scripted(Kind.BLOB)[0])) == moment


@cases(
    ("answer", "moment"),
    (it_is(TOLD), datetime.fromisoformat(TOLD)),
    ((403, "AuthorizationFailure", it_is(TOLD)[2]), datetime.fromisoformat(TOLD)),
    ((404, "BlobNotFound", {MESSAGE: "", "Date": "Sat, 21 Nov 2026 12:00:00 GMT"}), None),
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
    ("Sat, 21 Nov 2026 12:00:00 GMT", NOW), ("Sat, 21 Nov 2026 12:00:00 -0000", NOW), (None, None), ("", None),
    ("soon", None), ("Sat, 99 Nov 2026 12:00:00 GMT", None), ("Sat, 21 Nov 99999999999 12:00:00 GMT", None),
)  # fmt: skip
def test_a_date_is_read_or_missing(text: str | None, moment: datetime | None) -> None:
    assert times.find_http_date(text) == moment
