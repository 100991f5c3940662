"""The end of the time, the attempts or the patience while a write is in doubt."""

import pytest

from azguard.errors import Changed
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.updates.resource import CurrentVersion
from azguard.wire import client
from azguard.wire.failures import Refusal
from tests.support.cases import cases
from tests.support.fake_resource import Fault, Store
from tests.support.update_case import OTHER, Case, others_update, stored


@cases("stamps", True, False)
def test_giving_up_in_doubt_is_said_only_after_a_fence(stamps: bool) -> None:
    store = stored()
    case = Case(store, (Fault.LATE,))
    assert (case.outcome(max_attempts=1, stamps=stamps), case.truth()) == ("unavailable", (b"1", 0))
    assert (case.resource.requests, case.kept) == (["read", "put", "read", "read", "fence"], [("unavailable", b"2")])


def test_giving_up_finds_a_write_that_landed_after_all() -> None:
    store = stored()
    case = Case(store, (Fault.LATE,), {4: store.deliver})
    assert (case.outcome(max_attempts=1), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_fence_in_doubt_is_asked_after_too() -> None:
    store = stored()
    case = Case(store, (Fault.LATE, Fault.LOST))
    assert (case.outcome(max_attempts=1), case.truth()) == ("unavailable", (b"1", 0))


def test_a_fence_that_comes_too_late_finds_the_write() -> None:
    store = stored()
    case = Case(store, (Fault.LATE,), {5: store.deliver})
    assert (case.outcome(max_attempts=1), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_fence_without_lineage_that_is_in_doubt_is_unknown() -> None:
    case = Case(stored(), (Fault.LATE, Fault.LOST))
    assert case.outcome(max_attempts=1, stamps=False) == "unknown"


def test_a_fence_that_never_gets_through_is_unknown() -> None:
    case = Case(stored(), (Fault.LATE, *[Fault.BUSY] * 100))
    assert (case.outcome(max_attempts=1), case.store.clock.now < 1010) == ("unknown", True)


def test_a_fence_that_is_forbidden_leaves_the_write_unknown() -> None:
    store = stored()

    def forbid() -> None:
        raise Refusal(403, "AuthorizationFailure")

    case = Case(store, (Fault.LATE,), {5: forbid})
    assert (case.outcome(max_attempts=1), case.seen, case.truth()) == ("unknown", 5, (b"2", 1))


def test_a_fence_waits_for_the_lease_of_another_update() -> None:
    store = stored()

    def lease() -> None:
        store.acquire('"E1"', "theirs", 2)

    case = Case(store, (Fault.LATE,), {4: lease})
    assert (case.outcome(max_attempts=1), case.truth()) == ("unavailable", (b"1", 0))


def test_a_fence_is_written_without_the_lease_that_was_lost() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 60)

    def end_it() -> None:
        store.lease = None

    case = Case(store, (Fault.LATE,), {4: end_it})
    assert (case.outcome(max_attempts=1, lease_id="theirs"), case.truth()) == ("unavailable", (b"1", 0))


def test_a_late_create_cannot_be_fenced_off() -> None:
    case = Case(Store(), (Fault.LATE,))
    assert case.outcome(create=b"1", max_attempts=1) == "unknown"


def test_a_create_in_doubt_is_found() -> None:
    assert Case(Store(), (Fault.LOST,)).outcome(create=b"1") == ("committed", '"E1"')


def test_a_create_in_doubt_beside_another_create_is_unknown_because_absence_can_recur() -> None:
    store = Store()

    def create() -> None:
        store.put(None, b"9", OTHER, str(Lineage().after(OTHER, None)), None)

    assert Case(store, (Fault.RESET,), {3: create}).outcome(create=b"1") == "unknown"


def test_a_read_that_fails_while_in_doubt_is_unknown_within_seconds_of_the_deadline() -> None:
    store = stored()
    case = Case(store, (Fault.LATE,), silent_from=3)
    assert (case.outcome(), store.clock.now <= 1066) == ("unknown", True)


def test_a_read_that_fails_with_nothing_in_doubt_ends_soon_as_unavailable() -> None:
    store = stored()
    case = Case(store, silent_from=1)
    assert (case.outcome(reach_seconds=4.0), store.clock.now) == ("unavailable", 1004.0)


def test_near_the_deadline_a_service_is_tried_for_a_second_at_least() -> None:
    store = stored()
    case = Case(store, silent_from=1, timeout=0.5)
    assert (case.outcome(reach_seconds=4.0), store.clock.now) == ("unavailable", 1001.0)


def test_after_an_answer_the_pauses_begin_anew() -> None:
    store = stored()
    case = Case(store, (Fault.BUSY, Fault.BUSY, Fault.NONE, Fault.BUSY), {6: others_update(store)})
    assert (case.outcome(), 0.025 <= case.pauses[3] <= 0.05) == (("committed", '"E3"'), True)


def test_a_service_that_never_takes_a_write_is_unavailable() -> None:
    store = stored()
    case = Case(store, (Fault.REFUSED,) * 1000, timeout=5)
    assert (case.outcome(), case.truth(), case.kept) == ("unavailable", (b"1", 0), [("unavailable", b"2")])


@cases("fault", Fault.BUSY, Fault.REFUSED)
def test_a_service_without_an_answer_is_asked_less_and_less_often(fault: Fault) -> None:
    case = Case(stored(), (fault,) * 9)
    case.end()
    longest = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    assert [most / 2 <= paused <= most for most, paused in zip(longest, case.pauses, strict=True)] == [True] * 9


@cases(
    ("seconds", "outcome", "puts"),
    (0.0, "committed", 2),
    (30.0, "committed", 2),
    (60.0, "unavailable", 1),
    (90.0, "unavailable", 1),
)
def test_a_service_that_asks_for_a_pause_gets_it_unless_it_outlasts_the_deadline(
    seconds: float, outcome: str, puts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "find_pause_seconds", lambda endpoint: seconds)
    case = Case(stored(), (Fault.BUSY,))
    ended = case.outcome()
    kind = ended[0] if isinstance(ended, tuple) else ended
    assert (kind, case.resource.requests.count("put"), case.pauses[:1] >= [seconds]) == (outcome, puts, puts == 2)


def test_what_is_overwritten_faster_than_it_can_be_read_is_given_up() -> None:
    case = Case(stored())

    def read(deadline: Deadline) -> CurrentVersion:
        raise Changed("overwritten while it was read")

    case.resource.read = read  # type: ignore[method-assign]  # of this case alone
    assert (case.outcome(), case.truth()) == ("gave_up", (b"1", 0))


def test_no_connection_to_the_end_does_not_settle_a_doubt() -> None:
    assert Case(stored(), (Fault.LATE, *[Fault.REFUSED] * 1000), timeout=5).outcome() == "unknown"
