"""The guardian's command with all it started: signals to it, and whether any of it is left.

On Linux all of it descends from the guardian, which adopts orphans: other process groups, sessions and daemons too.
Elsewhere it is the command's process group. Where it has a control group, that is killed first: Linux ends all that is
in it at once, also what forks faster than it can be found. One is made where this process may make one inside its own
group: root outside of most containers, and services to which systemd delegates theirs.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (``cgroup.kill``, since Linux 5.14)
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from azguard.frozen import frozen
from azguard.processes import tree
from azguard.processes.identity import HAS_PROC, Process, find

_PREFIX = "azguard-"
_MEMBERS = "cgroup.procs"
_KILL = "cgroup.kill"
# A lock run inside ours. It ends its own command when it is asked to end; asked twice, a command may give up tidying.
NAME = "lock-guardian"
# How often to look whether a group that was killed has gone.
_LOOK_SECONDS = 0.02


@frozen
class ControlGroup:
    """The group that a guardian made for its command."""

    folder: Path
    #: Open from the start, so that it can be written where no more files can be opened.
    switch: int

    def join(self) -> None:
        """Move this process into the group, with all that it starts from now on; where that fails, it stays outside."""
        with suppress(OSError):
            (self.folder / _MEMBERS).write_bytes(b"0")

    def kill(self) -> None:
        with suppress(OSError):
            os.write(self.switch, b"1")

    def remove(self) -> None:
        """Remove the group; what still runs in it, such as a daemon, keeps it until a later command removes it."""
        os.close(self.switch)
        _remove_tree(self.folder)


def make_control_group() -> ControlGroup | None:
    """Make a group that is named after this process, a guardian; None where that is not possible."""
    try:
        above = _find_own()
        if above is None:
            return None
        _remove_left(above)
        folder = _name(above, os.getpid())
        folder.mkdir()
        try:
            return ControlGroup(folder, os.open(folder / _KILL, os.O_WRONLY | os.O_CLOEXEC))
        except OSError:
            folder.rmdir()
            return None
    except OSError:
        return None


def kill_control_group_of(guardian: int) -> None:
    """Kill all that is in the group that a guardian of this process made, by the guardian's pid."""
    with suppress(OSError):
        if (above := _find_own()) is not None:
            (_name(above, guardian) / _KILL).write_bytes(b"1")


def _name(above: Path, guardian: int) -> Path:
    return above / f"{_PREFIX}{guardian}"


def _find_own() -> Path | None:
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    for mount in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, system = mount.partition(" - ")
        if path is None or not system.startswith("cgroup2 "):
            continue
        root, point = fields.split()[3:5]
        if Path(path).is_relative_to(root):
            return Path(point) / Path(path).relative_to(root)
    return None


def _remove_left(above: Path) -> None:
    for each in _list_made(above):
        if not Path("/proc", each.name.removeprefix(_PREFIX)).exists():
            _remove_tree(each)


def _remove_tree(folder: Path) -> None:
    """Remove an empty group, and first those that guardians in it left when they were killed."""
    with suppress(OSError):
        for each in _list_made(folder):
            _remove_tree(each)
        folder.rmdir()


def _list_made(folder: Path) -> list[Path]:
    """Return the groups in a folder that guardians made."""
    return [folder / name for name in os.listdir(folder) if name.startswith(_PREFIX)]


