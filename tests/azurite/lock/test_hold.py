"""``lock hold``: a lock over several steps, by a process that stays; and the steps that ask for it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.rules import Rule, by_rules
from tests.support.cli_world import Ran, command
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault
from tests.support.lock_world import NOTHING, Locks, break_now, call, hold, is_gone, now


def lost(ran: Ran) -> tuple[int, str]:
    return ran.code, ran.err.split('"kind": "')[1].split('"')[0]


def test_a_lock_is_held_from_step_to_step_until_it_is_released(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, "--reason", "release 4")
    steps = [call(world, "check", lock).code, world.run(lock, "--no-wait", "--", "true", env=OTHER_JOB).code]
    shown = call(world, "show", lock).json["owner"]
    released = call(world, "release", lock).json
    assert (steps, shown["pid"], shown["reason"], released["outcome"], released["lease_id"], world.left(lock)) == (
        [0, 75], held["pid"], "release 4", "released", held["lease_id"], NOTHING
    )  # fmt: skip


OTHER_JOB = {"AZGUARD_SCOPE": "other"}


@pytest.mark.parametrize(
    ("taken", "asked", "code"),
    [
        ((), ("run",), 49),
        ((), ("run", "-E", "0"), 49),
        ((), ("run", "--shared"), 49),
        ((), ("hold", "--no-wait"), 49),
        (("--shared",), ("run",), 49),
        (("--shared",), ("run", "--shared"), 0),
        (("--sticky", "--reason", "freeze"), ("run",), 49),
        (("--for", "1h"), ("run", "--no-wait"), 49),
        (("--for", "3s"), ("run", "--wait", "40s"), 0),
    ],
)
def test_a_job_does_not_wait_for_the_lock_that_it_holds(
    world: Locks, taken: tuple[str, ...], asked: tuple[str, ...], code: int
) -> None:
    lock = world.new()
    assert world.cli.fork("lock", "hold", lock, *taken, env=world.marked(None)).code == 0
    asks, *words = asked
    command = ("--", "touch", str(world.cli.root / "ran")) if asks == "run" else ()
    ran = world.cli.fork("lock", asks, lock, *words, *command, env=world.marked(None))
    verb = "reads under" if "--shared" in taken else "holds"
    own = f"error: this scope {verb} {lock.removeprefix('blob:')} already"
    assert (ran.code, ran.err.startswith(own), (world.cli.root / "ran").exists()) == (code, code == 49, code == 0)
    call(world, "release", lock)


def test_a_job_that_holds_the_lock_is_told_both_ways_on_before_any_lock_is_taken(world: Locks) -> None:
    lock, first = world.new(), world.new()
    held = hold(world, lock, "--reason", "release 4", "--env-file", "env")
    other = world.run(lock, "--no-wait", "--", "true", env=OTHER_JOB)
    ran = world.run(first, lock, "-o", "json", "--", "true")
    use = f"use it: set -a; . {world.cli.root / 'env'}; then type this again"
    assert ran.error["hint"] == f"{use}\n      or release it: azguard lock release {lock}"
    assert (ran.error["reason"], world.state(first), other.code) == ("release 4", "absent", 75)
    under = world.run(lock, "--", "true", env=variables(held, world))
    assert (under.code, call(world, "release", lock).code) == (0, 0)


def test_a_record_of_a_lock_that_another_holds_refuses_nothing(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock)
    os.kill(held["pid"], signal.SIGSTOP)
    break_now(world, lock)
    with world.taken(lock):
        ran = world.run(lock, "--no-wait", "--", "true")
    assert (ran.code, "by others" in ran.err, "this scope" in ran.err) == (75, True, False)
    os.kill(held["pid"], signal.SIGKILL)


def test_a_second_release_does_nothing(world: Locks) -> None:
    lock = world.new()
    hold(world, lock)
    first, second = call(world, "release", lock), call(world, "release", lock)
    assert [(ran.code, ran.json["outcome"]) for ran in (first, second)] == [(0, "released"), (0, "already_released")]


def test_a_second_release_without_a_name_does_nothing_and_a_check_says_that_it_was_released(world: Locks) -> None:
    lock = world.new()
    hold(world, lock)
    codes = [call(world, verb).code for verb in ("release", "release", "check")]
    assert codes == [0, 0, 77]


def test_a_second_release_from_another_machine_does_nothing(world: Locks) -> None:
    lock = world.new()
    found = variables(hold(world, lock, "--env-file", "env"), world)
    assert call(world, "release", lock).code == 0
    elsewhere = {**found, "AZGUARD_CACHE_DIR": str(world.cli.root / "elsewhere")}
    ran = call(world, "release", lock, env=elsewhere)
    assert (ran.code, ran.json["outcome"]) == (0, "already_released")


def test_a_lock_of_the_next_holder_is_not_released(world: Locks) -> None:
    lock = world.new()
    found = variables(hold(world, lock, "--env-file", "env"), world)
    break_now(world, lock)
    other = hold(world, lock, env=OTHER_JOB)
    ran = call(world, "release", lock, env=found)
    assert (lost(ran), call(world, "check", lock, env=OTHER_JOB).json["lease_id"]) == (
        (77, "lock_lost"), other["lease_id"]
    )  # fmt: skip
    call(world, "release", lock, env=OTHER_JOB)


def test_a_broken_lock_is_lost_for_the_steps_that_follow(world: Locks) -> None:
    lock, metrics = world.new(), world.cli.root / "metrics"
    hold(world, lock, "--metrics", str(metrics))
    assert "azguard_lock_held{" in metrics.read_text()
    assert call(world, "break", lock, "--yes").code == 0
    assert (lost(call(world, "check", lock)), lost(call(world, "check"))) == ((77, "lock_lost"), (77, "lock_lost"))


def test_a_process_that_was_killed_is_known_before_its_lease_ends(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock)
    os.kill(held["pid"], signal.SIGKILL)
    until(lambda: is_gone(held["pid"]))
    checked = call(world, "check", lock)
    assert (lost(checked), world.state(lock)) == ((77, "lock_lost"), "leased")
    assert (call(world, "release", lock).code, world.left(lock)) == (0, NOTHING)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_told_to_end_releases_the_lock(world: Locks, number: int) -> None:
    lock = world.new()
    held = hold(world, lock)
    os.kill(held["pid"], number)
    until(lambda: is_gone(held["pid"]))
    assert (world.left(lock), lost(call(world, "check", lock))) == (NOTHING, (77, "lock_lost"))


def test_a_process_that_is_stopped_is_ended_by_the_release(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock)
    os.kill(held["pid"], signal.SIGSTOP)
    assert (call(world, "release", lock).code, world.left(lock)) == (0, NOTHING)


def test_a_process_that_stays_stopped_loses_the_lock(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, "--lease-duration", "15s")
    os.kill(held["pid"], signal.SIGSTOP)
    ends = json.loads(Path(held["holder_file"]).read_text())["ends"]
    until(lambda: now() > ends)
    # The service counts the term from when the request reached it, a little later.
    until(lambda: call(world, "check", lock).code != 0)
    assert lost(call(world, "check", lock)) == (77, "lock_lost")
    # Once others have read under the lock, a renewal that comes first when it goes on is refused.
    assert world.run(lock, "--shared", "--", "true", env=OTHER_JOB).code == 0
    os.kill(held["pid"], signal.SIGCONT)
    until(lambda: is_gone(held["pid"]))
    assert "the lock is lost" in Path(held["log"]).read_text()
    assert lost(call(world, "release", lock)) == (77, "lock_lost")


def test_its_time_ends_it(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, "--for", "1s")
    until(lambda: is_gone(held["pid"]))
    checked = world.cli.call("lock", "check", lock)
    assert (checked.code, "it was released: its time is over" in checked.err, world.left(lock)) == (77, True, NOTHING)


def test_the_end_of_another_process_ends_it(world: Locks) -> None:
    lock = world.new()
    with subprocess.Popen(["sleep", "100"]) as other:
        held = hold(world, lock, "--while-pid", str(other.pid))
        assert call(world, "check", lock).code == 0
        other.kill()
    until(lambda: is_gone(held["pid"]))
    assert world.left(lock) == NOTHING


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_command_that_is_ended_while_it_waits_leaves_nothing(world: Locks, number: int, code: int) -> None:
    lock = world.new()
    err = world.cli.root / "err"
    with world.taken(lock), err.open("wb") as stream:
        waiting = world.cli.begin_fork(
            "lock", "hold", lock, env=world.marked(), stdout=subprocess.DEVNULL, stderr=stream
        )
        until(lambda: "waiting for" in err.read_text())
        waiting.send_signal(number)
        assert waiting.wait(60) == code
        until(lambda: not world.processes())
    assert world.left(lock) == NOTHING


def test_no_reader_of_a_step_waits_for_the_process(world: Locks) -> None:
    lock = world.new()
    reading, writing = os.pipe()
    words, environ = command("lock", "hold", lock), world.cli.environ(env=world.marked())
    # The end of the three streams, too, is waited for here.
    done = subprocess.run(words, env=environ, capture_output=True, pass_fds=[writing], timeout=60, check=True)
    os.close(writing)
    assert (os.read(reading, 1), b"held" in done.stdout, done.stderr) == (b"", True, b"")
    os.close(reading)
    call(world, "release", lock)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_process_has_no_terminal_a_session_of_its_own_and_the_environment_of_its_job(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, env={"RUNNER_TRACKING_ID": "github_1"})
    proc = Path(f"/proc/{held['pid']}")
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    session, terminal = int(fields[3]), int(fields[4])
    marks = b"RUNNER_TRACKING_ID=github_1" in (proc / "environ").read_bytes().split(b"\0")
    streams = {os.readlink(proc / "fd" / str(number)) for number in (0, 1)}
    name = (proc / "comm").read_text().strip()
    assert (session, terminal, marks, streams, name) == (held["pid"], 0, True, {"/dev/null"}, "lock-holder")
    call(world, "release", lock)


def test_no_credential_is_written_to_the_disk(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock)
    key = (world.cli.connection_string or "").partition("AccountKey=")[2].partition(";")[0]
    texts = [Path(held[name]).read_text() for name in ("holder_file", "log")]
    assert (bool(key), [key in text for text in texts]) == (True, [False, False])
    call(world, "release", lock)


def test_a_scope_without_a_lock_is_told_who_has_it(world: Locks) -> None:
    lock = world.new()
    hold(world, lock)
    ran = call(world, "check", lock, env=OTHER_JOB)
    assert (ran.code, ran.error["hint"]) == (44, "another scope holds it: --scope test")
    assert call(world, "check", world.new()).code == 44
    call(world, "release", lock)


def test_a_service_that_cannot_be_asked_is_no_yes(world: Locks) -> None:
    lock = world.new()
    found = variables(hold(world, lock, "--env-file", "env"), world)
    with proxy.running(
        world.cli.port, by_rules([Rule("HEAD blob", nth, Fault.RESET) for nth in range(1, 99)])
    ) as between:
        through = world.cli.through(between.port)
        moved = {name: value.replace(f":{world.cli.port}/", f":{between.port}/") for name, value in found.items()}
        ran = through.call("lock", "check", lock, "--timeout", "1s", env=moved)
    assert ran.code == 53
    call(world, "release", lock)


@pytest.mark.parametrize("what", ["PUT lease:acquire", "PUT metadata"])
@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.RESET])
def test_a_lost_answer_does_not_keep_a_lock_from_being_held_once(world: Locks, what: str, fault: Fault) -> None:
    lock = world.new()
    world.blob(lock).upload_blob(b"")
    with proxy.running(world.cli.port, by_rules([Rule(what, 1, fault)])) as between:
        through = world.cli.through(between.port)
        held = through.fork("lock", "hold", lock, env=world.marked())
        assert (held.code, through.call("lock", "check").code, world.fence(lock)) == (0, 0, held.json["fence"])
        assert (through.call("lock", "release").code, world.left(lock)) == (0, NOTHING)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.LATE, Fault.RESET])
def test_a_lost_answer_does_not_keep_a_lock_from_being_released(world: Locks, fault: Fault, is_killed: bool) -> None:
    lock = world.new()
    with proxy.running(world.cli.port, by_rules([Rule("PUT lease:release", 1, fault)])) as between:
        through = world.cli.through(between.port)
        held = through.fork("lock", "hold", lock, env=world.marked()).json
        if is_killed:
            os.kill(held["pid"], signal.SIGKILL)
            until(lambda: is_gone(held["pid"]))
        assert (through.call("lock", "release").code, world.left(lock)) == (0, NOTHING)


# ---- what later steps find


def variables(held: Any, world: Locks) -> dict[str, str]:
    """Return the variables that a hold left in the file ``env``, as a shell reads them."""
    lines = subprocess.run(
        ["sh", "-c", "set -a; . ./env; env -0"], cwd=world.cli.root, env={}, capture_output=True, check=True
    ).stdout.decode()
    found = dict(line.split("=", 1) for line in lines.split("\0") if line)
    assert held["exported"] == ["env"]
    return {name: value for name, value in found.items() if name.startswith("AZGUARD")}


def test_a_file_for_a_shell_carries_the_lock_to_another_scope(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, "--env-file", "env")
    found = {**OTHER_JOB, **variables(held, world)}
    content = world.cli.call("blob", "put", lock.removeprefix("blob:"), "--last-writer-wins", stdin=b"x", env=found)
    ran = world.run(lock, "--no-wait", "--", "sh", "-c", "echo $AZGUARD_FENCE", env=found)
    assert (call(world, "check", env=found).code, content.code, ran.out) == (0, 0, f"{held['fence']}\n")
    call(world, "release", env=found)


def test_a_file_for_a_shell_may_have_names_with_blanks(world: Locks) -> None:
    lock = world.new() + " of 'ours'"
    found = variables(hold(world, lock, "--env-file", "env"), world)
    assert (found["AZGUARD_LOCK"], call(world, "check", env={**OTHER_JOB, **found}).code) == (lock, 0)
    call(world, "release", lock)


def test_two_locks_of_a_job_are_both_checked(world: Locks) -> None:
    one, two = sorted([world.new(), world.new()])
    first = variables(hold(world, one, "--env-file", "env"), world)
    (world.cli.root / "env").unlink()
    both = variables(hold(world, two, "--env-file", "env", env=first), world)
    assert [each["address"] for each in call(world, "check", env=both).json] == [one, two]
    assert call(world, "release", one, env=both).code == 0
    assert call(world, "check", env=both).code == 77
    assert [world.state(each) for each in (one, two)] == ["available", "leased"]
    call(world, "release", two, env=both)


@pytest.mark.parametrize("where", ["file", "github", "azure"])
def test_two_locks_of_one_step_are_both_told(world: Locks, where: str) -> None:
    """A step does not see what its first ``lock hold`` has left."""
    one, two = sorted([world.new(), world.new()])
    env = {"github": {"GITHUB_ENV": str(world.cli.file("step"))}, "azure": {"TF_BUILD": "True", "SYSTEM_JOBID": one}}
    at = world.marked({"GITHUB_ENV": "", **env.get(where, {})})
    words = ("--env-file", "step") if where == "file" else ()

    def told(*command: str) -> list[str]:
        ran = world.cli.fork("lock", *command, *words, env=at)
        assert ran.code == 0
        text = ran.err.replace("%0A", "\n") if where == "azure" else (world.cli.root / "step").read_text()
        last = text.rpartition("AZGUARD_LOCK")[0].rpartition("AZGUARD_LOCK_ENDPOINT")[0].rpartition("AZGUARD_LOCK")[2]
        return re.findall(r"blob:\w+/\w+", last)

    assert [told("hold", one), told("hold", two), told("release", one)] == [[one], [one, two], [two]]
    held = world.cli.call("lock", "check", two).json
    os.kill(held["pid"], signal.SIGKILL)
    until(lambda: is_gone(held["pid"]))
    # A file may be of a job that is long over; what else tells of the step is not.
    assert told("hold", one) == ([one] if where == "file" else [two, one])
    assert [world.cli.call("lock", "release", each).code for each in (one, two)] == [0, 0]


def test_a_lock_that_was_lost_does_not_keep_the_others_from_being_released(world: Locks) -> None:
    one, two = sorted([world.new(), world.new()])
    for each in (one, two):
        hold(world, each)
    break_now(world, one)
    ran = world.cli.call("lock", "release")
    assert (ran.code, f"released: {two}" in ran.err) == (77, True)
    assert ([world.state(each) for each in (one, two)], world.processes()) == (["broken", "available"], [])


def test_the_lease_of_another_lock_releases_neither(world: Locks) -> None:
    one, two = world.new(), world.new()
    ids = [hold(world, each)["lease_id"] for each in (one, two)]
    ran = call(world, "release", one, "--lease-id", ids[1])
    assert (ran.code, [call(world, "check", each).code for each in (one, two)]) == (77, [0, 0])
    assert call(world, "release").code == 0


def test_a_slot_is_checked_and_released_by_the_name_of_its_lock(world: Locks) -> None:
    lock = world.new()
    other = hold(world, lock, "--slots", "2", env=OTHER_JOB)
    held = hold(world, lock, "--slots", "2")
    assert {held["address"], other["address"]} == {lock, f"{lock}.slot2"}
    assert (call(world, "check", lock).json["address"], call(world, "release", lock).code) == (held["address"], 0)
    assert call(world, "release", lock, env=OTHER_JOB).json["lease_id"] == other["lease_id"]


def test_github_and_azure_pipelines_pass_the_variables_on(world: Locks) -> None:
    lock, file = world.new(), world.cli.file("github")
    env = world.marked({"GITHUB_ENV": str(file), "TF_BUILD": "True"})
    ran = world.cli.fork("lock", "hold", lock, "--env-file", "github", env=env)
    lines = [f"{name}={value}" for name, value in expected(ran.json, world).items()]
    logged = [f"##vso[task.setvariable variable={line.replace('=', ']', 1)}" for line in lines]
    assert (file.read_text().splitlines(), ran.err.splitlines(), ran.json["exported"]) == (
        lines, logged, ["GITHUB_ENV", "azure-pipelines"]
    )  # fmt: skip
    released = world.cli.fork("lock", "release", env=env)
    assert (released.code, file.read_text().splitlines()[len(lines) :]) == (
        0,
        [f"{name}=" for name in expected(ran.json, world)],
    )


def expected(held: Any, world: Locks) -> dict[str, str]:
    return {
        "AZGUARD_LOCK": held["address"],
        "AZGUARD_LOCK_ENDPOINT": f"http://127.0.0.1:{world.cli.port}/devstoreaccount1",
        "AZGUARD_LEASE_ID": held["lease_id"],
        "AZGUARD_FENCE": str(held["fence"]),
        "AZGUARD_LOCK_DURATION": "60",
    }


@pytest.mark.parametrize("how", [(), ("--sticky", "--reason", "incident")], ids=["process", "sticky"])
def test_a_lock_that_cannot_be_recorded_here_is_not_taken(world: Locks, how: tuple[str, ...]) -> None:
    lock, cache = world.new(), world.cli.root / "cache"
    cache.mkdir(exist_ok=True)
    (cache / "holds").write_text("a file in the place of the folder", encoding="utf-8")
    ran = world.cli.fork("lock", "hold", lock, *how, env=world.marked({"AZGUARD_CACHE_DIR": str(cache)}))
    assert (ran.code, ran.err.splitlines(), world.left(lock)) == (
        78,
        [f"error: {cache}/holds cannot be written: File exists",
         "hint: the lock was released; set AZGUARD_CACHE_DIR"],
        NOTHING,
    )  # fmt: skip


def test_a_lock_that_cannot_be_told_to_later_steps_is_not_taken(world: Locks) -> None:
    lock = world.new()
    ran = world.cli.fork("lock", "hold", lock, "--env-file", "no/such/file", env=world.marked())
    assert (ran.code, world.state(lock), world.processes()) == (78, "absent", [])


def test_a_step_that_holds_what_its_job_holds_goes_on(world: Locks) -> None:
    lock = world.new()
    held = hold(world, lock, "--env-file", "env")
    found = variables(held, world)
    again = call(world, "hold", lock, env=found).json
    assert (again["outcome"], again["lease_id"], again["pid"]) == ("already_held", held["lease_id"], held["pid"])
    break_now(world, lock)
    assert lost(call(world, "hold", lock, env=found)) == (77, "lock_lost")


def test_a_lock_that_was_released_can_be_held_again_although_the_shell_has_its_variables(world: Locks) -> None:
    lock = world.new()
    found = variables(hold(world, lock, "--env-file", "env"), world)
    assert call(world, "release", lock, env=found).code == 0
    again = hold(world, lock, env=found)
    assert (again["outcome"], call(world, "check", lock, env=found).json["lease_id"]) == ("held", again["lease_id"])
    call(world, "release", lock, env=found)


def test_a_command_under_lock_run_in_a_later_step_is_ended_when_the_lock_is_lost(world: Locks) -> None:
    lock = world.new()
    found = variables(hold(world, lock, "--env-file", "env"), world)
    working = world.begin_working(lock, "--grace", "1s", env=found)
    break_now(world, lock)
    assert working.ended().code == 77
    # The process in the background looks on its own.
    until(lambda: world.processes() == [])


def test_a_busy_lock_ends_with_the_status_that_was_asked_for(world: Locks) -> None:
    lock = world.new()
    with world.taken(lock):
        codes = [world.cli.fork("lock", "hold", lock, "--no-wait", *words).code for words in ([], ["-E", "9"])]
    assert (codes, world.held()) == ([75, 9], [])
