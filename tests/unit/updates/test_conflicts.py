"""Conflicts: an update that another writer comes before is computed again, and takes a lease if it starves."""

import pytest

from azguard.errors import GaveUp
from azguard.wire.exchange import PACE_BYTES_PER_SECOND
from tests.support.cases import cases
from tests.support.fake_resource import Fault, Refusal
from tests.support.update_case import Case, others_update, plus_one, stored


def test_a_conflict_is_computed_again_from_what_is_there_now() -> None:
    store = stored()
    case = Case(store, others={2: others_update(store)})
    ended = case.end()
    assert (ended.attempts, ended.conflicts, case.truth()) == (2, 1, (b"3", 1))


def test_the_transform_runs_once_per_version() -> None:
    seen = []
    store = stored()
    case = Case(store, (Fault.BUSY, Fault.REFUSED, Fault.RESET), {7: others_update(store)})
    case.end(lambda content: seen.append(content) or plus_one(content))  # type: ignore[func-returns-value]  # append, then the value
    assert seen == [b"1", b"2"]


def test_attempts_can_be_limited() -> None:
    store = stored()
    case = Case(store, others={2: others_update(store), 4: others_update(store)})
    assert (case.outcome(max_attempts=2), case.truth()) == ("gave_up", (b"3", 0))


def test_a_starving_writer_takes_a_lease() -> None:
    store = stored()
    case = Case(store, others={number: others_update(store) for number in range(2, 34, 2)})
    ended = case.end()
    assert (ended.guard, ended.conflicts, case.resource.requests[-4:]) == (
        "lease",
        16,
        ["read", "acquire", "put", "release"],
    )


def test_a_slow_transform_takes_a_lease_sooner() -> None:
    store = stored()
    case = Case(store, others={number: others_update(store) for number in range(2, 10, 2)})

    def slow(content: bytes) -> bytes:
        store.clock.sleep(1)
        return plus_one(content)

    assert (case.end(slow).guard, case.resource.requests[-4:]) == ("lease", ["read", "acquire", "put", "release"])


@cases(("seconds", "guard"), [(1.0, "if-match"), (2.0, "if-match"), (2.5, "lease")])
def test_work_is_slow_if_it_takes_more_than_two_round_trips(seconds: float, guard: str) -> None:
    store = stored()
    before = {number: others_update(store) for number in range(2, 12, 2)}
    case = Case(store, others=before | {number: lambda: store.clock.sleep(1.0) for number in range(1, 13, 2)})

    def work(content: bytes) -> bytes:
        store.clock.sleep(seconds)
        return plus_one(content)

    assert case.end(work).guard == guard


def test_work_that_becomes_slow_takes_a_lease_after_the_fourth_conflict_too() -> None:
    store = stored()
    case = Case(store, others={number: others_update(store) for number in range(2, 14, 2)})
    runs: list[bytes] = []

    def slower(content: bytes) -> bytes:
        runs.append(content)
        store.clock.sleep(1.0 if len(runs) > 5 else 0.0)
        return plus_one(content)

    assert (case.end(slower).guard, len(runs)) == ("lease", 7)


@cases(
    ("work", "size", "seconds"),
    [(1.0, 0, 15), (10.0, 0, 20), (40.0, 0, 60), (1.0, 10, 25), (10.0, 10, 30), (1.0, 100, 60)],
)
def test_a_lease_lasts_twice_the_work_and_as_long_as_sending_takes_up_to_a_minute(
    work: float, size: int, seconds: int
) -> None:
    store = stored()
    case = Case(store, others={number: others_update(store) for number in range(2, 10, 2)}, timeout=6000)

    def slow(content: bytes) -> bytes:
        store.clock.sleep(work)
        return plus_one(content) + b" " * int(size * PACE_BYTES_PER_SECOND)

    case.end(slow)
    assert [told for told in case.told if "acquiring" in told] == [f'lease: acquiring it on "E5" for {seconds} s']


def test_a_slow_transform_runs_under_the_lease_that_it_takes() -> None:
    store = stored()
    case = Case(store, others={number: others_update(store) for number in range(2, 10, 2)})
    leases: list[str | None] = []

    def slow(content: bytes) -> bytes:
        leases.append(store.active_lease())
        store.clock.sleep(10)
        return plus_one(content)

    ended = case.end(slow)
    assert (ended.conflicts, leases) == (4, [None, None, None, None, "our lease"])


def test_a_lease_that_lapses_during_the_transform_costs_no_second_transform() -> None:
    store = stored()
    case = Case(store, others={number: others_update(store) for number in range(2, 10, 2)}, timeout=600)
    runs: list[int] = []

    def slower(content: bytes) -> bytes:
        runs.append(len(runs))
        store.clock.sleep(1 if len(runs) < 5 else 100)
        return plus_one(content)

    ended = case.end(slower)
    assert (ended.outcome, ended.conflicts, len(runs), case.truth()) == ("committed", 4, 5, (b"6", 1))


def test_no_pause_between_conflicts_is_longer_than_a_second() -> None:
    store = stored()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)

    store.clock.sleep = sleep  # type: ignore[method-assign]  # to watch it

    def slow(content: bytes) -> bytes:
        store.clock.now += 5
        return plus_one(content)

    Case(store, others={2: others_update(store), 4: others_update(store)}).end(slow)
    assert len(slept) == 2
    assert max(slept) <= 1


def test_a_blob_deleted_before_the_write_is_not_found() -> None:
    store = stored()
    assert Case(store, others={2: store.delete}).outcome() == "not_found"


def test_a_blob_deleted_before_the_write_is_created_if_asked_for() -> None:
    store = stored()
    case = Case(store, others={2: store.delete})
    assert (case.end(create=b"7").created, case.truth()) == (True, (b"8", 1))


def test_a_refusal_that_is_no_conflict_ends_the_update() -> None:
    store = stored()

    def forbid() -> None:
        raise Refusal(403, "AuthorizationFailure")

    case = Case(store, others={2: forbid})
    assert (case.outcome(), case.seen) == ("forbidden", 2)


def test_what_was_not_sent_is_no_attempt() -> None:
    ended = Case(stored(), (Fault.REFUSED, Fault.REFUSED)).end(max_attempts=1)
    assert (ended.outcome, ended.attempts, ended.doubts) == ("committed", 1, 0)


def test_a_wait_for_a_lease_is_no_attempt_and_a_conflict_after_it_is() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 2)
    case = Case(store)

    def overtake(name: str) -> None:
        if name == "put" and "put" in case.resource.requests:
            others_update(store)()

    case.resource.before = overtake
    with pytest.raises(GaveUp, match="was still contended after 2 attempts"):
        case.end(max_attempts=1)
