"""The loop, fault by fault: what it sends, what it answers, and what is true."""

import math
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from azguard.accounts.exchanges import PACE_BYTES_PER_SECOND
from azguard.errors import AzguardError, Changed, GaveUp, Locked, LockLost, NotFound, TransformFailed, Unavailable
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage, new_op
from azguard.requests.settle import Verdict
from azguard.updates.doubt import judge_by_versions
from azguard.updates.leases import GUARD_ANSWER_SECONDS, GUARD_SECONDS
from azguard.updates.plan import UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.resource import CommittedVersion, CurrentVersion, Version
from azguard.updates.update import Preview, find_outcome, preview, update
from tests.support.fake_resource import Clock, FakeResource, Fault, Refusal, Store, forever, shown

OP, OTHER, ABORT = (new_op(bytes([number]) * 12) for number in range(3))
NONE, LOST, LATE, RESET, BUSY, REFUSED, REPLAYED, CTRL_C = Fault


def plus_one(content: bytes) -> bytes:
    return b"%d" % (int(content or b"0") + 1)


@dataclass
class Case:
    """One update of a store, with faults in order and others who act before its requests."""

    store: Store
    faults: tuple[Fault, ...] = ()
    others: dict[int, Callable[[], object]] = field(default_factory=dict)  # by number of the request, from 1
    timeout: float = 60.0
    silent_from: int | None = None  # reads get no answer from this request on
    turn: Callable[[], AbstractContextManager[Any]] = nullcontext
    kept: list[tuple[str, bytes | None]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    seen: int = 0

    def __post_init__(self) -> None:
        self.resource = FakeResource(self.store, iter(self.faults), self._before)

    def end(self, transform: Callable[[bytes], bytes] = plus_one, **plan: Any) -> UpdateResult:
        tools = UpdateHooks(
            random.Random(1),
            lambda: ABORT,
            lambda: "our lease",
            self.turn,
            self.told.append,
            self._keep,
        )
        return update(self.resource, UpdatePlan(transform, OP, **plan), self.store.clock.deadline(self.timeout), tools)

    def _keep(self, error: AzguardError, content: bytes | None) -> AzguardError:
        self.kept.append((error.kind, content))
        return error

    def outcome(self, transform: Callable[[bytes], bytes] = plus_one, **plan: Any) -> object:
        """Return the outcome and the ETag, or the kind of error."""
        try:
            ended = self.end(transform, **plan)
        except AzguardError as error:
            return error.kind
        except KeyboardInterrupt:
            return "interrupted"
        return ended.outcome, ended.committed.etag

    def _before(self, name: str) -> None:
        self.seen += 1
        self.resource.silent = self.silent_from is not None and self.seen >= self.silent_from
        self.others.get(self.seen, lambda: None)()

    def truth(self) -> tuple[bytes | None, int]:
        """Return what is there once everything has arrived, and how many times our op was applied."""
        while self.store.held:
            self.store.deliver()
        return (self.store.current.content if self.store.current else None), len(self.store.commits_of(OP))


def stored(content: bytes = b"1", **settings: Any) -> Store:
    return Store.holding(content, **settings)


def others_update(store: Store, op: str = OTHER) -> Callable[[], object]:
    """Return another azguard's update of the store."""

    def act() -> None:
        now = store.current
        assert now is not None
        lineage = Lineage.parse(now.lineage).after(op, now.etag)
        store.put(now.etag, plus_one(now.content), op, str(lineage), None)

    return act


# When no other interferes


def test_an_update_is_one_read_and_one_write() -> None:
    case = Case(stored())
    assert case.end() == UpdateResult(
        committed=CommittedVersion('"E2"'),
        outcome="committed",
        guard="if-match",
        attempts=1,
        conflicts=0,
        doubts=0,
        content=b"2",
        lineage=f"{OP}.E1",
        created=False,
        base='"E1"',
    )
    assert case.resource.requests == ["read", "put"]


def test_a_guard_lease_costs_two_requests_more() -> None:
    case = Case(stored())
    ended = case.end(guard_by_lease=True)
    assert (ended.guard, case.resource.requests) == ("lease", ["read", "acquire", "put", "release"])


def test_content_that_does_not_change_is_not_written() -> None:
    case = Case(stored(b"41"))
    made_anew = case.outcome(lambda content: bytes(bytearray(content)))
    assert (made_anew, case.resource.requests) == (("unchanged", '"E1"'), ["read"])


def test_what_stays_as_it_is_is_told_with_the_version_and_the_lineage_that_are_there() -> None:
    store = stored()
    others_update(store)()
    ended = Case(store).end(lambda content: content)
    assert (ended.committed.etag, ended.lineage, ended.created) == ('"E2"', f"{OTHER}.E1", False)


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound) as caught:
        Case(Store()).end()
    assert caught.value.http_status == 404