class CommandTree:
    """A command, by its pid, which is its process group too. Its parent is this process."""

    def __init__(self, command: int, group: ControlGroup | None = None) -> None:
        self._command = command
        self._control_group = group
        self._frozen: list[Process] = []
        #: How the command ended, as ``waitpid`` tells it; None while it runs.
        self.status: int | None = None
        self._childless = False

    def reap(self) -> list[int]:
        """Collect what has ended; return how the command's state changed meanwhile, as ``waitpid`` tells it."""
        changes = []
        while not self._childless:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                self._childless = True
                break
            if pid == 0:
                break
            if pid == self._command:
                changes.append(status)
                if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                    self.status = status
        return changes

    def is_gone(self) -> bool:
        """Return whether nothing of it runs any more."""
        if tree.IS_KNOWN:
            # Whatever descends from us has an ancestor among our children.
            return self._childless
        return self.status is not None and not is_group_alive(self._command)

    def send(self, number: int) -> None:
        if self._group_is_ours():
            signal_group(self._command, number)

    def ask_to_end(self, number: int) -> None:
        """Send a signal that ends to the command's process group, which may be stopped."""
        if self._group_is_ours():
            terminate_group(self._command, number)

    def terminate(self, *, with_group: bool = True) -> None:
        """Ask all of it to end; without the command's process group if that was asked already."""
        elsewhere = self._elsewhere()
        if with_group:
            self.ask_to_end(signal.SIGTERM)
        tree.terminate(drop_other_locks(elsewhere))

    def kill(self) -> None:
        """Kill all of it; to be repeated until ``is_gone``: without a control group it may fork meanwhile."""
        if self._control_group is not None:
            self._control_group.kill()
        self.send(signal.SIGKILL)
        tree.send(self._all(), signal.SIGKILL)

    def freeze(self) -> None:
        """Stop all of it; to be repeated, since it may fork meanwhile."""
        self.send(signal.SIGSTOP)
        running = [each for each in self._elsewhere() if not each.is_stopped]
        tree.send(running, signal.SIGSTOP)
        self._frozen += running

    def go_on(self) -> None:
        """Let the command's process group go on, and what was frozen."""
        self.send(signal.SIGCONT)
        tree.send(self._frozen, signal.SIGCONT)
        self._frozen = []

    def find_running(self) -> list[str]:
        """Return the names and ids of the processes that still run, for people."""
        return list(map(str, self._all()))

    def _group_is_ours(self) -> bool:
        """Return whether the number is still that of the command's group: it is free once all in it are gone."""
        return self.status is None or not tree.IS_KNOWN or any(e.group == self._command for e in self._all())

    def _all(self) -> list[Process]:
        try:
            return tree.find_descendants(os.getpid())
        except OSError:
            return []  # The machine has no room to open a file. The command's process group is ended all the same.

    def _elsewhere(self) -> list[Process]:
        return [each for each in self._all() if each.group != self._command]


def drop_other_locks(processes: list[Process]) -> list[Process]:
    """Leave out the guardians of other locks, and what they guard."""
    guarded = {each.pid for each in processes if each.name == NAME}
    kept = []
    for each in processes:
        if each.pid in guarded or each.parent in guarded:
            guarded.add(each.pid)
        else:
            kept.append(each)
    return kept


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a group; return whether any process received it."""
    try:
        # The group's number is not given to another group while one of its members is left.
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def terminate_group(group: int, number: int = signal.SIGTERM) -> bool:
    """Ask a group to end; return whether any process was asked."""
    asked = signal_group(group, number)
    # One that is stopped, as by reading from the terminal, takes a signal only once it goes on.
    return signal_group(group, signal.SIGCONT) or asked


def kill_group(group: int, seconds: float) -> None:
    """Kill a group, and wait at most so long until it is gone."""
    signal_group(group, signal.SIGKILL)
    until = time.monotonic() + seconds
    while is_group_alive(group) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)  # the system tells the end of a group by no signal


def is_group_alive(group: int) -> bool:
    """Return whether a process group has members that run.

    Where nothing reaps orphans, as in a container without an init, they stay as zombies, which killpg counts.
    """
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    if not HAS_PROC:
        return True
    return any(_runs_in(group, int(entry)) for entry in os.listdir("/proc") if entry.isdecimal())


def _runs_in(group: int, pid: int) -> bool:
    process = find(pid)
    return process is not None and process.group == group and not process.has_ended
