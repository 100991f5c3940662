"""Process groups: a command and whatever it started, as long as that stays in its group."""

import os
import signal
import time

from azguard.processes.identity import HAS_PROC, find

# How often to look whether a group that was killed has gone.
_LOOK_SECONDS = 0.02


def send(group: int, number: int) -> bool:
    """Send a signal to a group; return whether any process received it."""
    try:
        # The group's number is not given to another group while one of its members is left.
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def terminate(group: int, number: int = signal.SIGTERM) -> bool:
    """Ask a group to end; return whether any process was asked."""
    asked = send(group, number)
    # One that is stopped, as by reading from the terminal, takes a signal only once it goes on.
    return send(group, signal.SIGCONT) or asked


def kill(group: int, seconds: float) -> None:
    """Kill a group, and wait at most so long until it is gone."""
    send(group, signal.SIGKILL)
    until = time.monotonic() + seconds
    while is_alive(group) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)


def is_alive(group: int) -> bool:
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
