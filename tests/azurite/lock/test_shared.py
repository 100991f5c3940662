"""``--shared``: readers beside each other, and never beside a writer."""

import os
import signal
from typing import Any

from tests.support.cli_world import command
from tests.support.emulator_world import until
from tests.support.lock_world import NOTHING, Locks, break_now, is_gone


def readers(world: Locks, lock: str) -> list[str]:
    return [each["address"] for each in world.cli.call("lock", "show", lock).json["readers"]]


def test_readers_are_inside_together_and_a_writer_waits_for_them(world: Locks) -> None:
    lock = world.new()
    first, second = (world.begin_working(lock, "--shared") for _ in range(2))
    assert len(readers(world, lock)) == 2
    writer = world.begin(lock, "--wait", "10m", "--", "true")
    until(lambda: "2 readers are under" in writer.err)
    late = world.begin(lock, "--shared", "--wait", "10m", "--", "true")
    until(lambda: "in the queue" in late.err)
    first.finish(0)
    until(lambda: "one reader is under" in writer.err)
    second.finish(3)
    assert [each.ended().code for each in (first, second, writer, late)] == [0, 3, 0, 0]
    assert (world.left(lock), world.fence(lock), readers(world, lock)) == (NOTHING, 1, [])


def test_the_first_reader_in_a_container_that_is_not_there_yet_reads_at_once(world: Locks) -> None:
    lock = f"blob:{world.cli.container()}-new/lock"
    assert world.run(lock, "--shared", "--no-wait", "--", "true").code == 0


def test_a_reader_waits_for_a_writer(world: Locks) -> None:
    lock = world.new()
    writer = world.begin_working(lock)
    busy = world.run(lock, "--shared", "--no-wait", "--", "true")
    reader = world.begin(lock, "--shared", "--wait", "10m", "--", "sh", "-c", 'echo "$AZGUARD_FENCE"')
    until(lambda: "1st in the queue" in reader.err)
    writer.finish(0)
    ended = reader.ended()
    assert (busy.code, writer.ended().code, ended.code, ended.out) == (75, 0, 0, "1\n")
    assert world.left(lock) == NOTHING


def test_a_writer_gives_up_while_readers_are_inside_and_lets_new_ones_in(world: Locks) -> None:
    lock = world.new()
    reader = world.begin_working(lock, "--shared")
    hasty = world.run(lock, "--no-wait", "--", "true")
    assert (hasty.code, "one reader is under" in hasty.err, "left to wait" in hasty.err) == (75, True, False)
    ran = world.run(lock, "--wait", "2s", "--", "true")
    assert (ran.code, "one reader is under" in ran.err, world.state(lock)) == (75, True, "available")
    told = world.cli.call("lock", "log", lock).json[-1]
    assert (told["outcome"], told["why"]) == ("gave_up", "readers were still inside, and its command was not run")
    assert world.run(lock, "--shared", "--no-wait", "--", "true").code == 0
    reader.finish(0)
    assert reader.ended().code == 0


def test_a_reader_whose_lease_is_broken_is_ended(world: Locks) -> None:
    lock = world.new()
    reader = world.begin_working(lock, "--shared")
    break_now(world, readers(world, lock)[0])
    assert reader.ended().code == 77
    assert world.run(lock, "--no-wait", "--", "true").code == 0


def test_inside_a_reader_the_same_lock_is_read_at_once_and_never_held_alone(world: Locks) -> None:
    lock = world.new()
    words = command("lock", "run", lock)
    nested = world.run(lock, "--shared", "--", *words, "--shared", "--no-wait", "--", "true")
    alone = world.run(lock, "--shared", "--", *words, "--", "true")
    assert (nested.code, alone.code, "cannot hold it alone" in alone.err, world.left(lock)) == (0, 2, True, NOTHING)


