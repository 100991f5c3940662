"""One message whose key has to be claimed."""

import json
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from azguard.errors import AzguardError, Changed, ConfigError, NotFound, Unavailable, UsageError
from azguard.processes.command_place import PLACE_KILLED, CommandEnd
from azguard.requests.deadline import Deadline
from azguard.worker.handling import MessageHandling
from azguard.worker.outcomes import HandledMessage, Outcome
from azguard.worker.settings import Claimed, DoneBefore, HeldByAnother, MessageFacts
from tests.support.cases import cases
from tests.support.worker_world import BEGAN, FakeInbox, FakePlace, settings, taken

STALE = Changed("the receipt is stale", reason="receipt_stale")
TAKEN_OVER = Changed("taken over", reason="claim_taken_over")


@dataclass
class FakeClaims:
    """Claims in memory."""

    found: Claimed | DoneBefore | HeldByAnother = field(default_factory=lambda: Claimed("m1"))
    raises: dict[str, Exception] = field(default_factory=dict)
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def claim(
        self, key: str, message: MessageFacts, seconds: float, deadline: Deadline
    ) -> Claimed | DoneBefore | HeldByAnother:
        self._note("claim", key)
        return self.found

    def extend(self, claimed: Claimed, seconds: float, deadline: Deadline) -> Claimed:
        self._note("extend")
        return claimed

    def finish(self, claimed: Claimed, deadline: Deadline) -> None:
        self._note("finish")

    def give_up(self, claimed: Claimed, reason: str, status: int | None, deadline: Deadline) -> None:
        self._note("give_up", reason, status)

    def poison(
        self, claimed: Claimed, reason: str, status: int | None, deadline: Deadline, copy_id: str | None = None
    ) -> None:
        self._note("poison", reason, copy_id)

    def _note(self, *asked: Any) -> None:
        self.asked.append(asked)
        if asked[0] in self.raises:
            raise self.raises[asked[0]]


def handle(
    claims: FakeClaims, inbox: FakeInbox, place: FakePlace, dequeue_count: int = 1, **changes: Any
) -> HandledMessage:
    return MessageHandling(
        taken(dequeue_count=dequeue_count),
        settings=settings(claims=claims, **changes),
        inbox=inbox,
        place=place,
        stop=threading.Event(),
        now=place.clock.now,
    ).handle()


def test_a_key_is_done_before_its_message_is_deleted() -> None:
    claims, inbox = FakeClaims(), FakeInbox()
    assert handle(claims, inbox, FakePlace()).outcome is Outcome.DONE
    assert (claims.asked, inbox.asked) == ([("claim", "m1"), ("finish",)], [("delete", "r0")])


def test_a_message_whose_key_cannot_be_noted_as_done_is_not_deleted() -> None:
    inbox = FakeInbox()
    settled = handle(FakeClaims(raises={"finish": Unavailable("down")}), inbox, FakePlace())
    assert (settled.outcome, inbox.asked) == (Outcome.UNSETTLED, [])


def test_a_key_that_was_done_is_deleted_and_nothing_runs() -> None:
    inbox, place = FakeInbox(), FakePlace()
    settled = handle(FakeClaims(DoneBefore("m1")), inbox, place, dequeue_count=9)
    assert (settled.outcome, inbox.asked, place.orders) == (Outcome.DUPLICATE, [("delete", "r0")], [])


@cases(
    ("strict_key", "outcome", "reason", "asked"),
    (False, Outcome.DUPLICATE_DIFFERS, "done_before", [("delete", "r0")]),
    (True, Outcome.POISONED, "duplicate_differs", [("poison",), ("delete", "r0")]),
)
def test_a_key_that_was_done_with_another_body_is_told(
    strict_key: bool,  # pytest passes it by name
    outcome: Outcome,
    reason: str,
    asked: list[Any],
) -> None:
    inbox, place = FakeInbox(), FakePlace()
    settled = handle(FakeClaims(DoneBefore("17", "m0")), inbox, place, strict_key=strict_key)
    assert (settled.outcome, settled.reason, place.orders) == (outcome, reason, [])
    assert (inbox.asked, settled.facts["key"]) == (asked, "17")
    assert "its key '17' was done with another body, by message m0" in str(settled.facts["why"])


@cases(("is_first", "outcome"), (True, Outcome.DONE), (False, Outcome.POISONED))
def test_a_message_that_was_not_claimed_for_long_runs_once_before_poison(is_first: bool, outcome: Outcome) -> None:
    claims = FakeClaims(Claimed("m1", is_first=is_first))
    assert handle(claims, FakeInbox(), FakePlace(), dequeue_count=9).outcome is outcome


def test_a_key_of_another_worker_is_tried_again_later_and_never_poisoned() -> None:
    inbox, place = FakeInbox(), FakePlace()
    held = HeldByAnother("m1", BEGAN + timedelta(minutes=1), "host (pid 7)")
    settled = handle(FakeClaims(held), inbox, place, dequeue_count=9)
    assert (settled.outcome, inbox.asked, place.orders) == (Outcome.HELD, [("hide", "r0", 3600)], [])


@cases(("dequeue_count", "seconds"), (1, 7), (2, 7), (3, 120))
def test_a_key_of_another_worker_is_soon_tried_when_its_claim_may_be_over(dequeue_count: int, seconds: int) -> None:
    inbox = FakeInbox()
    held = HeldByAnother("m1", BEGAN + timedelta(seconds=6.5), "host (pid 7)")
    handle(FakeClaims(held), inbox, FakePlace(), dequeue_count=dequeue_count)
    assert inbox.asked == [("hide", "r0", seconds)]