def test_what_is_there_is_changed_and_not_made_anew_though_it_might_have_been_created() -> None:
    ended = Case(stored()).end(create=b"41")
    assert (ended.content, ended.created, ended.guard) == (b"2", False, "if-match")


def test_what_is_not_there_is_created_if_asked_for() -> None:
    case = Case(Store())
    ended = case.end(create=b"41")
    assert (ended.created, ended.guard, ended.lineage, case.truth()) == (True, "if-none-match", f"{OP}.-", (b"42", 1))


def test_an_op_that_is_in_the_lineage_is_not_applied_again() -> None:
    store = stored()
    Case(store).end()
    again = Case(store)
    assert (again.outcome(), again.resource.requests, again.truth()) == (("committed", None), ["read"], (b"2", 1))


def test_the_users_lease_is_written_under() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 60)
    ended = Case(store).end(lease_id="theirs")
    assert (ended.guard, store.active_lease()) == ("if-match", "theirs")


# Conflicts


def test_a_conflict_is_computed_again_from_what_is_there_now() -> None:
    store = stored()
    case = Case(store, others={2: others_update(store)})
    ended = case.end()
    assert (ended.attempts, ended.conflicts, case.truth()) == (2, 1, (b"3", 1))


def test_the_transform_runs_once_per_version() -> None:
    seen = []
    store = stored()
    case = Case(store, (BUSY, REFUSED, RESET), {7: others_update(store)})
    case.end(lambda content: seen.append(content) or plus_one(content))  # type: ignore[func-returns-value]
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


@pytest.mark.parametrize(("seconds", "guard"), [(1.0, "if-match"), (2.0, "if-match"), (2.5, "lease")])
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


@pytest.mark.parametrize(
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


def test_another_writers_lease_is_waited_for_as_long_as_slow_work_takes() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 25)

    def slow(content: bytes) -> bytes:
        store.clock.sleep(10)
        return plus_one(content)

    assert Case(store).outcome(slow) == ("committed", '"E2"')


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
    ended = Case(stored(), (REFUSED, REFUSED)).end(max_attempts=1)
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


# Fences


def under(case: Case, fence: int | None) -> Case:
    """Let every version of the case have been written by the holder of this fence."""
    plain = case.resource.read

    def read(deadline: Deadline) -> CurrentVersion:
        return replace(plain(deadline), fence=fence)

    case.resource.read = read  # type: ignore[method-assign]  # of this case alone
    return case


@pytest.mark.parametrize("found", [None, 5, 7])
def test_a_holder_writes_over_what_no_later_holder_wrote(found: int | None) -> None:
    case = under(Case(stored()), found)
    ended = case.end(fence=7)
    assert (ended.outcome, ended.guard, case.truth()) == ("committed", "fence", (b"2", 1))


def test_a_holder_never_writes_over_what_a_later_holder_wrote() -> None:
    case = under(Case(stored()), 8)
    assert (case.outcome(fence=7), case.resource.requests) == ("lock_lost", ["read"])
    with pytest.raises(LockLost):
        preview(case.resource, UpdatePlan(plus_one, OP, fence=7), case.store.clock.deadline())


def test_who_holds_no_lock_is_not_kept_out_by_a_fence() -> None:
    assert under(Case(stored()), 8).outcome() == ("committed", '"E2"')


# What stands in the way before the commit


def hindered(case: Case, error: AzguardError) -> Case:
    """Let the first preparation of the case fail, such as that of blocks that are sent before their list."""
    ready, errors = case.resource.prepare, [error]

    def prepare(*given: Any) -> Any:
        if errors:
            raise errors.pop()
        return ready(*given)

    case.resource.prepare = prepare  # type: ignore[assignment,method-assign]  # of this case alone
    return case


def test_blocks_that_another_commit_discarded_are_sent_again_after_a_conflict() -> None:
    case = hindered(Case(stored()), Changed("discarded"))
    ended = case.end()
    assert (ended.outcome, ended.conflicts, case.truth()) == ("committed", 1, (b"2", 1))
    assert case.resource.requests == ["read", "read", "put"]


def counted(case: Case, *refusals: Refusal) -> list[CurrentVersion]:
    """Let the first commits of the case be refused, and return the list of the versions that were prepared for."""
    ready, prepared, errors = case.resource.prepare, [], list(refusals)

    def prepare(state: CurrentVersion, *given: Any) -> Any:
        prepared.append(state)
        commit = ready(state, *given)

        def refused(lease_id: str | None) -> CommittedVersion:
            if errors:
                raise errors.pop()
            return commit(lease_id)

        return refused

    case.resource.prepare = prepare  # type: ignore[assignment,method-assign]  # of this case alone
    return prepared


