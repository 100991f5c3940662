"""One message on a place that only seems to run its command, with a clock that stands unless someone waits."""

import threading
from typing import Any

from azguard.errors import AzguardError, Changed, CommandNotFound, Forbidden, LockLost, OutcomeUnknown, Unavailable
from azguard.processes.command_place import GUARDIAN_KILLED, PLACE_KILLED, CommandEnd
from azguard.worker.handling import MessageHandling
from azguard.worker.outcomes import HandledMessage, Outcome
from tests.support.cases import cases
from tests.support.worker_world import FakeInbox, FakePlace, settings, taken

STALE = Changed("the receipt is stale", reason="receipt_stale")
DOUBT = OutcomeUnknown("the answer was lost")


def handle(inbox: FakeInbox, place: FakePlace, dequeue_count: int = 1, **changes: Any) -> HandledMessage:
    stop = changes.pop("stop", threading.Event())
    handling = MessageHandling(
        taken(dequeue_count=dequeue_count),
        settings=settings(**changes),
        inbox=inbox,
        place=place,
        stop=stop,
        now=place.clock.now,
    )
    return handling.handle()


def test_a_success_deletes_the_message() -> None:
    inbox = FakeInbox()
    assert handle(inbox, FakePlace()) == HandledMessage(Outcome.DONE, "exit_status", 0)
    assert inbox.asked == [("delete", "r0")]


def test_a_failure_hides_the_message_for_longer_with_each_receive() -> None:
    inbox = FakeInbox()
    settled = handle(inbox, FakePlace(ends=CommandEnd(1)), dequeue_count=3)
    assert settled == HandledMessage(Outcome.FAILED, "exit_status", 1, facts={"retry_seconds": 120})
    assert inbox.asked == [("hide", "r0", 120)]


def test_a_data_error_is_sent_to_the_poison_queue_before_it_is_deleted() -> None:
    inbox = FakeInbox()
    assert handle(inbox, FakePlace(ends=CommandEnd(65))).outcome is Outcome.POISONED
    assert inbox.asked == [("poison",), ("delete", "r0")]


def test_a_message_received_too_often_is_poisoned_without_running() -> None:
    inbox, place = FakeInbox(), FakePlace()
    assert handle(inbox, place, dequeue_count=6).reason == "received_too_often"
    assert (inbox.asked, place.orders) == ([("poison",), ("delete", "r0")], [])


def test_a_message_that_cannot_be_sent_to_the_poison_queue_is_not_deleted() -> None:
    inbox = FakeInbox(raises={"poison": [DOUBT]})
    assert handle(inbox, FakePlace(ends=CommandEnd(65))).outcome is Outcome.UNSETTLED
    assert inbox.asked == [("poison",), ("hide", "r0", 30)]


def test_a_poisoned_message_that_cannot_be_deleted_is_still_counted_as_poisoned() -> None:
    settled = handle(FakeInbox(raises={"delete": [STALE]}), FakePlace(ends=CommandEnd(65)))
    assert (settled.outcome, settled.facts["deleted"]) == (Outcome.POISONED, False)


def test_a_slow_command_keeps_its_message_hidden_with_the_latest_receipt() -> None:
    inbox = FakeInbox()
    handle(inbox, FakePlace(end_after=70.0))
    assert inbox.asked == [("hide", "r0", 60), ("hide", "r1", 60), ("delete", "r2")]


def test_a_message_whose_receipt_is_refused_is_lost_and_its_command_ended() -> None:
    inbox, place = FakeInbox(raises={"hide": [STALE]}), FakePlace(end_after=1000.0)
    assert handle(inbox, place) == HandledMessage(Outcome.LOST, "receipt_stale", 143)
    assert (place.told_to_end, inbox.asked) == (1, [("hide", "r0", 60)])


def test_an_update_in_doubt_is_tried_again_and_loses_nothing_by_itself() -> None:
    inbox, place = FakeInbox(raises={"hide": [DOUBT]}), FakePlace(end_after=40.0)
    assert handle(inbox, place).outcome is Outcome.DONE
    assert inbox.asked == [("hide", "r0", 60), ("hide", "r0", 60), ("delete", "r1")]


def test_after_an_update_in_doubt_it_is_not_known_how_long_the_message_is_hidden() -> None:
    inbox, place = FakeInbox(raises={"hide": [DOUBT] * 500}), FakePlace(end_after=40.0)
    handle(inbox, place)
    assert inbox.last_hidden_until is None


def test_a_message_is_lost_when_the_update_after_a_doubt_is_refused() -> None:
    inbox, place = FakeInbox(raises={"hide": [DOUBT, STALE]}), FakePlace(end_after=1000.0)
    assert handle(inbox, place).outcome is Outcome.LOST


def test_a_command_goes_on_while_the_service_cannot_be_reached() -> None:
    inbox = FakeInbox(raises={"hide": [Unavailable("down")] * 500})
    place = FakePlace(end_after=300.0)
    assert handle(inbox, place).outcome is Outcome.DONE
    assert (place.told_to_end, inbox.asked[-1]) == (0, ("delete", "r0"))


def test_a_message_that_cannot_be_hidden_for_longer_is_told_once() -> None:
    told: list[str] = []
    handle(FakeInbox(raises={"hide": [Unavailable("down")] * 500}), FakePlace(end_after=300.0), warn=told.append)
    assert told == ["message m1 is not hidden for longer: down; trying again"]


