"""Files that one process at a time locks; the kernel unlocks them when that process ends, however it ends.

filelock is not used: the queue of writers locks tickets that are open already, and one system call does it.

A note is such a file, of what a process has under way. It outlives a kill: a note that can be locked is of a process
that is gone, so that another process may finish what it left. Facts are added line by line: a line that a kill cut
short is not read, and the others are.

Not guaranteed: locks on a network file system, some of which accept the call and lock nothing. So a note of another
machine tells nothing here. It is left to that machine.
"""

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, field
from pathlib import Path

from azguard.folders import make_private
from azguard.frozen import frozen, mutable

#: Whether this system has such locks; Windows has not.
IS_SUPPORTED = os.name == "posix"
# How often to try a lock that may be waited for only so long: the system call has no timeout.
_POLL_SECONDS = 0.002
# Of a note.
_ENDING = ".json"
_LONGEST_NOTE = 64 * 1024
# A request that a process sent before its end arrives within this time: so long a kernel may send it again.
_LATE_SECONDS = 20 * 60
_MACHINE_ID = Path("/etc/machine-id")


def lock(descriptor: int) -> None:
    """Lock an open file; wait as long as another process has it locked."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Lock an open file unless it is locked already; return whether it is ours now."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def create_locked(path: Path, flags: int = 0) -> int:
    """Return a file that is open and locked, which is made for this user alone if it is not there.

    Raises:
        OSError: it cannot be opened, or this file system has no locks.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | flags, 0o600)
    try:
        lock(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_and_try(path: Path, flags: int) -> int:
    """Return a file that is open, and locked unless another process has it locked or this file system has no locks.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags, 0o600)
    if IS_SUPPORTED:
        with suppress(OSError):
            try_lock(descriptor)
    return descriptor


@contextmanager
def lock_unused(path: Path, *, if_missing: bool = False) -> Iterator[bool]:
    """Keep a file locked meanwhile, unless a process has it locked; yield whether none has.

    Yield ``if_missing`` where there is no file, and False where it cannot be told. No file is made.
    """
    with ExitStack() as stack:
        is_unused = not IS_SUPPORTED
        try:
            if IS_SUPPORTED:
                # A network file system locks only what may be written.
                access = os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY
                descriptor = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
                stack.callback(os.close, descriptor)
                is_unused = try_lock(descriptor)
        except FileNotFoundError:
            is_unused = if_missing
        except OSError:
            is_unused = False
        yield is_unused


@contextmanager
def hold(path: Path, at_most_seconds: float | None = None) -> Iterator[int]:
    """Hold a lock file, which is made if need be and stays, and yield it; wait for it at most so long, or for ever.

    Raises:
        OSError: the file cannot be opened, or this file system has no locks.
        TimeoutError: another process kept it locked.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if at_most_seconds is None:
            lock(descriptor)
        else:
            _lock_within(descriptor, at_most_seconds)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock_within(descriptor: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process kept it locked for {seconds:g} seconds")
        time.sleep(_POLL_SECONDS)  # a wait for the lock itself could not end in time


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
        from azguard.processes import identity

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


@mutable
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
        """Return whether the noted request may still arrive, so that its absence now proves nothing."""
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
        """Note a request before it is sent. Where the folder cannot be written, there is no note."""
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
        if IS_SUPPORTED:
            note.descriptor = create_locked(note.path, os.O_APPEND)
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
        with lock_unused(path) as is_over:
            return path.exists() and not is_over

    def _read_abandoned(self, path: Path) -> ProcessNote | None:
        # Read while it is locked: its process may have made it, and not have locked it yet.
        facts: dict[str, str] = {}
        with lock_unused(path) as is_over:
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
