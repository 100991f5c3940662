"""Notes of what a process has under way, which outlive a kill: for each one a file that its process keeps locked.

The kernel unlocks the file when the process has ended, however it ended. A note that can be locked is of a process that
is gone, so that another process may finish what it left. Facts are added line by line: a line that a kill cut short
is not read, and the others are.

Not guaranteed: a note of another machine tells nothing here, because a lock may not reach across a network file system.
It is left to that machine.
"""

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from azguard.folders import make_private
from azguard.frozen import frozen
from azguard.processes import identity, locked_file

_ENDING = ".json"
_LONGEST_NOTE = 64 * 1024
# A request that a process sent before its end arrives within this time: so long a kernel may send it again.
_LATE_SECONDS = 20 * 60
_MACHINE_ID = Path("/etc/machine-id")


@frozen
class Machine:
    """What tells this machine from others, and one boot of it from the others."""

    host: str
    #: None where the system has none.
    boot: str | None
    #: What an installation of the system keeps; None where there is none, as in many containers.
    installation: str | None

    @classmethod
    def find(cls) -> "Machine":
        """Return the machine that this process runs on."""
        installation = None
        with suppress(OSError, UnicodeDecodeError):
            installation = _MACHINE_ID.read_text("ascii").strip() or None
        return cls(socket.gethostname(), identity.find_boot(), installation)

    @property
    def facts(self) -> dict[str, str]:
        """Return the note's facts about the machine of its process."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def runs(self, other: "Machine") -> bool:
        """Return whether what a process of the other says of its locks, or its end, is known here."""
        if self.boot is not None and self.boot == other.boot:
            return True  # The same kernel keeps the locks, in whichever container.
        if self.boot is not None and self.installation is None:
            return False
        # Started again since: then all processes of before have ended.
        return (self.host, self.installation) == (other.host, other.installation)


@dataclass
class ProcessNote:
    """One note."""

    path: Path
    #: All that was noted; a later fact of the same name replaces an earlier one.
    facts: dict[str, str]
    #: The open file, which keeps the note locked; None if it is not this process's, or is closed.
    descriptor: int | None = None
    #: Whether it is left even if all is done, because something of it may still come late.
    is_left: bool = False

    def write(self, **facts: str) -> None:
        """Add facts, before what they tell of is begun.

        Raises:
            OSError: they cannot be written.
        """
        self.facts |= facts
        if self.descriptor is not None:
            os.write(self.descriptor, f"{json.dumps(facts)}\n".encode())

    def add(self, **facts: str) -> None:
        """Add facts as ``write`` does, and raise no error."""
        with suppress(OSError):
            self.write(**facts)

    def note_there(self) -> None:
        """Note that it is there what was begun, by the only request that was sent for it."""
        self.add(is_there="yes")

    @property
    def may_come(self) -> bool:
        """Return whether a request for what was begun may arrive yet, so that it is of no use that it is not there."""
        if "is_there" in self.facts:
            return False
        return time.time() < float(self.facts.get("since", 0)) + _LATE_SECONDS

    def close(self, *, is_done: bool) -> None:
        """Let go of the note: delete it, or leave it for the next process because something may be left.

        One that cannot be deleted is left, too: the next process finds nothing to end.
        """
        if is_done and not self.is_left:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


@frozen
class ProcessNotes:
    """A folder of notes."""

    folder: Path
    machine: Machine = field(default_factory=Machine.find)

    def open(self, name: str, facts: Mapping[str, str]) -> ProcessNote:
        """Note what is about to be done. Where the folder cannot be written, it is not noted."""
        note = ProcessNote(self._find_path(name), {})
        with suppress(OSError):
            note = self.make(name)
        note.add(**facts, since=f"{time.time():.0f}", **self.machine.facts)
        return note

    def make(self, name: str) -> ProcessNote:
        """Make a note that says nothing yet.

        Raises:
            OSError: the folder cannot be written.
        """
        note = ProcessNote(self._find_path(name), {})
        make_private(self.folder)
        if locked_file.IS_SUPPORTED:
            note.descriptor = locked_file.create_locked(note.path, os.O_APPEND)
        return note

    def _find_path(self, name: str) -> Path:
        return self.folder / f"{name}{_ENDING}"

    def find_abandoned(self) -> Iterator[ProcessNote]:
        """Yield the notes of processes on this machine that have ended."""
        yield from filter(None, map(self._read_abandoned, sorted(self.folder.glob(f"*{_ENDING}"))))

    def find(self, name: str) -> ProcessNote | None:
        """Return the note of that name, if it is of a process on this machine that has ended."""
        return self._read_abandoned(self._find_path(name))

    def is_running(self, name: str) -> bool:
        """Return whether the process lives that opened the note of that name."""
        path = self._find_path(name)
        with locked_file.lock_unused(path) as is_over:
            return path.exists() and not is_over

    def _read_abandoned(self, path: Path) -> ProcessNote | None:
        # Read while it is locked: its process may have made it, and not have locked it yet.
        facts: dict[str, str] = {}
        with locked_file.lock_unused(path) as is_over:
            if is_over:
                facts = _read(path)
        # Without a host it is being written, or a kill cut it short before anything was begun.
        if "host" not in facts:
            return None
        of = Machine(facts["host"], facts.get("boot"), facts.get("installation"))
        return ProcessNote(path, facts) if self.machine.runs(of) else None


def _read(path: Path) -> dict[str, str]:
    facts: dict[str, str] = {}
    with suppress(OSError, ValueError):
        for line in path.read_bytes()[:_LONGEST_NOTE].splitlines():
            found = json.loads(line)
            facts |= {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
    return facts
