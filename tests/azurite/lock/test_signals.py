"""``lock run`` and signals: however a process is ended, no command is left running and no lock taken."""

import os
import select
import signal
import subprocess
import threading

import pytest

from azguard.processes import child
from azguard.processes.child import Forked
from azguard.processes.guardian import Ended, Guardian
from tests.faults.rules import operation
from tests.support.cli_world import command
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.lock_world import NOTHING, Locks, is_gone, worker


def test_a_signal_while_waiting_leaves_nothing_behind(world: Locks) -> None:
    busy, codes = f"blob:{world.container}/zzz", {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}
    with world.taken(busy):
        mine = [world.new() for _ in codes]
        begun = [world.begin(lock, busy, "--wait", "60s", "--", "touch", "ran") for lock in mine]
        for running, number in zip(begun, codes, strict=True):
            until(lambda running=running: "waiting for" in running.err)  # type: ignore[misc]  # bound at once
            running.send(number)
        ran = [running.ended() for running in begun]
        assert [(each.code, each.err.splitlines()[-1]) for each in ran] == [
            (code, "error: interrupted") for code in codes.values()
        ]
        assert world.state(busy) == "leased"
    assert ([world.left(lock) for lock in mine], (world.cli.root / "ran").exists()) == ([NOTHING] * 3, False)


@pytest.mark.parametrize("what", ["PUT lease:acquire", "PUT metadata"])
def test_a_signal_while_a_request_is_on_its_way_leaves_no_lease(world: Locks, what: str) -> None:
    lock, asked = world.new(), threading.Event()
    world.blob(lock).upload_blob(b"")

    def decide(request: proxy.Request) -> proxy.Chosen:
        if operation(request) == what and not asked.is_set():
            asked.set()
            return proxy.Chosen(proxy.Fault.LATE)
        return proxy.Chosen(proxy.Fault.NONE)

    with proxy.running(world.cli.port, decide) as between:
        running = Locks(world.cli.through(between.port), world.container, world.mark).begin(lock, "--", "touch", "ran")
        assert asked.wait(60)
        until(lambda: any(operation(each.request) == what for each in between.log))
        running.send(signal.SIGTERM)
        code = running.ended().code
    assert (code, world.left(lock), (world.cli.root / "ran").exists()) == (143, NOTHING, False)


@pytest.mark.parametrize("words", [(), ("--sticky", "--reason", "x")], ids=["a process", "none"])
def test_a_signal_while_the_record_is_on_its_way_leaves_no_lock_held(world: Locks, words: tuple[str, ...]) -> None:
    lock, asked = world.new(), threading.Event()
    world.blob(lock).upload_blob(b"")

    def decide(request: proxy.Request) -> proxy.Chosen:
        if operation(request) == "PUT metadata" and not asked.is_set():
            asked.set()
            return proxy.Chosen(proxy.Fault.LATE)
        return proxy.Chosen(proxy.Fault.NONE)

    with proxy.running(world.cli.port, decide) as between:
        through = Locks(world.cli.through(between.port), world.container, world.mark, verb=("lock", "hold"))
        running = through.begin(lock, *words)
        assert asked.wait(60)
        until(lambda: any(operation(each.request) == "PUT metadata" for each in between.log))
        running.send(signal.SIGTERM)
        code = running.ended().code
        until(lambda: not world.processes())
    assert (code, world.left(lock)) == (143, NOTHING)


def test_a_signal_while_the_command_runs_reaches_its_whole_group(world: Locks) -> None:
    numbers, locks = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), [world.new() for _ in range(3)]
    begun = [world.start_working(lock, traits="family") for lock in locks]
    for working, number in zip(begun, numbers, strict=True):
        working.wait_until_it_works()
        working.running.send(number)
    assert [working.ended().code for working in begun] == [128 + number for number in numbers]
    until(lambda: not world.processes())
    # The child gets TERM as well if it still runs once its parent has ended.
    counts = [working.signals().count(number.name) for working, number in zip(begun, numbers, strict=True)]
    assert counts == [2, 2, 2]
    assert [world.left(lock) for lock in locks] == [NOTHING] * 3


def test_the_command_decides_when_it_ends_after_a_signal_and_with_which_status(world: Locks) -> None:
    lock = world.new()
    working = world.begin_working(lock, traits="deaf")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        working.running.send(number)
        until(lambda name=number.name: name in working.signals())  # type: ignore[misc]  # bound at once
    assert (working.running.process.poll(), world.state(lock)) == (None, "leased")
    working.finish(7)
    assert (working.ended().code, world.left(lock)) == (7, NOTHING)