@pytest.mark.parametrize(
    "refusal",
    [Refusal(400, "InvalidBlockList"), Refusal(412, "ConditionNotMet"), Refusal(412, "LeaseIdMissing")],
    ids=lambda refusal: refusal.error_code,
)
def test_after_a_refusal_all_is_prepared_again_though_the_version_is_the_same(refusal: Refusal) -> None:
    case = Case(stored())
    prepared = counted(case, refusal)
    assert (case.outcome(), [state.etag for state in prepared]) == (("committed", '"E2"'), ['"E1"', '"E1"'])


@pytest.mark.parametrize("fault", [RESET, BUSY, REFUSED])
def test_after_no_answer_what_was_prepared_is_sent_again(fault: Fault) -> None:
    case = Case(stored(), (fault,))
    prepared = counted(case)
    assert (case.outcome(), len(prepared)) == (("committed", '"E2"'), 1)


def test_a_lease_met_by_blocks_is_waited_for_and_is_no_conflict() -> None:
    case = hindered(Case(stored()), Locked("leased"))
    ended = case.end()
    assert (ended.outcome, ended.conflicts, case.truth()) == ("committed", 0, (b"2", 1))
    assert [name for name in case.resource.requests if name != "head"] == ["read", "read", "put"]


def test_a_blob_deleted_under_its_blocks_is_read_again() -> None:
    store = stored()
    case = hindered(Case(store), NotFound("gone"))
    assert (case.outcome(), case.resource.requests) == (("committed", '"E2"'), ["read", "read", "put"])
    assert any("was deleted" in line for line in case.told)


def test_where_nothing_can_be_created_the_update_ends_at_once() -> None:
    case = hindered(Case(Store()), NotFound("no container"))
    assert (case.outcome(create=b"1"), case.resource.requests) == ("not_found", ["read"])


# Doubt


@pytest.mark.parametrize("fault", [LOST, RESET, BUSY, LATE])
def test_a_lost_answer_is_settled_by_the_lineage(fault: Fault) -> None:
    case = Case(stored(), (fault,))
    ended = case.end()
    assert (ended.outcome, ended.doubts, ended.committed.etag, case.truth()) == ("committed", 1, '"E2"', (b"2", 1))


def test_a_lost_answer_hidden_by_another_update_is_committed_without_an_etag() -> None:
    store = stored()
    case = Case(store, (LOST,), {3: others_update(store)})
    assert (case.outcome(), case.truth()) == (("committed", None), (b"3", 1))


@pytest.mark.parametrize(
    ("content", "rest"), [(b"3", "headers"), (b"1", "headers"), (b"2", "other headers"), (b"2", "few headers")]
)
def test_an_etag_is_only_told_if_nothing_tells_that_it_is_not_ours(content: bytes, rest: str) -> None:
    store = stored()
    case = Case(store, (LOST,), {3: lambda: store.foreign_write(content, keeps_metadata=True, rest=rest)})
    assert case.outcome() == ("committed", None)


def test_the_etag_of_another_update_that_left_our_content_is_not_told_as_ours() -> None:
    store = stored()

    def touch() -> None:
        now = store.current
        assert now is not None
        lineage = Lineage.parse(now.lineage).after(OTHER, now.etag)
        store.put(now.etag, now.content, OTHER, str(lineage), None)

    assert Case(store, (LOST,), {3: touch}).outcome() == ("committed", None)


def test_a_write_in_doubt_that_another_replaced_is_sent_anew() -> None:
    store = stored()
    case = Case(store, (RESET,), {3: others_update(store)})
    assert (case.outcome(), case.truth()) == (("committed", '"E3"'), (b"3", 1))


def test_a_refusal_after_doubt_does_not_settle_it() -> None:
    # The first attempt arrives just before the second, which it causes to be refused.
    store = stored()
    case = Case(store, (LATE,), {4: store.deliver})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_no_connection_after_doubt_does_not_settle_it() -> None:
    store = stored()
    case = Case(store, (LATE, REFUSED), {4: store.deliver})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_refusal_after_doubt_does_not_settle_it_beside_a_foreign_writer() -> None:
    # The first attempt arrives, a foreign writer covers it, and so the second is refused.
    store = stored()

    def deliver_and_cover() -> None:
        store.deliver()
        store.foreign_write()

    case = Case(store, (LATE,), {4: deliver_and_cover})
    assert (case.outcome(), case.truth()) == ("unknown", (b"2", 1))


