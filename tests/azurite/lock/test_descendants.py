"""``lock run`` and what its command starts in other process groups and sessions: a lost lock ends all of it.

So does a signal that tells azguard to end.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli_world import CliWorld, Ran, command
from tests.support.emulator_world import until
from tests.support.lock_world import NOTHING, Locks, Running, break_now, is_gone, locks, worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells who descends from whom")

# How a worker leaves the command's process group: ``{0}`` is its command line.
ESCAPES = {
    "a group of its own": "timeout 100 {0}",
    "job control": "exec 2>/dev/null; set -m; {0} & wait",
    "a session of its own": "setsid {0} & wait",
    "a daemon": "(setsid {0} &); sleep 100",
    "a daemon without variables": "(setsid env -i {0} &); sleep 100",
    "two groups": "timeout 100 timeout 100 {0}",
}
TRAITS = ("", "deaf")


@dataclass
class Escaped:
    """A run whose command has started a worker elsewhere."""

    world: Locks
    lock: str
    running: Running
    folder: Path

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    @property
    def guardian(self) -> int:
        (found,) = (each.pid for each in self.world.processes() if each.parent == self.running.pid)
        return found

    def signals(self) -> list[str]:
        """Return the names of the signals the worker got."""
        file = self.folder / "signals"
        return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []


def escape(world: Locks, script: str, *options: str, traits: str = "") -> Escaped:
    """Begin a run of a worker that leaves the process group of its command, and wait until it works."""
    lock, folder = world.new(), world.cli.root / os.urandom(8).hex()
    line = script.format(shlex.join(worker(folder, traits)))
    running = world.begin(lock, "--grace", "1s", *options, "--", "bash", "-c", line)
    until((folder / "beats").exists)
    return Escaped(world, lock, running, folder)


def escape_twice(world: Locks, script: str) -> dict[str, Escaped]:
    """Begin a run of two workers, an obedient one and a deaf one; wait until they work, and return them by traits."""
    lock, folders = world.new(), {traits: world.cli.root / os.urandom(8).hex() for traits in TRAITS}
    obedient, deaf = (script.format(shlex.join(worker(folder, traits))) for traits, folder in folders.items())
    # Without the last word the shell would become the program that it starts.
    # Long enough for a slow disk: the obedient one writes down its signal before it ends.
    running = world.begin(lock, "--grace", "4s", "--", "bash", "-c", f"({obedient}) & ({deaf}); exit")
    until(lambda: all((folder / "beats").exists() for folder in folders.values()))
    return {traits: Escaped(world, lock, running, folder) for traits, folder in folders.items()}


@pytest.fixture(scope="module")
def shared(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locks]:
    """Yield a world for all tests that look at lost locks: each waits for its own."""
    with locks(CliWorld(tmp_path_factory.mktemp("descendants"), connection_string)) as made:
        yield made


@dataclass
class Played:
    """How a run ended, whether its worker was gone by then, and the worker."""

    ran: Ran
    was_gone: bool
    scene: Escaped


def end_all(scenes: dict[str, Escaped]) -> dict[str, Played]:
    """Wait for the end of a run; return how it ended for each of its workers."""
    ran = next(iter(scenes.values())).running.ended()
    return {traits: Played(ran, is_gone(scene.pid), scene) for traits, scene in scenes.items()}


@pytest.fixture(scope="module")
def lost(shared: Locks) -> dict[str, dict[str, Played]]:
    """Return how each escape ended once its lock was broken, for an obedient worker and a deaf one."""

    def play(name: str) -> dict[str, Played]:
        scenes = escape_twice(shared, ESCAPES[name])
        break_now(shared, scenes["deaf"].lock)
        return end_all(scenes)

    with ThreadPoolExecutor(len(ESCAPES)) as pool:
        return dict(zip(ESCAPES, pool.map(play, ESCAPES), strict=True))


@pytest.mark.parametrize("traits", TRAITS)
@pytest.mark.parametrize("name", ESCAPES)
def test_a_lost_lock_ends_what_left_the_group(lost: dict[str, dict[str, Played]], name: str, traits: str) -> None:
    played = lost[name][traits]
    assert (played.ran.code, played.was_gone, "SIGTERM" in played.scene.signals()) == (77, True, True), played.ran.err


def test_a_process_that_forks_all_the_time_is_caught(world: Locks) -> None:
    begun, again = world.cli.root / "begun", world.cli.root / "again.py"
    again.write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(20_000):\n"
        f"    os.close(os.open({str(begun)!r}, os.O_CREAT))\n"
        "    time.sleep(0.002)\n"  # a script: between two forks
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
    )
    lock = world.new()
    running = world.begin(lock, "--on-lost", "kill", "--", "sh", "-c", f"{sys.executable} -S {again}; sleep 100")
    until(lambda: begun.exists() or running.process.poll() is not None)
    assert begun.exists(), running.err
    break_now(world, lock)
    assert (running.ended().code, world.processes()) == (77, [])


def test_a_lock_run_inside_passes_the_request_to_end_on_once(world: Locks) -> None:
    folder, outer = world.cli.root / "inner", world.new()
    inside = command("lock", "run", world.new(), "--", *worker(folder))
    running = world.begin(outer, "--", *inside)
    until((folder / "beats").exists)
    break_now(world, outer)
    code = running.ended().code
    signals = [line.split()[1] for line in (folder / "signals").read_text().splitlines()]
    assert (code, signals.count("SIGTERM"), world.processes()) == (77, 1, [])


def test_what_the_command_leaves_running_when_it_ends_is_left_alone_and_told(world: Locks) -> None:
    scene = escape(world, "(setsid {0} &); until [ -e go ]; do sleep 0.05; done; exit 4")
    (world.cli.root / "go").touch()
    ran = scene.running.ended()
    warning = "warning: the lock is released, but processes of the command run on: "
    assert (ran.code, is_gone(scene.pid), world.state(scene.lock)) == (4, False, "available")
    assert (ran.err.startswith(warning), f"(pid {scene.pid})" in ran.err) == (True, True)
    os.kill(scene.pid, signal.SIGKILL)


# Told to end

TOLD = [(name, signal.SIGTERM) for name in ESCAPES]
# A shell passes over SIGINT while it waits for a command in the foreground, so not all escapes end by it.
TOLD += [("a session of its own", number) for number in (signal.SIGINT, signal.SIGHUP)]


@pytest.fixture(scope="module")
def told(shared: Locks) -> dict[tuple[str, signal.Signals], dict[str, Played]]:
    """Return how each run ended that was told to, for each of its workers."""

    def play(case: tuple[str, signal.Signals]) -> dict[str, Played]:
        name, number = case
        if number == signal.SIGTERM:
            scenes = escape_twice(shared, ESCAPES[name])
        else:
            scenes = {"": escape(shared, f"{ESCAPES[name]}; exit")}
        scenes[""].running.send(number)
        return end_all(scenes)

    with ThreadPoolExecutor(len(TOLD)) as pool:
        return dict(zip(TOLD, pool.map(play, TOLD), strict=True))


TOLD_WORKERS = [(*case, traits) for case in TOLD for traits in (TRAITS if case[1] == signal.SIGTERM else ("",))]


@pytest.mark.parametrize(("name", "number", "traits"), TOLD_WORKERS)
def test_a_command_told_to_end_leaves_nothing_running_when_its_lock_is_released(
    told: dict[tuple[str, signal.Signals], dict[str, Played]],
    shared: Locks,
    name: str,
    number: signal.Signals,
    traits: str,
) -> None:
    played = told[name, number][traits]
    assert (played.ran.code, played.ran.err, played.was_gone) == (128 + number, "", True)
    assert ("SIGTERM" in played.scene.signals(), shared.state(played.scene.lock)) == (True, "available")


def test_a_command_that_tidies_up_when_told_to_end_keeps_its_status_and_leaves_nothing_running(world: Locks) -> None:
    scene = escape(world, "trap 'exit 5' TERM; (setsid {0} &); sleep 100 & wait", traits="deaf")
    scene.running.send(signal.SIGTERM)
    ran = scene.running.ended()
    assert (ran.code, ran.err, world.left(scene.lock)) == (5, "", NOTHING)


def test_a_signal_that_does_not_end_the_command_leaves_its_daemons_alone(world: Locks) -> None:
    scene = escape(world, "trap : QUIT USR1; (setsid {0} &); until [ -e go ]; do sleep 0.05; done; exit 0")
    for number in (signal.SIGQUIT, signal.SIGUSR1):
        scene.running.send(number)
    (world.cli.root / "go").touch()
    ran = scene.running.ended()
    assert (ran.code, is_gone(scene.pid), f"(pid {scene.pid})" in ran.err) == (0, False, True)
    os.kill(scene.pid, signal.SIGKILL)


# The guardian and azguard, when the other one is hit


def test_azguard_and_the_guardian_have_no_name_in_common(world: Locks) -> None:
    scene = escape(world, ESCAPES["a daemon"])
    names = [Path(f"/proc/{pid}/comm").read_text() for pid in (scene.running.pid, scene.guardian)]
    (words,) = (each.words for each in world.processes() if each.pid == scene.guardian)
    assert (names[0] != names[1], " ".join(words).strip()) == (True, "lock-guardian")
    assert not {name for name in ("azguard", "python", "lock run", scene.lock) if name in f"{names[1]} {words}"}
    scene.running.send(signal.SIGKILL)
    scene.running.ended()
    until(lambda: not world.processes())
    assert "SIGTERM" in scene.signals()


def test_kill_9_of_the_guardian_ends_what_has_left_the_process_group(world: Locks) -> None:
    scene = escape(world, ESCAPES["a daemon"], traits="deaf")
    os.kill(scene.guardian, signal.SIGKILL)
    ran = scene.running.ended()
    said = "warning: the process that guards the command was killed, so the command is ended\n"
    assert (ran.code, ran.err, world.left(scene.lock)) == (128 + signal.SIGKILL, said, NOTHING)


def test_a_guardian_that_was_stopped_goes_on_and_ends_the_command_of_a_lost_lock(world: Locks) -> None:
    scene = escape(world, ESCAPES["a daemon"], traits="deaf")
    os.kill(scene.guardian, signal.SIGSTOP)
    break_now(world, scene.lock)
    assert (scene.running.ended().code, "SIGTERM" in scene.signals(), world.processes()) == (77, True, [])


# azguard's side of the guardian, where nothing lets a guardian go on, as under a debugger.
FROZEN = """
import os, signal, sys, time
from azguard.processes.child import Forked
from azguard.processes.guardian import Guardian

