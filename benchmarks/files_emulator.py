"""The rates of the Files emulator beside those of Azurite's blobs, for the same jobs; print the docs' table.

    python -m benchmarks.files_emulator [--rounds N]

The client is the cheapest that there is: connections that stay open, and requests with a SAS. So the figures are those
of the servers. The two run in turn, each with a server of its own for each round, since Azurite slows down with many
writes.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators import azurite_process, background, files_process
from azguard.folders import Folders

CLIENTS = (1, 16)
_NAMES = 320
_LISTINGS = 64
_SMALL = os.urandom(4096)
# The largest range that Files takes in one request.
_PIECE = os.urandom(4 * 1024**2)
_PIECES = 25
_VERSION = "2021-12-02"
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Client:
    """One connection to one of the two, and a SAS."""

    connection: HTTPConnection
    sas: str

    def ask(self, method: str, path: str, query: str = "", body: bytes = b"", **headers: str) -> Mapping[str, str]:
        """Send a request, its headers named with underscores, and return the headers of the answer."""
        sent = {"x-ms-version": _VERSION, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self.connection.request(method, f"/{EMULATOR_NAME}/{path}?{query}&{self.sas}", body, sent)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= 300:  # the answers that refuse
            raise SystemExit(f"{method} {path}: {answer.status} {content!r}")
        return {name.lower(): value for name, value in answer.getheaders()}


class Blobs:
    """The jobs, done with blobs of Azurite."""

    holder = "restype=container"

    def put(self, client: Client, name: str) -> None:
        client.ask("PUT", f"bench/{name}", "", _SMALL, x_ms_blob_type="BlockBlob")

    def begin(self, client: Client) -> None:
        """Do nothing: blocks need no blob."""

    def put_piece(self, client: Client, number: int) -> None:
        client.ask("PUT", "bench/large", f"comp=block&blockid={number:08}", _PIECE)

    def end(self, client: Client) -> None:
        ids = "".join(f"<Latest>{number:08}</Latest>" for number in range(_PIECES))
        client.ask("PUT", "bench/large", "comp=blocklist", f"<BlockList>{ids}</BlockList>".encode())

    def list_all(self, client: Client) -> None:
        client.ask("GET", "bench", "restype=container&comp=list")


class Files:
    """The jobs, done with files."""

    holder = "restype=share"

    def put(self, client: Client, name: str) -> None:
        client.ask("PUT", f"bench/{name}", x_ms_type="file", x_ms_content_length=str(len(_SMALL)))
        self._write(client, name, 0, _SMALL)

    def begin(self, client: Client) -> None:
        client.ask("PUT", "bench/large", x_ms_type="file", x_ms_content_length=str(_PIECES * len(_PIECE)))

    def put_piece(self, client: Client, number: int) -> None:
        self._write(client, "large", number * len(_PIECE), _PIECE)

    def end(self, client: Client) -> None:
        """Do nothing: the ranges are the file."""

    def list_all(self, client: Client) -> None:
        client.ask("GET", "bench", "restype=directory&comp=list")

    def _write(self, client: Client, name: str, start: int, data: bytes) -> None:
        where = f"bytes={start}-{start + len(data) - 1}"
        client.ask("PUT", f"bench/{name}", "comp=range", data, x_ms_write="update", x_ms_range=where)


Kind = Blobs | Files
Job = Callable[[Kind, Client, int], None]


def _get_piece(_: Kind, client: Client, number: int) -> None:
    start = number * len(_PIECE)
    client.ask("GET", "bench/large", x_ms_range=f"bytes={start}-{start + len(_PIECE) - 1}")


def _lease(_: Kind, client: Client, number: int) -> None:
    path = f"bench/{number}"
    taken = client.ask("PUT", path, "comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="-1")
    lease = taken["x-ms-lease-id"]
    client.ask("PUT", path, "comp=lease", x_ms_lease_action="release", x_ms_lease_id=lease)


#: Each job: its name, how often it is done, its steps. A later one finds what the earlier ones made.
JOBS: Sequence[tuple[str, int, Job]] = (
    ("put 4 KiB; in Files two requests", _NAMES, lambda kind, client, number: kind.put(client, str(number))),
    ("get 4 KiB", _NAMES, lambda _, client, number: _drop(client.ask("GET", f"bench/{number}"))),
    ("read the properties", _NAMES, lambda _, client, number: _drop(client.ask("HEAD", f"bench/{number}"))),
    ("acquire and release a lease", _NAMES, _lease),
    (f"list {_NAMES} names", _LISTINGS, lambda kind, client, _: kind.list_all(client)),
    ("put 4 MiB of 100 MiB", _PIECES, lambda kind, client, number: kind.put_piece(client, number)),
    ("get 4 MiB of 100 MiB", _PIECES, _get_piece),
)
_LARGE = 5


def _drop(_: object) -> None:
    """Take what is not needed."""


def measure(kind: Kind, port: int, clients: int) -> list[float]:
    """Return how often a second each job is done by so many clients at a time."""
    sas = _make_sas(kind)
    made = [Client(HTTPConnection("127.0.0.1", port, timeout=300), sas) for _ in range(clients)]
    made[0].ask("PUT", "bench", kind.holder)
    rates = []
    for place, (_, times, job) in enumerate(JOBS):
        if place == _LARGE:
            kind.begin(made[0])
        began = time.perf_counter()
        _run(kind, made, times, job)
        rates.append(times / (time.perf_counter() - began))
        if place == _LARGE:
            kind.end(made[0])
    for client in made:
        client.connection.close()
    return rates


def _run(kind: Kind, clients: Sequence[Client], times: int, job: Job) -> None:
    def work(place: int) -> None:
        for number in range(place, times, len(clients)):
            job(kind, clients[place], number)

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(work, range(len(clients))))


def _make_sas(kind: Kind) -> str:
    if isinstance(kind, Blobs):
        from azure.storage import blob as service
    else:
        from azure.storage import fileshare as service  # type: ignore[no-redef]  # the same names
    return service.generate_account_sas(
        EMULATOR_NAME,
        EMULATOR_KEY,
        service.ResourceTypes(container=True, object=True),
        service.AccountSasPermissions(read=True, write=True, create=True, list=True, delete=True),
        datetime.now(UTC) + timedelta(hours=1),
    )


@contextmanager
def _serving(kind: Kind) -> Iterator[int]:
    """Start a server; yield its port."""
    if isinstance(kind, Blobs):
        with background.run_private_azurite(Folders.of(os.environ).emulator, os.environ) as mine:
            yield mine.ports["blob"]
        return
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        emulator, child = files_process.launch(os.environ, 0, None, folder, log, _START_SECONDS)
        try:
            yield emulator.port
        finally:
            azurite_process.discard(child)


def main() -> None:
    """Measure both in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of each server; 5 by default")
    rounds = parser.parse_args().rounds
    seen: dict[tuple[int, type[Kind]], list[list[float]]] = {}
    for _ in range(rounds):
        for clients in CLIENTS:
            for kind in (Blobs(), Files()):
                with _serving(kind) as port:
                    seen.setdefault((clients, type(kind)), []).append(measure(kind, port, clients))
    sys.stdout.write("\n".join(write_table(seen)) + "\n")


def write_table(seen: Mapping[tuple[int, type[Kind]], Sequence[Sequence[float]]]) -> Iterator[str]:
    """Yield the lines of a table: the medians, and the ratio of the two."""
    yield (
        "| a second | "
        + " | ".join(f"Files, {n} client{'s' * (n > 1)} | Azurite's blobs | ratio" for n in CLIENTS)
        + " |"
    )
    yield "|---|" + "---|" * 3 * len(CLIENTS)
    for place, (name, _, _) in enumerate(JOBS):
        cells = []
        for clients in CLIENTS:
            ours, theirs = (statistics.median(run[place] for run in seen[clients, kind]) for kind in (Files, Blobs))
            cells += [f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.1f}"]
        yield f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