def test_a_foreign_write_over_a_write_in_doubt_is_unknown() -> None:
    store = stored()
    case = Case(store, (RESET,), {3: store.foreign_write})
    with pytest.raises(AzguardError) as caught:
        case.end()
    assert shown(caught.value) == {
        "kind": "unknown",
        "outcome": "unknown",
        "attempts": 1,
        "conflicts": 0,
        "doubts": 1,
        "base_etag": '"E1"',
    }
    assert (caught.value.detail, case.kept) == (
        ('a writer that keeps no lineage replaced "E1", or our write on it',),
        [("unknown", b"2")],
    )


def test_a_lineage_cut_at_its_depth_is_unknown() -> None:
    store = stored()

    def many() -> None:
        for number in range(16):
            others_update(store, new_op(bytes([100 + number]) * 12))()

    assert (Case(store, (LOST,), {3: many}).outcome(), store.commits_of(OP)[0].etag) == ("unknown", '"E2"')


def test_a_lineage_that_is_just_deep_enough_tells() -> None:
    store = stored()

    def many() -> None:
        for number in range(15):
            others_update(store, new_op(bytes([100 + number]) * 12))()

    assert Case(store, (LOST,), {3: many}).outcome() == ("committed", None)


def test_a_blob_deleted_over_a_write_in_doubt_is_unknown() -> None:
    store = stored()
    assert Case(store, (LOST,), {3: store.delete}).outcome() == "unknown"


@pytest.mark.parametrize(("fault", "answer"), [(LOST, ("committed", None)), (RESET, ("committed", '"E3"'))])
def test_kept_versions_settle_what_a_foreign_writer_hides(fault: Fault, answer: object) -> None:
    store = stored(keeps_versions=True)
    case = Case(store, (fault,), {3: store.foreign_write})
    assert (case.outcome(), case.truth()[1]) == (answer, 1)


def test_kept_versions_tell_of_a_first_copy_that_a_foreign_writer_hides() -> None:
    store = stored(keeps_versions=True)
    case = Case(store, (REPLAYED,), {3: store.foreign_write})
    assert (case.outcome(), case.truth()) == (("committed", None), (b"2", 1))
    assert case.resource.requests == ["read", "put", "read", "versions"]


@pytest.mark.parametrize(("fault", "rest"), [(LOST, []), (RESET, ["put"])])
def test_kept_versions_are_not_asked_where_the_lineage_tells(fault: Fault, rest: list[str]) -> None:
    case = Case(stored(keeps_versions=True), (fault,))
    assert (case.outcome(), case.resource.requests) == (("committed", '"E2"'), ["read", "put", "read", *rest])


def test_of_the_newest_of_many_kept_versions_nothing_is_known() -> None:
    history = [Version(f'"E{number}"', Lineage()) for number in range(400)]
    found = [judge_by_versions(history, OP, f'"E{number}"') for number in (0, 398, 399)]
    assert found == [Verdict.NEVER, Verdict.NEVER, Verdict.UNKNOWN]


def test_kept_versions_tell_of_a_blob_that_was_deleted() -> None:
    store = stored(keeps_versions=True)
    assert Case(store, (LOST,), {3: store.delete}).outcome() == ("committed", None)


def test_versions_without_the_one_in_doubt_tell_nothing() -> None:
    history = [Version('"E1"', Lineage()), Version('"E2"', Lineage())]
    found = [judge_by_versions(history, OP, parent) for parent in ('"E1"', '"E2"', '"E9"', None)]
    assert found == [Verdict.NEVER, Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.UNKNOWN]


def test_a_transform_that_fails_after_a_doubt_leaves_nothing_that_can_land() -> None:
    store = stored()

    def fails_later(content: bytes) -> bytes:
        if content == b"2":
            raise TransformFailed("no")
        return plus_one(content)

    case = Case(store, (LATE, LATE), {3: others_update(store)})
    assert (case.outcome(fails_later), case.truth()) == ("transform_failed", (b"2", 0))


# The end of time, attempts or patience while in doubt


@pytest.mark.parametrize("stamps", [True, False])
def test_giving_up_in_doubt_is_said_only_after_a_fence(stamps: bool) -> None:
    store = stored()
    case = Case(store, (LATE,))
    assert (case.outcome(max_attempts=1, stamps=stamps), case.truth()) == ("unavailable", (b"1", 0))
    assert (case.resource.requests, case.kept) == (["read", "put", "read", "read", "fence"], [("unavailable", b"2")])


