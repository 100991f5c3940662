"""What the records on the disk are worth: the service decides, and a record only says what to ask it."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.emulator_world import until
from tests.support.lock_world import NOTHING, Locks, break_now, call, hold, is_gone

# The verbs of a job that is done, and what each ends with.
DONE = [("check", 0), ("release", "released"), ("release", "already_released"), ("check", 77)]


def outcomes(world: Locks, verbs: list[str], env: dict[str, str] | None = None) -> list[tuple[str, int | str]]:
    """Return what verbs without a name end with: the status, or the outcome of a release that is done."""
    ran = [(verb, call(world, verb, env=env)) for verb in verbs]
    return [(verb, each.json["outcome"] if verb == "release" and not each.code else each.code) for verb, each in ran]


def edit(held: Any, **changes: Any) -> None:
    file = Path(held["holder_file"])
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def kill(held: Any) -> None:
    os.kill(held["pid"], signal.SIGKILL)
    until(lambda: is_gone(held["pid"]))


def keep_from_writing(held: Any) -> None:
    """Keep all records from being written, for root too, with one that has not told of a renewal for long."""
    edit(held, ends=0.0)
    Path(held["holder_file"]).parent.chmod(0o777)


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_record_that_cannot_be_written_costs_no_lock_and_hides_no_loss(world: Locks, is_broken: bool) -> None:
    lock = world.new()
    held = hold(world, lock)
    keep_from_writing(held)
    if is_broken:
        break_now(world, lock)
        # That the loss was told cannot be written either.
        assert outcomes(world, ["check", "release", "release"]) == [("check", 77), ("release", 77), ("release", 77)]
    else:
        assert outcomes(world, [verb for verb, _ in DONE[:3]]) == DONE[:3]
    assert world.processes() == []


def test_a_cache_that_is_deleted_costs_no_lock(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock)
    shutil.rmtree(world.cli.root / ".cache")
    until(Path(held["holder_file"]).exists)
    assert (outcomes(world, [verb for verb, _ in DONE]), world.left(lock)) == (DONE, NOTHING)


def test_a_cache_of_another_machine_releases_by_its_id_alone_and_ends_no_process(world: Locks) -> None:
    lock, copy = world.new(), world.cli.root / "copy"
    held = hold(world, lock)
    shutil.copytree(world.cli.root / ".cache", copy)
    record = copy / "holds" / Path(held["holder_file"]).name
    # There the number is that of a process that has nothing to do with it.
    record.write_text(json.dumps({**json.loads(record.read_text()), "place": "other", "pid": os.getpid()}))
    there = {"AZGUARD_CACHE_DIR": str(copy)}
    assert outcomes(world, [verb for verb, _ in DONE], there) == DONE
    until(lambda: is_gone(held["pid"]))
    assert outcomes(world, ["check", "release"]) == [("check", 77), ("release", "already_released")]


@pytest.mark.parametrize("state", ["lost", "released", "left"])
def test_what_a_record_calls_over_is_released_if_the_service_holds_it(world: Locks, state: str) -> None:
    lock = world.new()
    held = hold(world, lock)
    kill(held)
    edit(held, state=state, why="so it says")
    assert (call(world, "check", lock).code, call(world, "release", lock).code, world.state(lock)) == (
        77, 0, "available"
    )  # fmt: skip


def test_what_a_record_calls_held_was_released_if_the_service_shows_it(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock)
    before = Path(held["holder_file"]).read_text()
    assert call(world, "release").code == 0
    Path(held["holder_file"]).write_text(before)
    assert outcomes(world, ["check", "release"]) == [("check", 77), ("release", "already_released")]


def test_a_service_that_does_not_answer_is_neither_yes_nor_no(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock)
    kill(held)
    for state in ("held", "lost", "released"):
        edit(held, state=state, endpoint="http://127.0.0.1:9/acc")
        nowhere = {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=acc;AccountKey=a2V5;"
                   "BlobEndpoint=http://127.0.0.1:9/acc"}  # fmt: skip
        codes = [call(world, verb, lock, "--timeout", "1s", env=nowhere).code for verb in ("check", "release")]
        assert codes == [53, 53]


# ---- a loss that was told


def test_a_loss_is_told_once_by_a_release(world: Locks) -> None:
    lost, other = world.new(), world.new()
    hold(world, lost)
    break_now(world, lost)
    assert outcomes(world, ["check", "release", "check", "release"]) == [
        ("check", 77), ("release", 77), ("check", 44), ("release", 44)
    ]  # fmt: skip
    # By its name it stays what it is.
    assert [call(world, verb, lost).code for verb in ("check", "release")] == [77, 77]
    hold(world, other)
    assert outcomes(world, [verb for verb, _ in DONE]) == DONE


def test_a_loss_that_was_not_told_counts_beside_what_is_held(world: Locks) -> None:
    lost, other = world.new(), world.new()
    for lock in (lost, other):
        hold(world, lock)
    break_now(world, lost)
    assert outcomes(world, ["check", "release", "release"]) == [
        ("check", 77), ("release", 77), ("release", "already_released")
    ]  # fmt: skip
    assert (world.state(other), world.processes()) == ("available", [])


def test_later_steps_do_not_find_a_loss_that_was_told(world: Locks) -> None:
    lost, other = world.new(), world.new()
    github = {"GITHUB_ENV": str(world.cli.file("github"))}

    def variables() -> dict[str, str]:
        lines = (line.partition("=") for line in (world.cli.root / "github").read_text().splitlines())
        return {**github, **{name: value for name, _, value in lines}}

    hold(world, lost, env=github)
    break_now(world, lost)
    before = variables()
    assert (call(world, "release", env=before).code, variables()["AZGUARD_LOCK"]) == (77, "")
    # A shell has the old variables until it reads the new ones.
    hold(world, other, env=before)
    assert variables()["AZGUARD_LOCK"] == other
    assert outcomes(world, ["check", "release"], variables()) == DONE[:2]


def test_two_holds_are_both_checked_in_the_step_of_the_second(world: Locks) -> None:
    one, two = sorted([world.new(), world.new()])
    hold(world, one, "--env-file", "env")
    lines = (line.partition("=") for line in (world.cli.root / "env").read_text().splitlines())
    step = {name: value.strip("'") for name, _, value in lines}
    hold(world, two, env=step)
    assert [each["address"] for each in call(world, "check", env=step).json] == [one, two]
    assert call(world, "release", env=step).code == 0
    assert [world.state(each) for each in (one, two)] == ["available", "available"]


# ---- jobs that share a scope

JOB = {
    "GITHUB_RUN_ID": "71", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_JOB": "deploy", "RUNNER_TRACKING_ID": "github_a1",
}  # fmt: skip
RERUN = {**JOB, "GITHUB_RUN_ATTEMPT": "2", "RUNNER_TRACKING_ID": "github_b2"}
OTHER = {**JOB, "GITHUB_JOB": "test", "RUNNER_TRACKING_ID": "github_c3"}


@pytest.mark.parametrize("job", [RERUN, OTHER])
@pytest.mark.parametrize("how", [(), ("--sticky", "--reason", "incident")], ids=["process", "sticky"])
def test_a_job_acts_on_its_own_holds_alone(world: Locks, job: dict[str, str], how: tuple[str, ...]) -> None:
    lock = world.new()
    held = hold(world, lock, *how, env=JOB)
    for words in (("check",), ("check", lock), ("release",), ("release", lock)):
        ran = call(world, *words, env=job)
        assert (ran.code, "job deploy, run 71, attempt 1" in ran.err) == (44, True)
    assert world.cli.call("lock", "hold", lock, "--no-wait", *how, env=job).code == 75
    assert (call(world, "check", env=JOB).code, world.state(lock)) == (0, "leased")
    # Whose it is does not matter to one who has the id.
    assert call(world, "release", lock, "--lease-id", held["lease_id"], env=job).code == 0


def test_a_loss_of_another_job_is_not_this_ones(world: Locks) -> None:
    lost, other = world.new(), world.new()
    hold(world, lost, env=JOB)
    break_now(world, lost)
    hold(world, other, env=RERUN)
    assert outcomes(world, [verb for verb, _ in DONE], RERUN) == DONE
    assert call(world, "release", env=JOB).code == 77


def test_a_lease_of_another_job_is_not_the_one_that_is_held(world: Locks) -> None:
    lock = world.new()
    world.blob(lock).upload_blob(b"")
    assert world.cli.call("lease", "acquire", lock, env=JOB).code == 0
    listed = [
        len(world.cli.call("lease", "list", "--mine", *words, env=OTHER).json) for words in ((), ("--all-scopes",))
    ]
    put = ("blob", "put", lock.removeprefix("blob:"), "--last-writer-wins", "--lease-id", "@held")
    refused = [world.cli.call(*words, stdin=b"x", env=OTHER) for words in (("lease", "release", lock), put)]
    assert listed == [0, 1]
    assert [(ran.code, "job deploy, run 71, attempt 1" in ran.err) for ran in refused] == [(44, True)] * 2
    assert [world.cli.call(*words, stdin=b"x", env=JOB).code for words in (put, ("lease", "release", lock))] == [0, 0]


def test_a_file_of_variables_that_jobs_share_does_not_pass_on_a_lock(world: Locks) -> None:
    one, two = world.new(), world.new()
    hold(world, one, "--env-file", "env", env=JOB)
    hold(world, two, "--env-file", "env", env=OTHER)
    told = [line for line in (world.cli.root / "env").read_text().splitlines() if line.startswith("AZGUARD_LOCK=")]
    assert told == [f"AZGUARD_LOCK={one}", f"AZGUARD_LOCK={two}"]
    assert [call(world, "release", env=env).code for env in (JOB, OTHER)] == [0, 0]
