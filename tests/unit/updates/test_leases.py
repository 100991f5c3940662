"""An update under a lease of its own, and beside one of another holder: waited for, or taken for a lock."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from azguard.errors import AzguardError, GaveUp, Locked, NotFound, TransformFailed, Unavailable
from azguard.requests import trace
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import new_op
from azguard.updates.leases import GUARD_ANSWER_SECONDS, GUARD_SECONDS
from azguard.updates.resource import Change, CurrentVersion
from tests.support.cases import cases
from tests.support.fake_resource import Clock, Fault, Store
from tests.support.update_case import OP, Case, others_update, plus_one, stored


def test_a_lease_that_a_late_copy_of_the_acquire_began_anew_proves_nothing() -> None:
    """Of tags: others' writes of them move no ETag, so that the copy is granted."""
    case = Case(stored(), (Fault.NONE, Fault.RESET))

    def pass_time() -> None:
        case.store.clock.sleep(GUARD_SECONDS + 1)
        case.store.foreign_write()
        case.store.acquire(case.store.etag, "our lease", GUARD_SECONDS)

    case.others = {4: pass_time}
    assert (case.outcome(guard_by_lease=True, stamps=False), case.truth()[1]) == ("unknown", 0)


def test_a_lease_that_a_late_copy_began_anew_is_acquired_again() -> None:
    case = Case(stored(), (Fault.NONE, Fault.RESET))

    def pass_time() -> None:
        case.store.clock.sleep(GUARD_SECONDS + 1)
        case.store.acquire(case.store.etag, "our lease", GUARD_SECONDS)

    case.others = {4: pass_time}
    assert case.outcome(guard_by_lease=True) == ("committed", '"E2"')
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "acquire", "put", "release"]


def test_a_lease_that_is_to_prove_outlives_three_late_answers() -> None:
    case = Case(stored())
    case.end(guard_by_lease=True)
    assert [told for told in case.told if "acquiring" in told] == ['lease: acquiring it on "E1" for 30 s']
    assert Deadline(60).limit_answers(GUARD_ANSWER_SECONDS).answer_seconds * 3 <= GUARD_SECONDS


@cases(("by_lease", "seconds"), (True, 10.0), (False, 20.0))
def test_only_under_a_guard_lease_are_answers_waited_for_ten_seconds_at_most(by_lease: bool, seconds: float) -> None:
    case, patience = Case(stored()), []
    plain = case.resource.read

    def read(deadline: Deadline) -> CurrentVersion:
        patience.append(deadline.answer_seconds)
        return plain(deadline)

    case.resource.read = read  # type: ignore[method-assign]  # of this case alone
    case.end(guard_by_lease=by_lease)
    assert patience == [seconds]


def test_a_shorter_patience_with_answers_begins_no_new_deadline() -> None:
    clock = Clock()
    deadline = clock.deadline(60)
    clock.sleep(20)
    shorter = deadline.limit_answers(10)
    assert (shorter.remaining, shorter.answer_seconds, deadline.answer_seconds) == (40.0, 10, 20.0)


def test_a_write_in_doubt_under_our_lease_is_ours_beside_any_writer() -> None:
    # Without a lineage nothing else could tell.
    case = Case(stored(), (Fault.NONE, Fault.LOST))
    assert (case.outcome(guard_by_lease=True, stamps=False), case.truth()) == (("committed", '"E2"'), (b"2", 0))
    assert case.resource.requests == ["read", "acquire", "put", "head", "release"]


@cases("writes", 1, 9)
def test_our_lease_proves_a_write_whether_its_etag_sorts_before_or_behind_the_one_it_replaced(writes: int) -> None:
    store = stored()
    for _ in range(writes - 1):
        store.foreign_write()
    assert store.etag == f'"E{writes}"'
    assert Case(store, (Fault.NONE, Fault.LOST)).outcome(guard_by_lease=True, stamps=False) == (
        "committed",
        f'"E{writes + 1}"',
    )


def test_a_write_that_our_lease_proved_is_told_with_its_lineage() -> None:
    ended = Case(stored(), (Fault.NONE, Fault.LOST)).end(guard_by_lease=True)
    assert (ended.committed.etag, ended.lineage) == ('"E2"', f"{OP}.E1")


def test_a_write_in_doubt_under_our_lease_that_did_not_land_is_sent_again() -> None:
    case = Case(stored(), (Fault.NONE, Fault.RESET))
    assert case.outcome(guard_by_lease=True) == ("committed", '"E2"')
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "put", "release"]


