"""Ctrl-C during an update: it is settled before it leaves."""

from azguard.updates.plan import UpdateHooks, UpdatePlan
from azguard.updates.update import update
from tests.support.fake_resource import Fault
from tests.support.update_case import OP, Case, plus_one, stored


def test_ctrl_c_in_flight_is_settled_before_leaving() -> None:
    case = Case(stored(), (Fault.CTRL_C,))
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

    case = Case(stored(), (Fault.LATE,), {3: press})
    assert (case.outcome(), case.truth()) == ("interrupted", (b"1", 0))


def test_ctrl_c_under_our_own_lease_does_not_hide_a_first_copy() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (Fault.NONE, Fault.REPLAYED), {4: press})
    assert case.outcome(guard_by_lease=True, stamps=False) == ("committed", '"E2"')


def test_ctrl_c_while_giving_up_still_settles() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (Fault.LATE,), {4: press})
    assert (case.outcome(max_attempts=1), case.truth()) == ("interrupted", (b"1", 0))


def test_a_second_ctrl_c_leaves_at_once_and_says_unknown() -> None:
    def press() -> None:
        raise KeyboardInterrupt

    case = Case(stored(), (Fault.CTRL_C,), {3: press})
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
    case = Case(stored(), (Fault.NONE, Fault.NONE, Fault.CTRL_C))
    assert case.outcome(guard_by_lease=True) == ("committed", '"E2"')
