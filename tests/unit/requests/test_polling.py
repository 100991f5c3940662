"""Looking again and again: with growing pauses, until something is found or the time is up."""

from azguard.requests.deadline import Deadline, poll
from tests.support.fake_resource import Clock


def poll_until(clock: Clock, seconds: float, found_at: float, longest: float = 5.0) -> tuple[float | None, list[float]]:
    """Poll with the longest pauses for what can be found from a time on; return what was found and when was looked."""
    looks: list[float] = []

    def look(_: Deadline) -> float | None:
        looks.append(round(clock.now - 1000, 2))
        return clock.now - 1000 if clock.now - 1000 >= found_at else None

    return poll(look, clock.deadline(seconds), max, longest_pause_seconds=longest), looks


def test_what_is_there_is_found_at_once() -> None:
    assert poll_until(Clock(), 60, 0) == (0.0, [0.0])


def test_the_pauses_grow_to_the_longest() -> None:
    _, looks = poll_until(Clock(), 20, 1000, longest=2.0)
    assert looks == [0.0, 1.0, 2.3, 3.99, 5.99, 7.99, 9.99, 11.99, 13.99, 15.99, 17.99, 19.99, 20.0]


def test_a_longest_pause_that_is_the_first_one_keeps_them_equal() -> None:
    assert poll_until(Clock(), 60, 3, longest=1.0) == (3.0, [0.0, 1.0, 2.0, 3.0])


def test_the_last_look_is_at_the_end_of_the_time() -> None:
    assert poll_until(Clock(), 2.5, 1000) == (None, [0.0, 1.0, 2.3, 2.5])


def test_without_time_there_is_one_look() -> None:
    assert poll_until(Clock(), 0, 1000) == (None, [0.0])


def test_the_pauses_are_random_from_a_quarter_on() -> None:
    clock, asked = Clock(), list[tuple[float, float]]()

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return low

    poll(lambda _: True if clock.now > 1000 else None, clock.deadline(), uniform)
    assert asked == [(0.25, 1.0)]


def test_a_look_has_all_the_time_that_is_left() -> None:
    clock, left = Clock(), list[float]()

    def look(deadline: Deadline) -> None:
        left.append(deadline.remaining)

    poll(look, clock.deadline(20), max)
    # At the end it has as long as asking for an outcome has.
    assert (left[:2], left[-1]) == ([20.0, 19.0], 5.0)


def test_a_clock_that_jumps_ends_the_wait_with_a_last_look() -> None:
    clock, looks = Clock(), list[float]()

    def look(_: Deadline) -> None:
        looks.append(clock.now)
        clock.now += 100_000

    assert (poll(look, clock.deadline(60), max), len(looks)) == (None, 1)
