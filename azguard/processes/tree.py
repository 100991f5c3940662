"""Processes by descent: all that a process has started, whichever process group or session it has moved to.

Linux keeps it together: an orphan becomes a child of the nearest ancestor that adopts orphans. Elsewhere a process
that leaves its group is beyond reach.

A child that is to be ended with all it started runs in a process group of its own. What is in ours is left alone: a
login's ``az`` runs there. So are the children that this process had before, as one has that began as a shell. Not for
several threads that start children in groups of their own: who started what cannot be told apart then.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from azguard.processes import identity
from azguard.processes.identity import HAS_PROC, Process, find, find_own_arguments

#: Whether this system can tell who descends from whom.
IS_KNOWN = sys.platform == "linux" and HAS_PROC
# From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# A process that forks while it is killed leaves a child for the next round.
_ROUND_SECONDS = 0.02
# Children can be overlooked while others end.
_EMPTY_LOOKS = 2
# How often it is looked at most until two looks agree; what forks all the time never stands still.
_MOST_LOOKS = 20


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends. Elsewhere than on Linux nothing happens.

    A file is kept in reserve, so that descendants can be found where no more files can be opened.
    """
    if IS_KNOWN:
        identity.keep_spare_file()
        _prctl()(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bind_to_parent() -> Callable[[], object]:
    """Return a function that has Linux kill this process when its parent dies; elsewhere the function does nothing."""
    if sys.platform != "linux":
        return lambda: None
    prctl = _prctl()
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def find_descendants(root: int, but: Collection[Process] = ()) -> list[Process]:
    """Return the processes that descend from another, parents first. What has ended and is not reaped is left out.

    ``but`` is what is left out together with what descends from it. One that is forked meanwhile can be missing.
    """
    if not IS_KNOWN:
        return []
    listed = os.path.exists(f"/proc/self/task/{threading.get_native_id()}/children")
    left_out = {(each.pid, each.started) for each in but}
    ended: set[int] = set()
    found: list[Process] = []
    before = None
    for _ in range(_MOST_LOOKS):
        found = _look_once(root, _list_children if listed else _scan_children(), left_out, ended)
        # The children of a process or a thread that ends meanwhile get a parent whose own may have been listed already.
        now = ({(each.pid, each.started) for each in found}, len(ended))
        if now == before:
            break
        before = now
    return found


def _look_once(
    root: int, list_children: Callable[[int], list[int]], left_out: Collection[tuple[int, int]], ended: set[int]
) -> list[Process]:
    """Return the descendants that were found; the pids of those that had ended are added to ``ended``."""
    found: list[Process] = []
    parents = [root]
    while parents:
        for pid in list_children(parents.pop()):
            process = _read(pid)
            if process is None:
                ended.add(pid)
            elif (pid, process.started) not in left_out:
                found.append(process)
                parents.append(pid)
    return found


def find_named(names: Collection[str]) -> list[Process]:
    """Return the processes of this machine that have one of these names. Where that cannot be known, there are none."""
    if not IS_KNOWN:
        return []
    found = (_read(int(entry)) for entry in os.listdir("/proc") if entry.isdecimal())
    return [each for each in found if each is not None and each.name in names]


def _find_ended_children() -> list[Process]:
    if not IS_KNOWN:
        return []
    found = [find(pid) for pid in _list_children(os.getpid())]
    return [each for each in found if each is not None and each.has_ended]


def send(processes: Iterable[Process], number: int) -> None:
    """Send a signal to processes; what has ended, or runs as another user, is passed over."""
    for process in processes:
        now = _read(process.pid)
        if now is None or now.started != process.started:
            continue
        try:
            os.kill(process.pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def terminate(processes: Collection[Process], number: int = signal.SIGTERM) -> None:
    """Ask processes to end, those that are stopped too."""
    send(processes, number)
    send(processes, signal.SIGCONT)


def kill(find: Callable[[], Collection[Process]], seconds: float) -> list[Process]:
    """Kill the processes found, again and again until none is found; return the processes left after ``seconds``."""
    until = time.monotonic() + seconds
    empty = 0
    while True:
        try:
            found = list(find())
            empty = empty + 1 if not found else 0
        except OSError:
            # The machine has no room to open a file: what is left cannot be seen now.
            found, empty = [], 0
        if empty == _EMPTY_LOOKS or time.monotonic() >= until:
            return found
        send(found, signal.SIGKILL)
        if found:
            time.sleep(_ROUND_SECONDS)  # a new round finds what was started meanwhile


def rename(name: str) -> None:
    """Give this process another name and another command line, as ``ps`` and ``pkill`` see them.

    Elsewhere than on Linux, or where that is not permitted, both stay.
    """
    try:
        # As bytes: a coding would be loaded for it.
        Path("/proc/self/comm").write_bytes(name.encode())
        _overwrite_command_line(name.encode())
    except (OSError, ValueError, IndexError):
        return


def _overwrite_command_line(text: bytes) -> None:
    # Through a file: a wrong address is then an error and not a crash.
    begin, end = find_own_arguments()
    with open("/proc/self/cmdline", "rb") as cmdline, open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(begin)
        if end - begin > len(text) and memory.read(end - begin) == cmdline.read():
            memory.seek(begin)
            memory.write(text.ljust(end - begin, b"\0"))


@lru_cache(maxsize=1)
def _prctl() -> Callable[..., int]:
    import ctypes

    found: Callable[..., int] = ctypes.CDLL(None, use_errno=True).prctl
    return found


def _list_children(parent: int) -> list[int]:
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for thread in identity.list_names(f"/proc/{parent}/task"):
            # Of several threads, one that ends meanwhile hides only its own children.
            with suppress(FileNotFoundError, ProcessLookupError):
                children = identity.read_bytes(Path(f"/proc/{parent}/task/{thread}/children"))
                found += [int(pid) for pid in children.split()]
    return found


def _scan_children() -> Callable[[int], list[int]]:
    """Return a substitute for ``_list_children``, for a kernel that lists no children: one look at all processes."""
    by_parent: dict[int, list[int]] = {}
    for entry in identity.list_names("/proc"):
        process = _read(int(entry)) if entry.isdecimal() else None
        if process is not None:
            by_parent.setdefault(process.parent, []).append(process.pid)
    return lambda parent: by_parent.get(parent, [])


def _read(pid: int) -> Process | None:
    """Return a process, or None if it has ended."""
    found = find(pid)
    return None if found is None or found.has_ended else found


class Offspring:
    """The processes that descend from this one and were started after this object was made."""

    def __init__(self) -> None:
        self._strangers = find_descendants(os.getpid())

    def running(self, but: int = 0) -> list[Process]:
        """Return those that run; ``but`` is the pid of one to leave out, whose descendants are not left out."""
        ours = os.getpgrp()
        found = find_descendants(os.getpid(), self._strangers)
        return [each for each in found if each.group != ours and each.pid != but]

    def reap(self) -> None:
        """Collect adopted orphans that have ended."""
        # A process whose parent is collected becomes our child, and may have ended before.
        while self._reap_once():
            pass

    def _reap_once(self) -> bool:
        """Collect what has ended by now; return whether there was something to collect."""
        ours, strangers = os.getpgrp(), {each.pid for each in self._strangers}
        collected = False
        for each in _find_ended_children():
            if each.group == ours or each.pid in strangers:
                continue
            try:
                pid, _ = os.waitpid(each.pid, os.WNOHANG)
            except ChildProcessError:
                continue
            collected = collected or pid != 0
        return collected
