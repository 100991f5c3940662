"""A control group for one command: Linux ends all that is in it at once, also what forks faster than it can be found.

Made where this process may make one inside its own group: root outside of most containers, and services to which
systemd delegates theirs. Elsewhere there is none, and a command is ended process by process.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (``cgroup.kill``, since Linux 5.14)
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "azguard-"
_MEMBERS = "cgroup.procs"
_KILL = "cgroup.kill"


@dataclass(frozen=True)
class ControlGroup:
    """The group that a guardian made for its command."""

    folder: Path
    #: Open from the start, so that it can be written where no more files can be opened.
    switch: int

    def join(self) -> None:
        """Move this process into the group, with all that it starts from now on; where that fails, it stays outside."""
        with suppress(OSError):
            (self.folder / _MEMBERS).write_text("0", encoding="ascii")

    def kill(self) -> None:
        """Kill all that is in the group."""
        with suppress(OSError):
            os.write(self.switch, b"1")

    def remove(self) -> None:
        """Remove the group; what still runs in it, such as a daemon, keeps it until a later command removes it."""
        os.close(self.switch)
        _remove_tree(self.folder)


def make() -> ControlGroup | None:
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


def kill_of(guardian: int) -> None:
    """Kill all that is in the group that a guardian of this process made, by the guardian's pid."""
    with suppress(OSError):
        if (above := _find_own()) is not None:
            (_name(above, guardian) / _KILL).write_text("1", encoding="ascii")


def _name(above: Path, guardian: int) -> Path:
    return above / f"{_PREFIX}{guardian}"


def _find_own() -> Path | None:
    """Find the folder of the group that this process is in."""
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    for mount in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, system = mount.partition(" - ")
        root, point = fields.split()[3:5]
        if system.startswith("cgroup2 ") and path is not None and Path(path).is_relative_to(root):
            return Path(point) / Path(path).relative_to(root)
    return None


def _remove_left(above: Path) -> None:
    """Remove the empty groups of guardians that are gone."""
    for each in above.glob(f"{_PREFIX}*"):
        if not Path("/proc", each.name.removeprefix(_PREFIX)).exists():
            _remove_tree(each)


def _remove_tree(folder: Path) -> None:
    """Remove an empty group, and first those that guardians in it left when they were killed."""
    with suppress(OSError):
        for each in folder.glob(f"{_PREFIX}*"):
            _remove_tree(each)
        folder.rmdir()
