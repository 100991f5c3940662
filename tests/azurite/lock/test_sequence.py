"""``lock run --sequence``: an old run never works after a newer one."""

import json
from pathlib import Path

import pytest

from tests.support.emulator_world import until
from tests.support.lock_world import NOTHING, Locks

_RUN = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7008"}


def test_a_lower_number_is_refused_once_a_higher_one_has_had_the_lock(world: Locks) -> None:
    lock = world.new()
    assert world.run(lock, "--sequence", "8", "--", "true", env=_RUN).code == 0
    assert world.run(lock, "--", "true").code == 0  # takes the owner's record, and has no number
    ran = world.run(lock, "--sequence", "7", "-o", "json", "--", "touch", "ran")
    error = json.loads(ran.err)["error"]
    url = "https://github.com/a/b/actions/runs/7008"
    message = f"run 7 is superseded: run 8 of {url} has held {lock.removeprefix('blob:')}"
    assert (ran.code, error["kind"], error["message"], (world.cli.root / "ran").exists()) == (
        42,
        "changed",
        message,
        False,
    )
    assert {name: error[name] for name in ("reason", "sequence", "highest_sequence", "highest_run")} == {
        "reason": "superseded", "sequence": 7, "highest_sequence": 8, "highest_run": url,
    }  # fmt: skip
    assert world.left(lock) == NOTHING


@pytest.mark.parametrize("fair", ["--fair", "--no-fair"])
def test_the_same_number_runs_again_and_a_higher_one_runs(world: Locks, fair: str) -> None:
    lock = world.new()
    numbers = ("5", "5", "6", "5", "6")
    assert [world.run(lock, "--sequence", each, fair, "--", "true").code for each in numbers] == [0, 0, 0, 42, 0]


@pytest.mark.parametrize("fair", ["--fair", "--no-fair"])
def test_a_waiter_that_is_superseded_ends_at_once(world: Locks, fair: str) -> None:
    lock = world.new()
    newer = world.begin_working(lock, "--sequence", "9")
    ran = world.run(lock, "--sequence", "8", "--wait", "10m", fair, "--", "true")
    newer.finish(0)
    assert (ran.code, newer.ended().code) == (42, 0)


def test_a_waiter_is_superseded_by_the_one_that_was_served_before_it(world: Locks) -> None:
    lock = world.new()
    first = world.begin_working(lock)
    newer = world.begin(lock, "--sequence", "9", "--wait", "10m", "--", "true")
    until(lambda: "1st in the queue" in newer.err)
    older = world.begin(lock, "--sequence", "8", "--wait", "10m", "--", "touch", "ran")
    until(lambda: "2nd in the queue" in older.err)
    first.finish(0)
    assert (newer.ended().code, older.ended().code, (world.cli.root / "ran").exists()) == (0, 42, False)
    assert world.left(lock) == NOTHING


def test_a_lock_that_is_held_for_later_steps_has_its_number_too(world: Locks) -> None:
    lock = world.new()
    assert world.run(lock, "--sequence", "8", "--", "true").code == 0
    ran = world.cli.fork("lock", "hold", lock, "--sequence", "7", env=world.marked())
    assert (ran.code, "run 7 is superseded" in ran.err, world.left(lock)) == (42, True, NOTHING)


def test_inside_a_lock_the_number_counts_too(world: Locks) -> None:
    lock = world.new()
    assert world.run(lock, "--sequence", "8", "--", "true").code == 0
    held = world.cli.fork("lock", "hold", lock, env=world.marked()).json
    inside = {
        "AZGUARD_LOCK": lock,
        "AZGUARD_LOCK_ENDPOINT": json.loads(Path(held["holder_file"]).read_text())["endpoint"],
        "AZGUARD_LEASE_ID": held["lease_id"],
        "AZGUARD_FENCE": str(held["fence"]),
        "AZGUARD_LOCK_DURATION": "60",
    }
    ran = [world.run(lock, "--sequence", each, "--", "true", env=inside).code for each in ("7", "8", "9")]
    again = [world.cli.call("lock", "hold", lock, "--sequence", each, env=inside).code for each in ("8", "10")]
    assert (ran, again, world.cli.call("lock", "release", lock).code) == ([42, 0, 0], [42, 0], 0)
    frozen = ["--sticky", "--reason", "incident", "--sequence"]
    assert [world.cli.call("lock", "hold", lock, *frozen, each).code for each in ("10", "9", "11")] == [0, 42, 0]
    assert world.cli.call("lock", "release", lock).code == 0
    assert world.run(lock, "--sequence", "10", "--", "true").code == 42
