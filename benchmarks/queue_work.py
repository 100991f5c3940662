"""Measure how many messages a second ``queue work`` handles, and how much memory 100,000 messages take.

    python -m benchmarks.queue_work [--rate N] [--memory N] [--commands]

The rate is that of the emulator and of the command ``true``. For the memory a server of a few lines plays a queue: the
emulator slows down with many writes. Its messages are handled by the worker itself, at places that run nothing; with
``--commands`` by ``azguard queue work -- true``, which takes as long as so many processes do.
"""

import argparse
import base64
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from azure.storage.queue import QueueClient

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.emulators import background
from azguard.folders import Folders
from azguard.processes.command_place import CommandEnd, CommandOrder
from azguard.worker.order import QueueInbox
from azguard.worker.run import Worker
from azguard.worker.settings import WorkSettings

QUEUE = "speed"
JOBS = 4
TARGET = 20.0
_STEPS = 10
_KEY = base64.b64encode(b"key").decode()
_MESSAGE = (
    "<QueueMessage><MessageId>{id}</MessageId><InsertionTime>Sun, 22 Nov 2026 00:00:00 GMT</InsertionTime>"
    "<ExpirationTime>Sun, 29 Nov 2026 00:00:00 GMT</ExpirationTime><PopReceipt>r</PopReceipt>"
    "<TimeNextVisible>Sun, 22 Nov 2026 00:01:00 GMT</TimeNextVisible><DequeueCount>1</DequeueCount>"
    "<MessageText>{text}</MessageText></QueueMessage>"
)


def main() -> None:
    """Measure both and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=400, help="messages for the rate; 400 by default, 0 leaves it out")
    parser.add_argument("--memory", type=int, default=100_000, help="messages for the memory; 0 leaves it out")
    parser.add_argument("--commands", action="store_true", help="measure the memory with real commands")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker is not None:
        _work(asked.worker)
        return
    if asked.rate:
        for jobs in (1, JOBS):
            rates = [_measure_rate(asked.rate, jobs) for _ in range(3)]
            shown = ", ".join(f"{rate:.0f}" for rate in rates)
            target = f"     target ≥ {TARGET:g}" if jobs == JOBS else ""
            _print(f"--jobs {jobs}  {shown} messages/s{target}")
    if asked.memory:
        _measure_memory(asked.memory, commands=asked.commands)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _measure_rate(messages: int, jobs: int) -> float:
    with (
        background.run_private_azurite(Folders.of(os.environ).emulator, os.environ) as running,
        _environ(running.connection_string) as environ,
    ):
        client = QueueClient.from_connection_string(running.connection_string, QUEUE)
        client.create_queue()
        for number in range(messages):
            client.send_message(str(number))
        began = time.monotonic()
        subprocess.run(_azguard(jobs), env=environ, check=True)
        seconds = time.monotonic() - began
        left = client.get_queue_properties().approximate_message_count
        assert left == 0, f"{left} messages were left"
        return messages / seconds


def _azguard(jobs: int) -> Sequence[str]:
    options = ("--jobs", str(jobs), "--drain", "-o", "none")
    return (sys.executable, "-m", "azguard", "queue", "work", QUEUE, *options, "--", "true")


@contextmanager
def _environ(connection_string: str) -> Iterator[Mapping[str, str]]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AZURE_", "AZGUARD_"))}
    with tempfile.TemporaryDirectory() as folder:
        yield {**kept, "AZURE_STORAGE_CONNECTION_STRING": connection_string, "AZGUARD_CACHE_DIR": folder}


@dataclass
class _Queue:
    """A queue that is played: so many messages are given out, and as many deleted."""

    left: int
    deleted: int = 0


@contextmanager
def _played(messages: int) -> Iterator[tuple[_Queue, int]]:
    """Yield a queue and the port where it is played."""
    queue, lock = _Queue(messages), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            wanted = int(self.path.partition("numofmessages=")[2].partition("&")[0] or 1)
            with lock:
                number = min(wanted, queue.left)
                queue.left -= number
            listed = "".join(_MESSAGE.format(id=uuid.uuid4(), text="x" * 1000) for _ in range(number))
            self._answer(200, f"<QueueMessagesList>{listed}</QueueMessagesList>".encode())

        def do_DELETE(self) -> None:
            with lock:
                queue.deleted += 1
            self._answer(204, b"")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response_only(status)
            heads = {"x-ms-request-id": "1", "x-ms-version": "2025-01-05", "Content-Type": "application/xml"}
            for name, value in {**heads, **({"Content-Length": str(len(body))} if body else {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield queue, server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _measure_memory(messages: int, *, commands: bool) -> None:
    """Print the memory of the worker each time that a tenth of the messages is handled."""
    with _played(messages) as (queue, port):
        text = f"AccountName=played;AccountKey={_KEY};QueueEndpoint=http://127.0.0.1:{port}/played"
        ours = (sys.executable, "-m", "benchmarks.queue_work", "--worker", str(port))
        began = time.monotonic()
        with _environ(text) as environ, subprocess.Popen(_azguard(JOBS) if commands else ours, env=environ) as worker:
            for step in range(1, _STEPS + 1):
                while queue.deleted < messages * step // _STEPS and worker.poll() is None:
                    time.sleep(0.02)  # the worker tells by no event how far it is
                if worker.poll() is None:
                    _print(f"{queue.deleted:>7,} messages  {_find_resident(worker.pid):4} MiB")
        rate = queue.deleted / (time.monotonic() - began)
        _print(f"{queue.deleted:,} of {messages:,} messages were deleted, {rate:.0f} a second")


def _find_resident(pid: int) -> int:
    found = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(found[0].split()[1]) // 1024 if found else 0


class _Nowhere:
    """A place that runs nothing: each command succeeds at once."""

    is_gone = False

    def start(self, order: CommandOrder) -> None:
        """Run nothing."""

    def wait(self, seconds: float) -> CommandEnd | None:
        """Return a success."""
        return CommandEnd(0)

    def extend(self, ends: float) -> None:
        """Extend nothing."""

    def end(self) -> None:
        """End nothing."""


def _work(port: int) -> None:
    """Be the worker whose memory is measured."""
    queue = Target(account.emulator({"queue": port}), Address(Kind.QUEUE, (QUEUE,)))
    settings = WorkSettings(queue=queue, poison=queue, command=["true"], drain=True, jobs=JOBS)
    Worker(settings, QueueInbox(queue, queue, settings.encoding), [_Nowhere() for _ in range(JOBS)]).run()


if __name__ == "__main__":
    main()
