"""Processes known by pid and start, so that a recycled pid is never taken for the process that had it.

psutil is not used: one read of ``/proc`` tells all that is needed here, ``ps`` does elsewhere, and importing psutil
takes longer than both. A file in reserve makes room for one more where no more files can be opened (EMFILE, ENFILE):
else a command under a lock could not be ended with all that it started.
"""

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from azguard.frozen import frozen

_POLL_SECONDS = 0.02
# After SIGKILL only the kernel can delay the end.
_KILL_SECONDS = 5.0
_PROC = Path("/proc")
T = TypeVar("T")
_FULL = (errno.EMFILE, errno.ENFILE)
# Another thread, or another process, can be faster to take the room.
_TRIES = 10
_PAUSE_SECONDS = 0.01
_reserve: list[int] = []


def _has_own_proc() -> bool:
    """Return whether ``/proc`` is there, and numbers processes as this one does: a sandbox may show another's."""
    try:
        return os.readlink(_PROC / "self") == str(os.getpid()) and (_PROC / "self/stat").exists()
    except OSError:
        return False


#: Whether the kernel describes the processes of this machine, or container, in ``/proc``.
HAS_PROC = _has_own_proc()


@frozen
class Process:
    """A process as Linux describes it; ``pid`` and ``started`` together are its identity within one boot."""

    pid: int
    parent: int
    group: int
    #: In clock ticks since boot.
    started: int
    is_stopped: bool
    #: Whether it has ended and is not reaped yet.
    has_ended: bool
    name: str

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


@frozen
class KnownProcess:
    """A process that lives, or lived: its pid, and what no other process with that pid has."""

    pid: int
    birth: str

    @classmethod
    def find(cls, pid: int) -> "KnownProcess | None":
        """Return the process that has a pid now; None if it does not live, or is hidden from this user.

        Raises:
            OSError: there is neither ``/proc`` nor ``ps``.
        """
        birth = find_birth(pid)
        return None if birth is None else cls(pid, birth)

    @property
    def lives(self) -> bool:
        return find_birth(self.pid) == self.birth


def find(pid: int, proc: Path = _PROC) -> Process | None:
    """Return a process; None if no process has that pid, or if it is hidden from this user. Linux only.

    ``proc`` is where the kernel describes processes.
    """
    found = _read_stat(str(pid), proc)
    if found is None:
        return None
    name, fields = found
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        started=int(fields[19]),
        is_stopped=fields[0] in (b"T", b"t"),
        # A process whose first thread has ended reads like one that has ended, while others of its threads go on.
        has_ended=fields[0] in (b"Z", b"X") and int(fields[17]) <= 1,
        name=name.decode(errors="replace"),
    )


def find_start(pid: int, proc: Path = _PROC) -> str | None:
    """Return when a process was started, as one word of letters and digits; None if that cannot be known."""
    if (proc / "self").exists():
        process = find(pid, proc)
        return None if process is None else str(process.started)
    try:
        started = _ask_ps(pid)[1]
    except OSError:
        return None
    return "".join(letter for letter in started if letter.isalnum()) or None


def find_birth(pid: int) -> str | None:
    """Return a text that no other process ever has, also with this pid or after a reboot; None if it does not live.

    Raises:
        OSError: there is neither ``/proc`` nor ``ps``.
    """
    if sys.platform == "linux":
        process, boot = find(pid), find_boot()
        return None if process is None or process.has_ended or boot is None else f"{boot}/{process.started}"
    return _find_birth_by_ps(pid)


def find_boot(proc: Path = _PROC) -> str | None:
    """Return the id that tells this boot of the machine from every other; None where the id cannot be known.

    Raises:
        OSError: there is no room to open a file.
    """
    try:
        return read_bytes(proc / "sys/kernel/random/boot_id").decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        if _is_out_of_files(error):
            raise  # A process that lives must not be taken for one that has ended.
        return None


def find_name(pid: int) -> str:
    """Return the name of a process's program, such as ``bash``; empty where that cannot be read."""
    process = find(pid)
    return "" if process is None else process.name


def find_own_arguments() -> tuple[int, int]:
    """Return where the command line of this process begins and ends in its memory. Linux only."""
    found = _read_stat("self", _PROC)
    if found is None:
        raise ProcessLookupError
    # arg_start and arg_end, fields 48 and 49 of proc(5); the fields here begin with the third.
    return int(found[1][45]), int(found[1][46])


def end(pid: int, birth: str, grace_seconds: float, send: Callable[[int, signal.Signals], None] = os.killpg) -> None:
    """End a session leader and its group: SIGTERM, a time of grace, SIGKILL. Does nothing if it has ended.

    With ``os.kill`` as ``send``, the process alone is ended.
    """
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, _KILL_SECONDS)):
        if find_birth(pid) != birth:
            return
        try:
            send(pid, number)
            send(pid, signal.SIGCONT)  # One that is stopped takes a signal only once it goes on.
        except (ProcessLookupError, PermissionError):
            return
        _await_end(pid, birth, seconds)


def _await_end(pid: int, birth: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while find_birth(pid) == birth and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)  # the system tells the end of another's child by no signal


def _read_stat(pid: str, proc: Path) -> tuple[bytes, list[bytes]] | None:
    """Return the name of a process and the fields of its ``stat`` from the third on; None if there are none."""
    try:
        # pid (name) state parent group ...: the name may hold blanks and brackets.
        before, _, after = read_bytes(proc / pid / "stat").rpartition(b")")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = after.split()
    return (before.partition(b"(")[2], fields) if fields else None


def _find_birth_by_ps(pid: int) -> str | None:
    state, started = _ask_ps(pid)
    return None if not state or state.startswith("Z") else started


def _ask_ps(pid: int) -> tuple[str, str]:
    """Return the state of a process and the date of its start; two empty texts if there is no such process."""
    import subprocess

    # The zone and the language are pinned: the same process must read the same in every environment.
    environ = {**os.environ, "LC_ALL": "C", "TZ": "UTC0"}
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    state, _, started = answer.stdout.strip().partition(" ")
    return state, " ".join(started.split())


def keep_spare_file() -> None:
    """Open the file in reserve, if this process has none yet and can open one."""
    if not _reserve:
        with suppress(OSError):
            _reserve.append(os.open(os.devnull, os.O_RDONLY))


def read_bytes(path: Path) -> bytes:
    """Return the content of a file."""
    return _make_room(path.read_bytes)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder."""
    return _make_room(lambda: os.listdir(folder))


def _is_out_of_files(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _FULL


def _make_room(read: Callable[[], T]) -> T:
    is_kept = bool(_reserve)
    try:
        for _ in range(_TRIES):
            try:
                return read()
            except OSError as error:
                if not _is_out_of_files(error):
                    raise
            if not _close_reserve():
                time.sleep(_PAUSE_SECONDS)  # until another thread has closed a file
        return read()
    finally:
        if is_kept:
            keep_spare_file()


def _close_reserve() -> bool:
    """Return whether there was a file in reserve, which no other thread was faster to close."""
    try:
        os.close(_reserve.pop())
    except IndexError:
        return False
    return True