@cases("fault", Fault.LOST, Fault.RESET, Fault.LATE, Fault.BUSY, Fault.REFUSED)
def test_an_acquire_in_doubt_is_sent_again_with_the_same_id(fault: Fault) -> None:
    case = Case(stored(), (fault,))
    assert (case.outcome(guard_by_lease=True), case.store.active_lease()) == (("committed", '"E2"'), None)


def test_a_write_that_lands_after_the_look_under_our_lease_is_ours_too() -> None:
    store = stored()
    case = Case(store, (Fault.NONE, Fault.LATE), {5: store.deliver})
    assert case.outcome(guard_by_lease=True, stamps=False) == ("committed", '"E2"')


def test_a_write_that_lands_while_giving_up_under_our_lease_is_ours_too() -> None:
    store = stored()
    case = Case(store, (Fault.NONE, Fault.LATE), {6: store.deliver})
    assert case.outcome(guard_by_lease=True, stamps=False, max_attempts=1) == ("committed", '"E2"')


def test_a_lease_proves_a_write_over_its_version_also_where_that_was_read_again() -> None:
    case = Case(stored(), (Fault.NONE, Fault.RESET, Fault.LOST))
    assert (case.outcome(guard_by_lease=True, stamps=False), case.truth()[0]) == (("committed", '"E2"'), b"2")
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "put", "head", "release"]


@cases("takes_proposed_id", True, False)
def test_the_steps_of_a_lease_are_in_the_trace_unless_the_resource_notes_them(
    takes_proposed_id: bool, tmp_path: Path
) -> None:
    case = Case(stored(), (Fault.BUSY,))
    case.resource.takes_proposed_id = takes_proposed_id  # type: ignore[misc]  # of this case alone
    path = tmp_path / str(takes_proposed_id)
    with trace.into(str(path), "test", pytest.fail):
        case.end(guard_by_lease=True)
    steps = [json.loads(line)["step"] for line in path.read_text().splitlines()]
    leased = ["asking", "not acquired", "asking", "acquired", "asking", "released"]
    assert [step for step in steps if step in leased] == (leased if takes_proposed_id else [])


def test_the_keys_that_a_lease_proves_leave_room_for_the_content_that_was_written() -> None:
    case, contents = Case(stored(), (Fault.NONE, Fault.LOST)), []

    def count_room(state: CurrentVersion, content: bytes) -> int:
        contents.append(content)
        return 8192

    case.resource.count_room = count_room  # type: ignore[method-assign]  # of this case alone
    ended = case.end(guard_by_lease=True, is_keyed=True, change=Change.of(["one"], "one"))
    assert (ended.outcome, contents) == ("committed", [b"2", b"2"])


def test_after_the_deadline_a_lease_is_asked_after_for_a_second() -> None:
    case, left = Case(stored(), (Fault.NONE, Fault.LOST), timeout=20.0), []
    ask = case.resource.read_etag_under_lease

    def read_etag_under_lease(lease_id: str, deadline: Deadline) -> str:
        left.append(deadline.remaining)
        return ask(lease_id, deadline)

    case.resource.read_etag_under_lease = read_etag_under_lease  # type: ignore[method-assign]  # of this case alone
    case.others = {3: lambda: case.store.clock.sleep(20)}
    assert (case.outcome(guard_by_lease=True, stamps=False), left) == (("committed", '"E2"'), [1.0])


def test_an_acquire_in_doubt_counts_as_not_acquired() -> None:
    case = Case(stored(), (Fault.RESET,))
    case.end(guard_by_lease=True)
    assert case.resource.requests == ["read", "acquire", "read", "acquire", "put", "release"]


def test_a_lease_that_was_asked_for_is_wanted_to_the_end() -> None:
    # It was acquired for a slow transform, the answer was lost, and then the service slows down instead.
    store = stored()

    def slow(content: bytes) -> bytes:
        store.clock.sleep(1)
        return plus_one(content)

    others: dict[int, Callable[[], object]] = {number: others_update(store) for number in range(2, 10, 2)}
    case = Case(
        store,
        (Fault.NONE, Fault.NONE, Fault.NONE, Fault.NONE, Fault.LOST),
        {**others, 11: lambda: store.clock.sleep(1)},
    )
    case.end(slow)
    assert case.resource.requests[8:] == ["read", "acquire", "read", "acquire", "put", "release"]


def test_a_lease_that_expired_in_our_hands_is_acquired_again() -> None:
    store = stored()
    case = Case(store, others={3: lambda: store.clock.sleep(40)})
    ended = case.end(guard_by_lease=True)
    assert (ended.outcome, ended.conflicts) == ("committed", 0)
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "acquire", "put", "release"]