guardian = Guardian.fork()
pid = int(open(f"/proc/self/task/{os.getpid()}/children").read())
Forked.resume = lambda self: None
guardian.start(sys.argv[3:], dict(os.environ), ends=float("inf"), grace=float(sys.argv[2]), on_lost="term")
while not os.path.exists(os.environ["BEATS"]):
    time.sleep(0.02)  # another process makes the file
os.kill(pid, signal.SIGSTOP)
if sys.argv[1] == "lost":
    guardian.lost()
heard = []
ended = guardian.wait(heard.append)
guardian.close()
print(heard, ended.status, guardian.find_left_running())
"""


@pytest.mark.parametrize("lost", ["lost", "held"])
@pytest.mark.parametrize(("traits", "grace"), [("", "60"), ("deaf", "0.5")])
def test_azguard_ends_the_command_of_a_stopped_guardian(world: Locks, lost: str, traits: str, grace: str) -> None:
    folder = world.cli.root / "frozen"
    script = ESCAPES["a daemon"].format(shlex.join(worker(folder, traits)))
    ran = subprocess.run(
        [sys.executable, "-c", FROZEN, lost, grace, "sh", "-c", script],
        env=world.cli.environ(env=world.marked({"BEATS": str(folder / "beats")})),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    signals = [line.split()[1] for line in (folder / "signals").read_text().splitlines()]
    assert (ran.stdout, "SIGTERM" in signals) == ("[{'is': 'silent'}] 137 []\n", True)
    assert world.processes() == []


def test_what_has_left_the_group_of_a_stopped_command_is_stopped_before_the_lease_ends(world: Locks) -> None:
    scene = escape(world, "(setsid {0} &); kill -STOP $$; sleep 100", "--lease-duration", "15s")
    # As after Ctrl-Z: azguard and the command are stopped, and nothing renews the lease.
    scene.running.send(signal.SIGSTOP)
    until(lambda: Path(f"/proc/{scene.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    assert world.state(scene.lock) == "leased"
    scene.running.send(signal.SIGCONT)
    scene.running.send(signal.SIGKILL)
    scene.running.ended()
    until(lambda: not world.processes())
