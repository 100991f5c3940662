"""Processes known by pid and birth, so that a recycled pid is never taken for the process that had it."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from azguard.errors import ConfigError

_POLL_SECONDS = 0.02


def check_system(system: str = os.name) -> None:
    """Refuse a system on which the emulator is not started.

    Raises:
        ConfigError: it is Windows.
    """
    if system == "nt":
        raise ConfigError(
            "azguard starts the emulator on Linux and macOS only",
            hint="start Azurite yourself: npx azurite@3.35.0 --skipApiVersionCheck; then use --emulator",
        )


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


def tied(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a Node.js program ends by itself once its standard input closes.

    With a pipe of ours as that input, it ends when we do, ``kill -9`` included; a byte written to the pipe
    sets it free.
    """
    import json

    # JSON quotes a path the way Node.js reads one in NODE_OPTIONS.
    guard = json.dumps(str(Path(__file__).with_name("guard.js")), ensure_ascii=False)
    return {**environ, "NODE_OPTIONS": f"{environ.get('NODE_OPTIONS', '')} --require {guard}".strip()}


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file that only one process at a time can hold; wait for it, and let go however we end.

    Raises:
        ConfigError: the file cannot be written.
    """
    import fcntl

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115  (closed below, outside the except)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", hint="set AZGUARD_CACHE_DIR") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


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

    # The zone and the language are pinned: the same process must read the same for everybody.
    environ = {**os.environ, "LC_ALL": "C", "TZ": "UTC0"}
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else " ".join(started.split())