@cases("error", Locked("lost"), NotFound("gone"), Unavailable("silence"), ids=lambda error: error.kind)
def test_a_lease_that_cannot_be_asked_after_proves_nothing_and_the_update_goes_on(error: AzguardError) -> None:
    case = Case(stored(), (Fault.NONE, Fault.RESET))

    def read_etag_under_lease(lease_id: str, deadline: Deadline) -> str:
        case.resource.requests.append("head")
        raise error

    case.resource.read_etag_under_lease = read_etag_under_lease  # type: ignore[method-assign]  # of this case alone
    assert (case.outcome(guard_by_lease=True), case.truth()) == (("committed", '"E2"'), (b"2", 1))
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "acquire", "put", "release"]


def test_a_lease_lost_while_in_doubt_leaves_it_to_the_lineage() -> None:
    store = stored()
    case = Case(store, (Fault.NONE, Fault.LOST), {4: lambda: store.clock.sleep(20)})
    assert (case.outcome(guard_by_lease=True), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_ctrl_c_during_the_acquire_releases_what_may_have_been_acquired() -> None:
    case = Case(stored(), (Fault.CTRL_C,))
    assert (case.outcome(guard_by_lease=True), case.store.active_lease()) == ("interrupted", None)


@cases("fault", Fault.LOST, Fault.RESET, Fault.BUSY)
def test_a_release_in_doubt_is_sent_once_more(fault: Fault) -> None:
    case = Case(stored(), (Fault.NONE, Fault.NONE, fault))
    assert (case.outcome(guard_by_lease=True), case.store.active_lease()) == (("committed", '"E2"'), None)


def test_a_failing_transform_under_a_lease_releases_it() -> None:
    store = stored()
    case = Case(store, (Fault.NONE, Fault.RESET), {5: others_wait(store)})

    def fails_the_second_time(content: bytes) -> bytes:
        if content != b"1":
            raise TransformFailed("no")
        return plus_one(content)

    case.outcome(fails_the_second_time, guard_by_lease=True)
    assert store.active_lease() is None


def others_wait(store: Store) -> Callable[[], object]:
    """Return what happens when our lease ends and another writes at once."""

    def act() -> None:
        store.lease = None
        others_update(store)()

    return act


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


@cases(("seconds", "least", "most"), (2, 0.025, 0.075), (40, 0.25, 0.75))
def test_a_short_lease_is_asked_after_often_and_a_lock_twice_a_second(
    seconds: float, least: float, most: float
) -> None:
    store = stored()
    store.acquire('"E1"', "theirs", seconds)
    case, asked = Case(store), []
    case.resource.before = lambda name: asked.append(store.clock()) if name == "head" else None
    case.end(wait_seconds=60.0)
    # Until it has lasted longer than a short one may, a lock is asked after as a short one is.
    gaps = [after - before for before, after in pairwise(asked) if seconds < 3 or before > 1004.0]
    assert (len(gaps) > 20, all(least <= gap <= most + 1e-9 for gap in gaps)) == (True, True)


def test_wait_gives_up_at_the_deadline() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 600)
    with pytest.raises(GaveUp, match="was leased by another holder after") as caught:
        Case(store).end(wait_seconds=600.0)
    assert (store.clock.now, caught.value.reason) == (1060.0, "update_leased")


def test_waiting_ends_before_the_deadline() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 600)
    with pytest.raises(GaveUp, match="was leased by another holder after"):
        Case(store).end(wait_seconds=10.0)
    assert 1010.0 <= store.clock.now < 1011.0


@pytest.mark.parametrize(
    ("silence", "error"),
    [pytest.param(0.5, GaveUp, id="cut-off-by-the-deadline"), pytest.param(30.0, Unavailable, id="for-longer")],
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
    ((), 2, "locked", (b"1", 0)),
    ((Fault.REFUSED,), 2, "locked", (b"1", 0)),
    ((Fault.LOST,), 3, ("committed", '"E2"'), (b"2", 1)),
    ((Fault.REPLAYED,), 3, ("committed", '"E2"'), (b"2", 1)),
    ((Fault.RESET,), 3, "locked", (b"1", 0)),
)
def test_the_users_own_lease_that_ends_meanwhile_hides_no_outcome(
    faults: tuple[Fault, ...], ends_before: int, outcome: object, truth: object
) -> None:
    store = stored()
    store.acquire('"E1"', "mine", 60)
    case = Case(store, faults, {ends_before: lambda: store.release("mine")})
    case.resource.lease_id = "mine"
    assert (case.outcome(lease_id="mine"), case.truth()) == (outcome, truth)
