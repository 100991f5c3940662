"""One Azurite process: started, seen to answer, recorded and found again.

Nothing is left running if the start fails or we die.
"""

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, field
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import IO

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.atomic_files import write_atomically
from azguard.emulators.azurite_install import VERSION, preload, tie_to_us
from azguard.errors import ConfigError, Unavailable
from azguard.folders import UMASK
from azguard.frozen import frozen
from azguard.processes import identity
from azguard.processes.signals import hold_back_interruptions
from azguard.times import iso

SERVICES = ("blob", "queue", "table")
#: Azurite phones home unless told not to, refuses the API version today's SDK speaks, and logs every request. After 5 s
#: without a request it drops a connection, also one on which the next request has just arrived: each of its services
#: is given two minutes.
OPTIONS = (
    *("--disableTelemetry", "--skipApiVersionCheck", "--silent"),
    *(word for service in SERVICES for word in (f"--{service}KeepAliveTimeout", "120")),
)
# These would give Azurite other accounts, or a database; the caller's Azurite is not ours.
_NOT_INHERITED = ("AZURITE_ACCOUNTS", "AZURITE_DB")
# A free port can be taken by another process before Azurite has it; five times in a row it is not chance.
_PORT_TRIES = 5
_POLL_SECONDS = 0.02
_PROBE_SECONDS = 2.0
_LAST_WORDS = 5
_LAST_PORT = 65_535
_FILE = "azurite.json"
# Outlives a stop, so that the next start answers at the endpoints that shells and scripts know already.
_LAST_FILE = "azurite-last.json"


@frozen
class Azurite:
    """A running Azurite: its process, and where it answers."""

    pid: int
    #: What tells its process from others of the same pid: see ``processes.identity``.
    birth: str
    version: str
    #: The port of each service: blob, queue and table.
    ports: Mapping[str, int]
    #: The data folder; None if everything is in memory.
    data: str | None
    log: str | None
    #: When it was started: ISO 8601 in UTC.
    started: str

    @property
    def blob_endpoint(self) -> str:
        return _endpoint(self.ports["blob"])

    @property
    def queue_endpoint(self) -> str:
        return _endpoint(self.ports["queue"])

    @property
    def table_endpoint(self) -> str:
        return _endpoint(self.ports["table"])

    @property
    def connection_string(self) -> str:
        """Return the connection string; its key is the emulator's, which Microsoft publishes."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};"
            f"BlobEndpoint={self.blob_endpoint};QueueEndpoint={self.queue_endpoint};TableEndpoint={self.table_endpoint}"
        )


@frozen
class LaunchPlan:
    """Which Azurite to start."""

    #: The command that runs Azurite.
    command: tuple[str, ...]
    environ: Mapping[str, str]
    #: The chosen ports, by service.
    ports: Mapping[str, int]
    #: The data folder; None keeps everything in memory.
    data: str | None
    #: How many seconds to wait for its first answer.
    wait: float
    #: The ports that the other services get if they are free; else they get any that is free.
    preferred: Mapping[str, int] = field(default_factory=dict)


class EmulatorPortTaken(Exception):
    """Another process has a port, or took it between our look and the emulator's."""


def launch(plan: LaunchPlan, log: IO[bytes]) -> tuple[Azurite, Popen[bytes]]:
    """Start Azurite and wait until all three services answer.

    The process ends by itself as soon as its standard input closes, which the system sees to if we die;
    ``release`` sets it free. ``log`` receives what it prints, and its name becomes the record's.
    """
    deadline = time.monotonic() + plan.wait
    for tried in range(_PORT_TRIES):
        ports = _pick(plan.ports, {} if tried else plan.preferred)
        log.seek(0)
        log.truncate()
        with ExitStack() as ending:
            with hold_back_interruptions():
                child = _spawn(plan, ports, log)
                ending.callback(discard, child)
            try:
                _await_answer(child, ports, log, deadline, plan.wait)
            except EmulatorPortTaken:
                continue
            started = _record(child, ports, plan.data, log)
            ending.pop_all()
            return started, child
    raise Unavailable(f"no free port stayed free in {_PORT_TRIES} tries", reason="emulator_did_not_last")


