"""The emulator this machine runs in the background, as its state file tells."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from azguard.account import EMULATOR_KEY, EMULATOR_NAME


@dataclass(frozen=True)
class Ports:
    """Where the three services listen on the loopback interface."""

    blob: int
    queue: int
    table: int

    def named(self) -> dict[str, int]:
        """Return service → port, in the order Azurite starts them."""
        return {"blob": self.blob, "queue": self.queue, "table": self.table}


@dataclass(frozen=True)
class Azurite:
    """A running Azurite: its process, known by pid and birth, and where it answers.

    ``data`` is None if everything is in memory; ``started`` is ISO 8601 in UTC.
    """

    pid: int
    birth: str
    version: str
    ports: Ports
    data: str | None
    log: str | None
    started: str

    @property
    def blob_endpoint(self) -> str:
        """Return the blob service's endpoint, without a trailing slash."""
        return _endpoint(self.ports.blob)

    @property
    def queue_endpoint(self) -> str:
        """Return the queue service's endpoint, without a trailing slash."""
        return _endpoint(self.ports.queue)

    @property
    def table_endpoint(self) -> str:
        """Return the table service's endpoint, without a trailing slash."""
        return _endpoint(self.ports.table)

    @property
    def connection_string(self) -> str:
        """Return the connection string; its key is the emulator's, which Microsoft publishes."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY};"
            f"BlobEndpoint={self.blob_endpoint};QueueEndpoint={self.queue_endpoint};TableEndpoint={self.table_endpoint}"
        )


def read(file: Path) -> Azurite | None:
    """Return what the state file says, whether or not that process still lives; None if there is none.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(text)
        return Azurite(**{**fields, "ports": Ports(**fields["ports"])})
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


def write(file: Path, running: Azurite) -> None:
    """Record a running emulator, whole or not at all, for its owner's eyes only."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:
        json.dump(asdict(running), stream, indent=2)
    new.replace(file)


def _endpoint(port: int) -> str:
    return f"http://127.0.0.1:{port}/{EMULATOR_NAME}"
