"""An update that another writer comes before, or that the network sends twice."""

import pytest

from azguard.errors import GaveUp, TransformFailed
from azguard.wire.connections import PACE_BYTES_PER_SECOND
from azguard.wire.failures import Refusal
from tests.support.cases import cases
from tests.support.fake_resource import Fault, Store
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


@cases(("seconds", "guard"), (1.0, "if-match"), (2.0, "if-match"), (2.5, "lease"))
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
    (1.0, 0, 15),
    (10.0, 0, 20),
    (40.0, 0, 60),
    (1.0, 10, 25),
    (10.0, 10, 30),
    (1.0, 100, 60),
)
def test_a_lease_lasts_twice_the_work_and_the_sending_up_to_a_minute(work: float, size: int, seconds: int) -> None:
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


def test_a_conflict_is_retried_within_eight_round_trips_and_the_first_ones_sooner() -> None:
    store = stored()
    case = Case(store, others={number: others_update(store) for number in range(2, 12, 2)})

    def before(name: str) -> None:
        if name == "read":
            store.clock.sleep(0.025)
        case.others.get(len(case.resource.requests) + 1, lambda: None)()

    case.resource.before = before
    case.end()
    longest = [0.025, 0.05, 0.1, 0.2, 0.2]
    assert [most / 2 <= paused <= most for most, paused in zip(longest, case.pauses, strict=True)] == [True] * 5


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


@cases("most", 1, 2)
def test_a_wait_for_a_lease_is_no_attempt_and_a_conflict_after_it_is(most: int) -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 2)
    case = Case(store)

    def overtake(name: str) -> None:
        if name == "put" and "put" in case.resource.requests:
            others_update(store)()

    case.resource.before = overtake
    with pytest.raises(GaveUp, match=f"was still contended after {most + 1} attempts") as caught:
        case.end(max_attempts=most)
    assert caught.value.reason == "update_gave_up"


def test_a_refusal_of_a_second_copy_is_settled_by_the_read_that_comes_anyway() -> None:
    case = Case(stored(), (Fault.REPLAYED,))
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))
    assert case.resource.requests == ["read", "put", "read"]


def test_ctrl_c_after_the_refusal_of_a_second_copy_does_not_hide_the_first() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (Fault.REPLAYED,), {3: press})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_ctrl_c_after_another_writer_came_first_applies_nothing() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    store = stored()
    case = Case(store, others={2: others_update(store), 3: press})
    assert (case.outcome(), case.truth()) == ("interrupted", (b"2", 0))


def test_a_refusal_after_which_nothing_can_be_read_is_unknown() -> None:
    case = Case(stored(), (Fault.REPLAYED,), silent_from=3)
    assert (case.outcome(), case.truth()) == ("unknown", (b"2", 1))


def test_a_second_copy_that_meets_a_lease_is_settled_before_that_is_told() -> None:
    store = stored()
    case = Case(store, (Fault.REPLAYED,), {3: lambda: store.acquire('"E2"', "theirs", 60)})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_second_copy_of_a_create_finds_the_first() -> None:
    case = Case(Store(), (Fault.REPLAYED,))
    assert (case.outcome(create=b"0"), case.truth()) == (("committed", '"E1"'), (b"1", 1))


def test_without_a_lineage_what_equals_ours_is_not_written_again() -> None:
    case = Case(stored(b"41"), (Fault.REPLAYED,))
    assert (case.outcome(stamps=False), case.truth()[0]) == ("unknown", b"42")
    assert case.resource.requests == ["read", "put", "read"]


@cases("theirs", b"7", b"0")
def test_without_a_lineage_what_is_not_ours_is_a_conflict(theirs: bytes) -> None:
    store = stored()
    case = Case(store, others={2: lambda: store.foreign_write(theirs)})
    assert (case.outcome(stamps=False), case.truth()[0]) == (("committed", '"E3"'), plus_one(theirs))


def test_with_a_lineage_what_equals_ours_is_a_conflict_as_any_other() -> None:
    store = stored()
    case = Case(store, others={2: lambda: store.foreign_write(b"2")})
    assert (case.outcome(), case.truth()) == (("committed", '"E3"'), (b"3", 1))


def test_without_a_lineage_ctrl_c_over_what_equals_ours_is_unknown() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (Fault.REPLAYED,), {3: press})
    assert (case.outcome(stamps=False), case.truth()[0]) == ("unknown", b"2")


def test_without_a_lineage_what_a_lease_did_not_prove_in_time_is_not_written_again() -> None:
    # The first copy is committed, the lease lapses, and a foreign writer covers what would have told.
    store = stored()

    def lapse() -> None:
        store.clock.sleep(40)
        store.foreign_write(b"7")

    case = Case(store, (Fault.NONE, Fault.REPLAYED), {4: lapse})
    assert (case.outcome(guard_by_lease=True, stamps=False), case.truth()[0]) == ("unknown", b"7")


@cases("failure", TransformFailed("no"), KeyboardInterrupt())
def test_a_lease_on_a_later_version_proves_nothing_of_the_write_that_was_refused(failure: BaseException) -> None:
    store = stored()

    def take_over() -> None:
        store.lease = None
        store.foreign_write(b"7")

    def fails_later(content: bytes) -> bytes:
        if content == b"7":
            raise failure
        return plus_one(content)

    case = Case(store, others={3: take_over})
    assert case.outcome(fails_later, guard_by_lease=True, stamps=False) == "unknown"
    assert case.resource.requests[:5] == ["read", "acquire", "put", "head", "read"]
    assert (case.resource.requests[5], case.truth()[0]) == ("acquire", b"7")


def test_a_create_that_another_came_before_is_a_conflict_though_a_lease_was_asked_for() -> None:
    store = Store()
    case = Case(store, others={2: lambda: store.foreign_write(b"7")})
    assert (case.outcome(create=b"1", guard_by_lease=True, stamps=False), case.truth()[0]) == (
        ("committed", '"E2"'),
        b"8",
    )


def test_without_a_lineage_what_needs_no_change_is_unchanged_by_whomever() -> None:
    case = Case(stored(), (Fault.REPLAYED,))
    assert (case.outcome(lambda content: b"2", stamps=False), case.truth()[0]) == (("unchanged", '"E2"'), b"2")


def test_under_our_own_lease_the_first_copy_is_proved_by_it() -> None:
    case = Case(stored(), (Fault.NONE, Fault.REPLAYED))
    ended = case.end(guard_by_lease=True, stamps=False)
    assert (ended.outcome, ended.committed.etag, ended.lineage) == ("committed", '"E2"', None)
    assert case.resource.requests == ["read", "acquire", "put", "head", "release"]