def discard(child: Popen[bytes]) -> None:
    """End a process of ``launch`` at once and collect it."""
    import signal

    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def release(child: Popen[bytes], name: str) -> None:
    """Set a process of ``launch`` free, which is called so: it stays when we are gone."""
    assert child.stdin is not None
    try:
        child.stdin.write(b"stay")
        child.stdin.close()
    except BrokenPipeError:
        raise Unavailable(f"{name} ended as soon as it answered", reason="emulator_did_not_last") from None
    if child.stdout is not None:
        child.stdout.close()
    # Ours no longer to wait for: without this, Popen warns when it is collected.
    child.returncode = 0


def answers(ports: Mapping[str, int]) -> bool:
    """Return whether Azurite's three services answer over HTTP, each as itself."""
    return all(_answering(port) == f"Azurite-{service.title()}" for service, port in ports.items())


def prepare_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which Azurite runs: without what would change it, and starting faster."""
    kept = {name: value for name, value in environ.items() if name not in _NOT_INHERITED}
    return preload(kept, "lean.js")


def _spawn(plan: LaunchPlan, ports: Mapping[str, int], log: IO[bytes]) -> Popen[bytes]:
    import tempfile

    numbers = [text for service, port in ports.items() for text in (f"--{service}Port", str(port))]
    storage = ["--inMemoryPersistence"] if plan.data is None else ["--location", plan.data]
    try:
        return Popen(
            [*plan.command, *OPTIONS, *numbers, *storage],
            # Never the caller's folder, which would be busy as long as the emulator runs.
            cwd=tempfile.gettempdir(),
            env=tie_to_us(prepare_environ(plan.environ)),
            stdin=PIPE,
            stdout=log,
            stderr=STDOUT,
            # Ctrl-C in the terminal is not for it, and its process group can be ended as a whole.
            start_new_session=True,
            umask=UMASK,
        )
    except OSError as error:
        raise ConfigError(f"{plan.command[0]} cannot be run: {error.strerror}") from error


def _await_answer(child: Popen[bytes], ports: Mapping[str, int], log: IO[bytes], deadline: float, wait: float) -> None:
    """Wait until this very process listens on all ports and answers on each.

    Its own word comes first: on a port that was taken meanwhile, another Azurite may be the one that answers.
    """
    listening = [f"successfully listening at http://127.0.0.1:{port}\n" for port in ports.values()]
    heard = False
    while True:
        said = _read(log)
        if "EADDRINUSE" in said:
            raise EmulatorPortTaken
        if child.poll() is not None:
            raise Unavailable("Azurite ended before it answered", detail=last_words("azurite", said))
        heard = heard or all(line in said for line in listening)
        if heard and answers(ports):
            return
        if time.monotonic() > deadline:
            raise Unavailable(
                f"Azurite did not answer within {wait:g} s",
                detail=last_words("azurite", said),
                reason="emulator_slow",
            )
        time.sleep(_POLL_SECONDS)  # Azurite tells by no signal that its ports listen


def _record(child: Popen[bytes], ports: Mapping[str, int], data: str | None, log: IO[bytes]) -> Azurite:
    born = identity.find_birth(child.pid)
    if born is None:
        raise Unavailable("Azurite ended as soon as it answered", detail=last_words("azurite", _read(log)))
    name = log.name if isinstance(log.name, str) else None
    return Azurite(child.pid, born, VERSION, ports, data, name, iso(datetime.now(UTC)) or "")


def _pick(chosen: Mapping[str, int], preferred: Mapping[str, int]) -> dict[str, int]:
    """Return the chosen ports and, for the other services, ports that are free now; all are different."""
    with ExitStack() as held:
        for port in chosen.values():
            held.enter_context(_hold(port))
        others = [service for service in SERVICES if service not in chosen]
        free = {service: held.enter_context(_hold_free(preferred.get(service, 0))) for service in others}
        picked = {**chosen, **{service: each.getsockname()[1] for service, each in free.items()}}
        return {service: picked[service] for service in SERVICES}


def _hold_free(preferred: int) -> socket.socket:
    """Listen on a port if it is free, else on any that is."""
    try:
        return _listen(preferred)
    except OSError:
        return _listen(0)


def _listen(port: int) -> socket.socket:
    """Listen on a port, 0 for any that is free, as Azurite will."""
    held = socket.socket()
    # As Node.js does: connections that ended a moment ago do not block the port.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind(("127.0.0.1", port))
        held.listen()
    except OSError:
        held.close()
        raise
    return held


def _hold(port: int) -> socket.socket:
    try:
        return _listen(port)
    except PermissionError as error:
        raise ConfigError(f"port {port} may not be used: {error.strerror}", reason="port_privileged") from None
    except OSError:
        who = _answering(port)
        raise ConfigError(
            f"port {port} is taken" + (f" by another {who}" if who else ""),
            reason="port_taken",
        ) from None


def _answering(port: int) -> str | None:
    """Return which Azurite service answers HTTP on a port, such as ``Azurite-Blob``; None if none does."""
    server = find_server(port) or ""
    return server.partition("/")[0] if server.startswith("Azurite-") else None


def find_server(port: int) -> str | None:
    """Return the name that an HTTP server on a port gives itself; None if no server answers."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)
    try:
        connection.request("HEAD", f"/{EMULATOR_NAME}")
        return connection.getresponse().getheader("Server", "")
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def _read(log: IO[bytes]) -> str:
    # pread leaves alone the position, which Azurite shares and writes at.
    return os.pread(log.fileno(), 1 << 20, 0).decode("utf-8", "replace")


