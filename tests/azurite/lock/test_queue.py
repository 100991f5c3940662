"""The waiters of a lock, as they and an operator see them, and what they leave behind."""

import signal
from typing import Any

import pytest
from azure.storage.blob import ContainerSasPermissions, generate_blob_sas, generate_container_sas

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.support.emulator_world import until
from tests.support.lock_world import NOTHING, Locks, Running


def wait_in_line(world: Locks, lock: str, *words: str, place: str) -> Running:
    """Begin a run, and wait until it has its place in the queue."""
    running = world.begin(lock, "--wait", "10m", *words)
    until(lambda: f"{place} in the queue" in running.err)
    return running


def blobs(world: Locks) -> list[str]:
    """Return the names of the locks of this world and of all blobs beside them, histories left out."""
    names = [each["name"] for each in world.cli.call("blob", "list", world.container).json]
    return [name for name in names if not name.endswith("!log")]


def test_waiters_are_shown_with_their_places_and_their_reasons(world: Locks) -> None:
    lock = world.new()
    holder = world.begin_working(lock)
    first = wait_in_line(world, lock, "--reason", "nightly", "--", "true", place="1st")
    second = wait_in_line(world, lock, "--", "true", place="2nd")
    shown = world.cli.call("lock", "show", lock).json
    waiters = [(each["place"], each["reason"], each["is_shared"]) for each in shown["waiters"]]
    assert (shown["state"], waiters) == ("held", [(1, "nightly", False), (2, None, False)])
    assert [each["address"] for each in world.cli.call("lock", "list", world.container).json] == [lock]
    assert [each["address"] for each in world.cli.call("lease", "list", world.container).json] == [lock]
    holder.finish(0)
    assert [each.ended().code for each in (holder, first, second)] == [0, 0, 0]
    assert (world.left(lock), blobs(world)) == (NOTHING, [lock.rpartition("/")[2]])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_waiter_that_is_ended_leaves_no_ticket(world: Locks, number: signal.Signals) -> None:
    lock = world.new()
    with world.taken(lock):
        waiter = wait_in_line(world, lock, "--", "true", place="1st")
        assert len(blobs(world)) == 2
        waiter.send(number)
        assert waiter.ended().code == 128 + number
        assert blobs(world) == [lock.rpartition("/")[2]]


def test_a_newcomer_does_not_take_a_free_lock_from_those_who_wait(world: Locks) -> None:
    lock = world.new()
    with world.taken(lock):
        waiter = wait_in_line(world, lock, "--", "true", place="1st")
        waiter.send(signal.SIGSTOP)
    ran = world.run(lock, "--no-wait", "--", "true")
    plain = world.run(lock, "--no-wait", "--no-fair", "--", "true")
    waiter.send(signal.SIGCONT)
    short = lock.removeprefix("blob:")
    assert (ran.code, f"{short} is free, and 1 waits for it already" in ran.err) == (75, True)
    assert (plain.code, waiter.ended().code) == (0, 0)


def test_a_lock_is_not_confused_with_one_whose_name_begins_like_its_own(world: Locks) -> None:
    lock = world.new()
    assert world.run(f"{lock}-prod", "--", "true").code == 0
    assert world.run(f"{lock}.slot2", "--", "true").code == 0
    with world.taken(f"{lock}-prod"):
        waiter = wait_in_line(world, f"{lock}-prod", "--", "true", place="1st")
        assert world.run(lock, "--no-wait", "--", "true").code == 0
    assert waiter.ended().code == 0


@pytest.mark.parametrize("permission", ["rwc", "rwcl", "blob"])
def test_without_the_right_to_keep_tickets_a_lock_is_waited_for_all_the_same(world: Locks, permission: str) -> None:
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    name = lock.rpartition("/")[2]
    signing: dict[str, Any] = {"account_key": EMULATOR_KEY, "expiry": "2099-01-01T00:00:00Z"}
    if permission == "blob":
        token = generate_blob_sas(EMULATOR_NAME, world.container, name, permission="rwc", **signing)
    else:
        allowed = ContainerSasPermissions.from_string(permission)
        token = generate_container_sas(EMULATOR_NAME, world.container, permission=allowed, **signing)
    url = f"http://127.0.0.1:{world.cli.port}/{EMULATOR_NAME}/{world.container}/{name}?{token}"
    with world.taken(lock):
        waiter = world.begin(url, "--wait", "1m", "--", "true")
        until(lambda: "waiting for" in waiter.err)
    ran = waiter.ended()
    assert (ran.code, ran.err.count("others may be served first"), blobs(world)) == (0, 1, [name])


def test_a_lock_whose_name_leaves_no_room_for_a_ticket_is_waited_for_without_a_queue(world: Locks) -> None:
    lock = f"blob:{world.container}/{'n' * 1020}"
    with world.taken(lock):
        waiter = world.begin(lock, "--wait", "1m", "--", "true")
        until(lambda: "is leased" in waiter.err)
    assert waiter.ended().code == 0
