"""``lock run`` in a terminal: the command has it, Ctrl-C and Ctrl-Z do what they always do, the shell gets it back."""

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.storage.blob import BlobLeaseClient

from tests.cli_world import CliWorld, command
from tests.emulator_world import until
from tests.lock_world import Locks, is_gone, locks, worker
from tests.terminal_world import CTRL_C, CTRL_Z, Shell, shell


@dataclass
class Seat:
    """A shell, and a world of locks."""

    world: Locks
    shell: Shell

    def line(self, *words: str) -> str:
        """Return a command line that runs ``azguard lock run``."""
        return shlex.join(command("lock", "run", *words))

    def work(self, lock: str, *options: str) -> "Seen":
        """Type a run of ``locked_command``, and wait until it works."""
        folder = self.world.cli.root / f"work{len(list(self.world.cli.root.iterdir()))}"
        heartbeat = folder.with_suffix(".heartbeat")
        words = [lock, "--heartbeat-file", str(heartbeat), *options, "--", *worker(folder)]
        self.shell.type(f"{self.line(*words)}; echo status=$?\n")
        until((folder / "beats").exists, 40)
        return Seen(folder, heartbeat)


@dataclass
class Seen:
    """What a typed command leaves in files."""

    folder: Path
    heartbeat: Path

    @property
    def pid(self) -> int:
        """Return the command's pid."""
        return int((self.folder / "pid").read_text())

    def beats(self) -> str:
        """Return the last sign of life."""
        return (self.folder / "beats").read_text().splitlines()[-1]

    def went_on(self) -> bool:
        """Return whether the command was let go on."""
        file = self.folder / "signals"
        return file.exists() and "SIGCONT" in file.read_text()

    def finish(self, status: int) -> None:
        """Let the command end by itself."""
        (self.folder / "end.new").write_text(str(status))
        (self.folder / "end.new").rename(self.folder / "end")


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"


@pytest.fixture(scope="module")
def seats(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Seat]]:
    """Yield three shells at work at the same time."""
    with ExitStack() as stack:
        world = stack.enter_context(locks(CliWorld(tmp_path_factory.mktemp("seats"), connection_string)))
        environ = world.cli.environ(env=world.marked())
        yield [Seat(world, stack.enter_context(shell(world.cli.root, environ))) for _ in range(3)]


@dataclass
class Paused:
    """Commands that were stopped by Ctrl-Z for longer than their lease."""

    seat: Seat
    lock: str
    seen: Seen


@pytest.fixture(scope="module")
def paused(seats: list[Seat]) -> list[Paused]:
    """Return two commands that were stopped just now."""
    found = []
    for seat in seats[1:]:
        lock = seat.world.new()
        seen = seat.work(lock, "--lease-duration", "15s")
        seat.shell.type(CTRL_Z)
        seat.shell.wait_for("Stopped")
        found.append(Paused(seat, lock, seen))
    return found


@pytest.fixture
def seat(seats: list[Seat], paused: list[Paused]) -> Seat:
    """Return the shell that is free; the others wait meanwhile."""
    seats[0].shell.forget()
    return seats[0]


def test_the_command_reads_from_the_terminal_and_the_shell_gets_it_back(seat: Seat) -> None:
    lock = seat.world.new()
    seat.shell.type(f"{seat.line(lock, '--', 'sh', '-c', 'read line; echo got=$line')}; read next; echo then=$next\n")
    until(lambda: seat.world.state(lock) == "leased", 40)
    seat.shell.type("one\n")
    seat.shell.wait_for("got=one")
    seat.shell.type("two\n")
    seat.shell.wait_for("then=two")
    assert seat.world.state(lock) == "available"


def test_ctrl_c_ends_the_command_and_the_script_around_it(seat: Seat) -> None:
    lock, folder = seat.world.new(), seat.world.cli.root / "ctrl-c"
    script = seat.world.cli.file("script.sh", f"{seat.line(lock, '--', *worker(folder))}\necho went-on\n")
    seat.shell.type(f"bash {script}\n")
    until((folder / "beats").exists, 40)
    seat.shell.type(CTRL_C)
    seat.shell.type("echo status=$?\n")
    seat.shell.wait_for("status=130")
    assert ("went-on" in seat.shell.shown, seat.world.state(lock)) == (False, "available")
    assert (folder / "signals").read_text().split()[1:] == ["SIGINT"]


def test_ctrl_c_while_waiting_for_the_lock_ends_the_script_around_it(seat: Seat) -> None:
    lock = seat.world.new()
    script = seat.world.cli.file("waiting.sh", f"{seat.line(lock, '--', 'true')}\necho went-on\n")
    with seat.world.taken(lock):
        seat.shell.type(f"bash {script}\n")
        seat.shell.wait_for("waiting for")
        seat.shell.type(CTRL_C)
        seat.shell.type("echo status=$?\n")
        seat.shell.wait_for("status=130")
    assert ("went-on" in seat.shell.shown, seat.world.state(lock)) == (False, "available")


def test_ctrl_z_stops_azguard_and_its_command_and_fg_renews_before_they_go_on(seat: Seat) -> None:
    lock = seat.world.new()
    seen = seat.work(lock)
    before = seen.heartbeat.read_text()
    seat.shell.type(CTRL_Z)
    seat.shell.wait_for("Stopped")
    assert (is_stopped(seen.pid), seen.went_on(), seen.heartbeat.read_text() == before) == (True, False, True)
    seat.shell.type("fg\n")
    until(seen.went_on, 40)
    # The next renewal was not due for twenty seconds.
    assert seen.heartbeat.read_text() != before
    seat.shell.type(CTRL_C)
    seat.shell.wait_for("azguard lock run")
    until(lambda: is_gone(seen.pid) and seat.world.state(lock) == "available", 40)


def test_a_closed_terminal_ends_the_command_and_releases_the_lock(seat: Seat) -> None:
    lock = seat.world.new()
    folder = seat.world.cli.root / "closed"
    with shell(seat.world.cli.root, seat.world.cli.environ(env=seat.world.marked())) as window:
        window.type(f"exec {seat.line(lock, '--', *worker(folder))}\n")
        until((folder / "beats").exists, 40)
        window.hang_up()
        until(lambda: seat.world.state(lock) == "available", 40)
    assert (folder / "signals").read_text().split()[1:2] == ["SIGHUP"]


def test_who_was_stopped_for_longer_than_the_lease_goes_on_if_nobody_had_the_lock(paused: list[Paused]) -> None:
    one = paused[0]
    until(lambda: one.seat.world.state(one.lock) == "expired", 40)
    assert (is_stopped(one.seen.pid), one.seen.went_on()) == (True, False)
    one.seat.shell.type("fg; echo now=$?\n")
    until(one.seen.went_on, 40)
    assert one.seat.world.state(one.lock) == "leased"
    one.seen.finish(0)
    one.seat.shell.wait_for("now=0")
    assert one.seat.world.state(one.lock) == "available"


def test_who_was_stopped_while_somebody_else_had_the_lock_never_goes_on(paused: list[Paused]) -> None:
    other = paused[1]
    until(lambda: other.seat.world.state(other.lock) == "expired", 40)
    BlobLeaseClient(other.seat.world.blob(other.lock)).acquire(60)
    last = other.seen.beats()
    other.seat.shell.forget()
    other.seat.shell.type("fg; echo now=$?\n")
    other.seat.shell.wait_for("now=77")
    assert (other.seen.beats(), is_gone(other.seen.pid), other.seen.went_on()) == (last, True, False)
    assert "the lock was lost while the command ran" in other.seat.shell.shown