def last_words(name: str, said: str) -> tuple[str, ...]:
    """Return the last lines that an emulator has printed, for people."""
    return tuple(f"{name}: {line}" for line in said.splitlines()[-_LAST_WORDS:] if line.strip())


def look(folder: Path) -> tuple[Azurite | None, str | None]:
    """Return the emulator that runs in the background, or why none does although one was started.

    Raises:
        ConfigError: the file that tells it cannot be read, such as another user's.
    """
    file = folder / _FILE
    try:
        recorded = _read_record(file)
    except ValueError as error:
        return None, f"the state file {file} was damaged ({error}); if an Azurite still runs, end it by hand"
    if recorded is None or identity.find_birth(recorded.pid) == recorded.birth:
        return recorded, None
    who = f"Azurite (process {recorded.pid}, started {recorded.started})"
    return None, f"{who} was killed or crashed; see {recorded.log}"


def load(folder: Path) -> Azurite | None:
    """Return the emulator that runs in the background; None if none does, for whatever reason."""
    running, _ = look(folder)
    return running


def write(folder: Path, running: Azurite) -> None:
    """Record a running emulator, whole or not at all, for its owner's eyes only."""
    # Not durable: after a crash of this machine the emulator does not run either.
    write_atomically(folder / _FILE, json.dumps(asdict(running), indent=2).encode(), 0o600, durable=False)
    last = asdict(LastRun(running.ports, running.data))
    write_atomically(folder / _LAST_FILE, json.dumps(last, indent=2).encode(), 0o600, durable=False)


@frozen
class LastRun:
    """Where the emulator was last, whether it runs still or not."""

    #: The port of each service; empty if there was no run.
    ports: Mapping[str, int]
    #: The data folder; None if everything was in memory, or there was no run.
    data: str | None


def find_last(folder: Path) -> LastRun:
    """Return where the emulator was last; a record that is damaged counts as none."""
    try:
        recorded = json.loads((folder / _LAST_FILE).read_text(encoding="utf-8"))
        ports = {service: int(recorded["ports"][service]) for service in SERVICES}
        data = recorded["data"]
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return LastRun({}, None)
    is_sound = all(0 < port <= _LAST_PORT for port in ports.values()) and isinstance(data, str | None)
    return LastRun(ports, data) if is_sound else LastRun({}, None)


def forget(folder: Path) -> None:
    """Remove the record, if there is one."""
    (folder / _FILE).unlink(missing_ok=True)


def _read_record(file: Path) -> Azurite | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", reason="emulator_of_another") from None
    try:
        recorded = Azurite(**json.loads(text))
        numbers = [recorded.pid, *(recorded.ports[service] for service in SERVICES)]
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError("a pid or a port is no number")
    return recorded


def _endpoint(port: int) -> str:
    return f"http://127.0.0.1:{port}/{EMULATOR_NAME}"
