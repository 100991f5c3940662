"""What an answer, or none, says of the request it came from."""

import pytest
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError, ReadTimeoutError

from azguard.errors import AzguardError
from azguard.requests.calls import CallOutcome, describe, outcome_of, read, send_once
from tests.support.fake_resource import TARGET, Clock, Refusal

# By these the service, or what stands before it, says that nothing was done; every other status leaves a doubt.
SAY_NO = {400, 401, 403, 404, 405, 407, 409, 411, 412, 413, 414, 415, 416, 431}


def test_each_status_that_says_no_is_a_refusal_and_every_other_leaves_a_doubt() -> None:
    refused = {code for code in range(100, 600) if outcome_of(Refusal(code, "Code")) is CallOutcome.REFUSED}
    in_doubt = {code for code in range(100, 600) if outcome_of(Refusal(code, "Code")) is CallOutcome.IN_DOUBT}
    assert (refused, in_doubt) == (SAY_NO, set(range(100, 600)) - SAY_NO)


@pytest.mark.parametrize(
    "cause",
    [
        NewConnectionError(None, "refused"),  # type: ignore[arg-type]  # urllib3 only keeps it
        NameResolutionError("host", None, OSError()),  # type: ignore[arg-type]
        ConnectTimeoutError(),
    ],
    ids=lambda cause: type(cause).__name__,
)
def test_without_a_connection_nothing_was_sent_however_deep_the_cause_lies(cause: Exception) -> None:
    inner = ServiceRequestError("no", error=cause)
    chained = AzureError("outer")
    chained.__cause__ = inner
    given = Exception(ServiceRequestError("no", error=cause))
    assert [outcome_of(each) for each in (cause, inner, chained, given)] == [CallOutcome.NOT_SENT] * 4


def test_a_request_error_without_such_a_cause_leaves_a_doubt() -> None:
    errors = (ServiceRequestError("TLS broke"), ServiceResponseError("no answer", error=ReadTimeoutError(None, "", "")))  # type: ignore[arg-type]
    assert [outcome_of(each) for each in (*errors, AttributeError("leaked"))] == [CallOutcome.IN_DOUBT] * 3


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
        failing(ServiceResponseError("silence")),
        failing(NewConnectionError(None, "refused")),  # type: ignore[arg-type]
    ] == [
        "committed",
        "refused (ConditionNotMet)",
        "in doubt (HTTP 503)",
        "in doubt (no answer)",
        "not sent (no connection)",
    ]


def made_again(error: Exception) -> bool:
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
