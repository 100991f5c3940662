"""Three ways to add one to ``{"count": 0}`` in one blob, for the contention benchmark, over a slow connection.

azguard runs on one host, on four, and with a host for each writer, which then meet at the service only.

``az`` is not run: it would spend most of its time on starting Python. Its loop is the SDK with its defaults, a new
connection per command, and a shell's ``sleep 1`` before it starts over. The SDK's waits between its own retries are
shortened from 18 s; they come into play only if a request fails, and none does here.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azure.core.pipeline.transport import RequestsTransport

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.accounts.endpoints import EMULATOR_KEY
from azguard.address import Address, Kind
from azguard.blobs.updates import BlobContent
from azguard.documents import edits, paths
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import new_op
from azguard.updates import update
from azguard.updates.local_runs import LocalQueue
from azguard.updates.resource import UpdateHooks, UpdatePlan
from azguard.wire.client import CONNECT_SECONDS, Limits, NetworkClient
from azguard.wire.connections import Reply

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient

CONTAINER, NAME = "contention", "count.json"
START = b'{"count": 0}\n'
_FOUR = 4
# What a loop in a shell script does when its command failed.
_SHELL_SLEEP_SECONDS = 1.0
_SDK_RETRY_SECONDS = 0.02
# Longer than any configuration takes, so that none gives up.
_DEADLINE_SECONDS = 120.0


class Way(StrEnum):
    """How an increment is applied."""

    ONE_HOST = "azguard, one host"
    FOUR_HOSTS = "azguard, four hosts"
    NO_QUEUE = "azguard, a host each"
    SDK = "SDK loop"
    AZ = "az-style loop"


@dataclass
class Counts:
    """Requests that a worker sent: reads, writes of the blob (an attempt each), and those about leases."""

    reads: int = 0
    writes: int = 0
    leases: int = 0


@dataclass(frozen=True)
class Line:
    """A worker's connection to the service: its port, the latency of each request in seconds, and the count."""

    port: int
    latency: float
    counts: Counts = field(default_factory=Counts)

    def delay(self, method: str, url: str) -> None:
        """Count a request, and wait for the latency."""
        if method in ("GET", "HEAD"):
            self.counts.reads += 1
        elif "comp=lease" in url:
            self.counts.leases += 1
        else:
            self.counts.writes += 1
        time.sleep(self.latency)  # the latency that is measured


class SlowTransport(RequestsTransport):  # type: ignore[misc]  # azure.core exports it lazily, without its type
    """The SDK's transport, with each request sent a little later, so that no proxy becomes the bottleneck."""

    def __init__(self, line: Line) -> None:
        super().__init__(connection_timeout=CONNECT_SECONDS)
        self._line = line

    def send(self, request: Any, **options: Any) -> Any:
        """Count the request, wait for the latency, and send it."""
        self._line.delay(request.method, request.url)
        return super().send(request, **options)


class SlowClient(NetworkClient):
    """azguard's client, likewise."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        """Count the request, wait for the latency, and send it."""
        self._line.delay(method, url)
        return super().send(method, url, headers, body, limits)


def client(line: Line) -> "BlobClient":
    """Return the SDK's client of the blob over a connection of its own, with the SDK's retries on."""
    from azure.storage.blob import BlobClient, LinearRetry

    return BlobClient(
        account.emulator({"blob": line.port}).endpoint("blob"),
        CONTAINER,
        NAME,
        credential=EMULATOR_KEY,
        transport=SlowTransport(line),
        # Declared as int, and slept as given.
        retry_policy=LinearRetry(backoff=_SDK_RETRY_SECONDS, random_jitter_range=0),  # type: ignore[arg-type]  # the SDK's hint is too narrow
    )


def increments(way: Way, worker: int, line: Line, queues: Path) -> Callable[[], None]:
    """Return a function that applies one increment.

    ``queues`` holds the queues of writers: a folder per host. Workers are spread evenly over the hosts.
    """
    if way is Way.AZ:
        return lambda: _az_loop(line)
    if way is Way.SDK:
        mine = client(line)
        return lambda: _sdk_loop(mine)
    host = {Way.ONE_HOST: 0, Way.FOUR_HOSTS: worker % _FOUR}.get(way, worker)
    known = account.emulator({"blob": line.port})
    # The account keeps its client there, and makes one only where none is.
    target = Target(replace(known, shared={"client": SlowClient(line)}), Address(Kind.BLOB, (CONTAINER, NAME)))
    return lambda: _safe_update(target, queues / str(host))


def _safe_update(target: Target, queues: Path) -> None:
    """Do what ``azguard safe-update ADDRESS --increment count`` does."""
    deadline = Deadline(_DEADLINE_SECONDS)
    increment = edits.Increment(paths.parse("count"), 1)
    plan = UpdatePlan(transform=lambda content: edits.apply([increment], content), op=new_op(os.urandom(12)))
    tools = UpdateHooks(queue=lambda: LocalQueue(queues, f"{target.endpoint} {target.address}", deadline))
    update.update(BlobContent(target), plan, deadline, tools)


def _sdk_loop(mine: "BlobClient") -> None:
    while not _once(mine, mine):
        pass  # immediately again


def _az_loop(line: Line) -> None:
    while True:
        commands = client(line), client(line)
        done = _once(*commands)
        for each in commands:
            each.close()
        if done:
            return
        time.sleep(_SHELL_SLEEP_SECONDS)  # what the shell script sleeps


def _once(reader: "BlobClient", writer: "BlobClient") -> bool:
    """Get, change, put if no other did; return whether it was done."""
    from azure.core import MatchConditions
    from azure.core.exceptions import ResourceModifiedError

    found = reader.download_blob()
    value = json.loads(found.readall())
    value["count"] += 1
    try:
        writer.upload_blob(
            json.dumps(value).encode(),
            overwrite=True,
            etag=found.properties.etag,
            match_condition=MatchConditions.IfNotModified,
        )
    except ResourceModifiedError:
        return False
    return True
