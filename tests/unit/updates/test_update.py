"""An update: what it sends and when, what it answers, and what it leaves as it is, interrupted or under a fence."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from azguard.errors import AzguardError, Changed, Locked, LockLost, NotFound
from azguard.requests.deadline import Deadline
from azguard.updates.resource import CommittedVersion, CurrentVersion, UpdateHooks, UpdatePlan, UpdateResult
from azguard.updates.update import Preview, preview, update
from azguard.wire.failures import Refusal
from tests.support.cases import cases
from tests.support.fake_resource import Fault, Store
from tests.support.update_case import OP, OTHER, Case, others_update, plus_one, stored


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
        base_length=1,
    )
    assert case.resource.requests == ["read", "put"]


def test_the_end_tells_which_version_of_another_it_is_merged_with() -> None:
    store = stored()
    ended = Case(store, others={2: others_update(store)}).end()
    assert ended.merged is not None
    assert (ended.outcome, ended.conflicts, ended.merged.etag) == ("committed", 1, '"E2"')


def test_what_comes_to_nothing_after_a_conflict_is_merged_with_nothing() -> None:
    store = stored()
    made: dict[bytes, bytes] = {b"1": b"2"}
    ended = Case(store, others={2: others_update(store)}).end(lambda content: made.get(content, content))
    assert (ended.outcome, ended.merged) == ("unchanged", None)


def test_a_guard_lease_costs_two_requests_more() -> None:
    case = Case(stored())
    ended = case.end(guard_by_lease=True)
    assert (ended.guard, case.resource.requests) == ("lease", ["read", "acquire", "put", "release"])


def test_a_guard_lease_is_named_though_nothing_had_to_be_written() -> None:
    assert Case(stored()).end(lambda content: content, guard_by_lease=True).guard == "lease"


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
    assert (ended.created, ended.guard, ended.lineage, case.truth()) == (
        True,
        "if-none-match",
        f"{OP}.-,all",
        (b"42", 1),
    )


def test_keys_are_listed_as_created_only_where_something_was_there() -> None:
    def list_created(source: bytes, made: bytes) -> tuple[str, ...]:
        return (f"{source.decode()} became {made.decode()}",)

    cases = [Case(stored()), Case(Store())]
    plan = UpdatePlan(plus_one, OP, create=b"7", list_created=list_created)
    shown = [preview(case.resource, plan, case.store.clock.deadline()).created_keys for case in cases]
    ended = [case.end(create=b"7", list_created=list_created).created_keys for case in cases]
    assert (shown, ended) == ([("1 became 2",), ()], [("1 became 2",), ()])


def test_an_op_that_is_in_the_lineage_is_not_applied_again() -> None:
    store = stored()
    Case(store).end()
    again = Case(store)
    assert (again.outcome(), again.resource.requests, again.truth()) == (("applied_before", None), ["read"], (b"2", 1))


def test_the_users_lease_is_written_under() -> None:
    store = stored()
    store.acquire('"E1"', "theirs", 60)
    ended = Case(store).end(lease_id="theirs")
    assert (ended.guard, store.active_lease()) == ("if-match", "theirs")


def test_a_writer_waits_for_its_turn_and_gives_it_back() -> None:
    events: list[str] = []

    class Queue(AbstractContextManager[None]):
        def __enter__(self) -> None:
            events.append("enter")

        def __exit__(self, *args: object) -> None:
            events.append("leave")

    case = Case(stored(), queue=Queue)
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


@cases(
    "refusal",
    Refusal(400, "InvalidBlockList"),
    Refusal(412, "ConditionNotMet"),
    Refusal(412, "LeaseIdMissing"),
    ids=lambda refusal: refusal.error_code,
)
def test_after_a_refusal_all_is_prepared_again_though_the_version_is_the_same(refusal: Refusal) -> None:
    case = Case(stored())
    prepared = counted(case, refusal)
    assert (case.outcome(), [state.etag for state in prepared]) == (("committed", '"E2"'), ['"E1"', '"E1"'])


@cases("fault", Fault.RESET, Fault.BUSY, Fault.REFUSED)
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


def test_ctrl_c_in_flight_is_settled_before_leaving() -> None:
    case = Case(stored(), (Fault.CTRL_C,))
    ended = case.end()
    assert (ended.outcome, ended.attempts, ended.committed.etag, case.truth()) == ("committed", 1, '"E2"', (b"2", 1))


def _press() -> None:
    raise KeyboardInterrupt


@cases(
    ("faults", "pressed_at", "plan", "outcome", "truth"),
    # Before the write: nothing is applied.
    ((), 1, {}, "interrupted", (b"1", 0)),
    # With a write in doubt: only after a fence.
    ((Fault.LATE,), 3, {}, "interrupted", (b"1", 0)),
    # Under our own lease: a first copy is not hidden.
    ((Fault.NONE, Fault.REPLAYED), 4, {"guard_by_lease": True, "stamps": False}, ("committed", '"E2"'), (b"2", 0)),
    # While giving up: settled all the same.
    ((Fault.LATE,), 4, {"max_attempts": 1}, "interrupted", (b"1", 0)),
    # A second time: at once, and unknown.
    ((Fault.CTRL_C,), 3, {}, "unknown", (b"2", 1)),
)
def test_ctrl_c_at_a_request_says_what_was_applied(
    faults: tuple[Fault, ...], pressed_at: int, plan: dict[str, Any], outcome: object, truth: tuple[bytes, int]
) -> None:
    case = Case(stored(), faults, {pressed_at: _press})
    assert (case.outcome(**plan), case.truth()) == (outcome, truth)


def test_ctrl_c_after_the_commit_does_not_hide_it() -> None:
    case = Case(stored())

    def told(text: str) -> None:
        if "committed" in text:
            raise KeyboardInterrupt

    tools = UpdateHooks(tell=told)
    ended = update(case.resource, UpdatePlan(plus_one, OP), case.store.clock.deadline(), tools)
    assert (ended.outcome, case.truth()) == ("committed", (b"2", 1))


def test_ctrl_c_during_the_release_does_not_hide_the_commit() -> None:
    case = Case(stored(), (Fault.NONE, Fault.NONE, Fault.CTRL_C))
    assert case.outcome(guard_by_lease=True) == ("committed", '"E2"')


def under(case: Case, fence: int | None) -> Case:
    """Let every version of the case have been written by the holder of this fence."""
    plain = case.resource.read

    def read(deadline: Deadline) -> CurrentVersion:
        return replace(plain(deadline), fence=fence)

    case.resource.read = read  # type: ignore[method-assign]  # of this case alone
    return case


@cases("found", None, 5, 7)
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