def test_giving_up_finds_a_write_that_landed_after_all() -> None:
    store = stored()
    case = Case(store, (LATE,), {4: store.deliver})
    assert (case.outcome(max_attempts=1), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_fence_in_doubt_is_asked_after_too() -> None:
    store = stored()
    case = Case(store, (LATE, LOST))
    assert (case.outcome(max_attempts=1), case.truth()) == ("unavailable", (b"1", 0))


def test_a_fence_that_comes_too_late_finds_the_write() -> None:
    store = stored()
    case = Case(store, (LATE,), {5: store.deliver})
    assert (case.outcome(max_attempts=1), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_fence_without_lineage_that_is_in_doubt_is_unknown() -> None:
    case = Case(stored(), (LATE, LOST))
    assert case.outcome(max_attempts=1, stamps=False) == "unknown"


def test_a_fence_that_never_gets_through_is_unknown() -> None:
    case = Case(stored(), (LATE, *[BUSY] * 100))
    assert (case.outcome(max_attempts=1), case.store.clock.now < 1010) == ("unknown", True)


def test_a_fence_that_is_forbidden_leaves_the_write_unknown() -> None:
    store = stored()

    def forbid() -> None:
        raise Refusal(403, "AuthorizationFailure")

    case = Case(store, (LATE,), {5: forbid})
    assert (case.outcome(max_attempts=1), case.seen, case.truth()) == ("unknown", 5, (b"2", 1))


def test_a_fence_waits_for_the_lease_of_another_update() -> None:
    store = stored()

    def lease() -> None:
        store.acquire('"E1"', "theirs", 2)

    case = Case(store, (LATE,), {4: lease})
    assert (case.outcome(max_attempts=1), case.truth()) == ("unavailable", (b"1", 0))


def test_a_fence_is_written_without_the_lease_that_was_lost() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 60)

    def end_it() -> None:
        store.lease = None

    case = Case(store, (LATE,), {4: end_it})
    assert (case.outcome(max_attempts=1, lease_id="theirs"), case.truth()) == ("unavailable", (b"1", 0))


def test_a_late_create_cannot_be_fenced_off() -> None:
    case = Case(Store(), (LATE,))
    assert case.outcome(create=b"1", max_attempts=1) == "unknown"


def test_a_create_in_doubt_is_found() -> None:
    assert Case(Store(), (LOST,)).outcome(create=b"1") == ("committed", '"E1"')


def test_a_create_in_doubt_beside_another_create_is_unknown_because_absence_can_recur() -> None:
    store = Store()

    def create() -> None:
        store.put(None, b"9", OTHER, str(Lineage().after(OTHER, None)), None)

    assert Case(store, (RESET,), {3: create}).outcome(create=b"1") == "unknown"


def test_a_read_that_fails_while_in_doubt_is_unknown_within_seconds_of_the_deadline() -> None:
    store = stored()
    case = Case(store, (LATE,), silent_from=3)
    assert (case.outcome(), store.clock.now <= 1066) == ("unknown", True)


def test_a_read_that_fails_with_nothing_in_doubt_ends_soon_as_unavailable() -> None:
    store = stored()
    case = Case(store, silent_from=1)
    assert (case.outcome(reach_seconds=4.0), store.clock.now) == ("unavailable", 1004.0)


def test_a_service_that_never_takes_a_write_is_unavailable() -> None:
    store = stored()
    case = Case(store, (REFUSED,) * 1000, timeout=5)
    assert (case.outcome(), case.truth(), case.kept) == ("unavailable", (b"1", 0), [("unavailable", b"2")])


def test_an_overloaded_service_is_not_hammered() -> None:
    case = Case(stored(), (BUSY,) * 1000)
    case.outcome()
    assert case.resource.requests.count("put") < 50


def test_what_is_overwritten_faster_than_it_can_be_read_is_given_up() -> None:
    case = Case(stored())

    def read(deadline: Deadline) -> CurrentVersion:
        raise Changed("overwritten while it was read")

    case.resource.read = read  # type: ignore[method-assign]  # of this case alone
    assert (case.outcome(), case.truth()) == ("gave_up", (b"1", 0))


def test_no_connection_to_the_end_does_not_settle_a_doubt() -> None:
    assert Case(stored(), (LATE, *[REFUSED] * 1000), timeout=5).outcome() == "unknown"


# Ctrl-C


def test_ctrl_c_in_flight_is_settled_before_leaving() -> None:
    case = Case(stored(), (CTRL_C,))
    ended = case.end()
    assert (ended.outcome, ended.attempts, ended.committed.etag, case.truth()) == ("committed", 1, '"E2"', (b"2", 1))


def test_ctrl_c_before_a_write_applies_nothing() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), others={1: press})
    assert (case.outcome(), case.truth()) == ("interrupted", (b"1", 0))


