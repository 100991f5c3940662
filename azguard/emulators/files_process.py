"""The Files emulator as a process of its own: started, found again and stopped beside Azurite."""

import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

from azguard.accounts.endpoints import EMULATOR_NAME
from azguard.atomic_files import write_atomically
from azguard.emulators.azurite_process import EmulatorPortTaken, discard, last_words, release
from azguard.errors import ConfigError, Unavailable
from azguard.folders import UMASK, open_private
from azguard.frozen import frozen
from azguard.processes import identity, locked_file
from azguard.processes.signals import hold_back_interruptions, wait_readable
from azguard.times import iso

_FILE = "files.json"
_LAST_FILE = "files-last.json"
_LOG = "files.log"
_LOCK = "files.lock"
# Where the shares are while the emulator runs, if no folder was named.
_DATA = "files-data"
_GRACE_SECONDS = 5.0
# How the line begins that tells why the shares are not served over SMB.
_NOT_SERVED = "SMB: not served: "


@frozen
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
    #: The port on which Samba serves the shares; None if it does not.
    smb_port: int | None = None
    #: Why the shares are not served over SMB, although that was wanted; else empty.
    smb_problem: str = ""
    #: The Azurite that it belongs to: its process, and when it was started.
    beside: str = ""

    @property
    def endpoint(self) -> str:
        """Return the service's endpoint, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}/{EMULATOR_NAME}"

    @property
    def smb_endpoint(self) -> str | None:
        """Return where the shares are served over SMB; None if they are not."""
        return None if self.smb_port is None else f"smb://127.0.0.1:{self.smb_port}"


def is_installed() -> bool:
    """Return whether what the emulator needs is there: Werkzeug, which only its extra brings."""
    return importlib.util.find_spec("werkzeug") is not None


def find_running(folder: Path) -> FilesEmulator | None:
    """Return the Files emulator that runs in the background; None if none does."""
    found = _read(folder)
    return found if found is not None and _lives(found) else None


def start(
    folder: Path,
    environ: Mapping[str, str],
    port: int | None,
    smb: int | None,
    *,
    data: str | None,
    beside: str,
    wait: float,
) -> FilesEmulator:
    """Start the Files emulator in the background, or return the one that runs already.

    ``beside`` tells the Azurite that it belongs to from others. One of another Azurite, which has gone, is stopped
    first.

    ``port`` None takes the last run's if it is free, else any; so does ``smb`` 0, the port for SMB, and None is without
    SMB; ``data`` is its folder, None for one that ends with it; ``wait`` is in seconds.
    """
    with locked_file.hold(folder / _LOCK):
        running = find_running(folder)
        if running is not None and running.beside != beside:
            running = None
            stop(folder)
        if running is not None:
            _check_same(running, port, smb)
            return running
        if data is None:
            shutil.rmtree(folder / _DATA, ignore_errors=True)
        last = _find_last_ports(folder)
        preferred = (port or last.get("port", 0), None if smb is None else smb or last.get("smb_port", 0))
        choices = dict.fromkeys([preferred, (port or 0, smb)])
        running, child = _launch_first(environ, choices, data or str(folder / _DATA), folder / _LOG, wait)
        try:
            running = replace(running, beside=beside)
            _write(folder, running, last)
            release(child, "the Files emulator")
        except BaseException:
            discard(child)
            raise
        return running


def _check_same(running: FilesEmulator, port: int | None, smb: int | None) -> None:
    different = ""
    if port not in (None, running.port):
        different = f"its file port is {running.port}"
    elif smb is not None and running.smb_port is None and not running.smb_problem:
        different = "without SMB"
    elif smb and running.smb_port not in (None, smb):
        different = f"its SMB port is {running.smb_port}"
    if different:
        raise ConfigError(f"the emulator is already running, but {different}", reason="emulator_differs")


def _launch_first(
    environ: Mapping[str, str], choices: Iterable[tuple[int, int | None]], location: str, log: Path, wait: float
) -> tuple[FilesEmulator, Popen[bytes]]:
    taken = ""
    for port, smb in choices:
        try:
            with open_private(log) as file:
                return launch(environ, port, smb, location, file, wait)
        except EmulatorPortTaken as error:
            taken = str(error)
    raise ConfigError(f"port {taken} is taken", reason="port_taken")


def _write(folder: Path, running: FilesEmulator, last: Mapping[str, int]) -> None:
    write_atomically(folder / _FILE, json.dumps(asdict(running), indent=2).encode(), 0o600, durable=False)
    ports = {**last, "port": running.port} | ({"smb_port": running.smb_port} if running.smb_port else {})
    write_atomically(folder / _LAST_FILE, json.dumps(ports).encode(), 0o600, durable=False)


def explain_end(folder: Path) -> str | None:
    """Return the reason why a Files emulator that was started does not run; None if it runs or was never started."""
    recorded = _read(folder)
    if recorded is None or _lives(recorded):
        return None
    return f"the Files emulator (process {recorded.pid}) was killed or crashed; see {recorded.log}"


def _read(folder: Path) -> FilesEmulator | None:
    """Return the one that was started last, if it was not stopped."""
    try:
        return FilesEmulator(**json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _lives(recorded: FilesEmulator) -> bool:
    return identity.find_birth(recorded.pid) == recorded.birth


def stop(folder: Path) -> FilesEmulator | None:
    """Stop the Files emulator; return the one that ran, None if none did."""
    if not (folder / _FILE).exists():
        return None
    running = find_running(folder)
    if running is not None:
        identity.end(running.pid, running.birth, _GRACE_SECONDS)
    (folder / _FILE).unlink(missing_ok=True)
    shutil.rmtree(folder / _DATA, ignore_errors=True)
    return running


def launch(
    environ: Mapping[str, str], port: int, smb: int | None, location: str, log: IO[bytes], wait: float
) -> tuple[FilesEmulator, Popen[bytes]]:
    """Start an emulator and wait until it listens; port 0 is any, ``smb`` None is without SMB.

    The process ends as soon as its standard input closes, as it does if we die.
    """
    over_smb = [] if smb is None else ["--smb-port", str(smb)]
    options = ["--tied", "--port", str(port), "--location", location, *over_smb]
    with ExitStack() as ending:
        with hold_back_interruptions():
            child = Popen(
                [sys.executable, "-m", "azguard.emulators.files", *options],
                cwd=os.path.sep,
                env=dict(environ),
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                # Ctrl-C in the terminal is not for it, and its process group can be ended as a whole.
                start_new_session=True,
                umask=UMASK,
            )
            ending.callback(discard, child)
        lines = _read_lines(child, 1 if smb is None else 2, wait)
        born = identity.find_birth(child.pid)
        if lines and born is not None:
            heard = int(lines[0].rpartition(":")[2].partition("/")[0])
            now = iso(datetime.now(UTC)) or ""
            running = FilesEmulator(child.pid, born, heard, location, str(log.name), now, *_read_smb(lines[1:]))
            ending.pop_all()
            return running, child
        said = os.pread(log.fileno(), 1 << 16, 0).decode("utf-8", "replace")
    for each in (port, smb):
        if each and f":{each}: " in said:
            raise EmulatorPortTaken(str(each))
    raise Unavailable("the Files emulator ended before it answered", detail=last_words("files", said))


def _read_smb(lines: list[str]) -> tuple[int | None, str]:
    if not lines:
        return None, ""
    port = lines[0].rpartition(":")[2]
    return (int(port), "") if port.isdecimal() else (None, lines[0].removeprefix(_NOT_SERVED))


def _read_lines(child: Popen[bytes], count: int, wait: float) -> list[str]:
    """Return the first lines that a process prints; none if it ends before."""
    assert child.stdout is not None
    until = time.monotonic() + wait
    said = b""
    while said.count(b"\n") < count:
        if not wait_readable([child.stdout], max(0.0, until - time.monotonic())):
            raise Unavailable(f"the Files emulator did not answer within {wait:g} s", reason="emulator_slow")
        part = os.read(child.stdout.fileno(), 4096)
        if not part:
            return []
        said += part
    return said.decode().splitlines()


def _find_last_ports(folder: Path) -> dict[str, int]:
    """Return the ports of the last run, by their fields; a record that is damaged counts as none."""
    try:
        ports = dict(json.loads((folder / _LAST_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}
    return {name: port for name, port in ports.items() if isinstance(port, int) and 0 < port < 1 << 16}
