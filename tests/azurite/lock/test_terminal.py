"""``lock run`` in a terminal: the command has it, Ctrl-C and Ctrl-Z do what they always do, the shell gets it back."""

import shlex
from collections.abc import Iterator

import pytest

from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.lock_world import is_gone, locks, worker
from tests.support.terminal_world import CTRL_C, CTRL_Z, Seat, is_stopped, seated, shell


@pytest.fixture(scope="module")
def seat_of_all(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    """Yield a shell for all tests of this file."""
    with locks(CliWorld(tmp_path_factory.mktemp("seat"), connection_string)) as world, seated(world) as seat:
        yield seat


@pytest.fixture
def seat(seat_of_all: Seat) -> Seat:
    seat_of_all.shell.forget()
    return seat_of_all


def test_the_command_reads_from_the_terminal_and_the_shell_gets_it_back(seat: Seat) -> None:
    lock = seat.world.new()
    seat.shell.type(f"{seat.line(lock, '--', 'sh', '-c', 'read line; echo got=$line')}; read next; echo then=$next\n")
    until(lambda: seat.world.state(lock) == "leased")
    seat.shell.type("one\n")
    seat.shell.wait_for("got=one")
    seat.shell.type("two\n")
    seat.shell.wait_for("then=two")
    assert seat.world.state(lock) == "available"


def test_ctrl_c_ends_the_command_and_the_script_around_it(seat: Seat) -> None:
    lock, folder = seat.world.new(), seat.world.cli.root / "ctrl-c"
    script = seat.world.cli.file("script.sh", f"{seat.line(lock, '--', *worker(folder))}\necho went-on\n")
    seat.shell.type(f"bash {script}\n")
    until((folder / "beats").exists)
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
    seat.shell.type(CTRL_Z)
    seat.shell.wait_for("Stopped")
    before = seen.heartbeat.read_text()
    assert (is_stopped(seen.pid), seen.went_on()) == (True, False)
    seat.shell.type("fg\n")
    until(seen.went_on)
    # Nothing renews while azguard is stopped.
    assert seen.heartbeat.read_text() != before
    seat.shell.type(CTRL_C)
    seat.shell.wait_for("azguard lock run")
    until(lambda: is_gone(seen.pid) and seat.world.state(lock) == "available")


def test_a_closed_terminal_ends_the_command_and_releases_the_lock(seat: Seat) -> None:
    lock = seat.world.new()
    folder = seat.world.cli.root / "closed"
    with shell(seat.world.cli.root, seat.world.cli.environ(env=seat.world.marked())) as window:
        window.type(f"exec {seat.line(lock, '--', *worker(folder))}\n")
        until((folder / "beats").exists)
        window.hang_up()
        until(lambda: seat.world.state(lock) == "available")
    assert (folder / "signals").read_text().split()[1:2] == ["SIGHUP"]


def test_what_left_the_foreground_ends_before_the_release_if_the_session_is_closed_around_a_script(seat: Seat) -> None:
    lock, folder = seat.world.new(), seat.world.cli.root / "session"
    inner = f"timeout 60 {shlex.join(worker(folder))} & wait"
    script = seat.world.cli.file("session.sh", f"{seat.line(lock, '--', 'sh', '-c', inner)}\necho went-on\n")
    with shell(seat.world.cli.root, seat.world.cli.environ(env=seat.world.marked())) as window:
        window.type(f"bash {script}\n")
        until((folder / "beats").exists)
    # The script and azguard are not told: neither is in the foreground.
    until(lambda: seat.world.state(lock) == "available")
    assert is_gone(int((folder / "pid").read_text()))


def test_in_a_pipeline_the_terminal_is_for_whoever_asks_for_it(seat: Seat) -> None:
    lock, done = seat.world.new(), seat.world.cli.root / "done"
    command = f"echo one; until [ -e {done} ]; do sleep 0.05; done; read line </dev/tty; echo command has $line"
    pager = f"read line; read typed </dev/tty; echo pager has $typed; touch {done}; cat"
    seat.shell.type(f"{seat.line(lock, '--', 'sh', '-c', command)} | sh -c {shlex.quote(pager)}\n")
    until(lambda: seat.world.state(lock) == "leased")
    seat.shell.type("apple\n")
    seat.shell.wait_for("pager has apple")
    seat.shell.type("pear\n")
    seat.shell.wait_for("command has pear")
    until(lambda: seat.world.state(lock) == "available")
