"""``lock run --terraform``: what a dead run left is released by its id, and no lock of another is ever touched."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import BlobLeaseClient, ContainerSasPermissions, generate_container_sas

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.faults.rules import operation
from tests.support import stand_in_terraform
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.lock_world import Locks

# Another Terraform on this machine keeps a lock from being released, one of another test too.
pytestmark = pytest.mark.xdist_group("terraform")

STAND_IN = (sys.executable, "-I", "-S", stand_in_terraform.__file__)


def url(world: Locks, state: str) -> str:
    """Return the address of a state, with all that the stand-in needs to lock it."""
    container, _, name = state.partition(":")[2].partition("/")
    allowed = ContainerSasPermissions.from_string("rwcd")
    token = generate_container_sas(
        EMULATOR_NAME, container, account_key=EMULATOR_KEY, permission=allowed, expiry="2099-01-01T00:00:00Z"
    )
    return f"http://127.0.0.1:{world.cli.port}/{EMULATOR_NAME}/{container}/{name}?{token}"


def terraform(world: Locks, state: str, end: str) -> tuple[str, ...]:
    """Return the words of a run of the stand-in on a state."""
    return ("--terraform", state, "--", *STAND_IN, url(world, state), end)


def is_locked(world: Locks, state: str) -> bool:
    return world.state(state) == "leased"


def notes(world: Locks) -> list[Path]:
    return list((world.cli.root / ".cache" / "runs").glob("*"))


def test_a_run_that_ends_by_itself_unlocks_its_state_itself(world: Locks) -> None:
    state = world.new()
    ran = world.run(*terraform(world, state, "unlock"))
    assert (ran.code, ran.err, is_locked(world, state), notes(world)) == (0, "", False, [])


def test_the_lease_of_a_run_that_died_is_released_by_its_id(world: Locks) -> None:
    state = world.new()
    ran = world.run(*terraform(world, state, "die"))
    assert (ran.code, world.state(state), notes(world)) == (137, "available", [])
    assert "is unlocked: the run that held it has died (Terraform 1.9.8, OperationTypeApply by" in ran.err


def test_a_run_that_died_in_a_shell_is_unlocked_too(world: Locks) -> None:
    state = world.new()
    words = shlex.join((*STAND_IN, url(world, state), "die"))
    assert (world.run("--terraform", state, "--", "sh", "-c", f"{words}; exit $?").code, world.state(state)) == (
        137,
        "available",
    )


def test_a_run_that_was_told_to_end_and_gave_up_is_unlocked(world: Locks) -> None:
    state = world.new()
    running = world.begin(*terraform(world, state, "interrupted"))
    until((world.cli.root / "locked").exists)
    running.send(signal.SIGTERM)
    assert (running.ended().code, world.state(state)) == (1, "available")


def test_what_azguard_left_when_it_was_killed_is_released_by_the_next_one(world: Locks) -> None:
    state = world.new()
    running = world.begin(*terraform(world, state, "hang"))
    until((world.cli.root / "locked").exists)
    running.send(signal.SIGKILL)
    running.ended()
    until(lambda: world.processes() == [])
    assert is_locked(world, state)
    ran = world.run("--no-wait", *terraform(world, state, "unlock"))
    assert (ran.code, world.state(state), notes(world)) == (0, "available", [])
    assert "is unlocked: the run that held it has died" in ran.err


def test_a_run_that_lives_still_is_not_unlocked_by_the_next_one(world: Locks) -> None:
    state = world.new()
    running = world.begin(*terraform(world, state, "hang"))
    until((world.cli.root / "locked").exists)
    ran = world.run("--no-wait", *terraform(world, state, "unlock"))
    assert (ran.code, is_locked(world, state)) == (75, True)
    assert "the command was not run" in ran.err
    running.send(signal.SIGTERM)
    running.ended()
    assert world.state(state) == "available"


def test_a_command_that_failed_by_itself_leaves_its_lock_and_says_so(world: Locks) -> None:
    state = world.new()
    ran = world.run(*terraform(world, state, "fail"))
    assert (ran.code, is_locked(world, state)) == (1, True)
    assert f"is still locked by Terraform 1.9.8, OperationTypeApply by {os.environ.get('USER', '')}" in ran.err


@pytest.mark.parametrize(
    ("who", "age"),
    [("root@another-machine", 0), ("alice@elsewhere", 0), (None, 3600)],
    ids=["machine", "user", "before"],
)
def test_a_lock_of_another_that_came_in_between_is_not_touched(world: Locks, who: str | None, age: int) -> None:
    state = world.new()
    world.blob(state).upload_blob(b"")
    running = world.begin("--terraform", state, "--", "sh", "-c", "touch begun; exec sleep 60")
    until((world.cli.root / "begun").exists)
    lease = stand_in_terraform.take(url(world, state), who, datetime.now(UTC) - timedelta(seconds=age))
    running.send(signal.SIGTERM)
    assert (running.ended().code, is_locked(world, state)) == (143, True)
    BlobLeaseClient(world.blob(state), lease).renew()


def test_a_lock_is_not_released_while_another_terraform_runs_on_this_machine(world: Locks) -> None:
    state, other = world.new(), world.cli.root / "terraform"
    shutil.copy(str(shutil.which("sleep")), other)
    with subprocess.Popen([str(other), "60"]) as process:
        try:
            ran = world.run(*terraform(world, state, "die"))
            assert (ran.code, is_locked(world, state)) == (137, True)
            assert f"stays locked: terraform (pid {process.pid}) may hold it" in ran.err
        finally:
            process.kill()
    assert world.run("--no-wait", *terraform(world, state, "unlock")).code == 0


def test_a_state_that_another_holds_is_waited_for_and_its_holder_is_shown(world: Locks) -> None:
    state = world.new()
    lease = stand_in_terraform.take(url(world, state), "ann@laptop")
    running = world.begin("--wait", "60s", *terraform(world, state, "unlock"))
    until(lambda: "waiting for" in running.err)
    assert not (world.cli.root / "locked").exists()
    BlobLeaseClient(world.blob(state), lease).release()
    ran = running.ended()
    assert ran.code == 0
    assert "by ann@laptop" in ran.err


def test_a_busy_state_is_75_or_what_was_asked_for(world: Locks) -> None:
    state = world.new()
    stand_in_terraform.take(url(world, state), "ann@laptop")
    assert world.run("--no-wait", *terraform(world, state, "unlock")).code == 75
    assert world.run("--no-wait", "-E", "0", *terraform(world, state, "unlock")).code == 0
    assert not (world.cli.root / "locked").exists()


def test_a_state_is_beside_other_locks(world: Locks) -> None:
    state, lock = world.new(), world.new()
    ran = world.run(lock, *terraform(world, state, "die"))
    assert (ran.code, world.state(state), world.state(lock)) == (137, "available", "available")


def test_a_lost_answer_to_the_release_is_settled(world: Locks) -> None:
    state, dropped = world.new(), list[proxy.Request]()

    def decide(request: proxy.Request) -> proxy.Fault:
        if operation(request) == "PUT lease:release" and not dropped:
            dropped.append(request)
            return proxy.Fault.DROP
        return proxy.Fault.NONE

    with proxy.running(world.cli.port, decide) as between:
        behind = Locks(world.cli.through(between.port), world.container, world.mark)
        ran = behind.run(*terraform(world, state, "die"))
    assert (ran.code, len(dropped), world.state(state), notes(world)) == (137, 1, "available", [])
