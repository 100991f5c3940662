"""What an answer, or none, says of the request it came from."""

import ssl
from itertools import pairwise

import pytest
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError

from azguard.errors import AzguardError, LoginFailed, Unavailable
from azguard.requests.calls import CallOutcome, describe, outcome_of, pages, read, send_once
from azguard.wire.failures import Broken, BrokenAnswer, NotConnected, NotOfTheService, Stage, Unreadable
from tests.support.fake_resource import TARGET, Clock, Refusal

# By these the service, or what stands before it, says that nothing was done; every other status leaves a doubt.
SAY_NO = {304, 400, 401, 403, 404, 405, 407, 409, 411, 412, 413, 414, 415, 416, 431}


def test_each_status_that_says_no_is_a_refusal_and_every_other_leaves_a_doubt() -> None:
    refused = {code for code in range(100, 600) if outcome_of(Refusal(code, "Code")) is CallOutcome.REFUSED}
    in_doubt = {code for code in range(100, 600) if outcome_of(Refusal(code, "Code")) is CallOutcome.IN_DOUBT}
    assert (refused, in_doubt) == (SAY_NO, set(range(100, 600)) - SAY_NO)


def test_what_the_emulator_does_not_know_it_does_not_do() -> None:
    assert outcome_of(Refusal(501, "APINotImplemented")) is CallOutcome.REFUSED


def test_without_a_connection_nothing_was_sent_however_deep_the_cause_lies() -> None:
    cause = NotConnected(Stage.HOST, ConnectionRefusedError("Connection refused"))
    inner = ServiceRequestError("no", error=cause)
    chained = AzureError("outer")
    chained.__cause__ = inner
    errors = (cause, inner, chained, LoginFailed("no token"))
    assert [outcome_of(each) for each in errors] == [CallOutcome.NOT_SENT] * 4


def test_an_error_without_such_a_cause_leaves_a_doubt() -> None:
    silence = BrokenAnswer(Broken.TIMED_OUT)
    errors = (ServiceRequestError("TLS broke"), silence, ServiceResponseError("no answer", error=silence))
    leaked = (AttributeError("leaked"), TimeoutError())  # with words, and without any
    assert [outcome_of(each) for each in (*errors, *leaked)] == [CallOutcome.IN_DOUBT] * 5


def test_an_error_that_is_its_own_cause_leaves_a_doubt() -> None:
    one, other = AzureError("one"), AzureError("other")
    one.__cause__, other.__cause__ = other, one
    assert outcome_of(one) is CallOutcome.IN_DOUBT


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


def not_of_the_service(status: int) -> AzureError:
    foreign = NotOfTheService(status, {"Content-Type": "text/html"})
    return ServiceResponseError("no answer", error=foreign)


def test_a_read_that_something_else_answered_is_made_again_only_if_that_may_pass() -> None:
    again = {code for code in range(200, 600) if made_again(not_of_the_service(code))}
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


class Listing:
    """Pages as the SDK yields them; those that are errors are raised, and the next look asks again."""

    def __init__(self, *pages: list[str] | Exception) -> None:
        self._pages = list(pages)

    @property
    def continuation_token(self) -> str | None:
        """Return where the next page begins; None after the last one."""
        return str(len(self._pages)) if self._pages else None

    def by_page(self) -> "Listing":
        return self

    def __iter__(self) -> "Listing":
        return self

    def __next__(self) -> list[str]:
        if not self._pages:
            raise StopIteration
        page = self._pages.pop(0)
        if isinstance(page, Exception):
            raise page
        return page


def test_a_listing_has_the_items_of_every_page_also_after_one_that_failed_or_is_empty() -> None:
    listing = Listing(["a", "b"], Refusal(503, "ServerBusy"), [], BrokenAnswer(Broken.TIMED_OUT), ["c"])
    assert list(pages(listing, TARGET, Clock().deadline(60))) == ["a", "b", "c"]


def test_a_listing_of_which_a_page_is_refused_fails_and_is_not_cut_short() -> None:
    walk = pages(Listing(["a"], Refusal(403, "AuthorizationFailure"), ["b"]), TARGET, Clock().deadline(60))
    assert next(walk) == "a"
    with pytest.raises(AzguardError) as caught:
        next(walk)
    assert caught.value.kind == "forbidden"


def test_each_page_of_a_listing_has_the_whole_time() -> None:
    clock = Clock()

    class Slow(Listing):
        def __next__(self) -> list[str]:
            clock.sleep(4.0)
            return super().__next__()

    busy = Refusal(503, "ServerBusy")
    listing = Slow(["a"], busy, ["b"], busy, ["c"])
    assert list(pages(listing, TARGET, clock.deadline(9.0))) == ["a", "b", "c"]