def test_ctrl_c_with_a_write_in_doubt_is_said_only_after_a_fence() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (LATE,), {3: press})
    assert (case.outcome(), case.truth()) == ("interrupted", (b"1", 0))


# Requests that the network sends twice


def test_a_refusal_of_a_second_copy_is_settled_by_the_read_that_comes_anyway() -> None:
    case = Case(stored(), (REPLAYED,))
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))
    assert case.resource.requests == ["read", "put", "read"]


def test_ctrl_c_after_the_refusal_of_a_second_copy_does_not_hide_the_first() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (REPLAYED,), {3: press})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_ctrl_c_after_another_writer_came_first_applies_nothing() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    store = stored()
    case = Case(store, others={2: others_update(store), 3: press})
    assert (case.outcome(), case.truth()) == ("interrupted", (b"2", 0))


def test_a_refusal_after_which_nothing_can_be_read_is_unknown() -> None:
    case = Case(stored(), (REPLAYED,), silent_from=3)
    assert (case.outcome(), case.truth()) == ("unknown", (b"2", 1))


def test_a_second_copy_that_meets_a_lease_is_settled_before_that_is_told() -> None:
    store = stored()
    case = Case(store, (REPLAYED,), {3: lambda: store.acquire('"E2"', "theirs", 60)})
    assert (case.outcome(), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_a_second_copy_of_a_create_finds_the_first() -> None:
    case = Case(Store(), (REPLAYED,))
    assert (case.outcome(create=b"0"), case.truth()) == (("committed", '"E1"'), (b"1", 1))


def test_without_a_lineage_what_equals_ours_is_not_written_again() -> None:
    case = Case(stored(b"41"), (REPLAYED,))
    assert (case.outcome(stamps=False), case.truth()[0]) == ("unknown", b"42")
    assert case.resource.requests == ["read", "put", "read"]


@pytest.mark.parametrize("theirs", [b"7", b"0"])
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

    case = Case(stored(), (REPLAYED,), {3: press})
    assert (case.outcome(stamps=False), case.truth()[0]) == ("unknown", b"2")


def test_without_a_lineage_what_a_lease_did_not_prove_in_time_is_not_written_again() -> None:
    # The first copy is committed, the lease lapses, and a foreign writer covers what would have told.
    store = stored()

    def lapse() -> None:
        store.clock.sleep(40)
        store.foreign_write(b"7")

    case = Case(store, (NONE, REPLAYED), {4: lapse})
    assert (case.outcome(guard_by_lease=True, stamps=False), case.truth()[0]) == ("unknown", b"7")


def test_a_create_that_another_came_before_is_a_conflict_though_a_lease_was_asked_for() -> None:
    store = Store()
    case = Case(store, others={2: lambda: store.foreign_write(b"7")})
    assert (case.outcome(create=b"1", guard_by_lease=True, stamps=False), case.truth()[0]) == (
        ("committed", '"E2"'),
        b"8",
    )


def test_without_a_lineage_what_needs_no_change_is_unchanged_by_whomever() -> None:
    case = Case(stored(), (REPLAYED,))
    assert (case.outcome(lambda content: b"2", stamps=False), case.truth()[0]) == (("unchanged", '"E2"'), b"2")


def test_a_lease_that_is_to_prove_outlives_three_late_answers() -> None:
    case = Case(stored())
    case.end(guard_by_lease=True)
    assert [told for told in case.told if "acquiring" in told] == ['lease: acquiring it on "E1" for 30 s']
    assert Deadline(60).answered_within(GUARD_ANSWER_SECONDS).answer_seconds * 3 <= GUARD_SECONDS


@pytest.mark.parametrize(("by_lease", "seconds"), [(True, 10.0), (False, 20.0)])
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
    shorter = deadline.answered_within(10)
    assert (shorter.remaining, shorter.answer_seconds, deadline.answer_seconds) == (40.0, 10, 20.0)


def test_under_our_own_lease_the_first_copy_is_proved_by_it() -> None:
    case = Case(stored(), (NONE, REPLAYED))
    ended = case.end(guard_by_lease=True, stamps=False)
    assert (ended.outcome, ended.committed.etag, ended.lineage) == ("committed", '"E2"', None)
    assert case.resource.requests == ["read", "acquire", "put", "head", "release"]


def test_ctrl_c_under_our_own_lease_does_not_hide_a_first_copy() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (NONE, REPLAYED), {4: press})
    assert case.outcome(guard_by_lease=True, stamps=False) == ("committed", '"E2"')


