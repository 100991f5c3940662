"""How long a request is waited for: no longer than the whole may take, and a write long enough to learn its end."""

import pytest

from azguard.requests.calls import hold_back, read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.resources.pool import StoppableClock
from azguard.wire import client
from azguard.wire.client import Limits
from azguard.wire.failures import Refusal
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, Clock


def test_a_write_may_stay_unanswered_for_twenty_seconds_or_as_long_as_is_said() -> None:
    silence = [
        write_timeouts(Deadline(60, answer_seconds=seconds).restart(seconds=60).fresh()).answer for seconds in (0.3, 5)
    ]
    assert [write_timeouts(Deadline(60)).answer, *silence] == [20.0, 0.3, 5]


def test_a_short_deadline_still_waits_ten_seconds_for_a_write_that_was_sent() -> None:
    assert write_timeouts(Deadline(0.0)).answer == 10.0


def at(deadline: Deadline, elapsed: float) -> Deadline:
    """Return the deadline with its clock standing still so many seconds after its start."""
    deadline.clock = lambda: deadline.started + elapsed
    return deadline


@cases(("seconds", "answer", "settle"), (3, 3, 1), (0.5, 0.5, 1), (9, 9, 3), (60, 20, 5))
def test_a_timeout_that_was_asked_for_bounds_questions_too(seconds: float, answer: float, settle: float) -> None:
    deadline = at(Deadline.strict(seconds), 0)
    assert (write_timeouts(deadline).answer, deadline.settle_seconds) == (answer, settle)


@cases(("elapsed", "release"), (0, 3.0), (6, 2.0), (7.9, 0.5), (100, 0.5))
def test_a_timeout_that_was_asked_for_bounds_what_is_done_after_it(elapsed: float, release: float) -> None:
    deadlines = (Deadline.strict(6), Deadline.strict(6).restart(seconds=1), Deadline(6))
    found = [at(each, elapsed).afterwards(3.0).seconds for each in deadlines]
    assert found == [pytest.approx(release, abs=0.01), pytest.approx(release, abs=0.01), 3.0]


def test_a_piece_of_a_transfer_that_begins_late_has_its_own_bound() -> None:
    assert at(Deadline.strict(6), 100).fresh().afterwards(3.0).seconds == 3.0


def test_near_its_end_a_write_gets_no_more_than_twice_the_time_for_asking() -> None:
    assert write_timeouts(at(Deadline.strict(3), 2.9)).answer == 2.0


def test_a_caller_may_say_how_long_the_answer_to_a_write_is_waited_for() -> None:
    deadline = at(Deadline(3), 2.9)
    assert [write_timeouts(deadline, at_least=seconds).answer for seconds in (1.5, 0.01)] == [1.5, pytest.approx(0.1)]


@cases(
    ("remaining", "seconds"),
    (60, 4.0),
    (4.25, 4.0),
    (3.75, 3.75),
    (0.625, 0.625),
    (0.125, 0.5),
    (0, 0.5),
)
def test_a_connection_is_waited_for_half_a_second_to_four_seconds(remaining: float, seconds: float) -> None:
    deadline = Clock().deadline(remaining)
    found = [write_timeouts(deadline), *asked(deadline)]
    assert [each.connect for each in found] == [seconds] * 2


@cases(("remaining", "seconds"), (60, 20.0), (12, 12), (0.125, 0.5))
def test_a_read_is_waited_for_no_longer_than_its_deadline_lasts(remaining: float, seconds: float) -> None:
    deadline = Clock().deadline(remaining)
    assert [each.answer for each in asked(deadline)] == [seconds]


def test_a_read_that_is_made_again_gets_only_the_time_that_is_left() -> None:
    clock, left = Clock(), []

    def call(timeouts: Limits) -> None:
        left.append(timeouts.answer)
        clock.sleep(7.0)
        if len(left) < 2:
            raise Refusal(503, "ServerBusy")

    read(call, TARGET, clock.deadline(10.0))
    assert left == [10.0, pytest.approx(2.9)]


def asked(deadline: Deadline) -> list[Limits]:
    """Return the timeouts that a read is made with."""
    found: list[Limits] = []
    read(found.append, TARGET, deadline)
    return found


def test_a_pause_ends_soon_after_its_deadline_was_made_to_pass() -> None:
    clock = StoppableClock(lambda: 1000.0)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 5:
            clock.stop()

    deadline = Deadline(60.0, clock, sleep)
    for asked in (5.0, 30.0):
        deadline.pause(asked)
    assert slept == [2.0, 2.0, 1.0, 2.0, 2.0]


@cases(("asked_for", "waited"), (0.0, 0.0), (0.5, 0.5), (3.0, 3.0), (9.0, 9.0), (10.0, 0.0), (30.0, 0.0))
def test_a_service_is_left_alone_as_long_as_it_asks_unless_that_outlasts_the_deadline(
    asked_for: float, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "find_pause_seconds", lambda endpoint: asked_for)
    clock = Clock()
    hold_back(TARGET, clock.deadline(10.0))
    assert clock() - 1000.0 == waited
