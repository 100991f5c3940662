"""A lease of another holder: a short one is waited for, a long one is a lock."""

import math

import pytest

from azguard.errors import GaveUp, Unavailable
from azguard.requests.lineage import new_op
from tests.support.cases import cases
from tests.support.fake_resource import Fault
from tests.support.update_case import Case, others_update, plus_one, stored


def test_another_writers_lease_is_waited_for_as_long_as_slow_work_takes() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 25)

    def slow(content: bytes) -> bytes:
        store.clock.sleep(10)
        return plus_one(content)

    assert Case(store).outcome(slow) == ("committed", '"E2"')


def test_a_lease_that_does_not_end_soon_is_a_lock() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 60)
    case = Case(store)
    assert (case.outcome(), 3 < store.clock.now - 1000 < 4) == ("locked", True)
    assert case.kept == [("locked", b"2")]


def test_an_infinite_lease_is_a_lock_at_once() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", math.inf)
    case = Case(store)
    assert (case.outcome(), store.clock.now, case.resource.requests) == ("locked", 1000.0, ["read", "put", "read"])


def test_a_short_lease_is_waited_for_and_is_no_conflict() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 2)
    ended = Case(store).end(max_attempts=1)
    assert (ended.outcome, ended.conflicts) == ("committed", 0)


def test_wait_waits_for_a_lock() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 40)
    case = Case(store)
    ended = case.end(wait_seconds=60.0, max_attempts=1)
    assert (ended.outcome, store.clock.now > 1040, case.resource.requests.count("put") < 70) == (
        "committed",
        True,
        True,
    )


def test_wait_gives_up_at_the_deadline() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 600)
    case = Case(store)
    with pytest.raises(GaveUp, match="was leased by another holder after"):
        case.end(wait_seconds=600.0)
    assert store.clock.now == 1060.0


def test_waiting_ends_before_the_deadline() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 600)
    with pytest.raises(GaveUp, match="was leased by another holder after"):
        Case(store).end(wait_seconds=10.0)
    assert 1010.0 <= store.clock.now < 1011.0


@pytest.mark.parametrize(
    ("silence", "error"),
    [
        pytest.param(0.5, GaveUp, id="cut-off-by-the-deadline"),
        pytest.param(30.0, Unavailable, id="for-longer"),
    ],
)
def test_at_the_deadline_a_lease_tells_more_than_a_short_silence(silence: float, error: type[Exception]) -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 600)
    case = Case(store)

    def stay_silent(name: str) -> None:
        if name == "head" and store.clock.now > 1060 - silence:
            store.clock.sleep(1060 - store.clock.now)
            raise Unavailable("no answer")

    case.resource.before = stay_silent
    with pytest.raises(error):
        case.end(wait_seconds=600.0)


def test_writers_that_take_a_lease_for_each_version_are_no_lock() -> None:
    # Each holds its lease for less than what makes a lock, and together they hold it for long.
    store = stored()
    turns = 0

    def take_turns(name: str) -> None:
        nonlocal turns
        if store.active_lease() is None and turns < 12:
            turns += 1
            others_update(store, new_op(bytes([turns]) * 12))()
            store.acquire(store.etag, "theirs", 2)

    case = Case(store, timeout=600)
    case.resource.before = take_turns
    assert (case.outcome(), turns, store.clock.now > 1020) == (("committed", '"E14"'), 12, True)


def test_turns_that_others_take_with_leases_are_no_lock() -> None:
    store = stored()
    turns = 0

    def take_turn() -> None:
        nonlocal turns
        turns += 1
        store.lease = None
        if turns <= 10:
            others_update(store, new_op(bytes([turns]) * 12))()
            store.acquire(store.etag, "theirs", 1)

    case = Case(store, others=dict.fromkeys(range(1, 300, 5), take_turn))
    assert case.end().outcome == "committed"


def test_the_users_own_lease_that_is_lost_is_said() -> None:
    assert Case(stored()).outcome(lease_id="lost") == "locked"


@cases(
    ("faults", "ends_before", "outcome", "truth"),
    [
        ((), 2, "locked", (b"1", 0)),
        ((Fault.REFUSED,), 2, "locked", (b"1", 0)),
        ((Fault.LOST,), 3, ("committed", '"E2"'), (b"2", 1)),
        ((Fault.REPLAYED,), 3, ("committed", '"E2"'), (b"2", 1)),
        ((Fault.RESET,), 3, "locked", (b"1", 0)),
    ],
)
def test_the_users_own_lease_that_ends_meanwhile_hides_no_outcome(
    faults: tuple[Fault, ...], ends_before: int, outcome: object, truth: object
) -> None:
    store = stored()
    store.acquire('"E1"', "mine", 60)
    case = Case(store, faults, {ends_before: lambda: store.release("mine")})
    case.resource.lease_id = "mine"
    assert (case.outcome(lease_id="mine"), case.truth()) == (outcome, truth)
