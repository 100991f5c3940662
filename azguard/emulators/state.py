"""The emulator this machine runs in the background, as its state file tells."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from azguard.accounts.well_known import EMULATOR_KEY, EMULATOR_NAME
from azguard.atomic_files import write_atomically
from azguard.errors import ConfigError
from azguard.processes import identity

_LAST_PORT = 65_535
_FILE = "azurite.json"
# Outlives a stop, so that the next start answers at the endpoints that shells and scripts know already.
_LAST_FILE = "azurite-last.json"


@dataclass(frozen=True)
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
        """Return the blob service's endpoint, without a trailing slash."""
        return _endpoint(self.ports["blob"])

    @property
    def queue_endpoint(self) -> str:
        """Return the queue service's endpoint, without a trailing slash."""
        return _endpoint(self.ports["queue"])

    @property
    def table_endpoint(self) -> str:
        """Return the table service's endpoint, without a trailing slash."""
        return _endpoint(self.ports["table"])

    @property
    def connection_string(self) -> str:
        """Return the connection string; its key is the emulator's, which Microsoft publishes."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};"
            f"BlobEndpoint={self.blob_endpoint};QueueEndpoint={self.queue_endpoint};TableEndpoint={self.table_endpoint}"
        )


def look(folder: Path) -> tuple[Azurite | None, str | None]:
    """Return the emulator that runs in the background, or why none does although one was started.

    Raises:
        ConfigError: the file that tells it cannot be read, such as another user's.
    """
    file = folder / _FILE
    try:
        recorded = _read(file)
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


@dataclass(frozen=True)
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
        ports = {service: int(recorded["ports"][service]) for service in ("blob", "queue", "table")}
        data = recorded["data"]
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return LastRun({}, None)
    is_sound = all(0 < port <= _LAST_PORT for port in ports.values()) and isinstance(data, str | None)
    return LastRun(ports, data) if is_sound else LastRun({}, None)


def forget(folder: Path) -> None:
    """Remove the record, if there is one."""
    (folder / _FILE).unlink(missing_ok=True)


def _read(file: Path) -> Azurite | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", reason="emulator_of_another") from None
    try:
        recorded = Azurite(**json.loads(text))
        for service in ("blob", "queue", "table"):
            recorded.ports[service] + recorded.pid  # numbers, or the file is not ours
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    return recorded


def _endpoint(port: int) -> str:
    return f"http://127.0.0.1:{port}/{EMULATOR_NAME}"
