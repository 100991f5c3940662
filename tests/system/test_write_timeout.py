import pytest

from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from tests.support.cli_world import CliWorld

SILENT = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/a"


@pytest.mark.parametrize("value", ["", "soon", "0", "-1s"])
def test_a_bad_write_timeout_is_a_configuration_error_that_names_it(offline: CliWorld, value: str) -> None:
    env = {"AZURE_STORAGE_CONNECTION_STRING": SILENT, "AZGUARD_WRITE_TIMEOUT": value}
    ran = offline.call("blob", "put", "site/a", "-o", "json", env=env)
    assert (ran.code, ran.error["kind"], "AZGUARD_WRITE_TIMEOUT" in ran.error["message"]) == (78, "config", True)


def test_a_write_may_stay_unanswered_for_twenty_seconds_or_as_long_as_is_said() -> None:
    silence = [
        write_timeouts(Deadline(60, answer_seconds=seconds).restarted(seconds=60).fresh())["read_timeout"]
        for seconds in (0.3, 5)
    ]
    assert [write_timeouts(Deadline(60))["read_timeout"], *silence] == [20.0, 0.3, 5]


def test_a_short_deadline_still_waits_ten_seconds_for_a_write_that_was_sent() -> None:
    assert write_timeouts(Deadline(0.0))["read_timeout"] == 10.0


def at(deadline: Deadline, elapsed: float) -> Deadline:
    """Return the deadline with its clock standing still so many seconds after its start."""
    deadline.clock = lambda: deadline.started + elapsed
    return deadline


@pytest.mark.parametrize(("seconds", "answer", "settle"), [(3, 3, 1), (0.5, 0.5, 1), (9, 9, 3), (60, 20, 5)])
def test_a_timeout_that_was_asked_for_bounds_answers_and_questions_too(
    seconds: float, answer: float, settle: float
) -> None:
    deadline = at(Deadline.strict(seconds), 0)
    assert (write_timeouts(deadline)["read_timeout"], deadline.settle_seconds) == (answer, settle)


def test_near_its_end_a_write_gets_no_more_than_twice_the_time_for_asking() -> None:
    assert write_timeouts(at(Deadline.strict(3), 2.9))["read_timeout"] == 2.0
