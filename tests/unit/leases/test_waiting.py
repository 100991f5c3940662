"""Waiting for the lease of another holder: until it is free, or the time is up."""

import pytest

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import GaveUp, NotFound
from azguard.leases import shown
from azguard.leases.owners import OWNER, Owner
from azguard.leases.state import LeaseState
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.support.lease_script import Answer, now_is, scripted


def held_by(who: str) -> Answer:
    return now_is("leased", {OWNER: Owner(who, "build1", 7, "deploy.sh", None).tie_to_lease(who, None).as_metadata()})


def wait(target: Target, clock: Clock, told: list[str | None], seconds: float = 60) -> LeaseState:
    """Wait for a lease with the longest pauses, and note each holder that is told."""

    def tell(state: LeaseState) -> None:
        told.append(None if state.holder is None else state.holder.name)

    return shown.wait_until_free(target, clock.deadline(seconds), tell, max)


@cases("state", "available", "expired", "broken")
def test_a_lease_that_is_free_is_not_waited_for(state: str) -> None:
    target, service = scripted(Kind.BLOB, now_is(state))
    clock, told = Clock(), list[str | None]()
    assert (wait(target, clock, told).state, clock.now, told, len(service.asked)) == (state, 1000.0, [], 1)


def test_a_lease_is_looked_at_about_once_a_second_until_it_is_free() -> None:
    target, service = scripted(Kind.BLOB, held_by("alice"), now_is("breaking"), held_by("alice"), now_is("available"))
    clock = Clock()
    assert (wait(target, clock, []).state, clock.now, len(service.asked)) == ("available", 1003.0, 4)


def test_a_holder_is_told_once_and_the_next_one_again() -> None:
    answers = [held_by(who) for who in ("alice", "alice", "bob", "bob", "alice")]
    target, _ = scripted(Kind.BLOB, *answers, now_is("available"))
    told: list[str | None] = []
    wait(target, Clock(), told)
    assert told == ["alice@build1", "bob@build1", "alice@build1"]


def test_the_end_of_the_time_says_who_still_holds_the_lease() -> None:
    target, service = scripted(Kind.BLOB, *[held_by("alice")] * 4)
    clock = Clock()
    with pytest.raises(GaveUp) as caught:
        wait(target, clock, [], seconds=2.5)
    error = caught.value
    assert (error.message, error.reason, error.detail, error.lease_state) == (
        "site/a is still leased after 2s",
        "lease_not_free_in_time",
        ("held by alice@build1, pid 7: deploy.sh",),
        "leased",
    )
    # The last look is at the end of the time itself, not before it.
    assert (clock.now, len(service.asked)) == (1002.5, 4)


def test_without_time_the_lease_is_looked_at_once() -> None:
    target, service = scripted(Kind.BLOB, now_is("leased"))
    with pytest.raises(GaveUp) as caught:
        wait(target, Clock(), [], seconds=0)
    assert (caught.value.detail, len(service.asked)) == ((), 1)


def test_what_is_deleted_meanwhile_is_waited_for_no_longer() -> None:
    target, _ = scripted(Kind.BLOB, held_by("alice"), (404, "BlobNotFound", {}))
    with pytest.raises(NotFound):
        wait(target, Clock(), [])
