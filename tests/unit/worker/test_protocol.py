"""The exit protocol, status by status."""

from azguard.worker.outcomes import Outcome
from azguard.worker.settings import MessageVerdict, judge, judge_failure
from tests.support.cases import cases
from tests.support.worker_world import settings

EXIT = "exit_status"


@cases(("status", "dequeue_count", "outcome", "reason"),
    (0, 1, Outcome.DONE, EXIT),
    (0, 9, Outcome.DONE, EXIT),
    (75, 1, Outcome.RETRIED, "asked_for_retry"),
    (75, 5, Outcome.RETRIED, "asked_for_retry"),
    (65, 1, Outcome.POISONED, "data_error"),
    (1, 1, Outcome.FAILED, EXIT),
    (1, 4, Outcome.FAILED, EXIT),
    (1, 5, Outcome.POISONED, EXIT),
    (127, 1, Outcome.FAILED, EXIT),
    (137, 6, Outcome.POISONED, EXIT)
)  # fmt: skip
def test_a_status_says_what_becomes_of_the_message(
    status: int, dequeue_count: int, outcome: Outcome, reason: str
) -> None:
    assert judge(status, dequeue_count, settings()) == MessageVerdict(outcome, reason)


@cases("status", 0, 65, 75)
def test_strict_goes_on_after_a_status_of_the_protocol(status: int) -> None:
    assert not judge(status, 1, settings(strict=True)).stops


def test_strict_stops_at_another_status_and_poisons_nothing() -> None:
    found = judge(1, 9, settings(strict=True))
    assert found == MessageVerdict(Outcome.FAILED, "status_outside_protocol", stops=True)


@cases(
    ("first", "dequeue_count", "seconds"),
    (30, 1, 30),
    (30, 2, 60),
    (30, 4, 240),
    (30, 9, 3600),
    (30, 10**9, 3600),
    (7200, 3, 7200),
    (0, 9, 0),
)
def test_each_retry_waits_twice_as_long_up_to_an_hour(first: int, dequeue_count: int, seconds: int) -> None:
    assert settings(retry_visibility=first).find_retry_seconds(dequeue_count) == seconds


def test_strict_poisons_no_command_that_ran_too_long() -> None:
    found = judge_failure("max_time", 99, settings(strict=True))
    assert found == MessageVerdict(Outcome.FAILED, "max_time")
