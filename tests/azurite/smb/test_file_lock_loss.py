"""How a locked file is lost or freed while a command runs."""

import os
import signal

import pytest

from tests.support.cli_world import Ran
from tests.support.emulator_world import until
from tests.support.file_lock_world import FileLockWorld, Share
from tests.support.lock_world import is_gone, wait_for_file

LOST = (77, "error: the lock was lost while the command ran")


def told(ran: Ran) -> tuple[int, str]:
    """Return the exit status, and the first line of the error."""
    return ran.code, next((line for line in ran.err.splitlines() if line.startswith("error: ")), ran.err)


def close_by_force(share: Share, file: str) -> None:
    """Close the file as an operator does through REST."""
    assert share.file(file).close_all_handles()["closed_handles_count"] == 1


def test_a_handle_that_an_operator_closed_ends_the_command_and_what_it_started(
    world: FileLockWorld, share: Share
) -> None:
    file = world.new()
    working = world.begin_working(file, traits="family")
    close_by_force(share, file)
    assert told(working.ended()) == LOST
    assert world.processes() == []


def test_the_command_goes_on_without_the_lock_if_that_was_asked_for(world: FileLockWorld, share: Share) -> None:
    file = world.new()
    working = world.begin_working(file, "--on-lost", "continue")
    close_by_force(share, file)
    until(lambda: "the command goes on" in working.running.err)
    assert not is_gone(working.pid)
    working.finish(0)
    assert told(working.ended()) == LOST


def test_a_stopped_azguard_loses_the_command_and_keeps_the_file(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file, "--lost-after", "12s", "--grace", "1s")
    working.running.send(signal.SIGSTOP)
    until(lambda: is_gone(working.pid))
    assert world.run(file, "--no-wait", "--", "true").code == 75
    working.running.send(signal.SIGCONT)
    assert told(working.ended()) == LOST


@pytest.mark.parametrize("traits", ["", "deaf"])
def test_after_the_kill_of_its_holder_the_command_goes_before_its_lock(world: FileLockWorld, traits: str) -> None:
    file = world.new()
    working = world.begin_working(file, "--grace", "1s", traits=traits)
    entered = world.cli.root / "entered"
    waiting = world.begin(file, "--", "sh", "-c", f"cut -d' ' -f1 /proc/uptime > {entered}")
    until(lambda: "waiting for" in waiting.err)
    working.running.send(signal.SIGKILL)
    assert waiting.ended().code == 0
    # The kernel rounds the time since its start down to a hundredth.
    assert float(wait_for_file(entered)) + 0.01 >= working.last_life()
    assert is_gone(working.pid)


def test_the_kill_of_the_guardian_ends_the_command_and_frees_the_file(world: FileLockWorld) -> None:
    file = world.new()
    working = world.begin_working(file)
    os.kill(working.guardian, signal.SIGKILL)
    assert working.ended().code == 137
    assert (world.run(file, "--no-wait", "--", "true").code, world.processes()) == (0, [])
