"""Processes known by pid and birth, so that a recycled pid is never taken for the process that had it."""

import os
import signal
import sys
import time
from pathlib import Path

_POLL_SECONDS = 0.02


def birth(pid: int) -> str | None:
    """Return what tells this process from every other that ever has its pid; None if it does not live."""
    return _birth_in_proc(pid) if sys.platform == "linux" else _birth_by_ps(pid)


def name(pid: int) -> str:
    """Return the name of a process's program, such as ``bash``; empty where that cannot be read."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def end(pid: int, born: str, grace: float) -> None:
    """End a session leader and its group: TERM, at most ``grace`` seconds, KILL. Nothing if it is gone."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        if birth(pid) != born:
            return
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return
        _await_end(pid, born, seconds)


def _await_end(pid: int, born: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while birth(pid) == born and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _birth_in_proc(pid: int) -> str | None:
    try:
        # The program's name, in parentheses, may hold anything; the fields behind it are numbers.
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}/{ticks}"


def _birth_by_ps(pid: int) -> str | None:
    import subprocess

    # The zone and the language are pinned: the same process must read the same in every environment.
    environ = {**os.environ, "LC_ALL": "C", "TZ": "UTC0"}
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else " ".join(started.split())