def test_ctrl_c_while_giving_up_still_settles() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (LATE,), {4: press})
    assert (case.outcome(max_attempts=1), case.truth()) == ("interrupted", (b"1", 0))


def test_a_second_ctrl_c_leaves_at_once_and_says_unknown() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (CTRL_C,), {3: press})
    assert (case.outcome(), case.truth()) == ("unknown", (b"2", 1))


def test_ctrl_c_after_the_commit_does_not_hide_it() -> None:
    case = Case(stored())

    def told(text: str) -> None:
        if "committed" in text:
            raise KeyboardInterrupt

    tools = UpdateHooks(tell=told)
    ended = update(case.resource, UpdatePlan(plus_one, OP), case.store.clock.deadline(), tools)
    assert (ended.outcome, case.truth()) == ("committed", (b"2", 1))


def test_ctrl_c_during_the_release_does_not_hide_the_commit() -> None:
    case = Case(stored(), (NONE, NONE, CTRL_C))
    assert case.outcome(guard_by_lease=True) == ("committed", '"E2"')


# Leases


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


def test_wait_lease_waits_for_a_lock() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 40)
    case = Case(store)
    ended = case.end(wait_lease=True, max_attempts=1)
    assert (ended.outcome, store.clock.now > 1040, case.resource.requests.count("put") < 70) == (
        "committed",
        True,
        True,
    )


def test_wait_lease_gives_up_at_the_deadline() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 600)
    case = Case(store)
    with pytest.raises(GaveUp, match="was leased by another holder after"):
        case.end(wait_lease=True)
    assert store.clock.now == 1060.0


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


def test_a_write_in_doubt_under_our_lease_is_ours_beside_any_writer() -> None:
    # Without a lineage nothing else could tell.
    case = Case(stored(), (NONE, LOST))
    assert (case.outcome(guard_by_lease=True, stamps=False), case.truth()) == (("committed", '"E2"'), (b"2", 0))
    assert case.resource.requests == ["read", "acquire", "put", "head", "release"]


@pytest.mark.parametrize("writes", [1, 9])
def test_our_lease_proves_a_write_whether_its_etag_sorts_before_or_behind_the_one_it_replaced(writes: int) -> None:
    store = stored()
    for _ in range(writes - 1):
        store.foreign_write()
    assert store.etag == f'"E{writes}"'
    assert Case(store, (NONE, LOST)).outcome(guard_by_lease=True, stamps=False) == ("committed", f'"E{writes + 1}"')


def test_a_write_that_our_lease_proved_is_told_with_its_lineage() -> None:
    ended = Case(stored(), (NONE, LOST)).end(guard_by_lease=True)
    assert (ended.committed.etag, ended.lineage) == ('"E2"', f"{OP}.E1")


def test_a_write_in_doubt_under_our_lease_that_did_not_land_is_sent_again() -> None:
    case = Case(stored(), (NONE, RESET))
    assert case.outcome(guard_by_lease=True) == ("committed", '"E2"')
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "put", "release"]


@pytest.mark.parametrize("fault", [LOST, RESET, LATE, BUSY, REFUSED])
def test_an_acquire_in_doubt_is_sent_again_with_the_same_id(fault: Fault) -> None:
    case = Case(stored(), (fault,))
    assert (case.outcome(guard_by_lease=True), case.store.active_lease()) == (("committed", '"E2"'), None)


def test_a_write_that_lands_after_the_look_under_our_lease_is_ours_too() -> None:
    store = stored()
    case = Case(store, (NONE, LATE), {5: store.deliver})
    assert case.outcome(guard_by_lease=True, stamps=False) == ("committed", '"E2"')


def test_a_write_that_lands_while_giving_up_under_our_lease_is_ours_too() -> None:
    store = stored()
    case = Case(store, (NONE, LATE), {6: store.deliver})
    assert case.outcome(guard_by_lease=True, stamps=False, max_attempts=1) == ("committed", '"E2"')


def test_an_acquire_in_doubt_counts_as_not_acquired() -> None:
    case = Case(stored(), (RESET,))
    case.end(guard_by_lease=True)
    assert case.resource.requests == ["read", "acquire", "read", "acquire", "put", "release"]


def test_a_lease_that_was_asked_for_is_wanted_to_the_end() -> None:
    # It was acquired for a slow transform, the answer was lost, and then the service slows down instead.
    store = stored()

    def slow(content: bytes) -> bytes:
        store.clock.sleep(1)
        return plus_one(content)

    others: dict[int, Callable[[], object]] = {number: others_update(store) for number in range(2, 10, 2)}
    case = Case(store, (NONE, NONE, NONE, NONE, LOST), {**others, 11: lambda: store.clock.sleep(1)})
    case.end(slow)
    assert case.resource.requests[8:] == ["read", "acquire", "read", "acquire", "put", "release"]


