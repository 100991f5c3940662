"""The Files emulator as a process of its own: started, found again and stopped beside Azurite."""

import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

from azguard.accounts.well_known import EMULATOR_NAME
from azguard.atomic_files import write_atomically
from azguard.emulators.azurite_process import discard
from azguard.errors import ConfigError, Unavailable
from azguard.processes import identity, locked_file
from azguard.processes.readiness import wait_readable
from azguard.times import iso

_FILE = "files.json"
_LAST_FILE = "files-last.json"
_LOG = "files.log"
_LOCK = "files.lock"
# Where the shares are while the emulator runs, if no folder was named.
_DATA = "files-data"
_STAY = b"stay"
_LAST_WORDS = 5


@dataclass(frozen=True)
class FilesEmulator:
    """A running Files emulator: its process, and where it answers."""

    pid: int
    #: What tells its process from others of the same pid: see ``processes.identity``.
    birth: str
    port: int
    #: The folder of its shares.
    data: str
    log: str
    #: When it was started: ISO 8601 in UTC.
    started: str

    @property
    def endpoint(self) -> str:
        """Return the service's endpoint, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}/{EMULATOR_NAME}"


def is_installed() -> bool:
    """Return whether what the emulator needs is there: Werkzeug, which only its extra brings."""
    return importlib.util.find_spec("werkzeug") is not None


def find_running(folder: Path) -> FilesEmulator | None:
    """Return the Files emulator that runs in the background; None if none does."""
    try:
        found = FilesEmulator(**json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if identity.find_birth(found.pid) == found.birth else None


def start(folder: Path, environ: Mapping[str, str], port: int | None, data: str | None, wait: float) -> FilesEmulator:
    """Start the Files emulator in the background, or return the one that runs already.

    ``port`` None takes the last run's if it is free, else any; ``data`` is its folder, None for one that ends with it;
    ``wait`` is in seconds.

    Raises:
        ConfigError: the chosen port is taken, or the one that runs has another.
        Unavailable: it ended, or did not answer in time.
    """
    with locked_file.hold(folder / _LOCK):
        running = find_running(folder)
        if running is None:
            return _start(folder, environ, port, data, wait)
        if port not in (None, running.port):
            raise ConfigError(
                f"the emulator is already running, but its file port is {running.port}", reason="emulator_differs"
            )
        return running


def _start(folder: Path, environ: Mapping[str, str], port: int | None, data: str | None, wait: float) -> FilesEmulator:
    if data is None:
        shutil.rmtree(folder / _DATA, ignore_errors=True)
    location = str(folder / _DATA) if data is None else data
    tries = [port] if port is not None else [_find_last_port(folder), 0]
    for each in dict.fromkeys(tries):
        with open(folder / _LOG, "w+b") as log:
            found = launch(environ, each, location, log, wait)
        if found is not None:
            running, child = found
            break
    else:
        raise ConfigError(f"port {port} is taken", reason="port_taken")
    try:
        write_atomically(folder / _FILE, json.dumps(asdict(running), indent=2).encode(), 0o600, durable=False)
        write_atomically(folder / _LAST_FILE, json.dumps({"port": running.port}).encode(), 0o600, durable=False)
        _release(child)
    except BaseException:
        discard(child)
        raise
    return running


def stop(folder: Path, grace_seconds: float) -> FilesEmulator | None:
    """Stop the Files emulator; return the one that ran, None if none did."""
    if not (folder / _FILE).exists():
        return None
    running = find_running(folder)
    if running is not None:
        identity.end(running.pid, running.birth, grace_seconds)
    (folder / _FILE).unlink(missing_ok=True)
    shutil.rmtree(folder / _DATA, ignore_errors=True)
    return running


def launch(
    environ: Mapping[str, str], port: int, location: str, log: IO[bytes], wait: float
) -> tuple[FilesEmulator, Popen[bytes]] | None:
    """Start an emulator and wait until it listens; return None if the port is taken.

    The process ends as soon as its standard input closes, as it does if we die.

    Raises:
        Unavailable: it ended, or did not listen within ``wait`` seconds.
    """
    arguments = ["-m", "azguard.emulators.files", "--tied", "--port", str(port), "--location", location]
    child = Popen(
        [sys.executable, *arguments],
        cwd=os.path.sep,
        env=dict(environ),
        stdin=PIPE,
        stdout=PIPE,
        stderr=log,
        # Ctrl-C in the terminal is not for it, and its process group can be ended as a whole.
        start_new_session=True,
    )
    try:
        line = _read_line(child, wait)
        born = identity.find_birth(child.pid)
        if line and born is not None:
            heard = int(line.rpartition(":")[2].partition("/")[0])
            now = iso(datetime.now(UTC)) or ""
            return FilesEmulator(child.pid, born, heard, location, str(log.name), now), child
        said = os.pread(log.fileno(), 1 << 16, 0).decode("utf-8", "replace")
    except BaseException:
        discard(child)
        raise
    discard(child)
    if port and f":{port}: " in said:
        return None
    detail = tuple(f"files: {each}" for each in said.splitlines()[-_LAST_WORDS:])
    raise Unavailable("the Files emulator ended before it answered", detail=detail)


def _read_line(child: Popen[bytes], wait: float) -> str:
    """Return the first line that a process prints; empty if it ends before.

    Raises:
        Unavailable: it prints none in time.
    """
    assert child.stdout is not None
    until = time.monotonic() + wait
    said = b""
    while not said.endswith(b"\n"):
        if not wait_readable([child.stdout], max(0.0, until - time.monotonic())):
            raise Unavailable(f"the Files emulator did not answer within {wait:g} s", reason="emulator_slow")
        part = os.read(child.stdout.fileno(), 4096)
        if not part:
            return ""
        said += part
    return said.decode().strip()


def _release(child: Popen[bytes]) -> None:
    """Set a process of ``launch`` free: it stays when we are gone."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(_STAY)
        child.stdin.close()
    except BrokenPipeError:
        raise Unavailable("the Files emulator ended as soon as it answered", reason="emulator_did_not_last") from None
    child.stdout.close()
    # Ours no longer to wait for: without this, Popen warns when it is collected.
    child.returncode = 0


def _find_last_port(folder: Path) -> int:
    try:
        found = json.loads((folder / _LAST_FILE).read_text(encoding="utf-8"))["port"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return found if isinstance(found, int) and 0 < found < 1 << 16 else 0