def test_a_key_that_cannot_be_claimed_runs_nothing() -> None:
    place = FakePlace()
    assert handle(FakeClaims(raises={"claim": Unavailable("down")}), FakeInbox(), place).outcome is Outcome.UNSETTLED
    assert place.orders == []


@cases(
    ("request_", "refusal"),
    ("claim", NotFound("the table is gone", reason="once_table_missing")),
    ("finish", NotFound("the table is gone", reason="once_table_missing")),
    ("claim", ConfigError("it is another table", reason="once_row_foreign")),
)
def test_claims_that_are_refused_for_good_stop_the_worker(request_: str, refusal: AzguardError) -> None:
    settled = handle(FakeClaims(raises={request_: refusal}), FakeInbox(), FakePlace())
    assert (settled.outcome, settled.error) == (Outcome.UNSETTLED, refusal)


def test_a_command_that_ran_too_long_makes_no_copy_when_the_receipt_is_stale() -> None:
    inbox = FakeInbox(raises={"hide": [STALE]})
    settled = handle(FakeClaims(), inbox, FakePlace(end_after=90.0), dequeue_count=9, max_dequeue=9, max_time=40.0)
    assert (settled.outcome, inbox.asked) == (Outcome.LOST, [("hide", "r0", 60)])


def test_a_body_without_a_key_is_poisoned() -> None:
    def choose(body: bytes, message_id: str) -> str:
        raise UsageError("there is no key")

    settled = handle(FakeClaims(), FakeInbox(), FakePlace(), choose_key=choose)
    assert (settled.outcome, settled.reason) == (Outcome.POISONED, "no_key")


def test_strict_stops_at_a_body_without_a_key() -> None:
    def choose(body: bytes, message_id: str) -> str:
        raise UsageError("there is no key")

    inbox = FakeInbox()
    assert handle(FakeClaims(), inbox, FakePlace(), choose_key=choose, strict=True).stops
    assert inbox.asked == [("hide", "r0", 30)]


def test_a_failure_lets_the_key_be_claimed_again() -> None:
    claims = FakeClaims()
    handle(claims, FakeInbox(), FakePlace(ends=CommandEnd(1)))
    assert claims.asked == [("claim", "m1"), ("give_up", "exit_status", 1)]


def test_a_poisoned_message_has_its_reason_and_its_copy_in_the_claim() -> None:
    claims = FakeClaims()
    handle(claims, FakeInbox(), FakePlace(ends=CommandEnd(65)))
    assert claims.asked == [("claim", "m1"), ("poison", "data_error", "copy")]


def test_a_slow_command_has_its_claim_extended_and_is_told_until_when() -> None:
    claims, place = FakeClaims(), FakePlace(end_after=40.0)
    handle(claims, FakeInbox(), place)
    assert ("extend",) in claims.asked
    assert (place.orders[0].ends, place.extended) == (60.0, [90.0])


def test_a_claim_that_was_taken_over_ends_the_command_and_is_left_alone() -> None:
    claims, place = FakeClaims(raises={"extend": TAKEN_OVER}), FakePlace(end_after=1000.0)
    settled = handle(claims, FakeInbox(), place)
    assert (settled.outcome, settled.reason, place.told_to_end) == (Outcome.LOST, "claim_taken_over", 1)
    assert claims.asked == [("claim", "m1"), ("extend",)]


def test_a_command_goes_on_under_its_claim_when_the_receipt_is_stale() -> None:
    claims, place = FakeClaims(), FakePlace(end_after=100.0)
    inbox = FakeInbox(raises={"hide": [STALE], "delete": [STALE]})
    settled = handle(claims, inbox, place)
    assert (settled.outcome, place.told_to_end, claims.asked[-1]) == (Outcome.LOST, 0, ("finish",))


def test_no_copy_goes_to_the_poison_queue_when_the_receipt_is_stale() -> None:
    inbox = FakeInbox(raises={"hide": [STALE]})
    settled = handle(FakeClaims(), inbox, FakePlace(end_after=40.0, ends=CommandEnd(65)))
    assert (settled.outcome, inbox.asked) == (Outcome.LOST, [("hide", "r0", 60)])


def test_a_command_that_the_guardian_ended_with_the_claim_is_lost() -> None:
    settled = handle(FakeClaims(), FakeInbox(), FakePlace(ends=CommandEnd(143, was_late=True)))
    assert (settled.outcome, settled.reason) == (Outcome.LOST, "claim_ended")


@cases("key", "a\0b", "\ud800", "plain")
def test_a_key_that_no_variable_can_hold_is_in_the_file_alone(key: str) -> None:
    place = FakePlace()
    handle(FakeClaims(Claimed(key)), FakeInbox(), place)
    (order,) = place.orders
    assert json.loads(order.files["AZGUARD_MESSAGE_FILE"])["key"] == key
    assert order.environ.get("AZGUARD_MESSAGE_KEY") == (key if key == "plain" else None)


@cases("dequeue_count", 1, 5)
def test_the_claim_of_a_command_that_is_still_being_ended_is_not_given_up(dequeue_count: int) -> None:
    claims, killed = FakeClaims(), CommandEnd(None, was_unguarded=True)
    settled = [
        handle(claims, FakeInbox(), place, dequeue_count)
        for place in (FakePlace(ends=killed), FakePlace(raises=AzguardError("killed", reason=PLACE_KILLED)))
    ]
    assert [each.outcome for each in settled] == [Outcome.FAILED, Outcome.RELEASED]
    assert claims.asked == [("claim", "m1")] * 2