def test_a_lease_that_expired_in_our_hands_is_acquired_again() -> None:
    store = stored()
    case = Case(store, others={3: lambda: store.clock.sleep(40)})
    ended = case.end(guard_by_lease=True)
    assert (ended.outcome, ended.conflicts) == ("committed", 0)
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "acquire", "put", "release"]


@pytest.mark.parametrize(
    "error", [Locked("lost"), NotFound("gone"), Unavailable("silence")], ids=lambda error: error.kind
)
def test_a_lease_that_cannot_be_asked_after_proves_nothing_and_the_update_goes_on(error: AzguardError) -> None:
    case = Case(stored(), (NONE, RESET))

    def read_etag_under_lease(lease_id: str, deadline: Deadline) -> str:
        case.resource.requests.append("head")
        raise error

    case.resource.read_etag_under_lease = read_etag_under_lease  # type: ignore[method-assign]  # of this case alone
    assert (case.outcome(guard_by_lease=True), case.truth()) == (("committed", '"E2"'), (b"2", 1))
    assert case.resource.requests == ["read", "acquire", "put", "head", "read", "acquire", "put", "release"]


def test_a_lease_lost_while_in_doubt_leaves_it_to_the_lineage() -> None:
    store = stored()
    case = Case(store, (NONE, LOST), {4: lambda: store.clock.sleep(20)})
    assert (case.outcome(guard_by_lease=True), case.truth()) == (("committed", '"E2"'), (b"2", 1))


def test_ctrl_c_during_the_acquire_releases_what_may_have_been_acquired() -> None:
    case = Case(stored(), (CTRL_C,))
    assert (case.outcome(guard_by_lease=True), case.store.active_lease()) == ("interrupted", None)


@pytest.mark.parametrize("fault", [LOST, RESET, BUSY])
def test_a_release_in_doubt_is_sent_once_more(fault: Fault) -> None:
    case = Case(stored(), (NONE, NONE, fault))
    assert (case.outcome(guard_by_lease=True), case.store.active_lease()) == (("committed", '"E2"'), None)


def test_a_failing_transform_under_a_lease_releases_it() -> None:
    store = stored()
    case = Case(store, (NONE, RESET), {5: others_wait(store)})

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


# What the update leaves to others


def test_a_writer_waits_for_its_turn_and_gives_it_back() -> None:
    events: list[str] = []

    class Turn(AbstractContextManager[None]):
        def __enter__(self) -> None:
            events.append("enter")

        def __exit__(self, *args: object) -> None:
            events.append("leave")

    case = Case(stored(), turn=Turn)
    case.resource.before = events.append
    case.end()
    assert events == ["enter", "read", "put", "leave"]


def test_a_failure_of_ours_is_not_hidden() -> None:
    def broken(content: bytes) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Case(stored()).end(broken)


def test_a_preview_writes_nothing() -> None:
    case = Case(stored())
    found = preview(case.resource, UpdatePlan(plus_one, OP), case.store.clock.deadline())
    assert (found, case.resource.requests) == (Preview('"E1"', b"1", b"2"), ["read"])


def test_a_preview_of_a_create_starts_from_its_content() -> None:
    case = Case(Store())
    found = preview(case.resource, UpdatePlan(plus_one, OP, create=b"7"), case.store.clock.deadline())
    assert found == Preview(None, None, b"8")


# What became of an op


def asked(store: Store) -> Verdict:
    return find_outcome(FakeResource(store, forever([NONE])), OP, store.clock.deadline())


def test_an_op_in_the_lineage_is_committed() -> None:
    store = stored()
    Case(store).end()
    others_update(store)()
    assert asked(store) is Verdict.COMMITTED


def test_an_op_that_is_not_in_the_whole_history_is_not_committed() -> None:
    store = Store()
    store.put(None, b"1", OTHER, str(Lineage().after(OTHER, None)), None)
    assert asked(store) is Verdict.NOT_YET


def test_an_op_is_unknown_where_the_history_has_no_beginning() -> None:
    assert asked(stored()) is Verdict.UNKNOWN


def test_an_op_is_found_among_the_kept_versions() -> None:
    store = stored(keeps_versions=True)
    Case(store).end()
    store.foreign_write()
    assert asked(store) is Verdict.COMMITTED
    store.delete()
    assert asked(store) is Verdict.COMMITTED


def test_of_an_op_on_what_is_not_there_nothing_is_claimed() -> None:
    with pytest.raises(NotFound) as caught:
        asked(Store())
    assert caught.value.http_status == 404
