"""Updates by the holder of a lock: never over what a later holder wrote."""

from dataclasses import replace

import pytest

from azguard.errors import LockLost
from azguard.requests.deadline import Deadline
from azguard.updates.plan import UpdatePlan
from azguard.updates.resource import CurrentVersion
from azguard.updates.update import preview
from tests.support.cases import cases
from tests.support.update_case import OP, Case, plus_one, stored


def under(case: Case, fence: int | None) -> Case:
    """Let every version of the case have been written by the holder of this fence."""
    plain = case.resource.read

    def read(deadline: Deadline) -> CurrentVersion:
        return replace(plain(deadline), fence=fence)

    case.resource.read = read  # type: ignore[method-assign]  # of this case alone
    return case


@cases("found", [None, 5, 7])
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