def test_an_expired_receipt_is_still_tried() -> None:
    inbox = FakeInbox(raises={"hide": [Unavailable("down")] * 500, "delete": [STALE]})
    assert handle(inbox, FakePlace(end_after=300.0)) == HandledMessage(Outcome.LOST, "receipt_stale", 0)


def test_a_success_that_cannot_be_deleted_is_not_counted_as_done() -> None:
    inbox = FakeInbox(raises={"delete": [Unavailable("down")]})
    assert handle(inbox, FakePlace()).outcome is Outcome.UNSETTLED


@cases(("dequeue_count", "outcome"), (1, Outcome.FAILED), (5, Outcome.POISONED))
def test_a_command_that_runs_too_long_has_failed(dequeue_count: int, outcome: Outcome) -> None:
    place = FakePlace(end_after=1000.0)
    settled = handle(FakeInbox(), place, dequeue_count, max_time=5.0)
    assert (settled.outcome, settled.reason, place.told_to_end) == (outcome, "max_time", 1)


def test_a_command_whose_guardian_was_killed_has_failed_whatever_its_status() -> None:
    settled = handle(FakeInbox(), FakePlace(ends=CommandEnd(0, was_unguarded=True)))
    assert (settled.outcome, settled.reason) == (Outcome.FAILED, "guardian_killed")


def test_a_worker_that_is_told_to_stop_gives_the_message_back_at_once() -> None:
    inbox, stop = FakeInbox(), threading.Event()
    place = FakePlace(end_after=1000.0, on_wait=stop.set)
    assert handle(inbox, place, stop=stop) == HandledMessage(Outcome.RELEASED, "worker_stopped")
    assert (inbox.asked, place.told_to_end) == ([("hide", "r0", 0)], 1)


def test_nothing_is_started_once_the_worker_was_told_to_stop() -> None:
    inbox, stop, place = FakeInbox(), threading.Event(), FakePlace()
    stop.set()
    handle(inbox, place, stop=stop)
    assert (inbox.asked, place.orders) == ([("hide", "r0", 0)], [])


def test_a_command_that_is_not_there_stops_the_worker_and_gives_the_message_back() -> None:
    inbox, error = FakeInbox(), CommandNotFound("handle: not found")
    settled = handle(inbox, FakePlace(raises=error))
    assert settled == HandledMessage(Outcome.RELEASED, "command_not_started", stops=True, error=error)
    assert inbox.asked == [("hide", "r0", 0)]


@cases("reason", PLACE_KILLED, GUARDIAN_KILLED)
def test_a_place_that_was_killed_does_not_stop_the_others(reason: str) -> None:
    settled = handle(FakeInbox(), FakePlace(raises=AzguardError("killed", reason=reason)))
    assert settled == HandledMessage(Outcome.RELEASED, reason)


def test_a_claim_that_ended_before_the_command_began_runs_nothing() -> None:
    assert handle(FakeInbox(), FakePlace(raises=LockLost("late"))) == HandledMessage(Outcome.LOST, "claim_ended")


def test_the_command_gets_the_body_and_what_is_known_of_the_message() -> None:
    place = FakePlace()
    handle(FakeInbox(), place)
    (order,) = place.orders
    assert (order.stdin, order.environ) == (
        b"work",
        {
            "AZGUARD_QUEUE": "jobs",
            "AZGUARD_MESSAGE_ID": "m1",
            "AZGUARD_MESSAGE_DEQUEUE_COUNT": "1",
            "AZGUARD_MESSAGE_INSERTION_TIME": "2026-01-01T00:00:00Z",
            "AZGUARD_MESSAGE_EXPIRATION_TIME": "2026-01-08T00:00:00Z",
            "AZGUARD_SCOPE": "jobs/m1/1",
        },
    )


def test_the_command_is_not_told_the_receipt() -> None:
    place = FakePlace()
    handle(FakeInbox(), place)
    assert "r0" not in place.orders[0].files["AZGUARD_MESSAGE_FILE"]


def test_no_copy_goes_to_the_poison_queue_when_the_time_of_the_message_is_over_and_another_has_it() -> None:
    place, inbox = FakePlace(ends=CommandEnd(65)), FakeInbox(raises={"hide": [STALE]})
    place.on_wait = lambda: setattr(place.clock, "seconds", 100.0)  # as if azguard was stopped
    assert handle(inbox, place) == HandledMessage(Outcome.LOST, "receipt_stale", 65)
    assert inbox.asked == [("hide", "r0", 60)]


@cases(("request_", "status"), ("delete", 0), ("poison", 65))
def test_a_refusal_that_no_further_try_mends_stops_the_worker(request_: str, status: int) -> None:
    refusal = Forbidden("the token has expired")
    settled = handle(FakeInbox(raises={request_: [refusal]}), FakePlace(ends=CommandEnd(status)))
    assert (settled.outcome, settled.error) == (Outcome.UNSETTLED, refusal)


def test_strict_runs_a_message_however_often_it_was_received() -> None:
    inbox, place = FakeInbox(), FakePlace()
    settled = handle(inbox, place, dequeue_count=99, strict=True)
    assert (settled.outcome, len(place.orders)) == (Outcome.DONE, 1)
