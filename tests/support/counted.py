"""An account whose port counts who connects to it and answers nothing: what is refused must not reach it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli_world import CliWorld, Ran
from tests.support.condition_stage import LEASE

#: What is filled into the command line of a scenario.
FACTS = {
    "container": "site",
    "blob": "site/a",
    "source": "site/s",
    "lease": LEASE,
    "snapshot": "2026-11-21T10:00:00Z",
    "queue": "jobs",
    "message": "jobs/1",
    "receipt": "R",
}


@dataclass(frozen=True)
class Counted:
    """A folder to run command lines in, against that account."""

    cli: CliWorld
    listening: socket.socket

    def call(self, *words: str, stdin: bytes = b"") -> tuple[Ran, bool]:
        """Run a command line; return also whether it connected."""
        ran = self.cli.call(*words, "--timeout", "1s", stdin=stdin)
        try:
            connection, _ = self.listening.accept()
        except BlockingIOError:
            return ran, False
        connection.close()
        return ran, True


@contextmanager
def counting(root: Path) -> Iterator[Counted]:
    """Open the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/acc"
        account = f"AccountName=acc;AccountKey=a2V5;BlobEndpoint={endpoint};QueueEndpoint={endpoint}"
        yield Counted(CliWorld(root, account), listening)
