"""What an update sends before its commit, such as blocks: when it is sent again."""

from typing import Any

from azguard.errors import AzguardError, Changed, Locked, NotFound
from azguard.updates.resource import CommittedVersion, CurrentVersion
from tests.support.cases import cases
from tests.support.fake_resource import Fault, Refusal, Store
from tests.support.update_case import Case, stored


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
    [Refusal(400, "InvalidBlockList"), Refusal(412, "ConditionNotMet"), Refusal(412, "LeaseIdMissing")],
    ids=lambda refusal: refusal.error_code,
)
def test_after_a_refusal_all_is_prepared_again_though_the_version_is_the_same(refusal: Refusal) -> None:
    case = Case(stored())
    prepared = counted(case, refusal)
    assert (case.outcome(), [state.etag for state in prepared]) == (("committed", '"E2"'), ['"E1"', '"E1"'])


@cases("fault", [Fault.RESET, Fault.BUSY, Fault.REFUSED])
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