def test_what_was_started_to_ignore_hup_ignores_it_together_with_its_command(world: Locks) -> None:
    lock = world.new()

    def nohup() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    working = world.begin_working(lock, preexec_fn=nohup)
    working.running.send(signal.SIGHUP)
    os.kill(working.pid, signal.SIGHUP)
    working.running.send(signal.SIGUSR1)
    until(lambda: "SIGUSR1" in working.signals())
    assert (working.ended().code, working.signals()) == (128 + signal.SIGUSR1, ["SIGUSR1"])


def test_kill_9_of_azguard_ends_the_command_and_its_children(world: Locks) -> None:
    lock = world.new()
    working = world.begin_working(lock, "--grace", "1s", traits="deaf family")
    working.running.send(signal.SIGKILL)
    working.ended()
    until(lambda: not world.processes())
    # They are asked first, and given the grace; the lease goes on until its end, so that no other gets in earlier.
    assert (working.signals(), world.state(lock), world.held()) == (["SIGTERM"] * 2, "leased", [lock])


def test_kill_9_of_the_guardian_ends_the_command_and_releases_the_lock(world: Locks) -> None:
    lock = world.new()
    working = world.begin_working(lock, traits="deaf family")
    os.kill(working.guardian, signal.SIGKILL)
    assert (working.ended().code, world.left(lock)) == (128 + signal.SIGKILL, NOTHING)


def test_the_guardian_ends_with_azguard_also_while_it_waits(world: Locks) -> None:
    lock = world.new()
    with world.taken(lock):
        running = world.begin(lock, "--", "true")
        until(lambda: "waiting for" in running.err)
        assert len(world.processes()) == 2
        running.send(signal.SIGKILL)
        running.ended()
        until(lambda: not world.processes())


def test_kill_9_of_an_outer_run_ends_what_runs_under_an_inner_one(world: Locks) -> None:
    outer, inner = world.new(), world.new()
    folder = world.cli.root / "inner"
    inside = command("lock", "run", inner, "--grace", "5s", "--", *worker(folder, "deaf"))
    running = world.begin(outer, "--grace", "1s", "--", *inside)
    until((folder / "beats").exists)
    running.send(signal.SIGKILL)
    running.ended()
    # One second of the outer grace, and none of the inner one.
    until(lambda: not world.processes(), 4)


def test_a_second_signal_does_not_keep_the_lock_from_being_released(world: Locks) -> None:
    lock, releasing, go_on = world.new(), threading.Event(), threading.Event()

    def decide(request: proxy.Request) -> proxy.Chosen:
        if operation(request) == "PUT lease:release":
            releasing.set()
            return proxy.Chosen(proxy.Fault.NONE, go_on.is_set)
        return proxy.Chosen(proxy.Fault.NONE)

    with proxy.running(world.cli.port, decide) as between:
        through = Locks(world.cli.through(between.port), world.container, world.mark)
        working = through.begin_working(lock)
        working.running.send(signal.SIGINT)
        assert releasing.wait(60)
        working.running.send(signal.SIGINT)
        working.running.send(signal.SIGTERM)
        go_on.set()
        code = working.ended().code
    assert (code, world.left(lock)) == (130, NOTHING)


def test_a_command_that_ended_before_its_start_was_heard_of_has_its_own_status() -> None:
    ours, theirs = child.pair()
    guardian = Guardian(Forked(0, ours))
    theirs.send(**{"is": "started"}, pid=1)
    theirs.send(**{"is": "ended"}, status=3, signal=None, typed=False, left=[], stays=False)
    guardian.start(["true"], {}, ends=0.0, grace=0.0, on_lost="term")
    assert guardian.wait(lambda message: None) == Ended(3)


def test_a_message_sent_by_a_signal_handler_in_the_midst_of_another_arrives() -> None:
    ours, theirs = child.pair()
    previous = signal.signal(signal.SIGUSR1, lambda number, frame: ours.send(is_from="handler"))
    received: list[object] = []

    def read() -> None:
        # More than fits into the socket: the handler runs while the rest is being sent.
        select.select([theirs], [], [])
        os.kill(os.getpid(), signal.SIGUSR1)
        while len(received) < 2 and (messages := theirs.receive()) is not None:
            received.extend("handler" if "is_from" in message else len(message["text"]) for message in messages)

    reader = threading.Thread(target=read)
    try:
        reader.start()
        ours.send(text="x" * 5_000_000)
        until(lambda: len(received) == 2)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert received == [5_000_000, "handler"]


def test_the_lock_is_released_when_whoever_reads_the_output_has_gone(world: Locks) -> None:
    lock = world.new()
    running = world.begin(lock, "--", "sh", "-c", "while echo line; do :; done", stdout=subprocess.PIPE)
    assert running.process.stdout is not None
    running.process.stdout.read(10)
    running.process.stdout.close()
    code = running.process.wait(60)
    assert (code, world.left(lock), is_gone(running.pid)) == (128 + signal.SIGPIPE, NOTHING, True)
