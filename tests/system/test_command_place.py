"""Real processes in a place for commands; azguard's side is this test."""

import errno
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from azguard import times
from azguard.errors import AzguardError, CommandNotFound, GaveUp, NotExecutable
from azguard.processes import child, command_place, guardian_process, tree
from azguard.processes.child import Forked
from azguard.processes.command_place import CommandEnd, CommandOrder, CommandPlace
from azguard.processes.guardian import Guardian
from tests.support.emulator_world import until
from tests.support.lock_world import is_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="judges processes by /proc")
_SECONDS = 60.0


@pytest.fixture(autouse=True)
def _adopts_no_more() -> Iterator[None]:
    """Let orphans of later tests go to init again."""
    yield
    tree._prctl()(tree._PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def place() -> Iterator[CommandPlace]:
    """Return a place; it is gone afterwards."""
    (made,) = CommandPlace.fork(1, dict(os.environ))
    yield made
    command_place.close_all([made])


def run(place: CommandPlace, script: str, **facts: object) -> CommandEnd | None:
    """Run a line of shell to its end."""
    place.start(CommandOrder(["sh", "-c", script], **{"stdin": b"", **facts}))  # type: ignore[arg-type]  # of several types
    return place.wait(_SECONDS)


def begin(place: CommandPlace, folder: Path, script: str = "") -> int:
    """Begin a command that runs for long, and return its pid."""
    wanted = folder / "pid"
    place.start(
        CommandOrder(["sh", "-c", f"{script} echo $$ > {wanted}.new; mv {wanted}.new {wanted}; sleep 300"], b"")
    )
    until(wanted.exists)
    return int(wanted.read_text())


def find_guardian(place: CommandPlace) -> int:
    """Return the pid of the one child of a place that has its guardian's name."""
    children = Path(f"/proc/{place.process.pid}/task/{place.process.pid}/children").read_text().split()
    (found,) = (int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "lock-guardian")
    return found


def test_commands_run_one_after_another(place: CommandPlace) -> None:
    assert [run(place, f"exit {status}") for status in (0, 3, 0)] == [CommandEnd(0), CommandEnd(3), CommandEnd(0)]


def test_a_command_reads_what_it_is_given_byte_for_byte(place: CommandPlace, tmp_path: Path) -> None:
    content = bytes(range(256)) * 256
    run(place, f"cat > {tmp_path}/got", stdin=content)
    assert (tmp_path / "got").read_bytes() == content


def test_a_command_finds_its_files_by_its_variables(place: CommandPlace) -> None:
    assert run(place, 'test "$(cat "$WHAT")" = "é $MORE"', files={"WHAT": "é 1"}, environ={"MORE": "1"}) == CommandEnd(
        0
    )


def test_a_command_whose_files_cannot_be_written_is_told_with_the_folder(place: CommandPlace) -> None:
    with pytest.raises(GaveUp, match=r"the files of the command cannot be written in /.*: File name too long"):
        place.start(CommandOrder(["true"], b"", files={"A" * 300: "x"}))
    assert run(place, "exit 3") == CommandEnd(3)


def test_a_machine_without_a_folder_for_temporary_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(tempfile, "_candidate_tempdir_list", list)
        (place,) = CommandPlace.fork(1, dict(os.environ))
    with pytest.raises(GaveUp, match=r"cannot be written in any folder: No usable temporary directory found"):
        place.start(CommandOrder(["true"], b""))
    command_place.close_all([place])


def test_a_machine_without_room_for_a_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr(Guardian, "fork", refuse)
        (place,) = CommandPlace.fork(1, dict(os.environ))
    with pytest.raises(GaveUp, match="the command cannot be started: Resource temporarily unavailable"):
        place.start(CommandOrder(["true"], b""))
    command_place.close_all([place])


def test_the_files_of_a_command_are_gone_after_it(place: CommandPlace, tmp_path: Path) -> None:
    run(place, f'echo "$WHAT" > {tmp_path}/name', files={"WHAT": "x"})
    assert not Path((tmp_path / "name").read_text().strip()).parent.exists()


def test_a_command_that_is_not_there_is_told(place: CommandPlace) -> None:
    with pytest.raises(CommandNotFound):
        place.start(CommandOrder(["/nowhere/at-all"], b""))


def test_a_file_that_cannot_be_executed_is_told(place: CommandPlace, tmp_path: Path) -> None:
    with pytest.raises(NotExecutable):
        place.start(CommandOrder([str(tmp_path)], b""))


def test_a_command_is_ended_with_what_it_started(place: CommandPlace, tmp_path: Path) -> None:
    pid = begin(place, tmp_path, f"(trap '' TERM; echo > {tmp_path}/child; sleep 301 & echo $! > {tmp_path}/deep) &")
    until((tmp_path / "deep").exists)
    place.end()
    assert place.wait(_SECONDS) == CommandEnd(143)
    assert (is_gone(pid), is_gone(int((tmp_path / "deep").read_text()))) == (True, True)
    assert run(place, "exit 3") == CommandEnd(3)


def test_a_command_is_ended_when_its_time_is_over(place: CommandPlace) -> None:
    place.start(CommandOrder(["sleep", "300"], b"", ends=times.read_boot_clock() + 2.0, grace=0.5))
    ended = place.wait(_SECONDS)
    assert ended is not None
    assert ended.was_late


def test_a_command_is_ended_when_its_place_is_killed(place: CommandPlace, tmp_path: Path) -> None:
    pid = begin(place, tmp_path)
    os.kill(place.process.pid, signal.SIGKILL)
    assert place.wait(_SECONDS) == CommandEnd(None, was_unguarded=True)
    until(lambda: is_gone(pid))
    assert place.is_gone


def test_a_command_is_ended_when_its_guardian_is_killed(place: CommandPlace, tmp_path: Path) -> None:
    pid = begin(place, tmp_path)
    os.kill(find_guardian(place), signal.SIGKILL)
    ended = place.wait(_SECONDS)
    assert ended is not None
    assert (ended.was_unguarded, is_gone(pid), run(place, "exit 3")) == (True, True, CommandEnd(3))


def test_a_guardian_that_is_killed_between_two_commands_is_replaced(place: CommandPlace) -> None:
    run(place, "true")
    killed = find_guardian(place)
    os.kill(killed, signal.SIGKILL)
    until(lambda: is_gone(killed))
    assert (run(place, "exit 3"), find_guardian(place) != killed) == (CommandEnd(3), True)


def test_a_guardian_is_kept_until_a_command_leaves_something_running(place: CommandPlace, tmp_path: Path) -> None:
    log, left = tmp_path / "log", tmp_path / "left"
    scripts = ("true", "true", f"sleep 300 & echo $! > {left}", "true")
    *_, telling, last = [run(place, f"echo $PPID >> {log}; {script}") for script in scripts]
    first, second, third, fourth = map(int, log.read_text().split())
    running = int(left.read_text())
    assert (first == second == third, is_gone(first), fourth == find_guardian(place)) == (True, True, True)
    # Its name may still be that of the shell that it is a fork of.
    assert (f"(pid {running})" in str(telling), is_gone(running), last) == (True, False, CommandEnd(0))
    os.kill(running, signal.SIGKILL)


def test_a_guardian_that_is_told_too_late_that_its_command_is_to_end_is_not_kept() -> None:
    ours, theirs = child.pair()
    guardian = Guardian(Forked(0, ours))
    theirs.send(**{"is": "started"}, pid=1)
    theirs.send(**{"is": "ended"}, status=0, signal=None, typed=False, left=[], stays=True)
    guardian.start(["true"], {}, ends=float("inf"), grace=0.0, on_lost="term")
    guardian.lost()
    guardian.wait(lambda message: None)
    assert not guardian.stays


def test_a_place_that_was_stopped_goes_on(place: CommandPlace, tmp_path: Path) -> None:
    place.start(CommandOrder(["true"], b""))
    os.kill(place.process.pid, signal.SIGSTOP)
    assert place.wait(_SECONDS) == CommandEnd(0)


def test_a_command_ends_when_azguard_lets_its_place_go(tmp_path: Path) -> None:
    made = CommandPlace.fork(2, dict(os.environ))
    pid = begin(made[0], tmp_path)
    command_place.close_all(made)
    assert is_gone(pid)


def test_what_a_command_leaves_running_is_no_zombie_once_it_has_ended(place: CommandPlace, tmp_path: Path) -> None:
    run(place, f"setsid sh -c 'echo $$ > {tmp_path}/pid; while ! [ -e {tmp_path}/end ]; do sleep 0.05; done' &")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    (tmp_path / "end").touch()
    pid = int((tmp_path / "pid").read_text())
    until(lambda: is_gone(pid))
    run(place, "true")
    assert not Path(f"/proc/{pid}").exists()


def test_signals_of_the_terminal_do_not_reach_a_command(place: CommandPlace, tmp_path: Path) -> None:
    pid = begin(place, tmp_path)
    assert (os.getsid(place.process.pid), os.getpgid(pid)) == (place.process.pid, pid)


def test_a_guardian_that_is_killed_before_its_command_begins_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian_process, "serve", lambda *_, **__: os._exit(1))
    (place,) = CommandPlace.fork(1, dict(os.environ))
    with pytest.raises(AzguardError, match="was killed") as raised:
        run(place, "exit 0")
    command_place.close_all([place])
    assert (raised.value.reason, place.is_gone) == (command_place.GUARDIAN_KILLED, False)
