"""Requests and pauses, told for one who listens."""

from collections.abc import Callable

import pytest

from azguard.requests.deadline import Deadline
from azguard.wire import listeners
from azguard.wire.connections import Reply
from tests.support.answering_client import reply
from tests.support.cases import cases


def answer(status: int, **headers: str) -> Reply:
    return reply(status, {name.replace("_", "-"): each for name, each in headers.items()})


def clock(*moments: float) -> Callable[[], float]:
    return iter(moments).__next__


@cases(
    ("response", "moments", "told"),
    (answer(201), (5.0, 5.0124), "PUT http://a/b: 201 in 12 ms"),
    (answer(201), (5.0, 7.25), "PUT http://a/b: 201 in 2.2 s"),
    (answer(409, x_ms_error_code="BlobExists"), (0.0, 0.001), "PUT http://a/b: 409 BlobExists in 1 ms"),
)
def test_a_request_is_told_with_its_answer_and_time(response: Reply, moments: tuple[float, ...], told: str) -> None:
    lines: list[str] = []
    with listeners.listen_to_requests(lines.append):
        assert listeners.send_and_tell(lambda: response, "PUT", "http://a/b", clock(*moments)) is response
    assert lines == [told]


def test_a_request_without_an_answer_is_told_and_its_error_passed_on() -> None:
    def fail() -> Reply:
        raise TimeoutError

    lines: list[str] = []
    with listeners.listen_to_requests(lines.append), pytest.raises(TimeoutError):
        listeners.send_and_tell(fail, "GET", "http://a/b", clock(0.0, 1.5))
    assert lines == ["GET http://a/b: no answer after 1.5 s (TimeoutError)"]


def test_a_pause_is_told_as_long_as_it_is() -> None:
    lines: list[str] = []
    deadline = Deadline(seconds=2.0, clock=lambda: 0.0, sleep=lambda seconds: None)
    with listeners.listen_to_requests(lines.append):
        deadline.pause(0.5)
        deadline.pause(9.0)
        deadline.pause(0.0)
    assert lines == ["waiting 0.50 s before the next request", "waiting 2.00 s before the next request"]


def test_nothing_is_told_once_the_listener_has_gone() -> None:
    lines: list[str] = []
    with listeners.listen_to_requests(lines.append):
        pass
    listeners.tell_listeners("late")
    assert lines == []
