"""``lock run``: what the command is given, what azguard exits with, and what is left."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from azguard import address
from azguard.accounts.account import Target, emulator
from azguard.accounts.endpoints import EMULATOR_KEY
from azguard.leases.owners import Owner
from azguard.locks import lock_blobs
from azguard.locks.lock_blobs import LockRequest
from azguard.requests.deadline import Deadline
from tests.support import forked
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran, command
from tests.support.emulator_world import until
from tests.support.lock_world import NOTHING, Locks, break_now, locks

# Twenty megabytes, read as fast as they come: three hundred times what a pipe holds.
_FLOOD = 20_000_000


@dataclass(frozen=True)
class Slow:
    """Runs that take their time, begun together."""

    not_there: "Future[Ran]"
    mute: "Future[Ran]"
    flood: "Future[tuple[int, int, str, bool]]"


@pytest.fixture(scope="module")
def slow(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slow]:
    """Yield them, under way."""
    folder = tmp_path_factory.mktemp("slow")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        locks(CliWorld(folder, connection_string)) as world,
        ThreadPoolExecutor(3) as pool,
    ):
        yield Slow(
            pool.submit(tried, at(folder, 9)),
            pool.submit(tried, at(folder, server.getsockname()[1])),
            pool.submit(flooded, world, folder / "heartbeat"),
        )


def at(folder: Path, port: int) -> CliWorld:
    """Return a world whose service is at some port."""
    return CliWorld(folder, f"AccountName=acc;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:{port}/acc")


def tried(world: CliWorld) -> Ran:
    """Run something under a lock, and return what that left."""
    return world.fork("lock", "run", "blob:locks/a", "--", "touch", "ran")


def flooded(world: Locks, heartbeat: Path) -> tuple[int, int, str, bool]:
    """Flood the output until the lock was renewed; return the status, the bytes, the lease's state, the heartbeat's."""
    lock = world.new()
    words = [lock, "--lease-duration", "15s", "--heartbeat-file", str(heartbeat), "--", "cat", "/dev/zero"]
    running, count = world.begin(*words, stdout=subprocess.PIPE), 0
    until(heartbeat.exists)
    first = heartbeat.read_text()
    assert running.process.stdout is not None
    while count < _FLOOD:
        count += len(os.read(running.process.stdout.fileno(), 1 << 20))
    # From here on nothing reads, and the pipe is full.
    until(lambda: heartbeat.read_text() != first)
    running.send(signal.SIGTERM)
    return running.ended().code, count, world.state(lock), heartbeat.exists()


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 128 + 9)])
def test_it_exits_as_the_command_does_and_releases_the_lock(world: Locks, script: str, status: int) -> None:
    lock = world.new()
    ran = world.run(lock, "--", "sh", "-c", script)
    assert (ran.code, ran.out, ran.err, world.left(lock)) == (status, "", "", NOTHING)


def test_the_command_has_its_own_input_output_group_and_the_facts_of_the_lock(world: Locks) -> None:
    lock = world.new()
    script = (
        "import os, sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.stderr.write("
        "'\\n'.join([*map(os.environ.get, ('AZGUARD_LOCK', 'AZGUARD_LEASE_ID', 'AZGUARD_FENCE')),"
        " str(os.getpgrp() == os.getpid())]))"
    )
    content = os.urandom(300_000)
    ran = world.run(lock, "--", sys.executable, "-c", script, stdin=content)
    address, lease_id, fence, leads = ran.err.split("\n")
    assert (ran.code, ran.stdout == content, address, fence, leads) == (0, True, lock, "1", "True")
    assert (len(lease_id), world.fence(lock)) == (36, 1)


def test_the_fence_grows_with_each_holder_and_other_metadata_stays(world: Locks) -> None:
    lock = world.new()
    world.blob(lock).upload_blob(b"content", metadata={"team": "shop"})
    assert [world.run(lock, "--", "sh", "-c", 'exit "$AZGUARD_FENCE"').code for _ in range(2)] == [1, 2]
    kept = world.blob(lock).download_blob()
    assert (kept.readall(), kept.properties.metadata["team"], world.fence(lock)) == (b"content", "shop", 2)


URL = "https://acc.blob.core.windows.net/c/b?sv=1&sig=c2VjcmV0"


def test_the_record_says_who_runs_which_program_and_why(world: Locks) -> None:
    lock = world.new()
    environ = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7"}
    why = f"nightly copy to {URL}"
    ran = world.run(lock, "--reason", why, "--", "/bin/sh", "-c", "exit 0", "--password", "hunter2", env=environ)
    record = json.loads(world.metadata(lock)["azguardowner"])
    assert (ran.code, record["run"], record["pid"] > 1) == (0, "https://github.com/a/b/actions/runs/7", True)
    assert (record["command"], record["reason"]) == ("sh", why.replace("c2VjcmV0", "***"))
    assert not any("hunter2" in value for value in world.metadata(lock).values())


def test_the_arguments_of_a_command_are_published_when_asked_for_without_secrets(world: Locks) -> None:
    lock = world.new()
    ran = world.run(lock, "--publish-command", "--", "sh", "-c", "exit 0", URL, EMULATOR_KEY, "--password", "hunter2")
    record = json.loads(world.metadata(lock)["azguardowner"])
    assert (ran.code, EMULATOR_KEY in record["command"], "c2VjcmV0" in record["command"]) == (0, False, False)
    assert record["command"].endswith("--password '***'")
    assert record["command"].startswith("sh -c 'exit 0' 'https://acc.blob.core.windows.net/c/b?sv=1&sig=***")


@pytest.mark.parametrize("new", [True, False])
def test_the_record_has_the_time_of_the_service_whatever_the_clock_of_the_holder_says(world: Locks, new: bool) -> None:
    lock, lease_id = world.new(), str(uuid.uuid4())
    target = Target(emulator({"blob": world.cli.port}), address.parse(lock).address)
    made = lock_blobs.create_lock_blob(target, Deadline())
    world.blob(lock).acquire_lease(60, lease_id)
    ahead = (datetime.now(UTC) + timedelta(hours=9)).isoformat()
    owner = Owner("alice", "build1", 7, "sh", ahead).tie_to_lease(lease_id, 60)
    record = lock_blobs.write_owner_and_fence(
        LockRequest(target), target, lease_id, owner, made if new else None, Deadline()
    )
    assert (record.fence, record.before, record.fence_before) == (1, None, None)
    shown = world.cli.call("lock", "show", lock).json
    since, written = (datetime.fromisoformat(each) for each in (shown["owner"]["since"], shown["last_modified"]))
    assert (shown["clock"], abs(written - since) < timedelta(minutes=5)) == ("service", True)


def test_files_handed_open_reach_the_command(world: Locks, tmp_path: Path) -> None:
    read, write = os.pipe()
    lock = world.new()
    running = world.begin(lock, "--", "bash", "-c", f"echo given >&{write}", pass_fds=(write,))
    os.close(write)
    with os.fdopen(read) as end:
        assert (end.read(), running.ended().code) == ("given\n", 0)


def test_what_the_command_leaves_running_when_it_ends_is_left_alone(world: Locks) -> None:
    lock, pid = world.new(), world.cli.root / "pid"
    ran = world.run(lock, "--", "sh", "-c", f"sleep 100 >/dev/null 2>&1 & echo $! > {pid}; exit 4")
    assert (ran.code, world.state(lock)) == (4, "available")
    assert [each.words for each in world.processes()] == [("sleep", "100")]
    os.kill(int(pid.read_text()), signal.SIGKILL)


@cases(
    ("words", "hint"),
    (["echo hi"], "no shell runs the command; for shell syntax write -- sh -c '...'"),
    (["no-such-command", "x"], "is it installed, and on the PATH?"),
)
def test_a_command_that_is_not_there_is_told_before_any_request(offline: CliWorld, words: list[str], hint: str) -> None:
    ran = at(offline.root, 9).call("lock", "run", "blob:locks/a", "--", *words)
    assert (ran.code, ran.err) == (127, f"error: {words[0]}: command not found\nhint: {hint}\n")


@pytest.mark.parametrize(("name", "status"), [("no-such-command", 127), ("plain", 126), ("strange", 126)])
def test_a_command_that_cannot_be_started_takes_no_lock(world: Locks, name: str, status: int) -> None:
    world.cli.file("plain")
    world.cli.file("strange", b"\x00neither a script nor a program").chmod(0o755)
    lock = world.new()
    ran = world.run(lock, "--", name if name.startswith("no") else f"./{name}", env={"PATH": os.environ["PATH"]})
    # That the system cannot run it is only known once it is tried.
    assert (ran.code, world.state(lock)) == (status, "available" if name == "strange" else "absent")
    assert (world.held(), world.processes(), name in ran.err) == ([], [], True)


def test_a_parent_that_ignores_the_end_of_its_children_changes_nothing(world: Locks) -> None:
    lock = world.new()

    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    ran = world.begin(lock, "--", "sh", "-c", "exit 3", preexec_fn=ignore).ended()
    assert (ran.code, ran.err, world.left(lock)) == (3, "", NOTHING)


def test_a_missing_container_is_made_and_no_create_makes_nothing(world: Locks) -> None:
    container = f"{world.container}new"
    refused = world.run(f"blob:{container}/a/b", "--no-create", "--", "true")
    assert (refused.code, world.state(f"blob:{container}/a/b")) == (44, "absent")
    assert "leave out --no-create to create it" in refused.err
    assert (world.run(f"blob:{container}/a/b", "--", "true").code, world.fence(f"blob:{container}/a/b")) == (0, 1)


def test_the_lock_of_a_table_is_a_blob_and_that_is_said(world: Locks) -> None:
    ran = world.run("table:Orders", "--lock-container", world.container, "--", "sh", "-c", 'echo "$AZGUARD_LOCK"')
    lock = f"blob:{world.container}/table/orders"
    said = f"table:Orders has no lease of its own; its lock is {lock}\n"
    assert (ran.code, ran.out, ran.err, world.fence(lock)) == (0, f"{lock}\n", said, 1)


@pytest.fixture
def busy(world: Locks) -> Iterator[str]:
    """Yield a lock that a run of azguard's has taken, and another's lease is on now."""
    lock = world.new()
    assert world.run(lock, "--", "echo", "once").code == 0
    with world.taken(lock):
        yield lock


@pytest.mark.parametrize(
    ("words", "status", "words_of_wait"),
    [(["--no-wait"], 75, ""), (["--wait", "4s"], 75, " after 4 s"), (["--no-wait", "-E", "9"], 9, "")],
)
def test_a_busy_lock_is_waited_for(world: Locks, busy: str, words: list[str], status: int, words_of_wait: str) -> None:
    ran = world.run(busy, *words, "--", "touch", "ran")
    lines = ran.err.splitlines()
    holder = next(line for line in lines if line.startswith("  ") and " is held by " in line)
    assert (ran.code, (world.cli.root / "ran").exists(), world.held()) == (status, False, [])
    # What does not wait says nothing of waiting.
    waiting = [
        line.removeprefix(f"waiting for {busy}: 1st in the queue;").removesuffix("; 4s left to wait")
        for line in lines
        if line.startswith("waiting for ")
    ]
    assert waiting == ([holder.removeprefix(" ")] if words_of_wait else [])
    assert (": echo" in holder, "once" in holder) == (True, False)
    assert f"error: {busy} is held by others{words_of_wait}; the command was not run" in lines


def test_conflict_exit_code_0_says_so_and_is_no_failure(world: Locks, busy: str) -> None:
    ran = world.run(busy, "--no-wait", "-E", "0", "--", "touch", "ran")
    assert (ran.code, (world.cli.root / "ran").exists(), "error" in ran.err) == (0, False, False)
    assert f"{busy} is held by others; the command was not run" in ran.err


@pytest.mark.parametrize(("words", "status"), [([], 77), (["--lost-exit-code", "99"], 99)])
def test_a_lost_lock_has_the_status_that_was_chosen(world: Locks, words: list[str], status: int) -> None:
    lock = world.new()
    ran = world.run(lock, *words, "--", "sh", "-c", f"{azguard()} lock break {lock} --yes -o none -q; sleep 60")
    assert (ran.code, "the lock was lost while the command ran" in ran.err) == (status, True)


def test_a_lock_that_is_released_is_had_within_the_wait(world: Locks) -> None:
    lock = world.new()
    with world.taken(lock):
        running = world.begin(lock, "--wait", "60s", "--", "true")
        until(lambda: "waiting for" in running.err)
    assert (running.ended().code, world.left(lock)) == (0, NOTHING)


def azguard() -> str:
    """Return what runs azguard inside a command, for a shell: a fork, where the start is not what is tried."""
    return shlex.join(forked.command())


def test_a_run_of_the_same_lock_inside_runs_at_once_and_takes_nothing(world: Locks) -> None:
    lock = world.new()
    ran = world.run(lock, "--", *command("lock", "run", lock, "--", "sh", "-c", 'echo "$AZGUARD_FENCE"; exit 5'))
    assert (ran.code, ran.out, ran.err, world.fence(lock), world.left(lock)) == (5, "1\n", "", 1, NOTHING)


def test_a_put_inside_replaces_the_empty_blob_that_the_lock_made_and_not_what_another_wrote(world: Locks) -> None:
    def run(lock: str, before: str) -> Ran:
        put = f"{azguard()} blob put {lock.removeprefix('blob:')} --query guard"
        return world.run(lock, "--", "sh", "-c", before.replace("PUT", put) + f"echo 1 | {put}")

    undisturbed = run(world.new(), "")
    # Another scope, with the lease in its hands, writes between.
    disturbed = run(world.new(), "echo 2 | AZGUARD_SCOPE=other PUT --last-writer-wins; ")
    assert (undisturbed.code, undisturbed.out) == (0, '"if-match"\n'), undisturbed.err
    assert (disturbed.code, disturbed.out) == (42, '"lease"\n'), disturbed.err


def test_a_run_of_another_lock_inside_takes_that_one(world: Locks) -> None:
    outer, inner = world.new(), world.new()
    assert world.run(inner, "--", "true").code == 0
    script = 'echo "$AZGUARD_LOCK $AZGUARD_FENCE"'
    ran = world.run(outer, "--", *forked.command("lock", "run", inner, "--", "sh", "-c", script))
    assert (ran.code, ran.out, world.fence(inner), world.left(inner)) == (0, f"{inner} 2\n", 2, NOTHING)


def test_a_run_inside_a_lock_that_is_lost_does_not_run_its_command(world: Locks) -> None:
    lock, begun, broken = world.new(), world.cli.root / "begun", world.cli.root / "broken"
    wait = f"touch {begun}; while [ ! -e {broken} ]; do sleep 0.05; done"
    inside = f"{wait}; {azguard()} lock run {lock} -- touch ran; echo $?"
    # Otherwise the run around it ends it within 5 s, which is sooner than it starts on a busy machine.
    running = world.begin(lock, "--on-lost", "continue", "--", "sh", "-c", inside)
    until(begun.exists)
    break_now(world, lock)
    broken.touch()
    ran = running.ended()
    assert (ran.code, ran.out, (world.cli.root / "ran").exists()) == (77, "77\n", False)
    assert "the lock around this command is lost" in ran.err


def test_what_runs_inside_writes_the_locked_blob_with_its_lease(world: Locks) -> None:
    lock = world.new()
    blob = lock.removeprefix("blob:")
    script = " && ".join(
        (
            f"printf 1 | {azguard()} blob put {blob} --last-writer-wins -o none",
            f"{azguard()} safe-update {lock} -o none -- sh -c 'cat; printf 2'",
            f"printf 123 | {azguard()} blob put {blob} --lease-id @held --if-match @last -o none",
        )
    )
    ran = world.run(lock, "--", "sh", "-c", script)
    assert (ran.code, ran.err, world.blob(lock).download_blob().readall()) == (0, "", b"123")


@pytest.mark.parametrize("slots", ["1", "2"])
@pytest.mark.parametrize("holds", ["what was written here", "a copy that was read here"])
def test_what_was_read_before_guards_the_write_inside(world: Locks, holds: str, slots: str) -> None:
    lock = world.new()
    blob = lock.removeprefix("blob:")
    world.cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"1")
    file = world.cli.file("mine", "2")
    if holds == "a copy that was read here":
        world.cli.call("blob", "get", blob, "-f", str(file))
        # The scope has read the version elsewhere too, and the file alone is tied to it by its path.
        file.write_text("2")
    ran = world.run(lock, "--slots", slots, "--", "sh", "-c", f"{azguard()} blob put {blob} -f {file} --query guard")
    assert (ran.code, ran.out, world.blob(lock).download_blob().readall()) == (0, '"if-match"\n', b"2"), ran.err


def test_what_another_writer_changed_before_the_lock_was_held_is_refused_inside(world: Locks) -> None:
    lock = world.new()
    blob = lock.removeprefix("blob:")
    world.cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"1")
    world.cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"theirs", scope="other")
    ran = world.run(lock, "--", "sh", "-c", f"printf 2 | {azguard()} blob put {blob}")
    assert (ran.code, world.blob(lock).download_blob().readall()) == (42, b"theirs")


def test_a_tree_that_has_the_locked_blob_in_it_is_written_inside(world: Locks) -> None:
    lock = world.new()
    container, name = lock.removeprefix("blob:").split("/")
    (world.cli.root / "tree" / name).parent.mkdir()
    for content in ("1", "2"):
        (world.cli.root / "tree" / name).write_text(content)
        words = ("blob", "put", "tree", f"{container}/", "--recursive", "--query", "outcome")
        ran = world.cli.fork(*words) if content == "1" else world.run(lock, "--", *forked.command(*words))
        assert (ran.code, ran.out) == (0, '"created"\n' if content == "1" else '"replaced"\n'), ran.err


def test_two_runs_that_name_their_locks_in_opposite_orders_both_get_them(world: Locks) -> None:
    one, two = sorted((world.new(), world.new()))
    script = 'echo "$AZGUARD_LOCK"'
    both = [world.begin(*order, "--", "sh", "-c", script) for order in ((one, two, one), (two, one))]
    ran = [each.ended() for each in both]
    assert [(each.code, each.out) for each in ran] == [(0, f"{one}\n{two}\n")] * 2
    assert (world.fence(one), world.fence(two), world.held()) == (2, 2, [])


def test_a_lock_that_is_lost_does_not_keep_another_of_the_same_run_from_being_released(world: Locks) -> None:
    kept, lost = sorted((world.new(), world.new()))
    working = world.begin_working(lost, kept)
    break_now(world, lost)
    working.finish(0)
    assert (working.ended().code, world.left(kept), world.state(lost)) == (77, NOTHING, "broken")


def test_a_run_that_has_lost_one_of_its_locks_waits_for_no_other(world: Locks) -> None:
    lost, busy = sorted((world.new(), world.new()))
    with world.taken(busy):
        running = world.begin(lost, busy, "--wait", "100s", "--", "true")
        until(lambda: "waiting for" in running.err)
        break_now(world, lost)
        ran = running.ended()
    assert (ran.code, "broken" in ran.err, world.left(lost)[1:]) == (77, True, NOTHING[1:])


def test_a_heartbeat_file_that_cannot_be_written_is_told_before_the_command_runs(world: Locks) -> None:
    lock = world.new()
    ran = world.run(lock, "--heartbeat-file", "no/such/folder", "--", "touch", "ran")
    assert (ran.code, (world.cli.root / "ran").exists()) == (78, False)
    assert ran.err.startswith("error: no/such/folder cannot be written: No such file or directory")
    assert (world.state(lock) in ("available", "absent"), world.held(), world.processes()) == (True, [], [])


def test_metrics_that_cannot_be_written_are_told_before_the_command_runs(world: Locks) -> None:
    ran = world.run(world.new(), "--metrics", "no/such/folder", "--", "touch", "ran")
    assert (ran.code, (world.cli.root / "ran").exists(), world.held()) == (2, False, [])


def test_the_heartbeat_file_is_there_while_the_command_runs(world: Locks) -> None:
    ran = world.run(world.new(), "--heartbeat-file", "beat", "--", "cat", "beat")
    assert (ran.code, sorted(ran.json), (world.cli.root / "beat").exists()) == (
        0, ["held_until", "pid", "renewed"], False,
    )  # fmt: skip


def test_the_locks_of_tables_are_in_a_container_of_their_own_unless_told_otherwise(world: Locks) -> None:
    said = world.cli.call("lock", "show", "table:NoSuchTable").err.splitlines()[0]
    assert said == "table:NoSuchTable has no lease of its own; its lock is blob:locks/table/nosuchtable"


def test_a_service_that_is_not_there_is_told(slow: Slow) -> None:
    ran = slow.not_there.result(60)
    told = "error: no answer from http://127.0.0.1:9/acc: connection refused: nothing listens there"
    assert (ran.code, ran.err.splitlines()[0]) == (53, told)


def test_a_service_that_never_answers_is_told(slow: Slow) -> None:
    ran = slow.mute.result(60)
    assert (ran.code, ran.err.splitlines()[0].endswith(": timed out")) == (53, True)


def test_a_command_that_floods_its_output_is_not_slowed_down_and_its_lock_is_renewed(slow: Slow) -> None:
    code, count, state, heartbeat = slow.flood.result(60)
    assert (code, count >= _FLOOD, state, heartbeat) == (128 + signal.SIGTERM, True, "available", False)
