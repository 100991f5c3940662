"""A worker with a queue in memory, on places where commands only seem to run."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azguard.errors import AzguardError, Changed, CommandNotFound, Forbidden, OutcomeUnknown, Unavailable, UsageError
from azguard.processes.command_place import CommandEnd
from azguard.worker.once import OnceTable
from azguard.worker.outcomes import WorkEnd
from azguard.worker.run import Polling, Worker
from tests.support.cases import cases
from tests.support.worker_world import FakeInbox, FakePlace, lines, settings, taken, target

DOWN = Unavailable("down")


def work(inbox: FakeInbox, *places: FakePlace, **changes: Any) -> WorkEnd:
    """Run a worker to its end; it asks an empty queue again at once."""
    plan = settings(**{"drain": True, "poll_interval": 0.1, **changes})
    return Worker(plan, inbox, places or [FakePlace()], uniform=lambda least, most: 0.0).run()


def full(count: int, **facts: Any) -> FakeInbox:
    return FakeInbox([taken(number, **facts) for number in range(count)])


def test_a_queue_is_drained() -> None:
    ended = work(full(5))
    assert (ended.status, ended.summary.done, ended.summary.stopped_by) == (0, 5, "drained")


def test_no_more_messages_are_asked_for_than_can_be_handled_at_once() -> None:
    inbox = full(9)
    work(inbox, FakePlace(), FakePlace(), FakePlace())
    assert max(number for what, number, *_ in inbox.asked if what == "receive") == 3


def test_it_ends_after_so_many_messages() -> None:
    inbox = full(9)
    ended = work(inbox, FakePlace(), FakePlace(), drain=False, max_messages=3)
    assert (ended.summary.received, ended.summary.stopped_by, len(inbox.messages)) == (3, "max_messages", 6)


def test_something_poisoned_is_exit_20() -> None:
    assert work(full(1), FakePlace(ends=CommandEnd(65))).status == 20


@cases(("ends", "number", "raises", "status"),
    ((1,), 3, {}, 20),
    ((75,), 3, {}, 0),
    ((1, 0), 1, {}, 0),
    ((0, 1), 1, {}, 20),
    ((1, 65), 1, {}, 20),
    ((0,), 1, {"delete": [Changed("stale")]}, 20),
    ((0,), 1, {"delete": [OutcomeUnknown("lost")]}, 20)
)  # fmt: skip
def test_a_message_that_is_not_handled_in_the_end_is_exit_20_and_named(
    ends: tuple[int, ...], number: int, raises: dict[str, Any], status: int
) -> None:
    place, told = FakePlace(), list[str]()
    inbox = FakeInbox([taken(each) for each in range(number) for _ in ends], raises=raises)

    def change() -> None:
        place.ends = CommandEnd(ends[(len(place.orders) - 1) % len(ends)])

    place.on_wait = change
    ended = work(inbox, place, warn=told.append)
    assert (ended.status, bool(told)) == (status, 1 in ends or status == 20)


def test_failures_in_a_row_stop_it_with_exit_75() -> None:
    ended = work(full(9), FakePlace(ends=CommandEnd(75)), stop_after=3)
    assert (ended.status, ended.summary.retried, ended.summary.stopped_by) == (75, 3, "stop_after")


def test_a_success_ends_a_row_of_failures() -> None:
    place = FakePlace(ends=CommandEnd(1))

    def change() -> None:
        place.ends = CommandEnd(len(place.orders) % 2)

    place.on_wait = change
    assert work(full(8), place, stop_after=2).summary.stopped_by == "drained"


def test_strict_stops_it_at_a_status_outside_the_protocol() -> None:
    ended = work(full(9), FakePlace(ends=CommandEnd(1)), strict=True)
    assert (ended.status, ended.summary.received, ended.summary.stopped_by) == (75, 1, "strict")
    assert ended.error is not None
    assert ended.error.message == "exit status 1 is not of the exit protocol; the worker stopped"


@cases(("statuses", "changes", "status", "received"),
    ([65], {}, 75, 3),
    ([65, 1, 65, 75], {}, 75, 5),
    ([65, 65, 0], {}, 20, 9),
    ([65], {"max_poison": 2}, 75, 2),
    ([65], {"max_poison": None}, 20, 9),
    ([99], {"poison_status": 99}, 75, 3),
    ([65], {"poison_status": 99}, 20, 9),
    ([1], {"max_dequeue": 1}, 20, 9)
)  # fmt: skip
def test_messages_poisoned_at_once_with_none_done_in_between_stop_it(
    statuses: list[int], changes: dict[str, Any], status: int, received: int
) -> None:
    place = FakePlace()

    def change() -> None:
        place.ends = CommandEnd(statuses[(len(place.orders) - 1) % len(statuses)])

    place.on_wait = change
    ended = work(full(9), place, **changes)
    assert (ended.status, ended.summary.received) == (status, received)


def test_what_it_poisoned_is_said_with_the_way_back() -> None:
    ended = work(full(9), FakePlace(ends=CommandEnd(65)))
    assert ended.error is not None
    said = "the command refuses everything: 3 messages are in jobs-poison, and none was done in between"
    assert ended.error.message == f"{said}; the worker stopped"
    assert (ended.error.values, ended.summary.stopped_by) == ({"queue": "jobs", "poison": "jobs-poison"}, "max_poison")


def test_a_key_that_no_message_has_stops_it_too() -> None:
    def choose(body: bytes, message_id: str) -> str:
        raise UsageError("no key")

    ended = work(full(9), claims=OnceTable(target(), "me"), choose_key=choose)
    assert (ended.status, ended.summary.poisoned) == (75, 3)


def test_a_command_that_is_not_there_ends_it_with_its_error() -> None:
    error = CommandNotFound("gone")
    ended = work(full(9), FakePlace(raises=error))
    assert (ended.status, ended.error, ended.summary.released) == (127, error, 1)


def test_a_refusal_ends_it() -> None:
    error = Forbidden("no")
    ended = work(FakeInbox(raises={"receive": [error]}))
    assert (ended.status, ended.error, ended.summary.stopped_by) == (43, error, "error")


def test_a_service_that_never_answered_ends_it() -> None:
    assert work(FakeInbox(raises={"receive": [DOWN]}), drain=False).error is DOWN


def test_a_service_that_is_down_for_a_while_is_told_once_and_asked_again() -> None:
    told: list[str] = []
    inbox = full(2)
    inbox.raises = {"receive": [None, OutcomeUnknown("lost", detail=("a login page answered",)), DOWN]}
    ended = work(inbox, warn=told.append)
    assert (ended.summary.done, ended.summary.receives_in_doubt, told) == (
        2,
        1,
        ["lost; trying again\n  a login page answered"],
    )


def _fail() -> None:
    raise ZeroDivisionError


def test_an_unforeseen_failure_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        work(full(1), FakePlace(on_wait=_fail))


def _send(number: int, times: int) -> Callable[[], None]:
    """Return what sends this process a signal so often, when it is first called."""
    left = [number] * times

    def send() -> None:
        while left:
            os.kill(os.getpid(), left.pop())

    return send


def test_a_signal_lets_what_runs_finish_and_takes_no_more() -> None:
    inbox = full(9)
    place = FakePlace(end_after=5.0, on_wait=_send(signal.SIGTERM, 1))
    ended = work(inbox, place, drain=False)
    assert (ended.status, ended.summary.done, ended.summary.stopped_by) == (0, 1, "signal")


def test_a_signal_at_the_very_end_harms_nothing() -> None:
    worker = Worker(
        settings(drain=True),
        FakeInbox(),
        [FakePlace()],
        show=lambda counts: os.kill(os.getpid(), signal.SIGTERM),
    )
    assert worker.run().status == 128 + signal.SIGTERM


def test_the_handling_of_signals_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    work(full(1))
    assert signal.getsignal(signal.SIGTERM) == before


def test_when_no_place_is_left_it_ends() -> None:
    place = FakePlace(ends=CommandEnd(None, was_unguarded=True))

    def go() -> None:
        place.is_gone = True

    place.on_wait = go
    ended = work(full(9), place)
    assert (ended.status, ended.summary.failed) == (AzguardError.exit_code, 1)


def test_events_tell_of_each_message_what_became_of_it(tmp_path: Path) -> None:
    work(full(1), FakePlace(ends=CommandEnd(65)), events=tmp_path / "log")
    first, last = (json.loads(line) for line in lines(tmp_path / "log"))
    assert (first["event"], first["id"], first["dequeue_count"]) == ("received", "m0", 1)
    told = {name: last[name] for name in ("event", "reason", "status", "poison_queue", "poison_id", "deleted")}
    assert told == {
        "event": "poisoned",
        "reason": "data_error",
        "status": 65,
        "poison_queue": "jobs-poison",
        "poison_id": "copy",
        "deleted": True,
    }


def test_lines_that_could_not_be_written_are_counted_and_the_work_goes_on() -> None:
    ended = work(full(2), events=Path("/dev/full"))
    assert (ended.summary.done, ended.summary.events_lost) == (2, 4)


def test_an_empty_queue_is_asked_ever_more_rarely_until_a_message_comes() -> None:
    clock = [0.0]
    polling = Polling(0.5, lambda: clock[0], lambda least, most: most)
    pauses = []
    for number in (0, 0, 0, 0, 1, 0):
        polling.note_answer(number)
        pauses.append(polling.seconds_left)
    assert pauses == [0.1, 0.2, 0.4, 0.5, 0.0, 0.1]


@cases(("bears_all", "goes_on"), (True, True), (False, False))
def test_a_drain_bears_a_service_down_for_a_minute_and_a_worker_for_ever(bears_all: bool, goes_on: bool) -> None:
    clock = [0.0]
    polling = Polling(1.0, lambda: clock[0], lambda least, most: most)
    polling.note_answer(1)
    first = polling.note_failure(DOWN, bears_all=bears_all)
    clock[0] = 61.0
    assert (first, polling.note_failure(DOWN, bears_all=bears_all)) == (True, goes_on)


def test_a_service_that_never_answered_is_borne_for_as_long_as_is_said() -> None:
    clock = [0.0]
    polling = Polling(1.0, lambda: clock[0], lambda least, most: most, patience=10.0)
    found = []
    for clock[0] in (0.0, 9.0, 10.0):
        found.append(polling.note_failure(DOWN, bears_all=True))
    assert found == [True, True, False]


def test_a_worker_asks_again_only_when_the_service_says_and_ends_where_that_is_too_late() -> None:
    polling = Polling(1.0, lambda: 0.0, lambda least, most: most, patience=10.0)
    found = [(polling.note_failure(DOWN, bears_all=True, asked=asked), polling.seconds_left) for asked in (9.0, 10.0)]
    assert found == [(True, 9.0), (False, 10.0)]