def test_slots_and_readers_do_not_mix(world: Locks) -> None:
    read, three = world.new(), world.new()
    assert world.run(read, "--shared", "--", "true").code == 0
    assert world.run(three, "--slots", "3", "--", "true").code == 0
    assert world.run(read, "--slots", "3", "--", "true").code == 2
    assert world.run(three, "--shared", "--", "true").code == 2


OTHER_JOB = {"AZGUARD_SCOPE": "other"}


def hold(world: Locks, lock: str, *words: str, env: dict[str, str] | None = None) -> Any:
    """Hold a lock and return what was printed."""
    ran = world.cli.fork("lock", "hold", lock, *words, env=world.marked(env))
    assert ran.code == 0, ran.err
    return ran.json


def test_two_jobs_read_over_their_steps_and_a_writer_comes_in_when_both_have_released(world: Locks) -> None:
    lock = world.new()
    first, second = hold(world, lock, "--shared", "--for", "1h"), hold(world, lock, "--shared", env=OTHER_JOB)
    writer = world.begin(lock, "--wait", "10m", "--", "true", env={"AZGUARD_SCOPE": "third"})
    until(lambda: "2 readers are under" in writer.err)
    busy = world.cli.fork("lock", "hold", lock, "--shared", "--no-wait", env=world.marked({"AZGUARD_SCOPE": "fourth"}))
    checked = [world.cli.call("lock", "check", *name).json["address"] for name in ((), (lock,))]
    released = [world.cli.call("lock", "release", lock, env=env).json for env in (None, None, OTHER_JOB)]
    assert (busy.code, checked, first["until"] is not None) == (75, [first["address"]] * 2, True)
    assert [(each["address"], each["outcome"]) for each in released] == [
        (first["address"], "released"), (first["address"], "already_released"), (second["address"], "released")
    ]  # fmt: skip
    assert (writer.ended().code, world.left(lock), readers(world, lock)) == (0, NOTHING, [])


def test_a_job_that_reads_twice_releases_both(world: Locks) -> None:
    lock = world.new()
    first, second = hold(world, lock, "--shared", "--for", "1h"), hold(world, lock, "--shared", "--for", "1h")
    released = [world.cli.call("lock", "release", lock).json["address"] for _ in "12"]
    assert (sorted(released), readers(world, lock)) == (sorted([first["address"], second["address"]]), [])


def test_a_job_that_reads_runs_steps_under_its_lock_and_never_alone(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, "--shared")
    env = {
        "AZGUARD_LOCK": held["address"],
        "AZGUARD_LOCK_ENDPOINT": f"http://127.0.0.1:{world.cli.port}/devstoreaccount1",
        "AZGUARD_LEASE_ID": held["lease_id"],
        "AZGUARD_FENCE": str(held["fence"]),
        "AZGUARD_LOCK_DURATION": "60",
    }
    step = world.run(lock, "--shared", "--no-wait", "--", "sh", "-c", "echo $AZGUARD_LEASE_ID", env=env)
    alone = [world.run(lock, "--", "true", env=env).code, world.cli.call("lock", "hold", lock, env=env).code]
    again = world.cli.call("lock", "hold", lock, "--shared", env=env).json
    working = world.begin_working(lock, "--shared", "--grace", "1s", env=env)
    break_now(world, held["address"])
    assert (step.out, alone, again["outcome"], working.ended().code) == (
        f"{held['lease_id']}\n", [2, 2], "already_held", 77
    )  # fmt: skip
    codes = [world.cli.call("lock", verb, env=env).code for verb in ("check", "release")]
    assert (codes, world.processes()) == ([77, 77], [])


def test_a_reader_over_steps_whose_process_is_killed_is_told_so_and_still_keeps_writers_out(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, "--shared", "--lease-duration", "15s")
    os.kill(held["pid"], signal.SIGKILL)
    until(lambda: is_gone(held["pid"]))
    busy = world.run(lock, "--no-wait", "--", "true", env=OTHER_JOB)
    assert (world.cli.call("lock", "check", lock).code, busy.code) == (77, 75)
