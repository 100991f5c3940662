"""One of the demonstration's writers: a process that runs jobs of increments.

A line on standard input is a job; a line on standard output is the outcome of one increment. When standard input
closes, the process ends at once: the process that started it is gone, ``kill -9`` included.

An increment adds one to ``{"count": 0}`` in a blob, by one of three strategies: two as scripts do it today, and
azguard's. The first two use the SDK with its retries on, as ``az`` does. Only the waits between retries are shortened:
by default the SDK waits 18 s and longer, and the demonstration would take many minutes.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.accounts.endpoints import EMULATOR_KEY
from azguard.address import Address, Kind
from azguard.errors import AzguardError, OutcomeUnknown
from azguard.frozen import frozen
from azguard.requests.deadline import PATIENCE_SECONDS, Deadline
from azguard.requests.lineage import fresh_op
from azguard.updates.local_runs import LocalQueue
from azguard.updates.resource import UpdateHooks, UpdatePlan
from azguard.wire import sdk

CONTAINER = "demo"
START = b'{"count": 0}\n'
#: How long the SDK waits before a retry.
RETRY_WAIT_SECONDS = 0.02
# What safe-update gives one update by default.
_SAFE_SECONDS = 60.0
READY = "ready"


class Strategy(StrEnum):
    """How an increment is applied."""

    BLIND = "get, change, put"
    IF_MATCH = "get, If-Match, retry"
    SAFE = "azguard safe-update"


class IncrementOutcome(StrEnum):
    """What the caller of one increment knows."""

    DONE = "done"
    #: An error that leaves open whether it was applied.
    UNKNOWN = "unknown"
    #: An error that says that it was not applied.
    FAILED = "failed"


@frozen
class WriterJob:
    """What a worker is to do."""

    strategy: Strategy
    #: Where the blob service listens on 127.0.0.1.
    port: int
    #: How many increments to apply.
    count: int

    def line(self) -> bytes:
        return json.dumps([self.strategy, self.port, self.count]).encode() + b"\n"

    @classmethod
    def read(cls, line: str) -> "WriterJob":
        strategy, port, count = json.loads(line)
        return cls(Strategy(strategy), port, count)


def main(queues: Path) -> None:
    """Work until standard input closes."""
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    _import_all()
    _say(READY)
    while True:
        job = WriterJob.read(lines.get())
        apply = build_increment(job.strategy, job.port, queues)
        for _ in range(job.count):
            _say(apply())


def _listen(lines: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)  # a thread can end the process only so; there is nothing to clean up


def _import_all() -> None:
    """Import what the first increment would, so that its time counts for no strategy."""
    for name in ("azguard.documents.edits", "azguard.updates.update", "azguard.blobs.updates"):
        import_module(name)
    open_blob(Strategy.BLIND, 0)


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def open_blob(strategy: Strategy, port: int) -> Any:
    """Return the SDK's client of the blob that a strategy counts in, with the SDK's retries on."""
    return open_container(port).get_blob_client(_name(strategy))


def open_container(port: int) -> Any:
    """Return the SDK's client of the container that all strategies count in."""
    endpoint = account.emulator({"blob": port}).endpoint("blob")
    return sdk.open_container(endpoint, CONTAINER, EMULATOR_KEY, RETRY_WAIT_SECONDS)


def build_increment(strategy: Strategy, port: int, queues: Path) -> Callable[[], IncrementOutcome]:
    """Return a function that applies one increment; ``queues`` is the folder of the host-local queue of writers."""
    if strategy is Strategy.SAFE:
        target = Target(account.emulator({"blob": port}), Address(Kind.BLOB, (CONTAINER, _name(strategy))))
        return lambda: _safe_update(target, queues)
    client = open_blob(strategy, port)
    apply = _get_change_put if strategy is Strategy.BLIND else _get_if_match_retry
    return lambda: _try_to_apply(apply, client)


def _name(strategy: Strategy) -> str:
    return f"{strategy.name.lower()}.json"


def _get_change_put(client: Any) -> None:
    content = client.download_blob().readall()
    client.upload_blob(_plus_one(content), overwrite=True)


def _get_if_match_retry(client: Any) -> None:
    from azure.core import MatchConditions
    from azure.core.exceptions import ResourceModifiedError

    while True:
        found = client.download_blob()
        content = _plus_one(found.readall())
        etag = found.properties.etag
        try:
            client.upload_blob(content, overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
            return
        except ResourceModifiedError:
            continue  # another writer was first; or it was us, and the answer was lost


def _plus_one(content: bytes) -> bytes:
    value = json.loads(content)
    value["count"] += 1
    return json.dumps(value).encode()


def _try_to_apply(apply: Callable[[Any], None], client: Any) -> IncrementOutcome:
    from azure.core.exceptions import AzureError

    try:
        apply(client)
    except AzureError:
        return IncrementOutcome.UNKNOWN  # all of the SDK's retries were lost: a script would stop here, not knowing
    return IncrementOutcome.DONE


def _safe_update(target: Target, queues: Path) -> IncrementOutcome:
    """Count as ``azguard safe-update ADDRESS --increment count`` does."""
    from azguard.blobs.updates import BlobContent
    from azguard.documents import edits, paths
    from azguard.updates import update

    deadline = Deadline(_SAFE_SECONDS)
    increment = edits.Increment(paths.parse("count"), 1)
    plan = UpdatePlan(
        transform=lambda content: edits.apply([increment], content),
        op=fresh_op(),
        reach_seconds=PATIENCE_SECONDS,
    )
    hooks = UpdateHooks(queue=lambda: LocalQueue(queues, f"{target.endpoint} {target.address}", deadline))
    try:
        update.update(BlobContent(target), plan, deadline, hooks)
    except OutcomeUnknown:
        return IncrementOutcome.UNKNOWN
    except AzguardError:
        return IncrementOutcome.FAILED
    return IncrementOutcome.DONE


if __name__ == "__main__":
    main(Path(sys.argv[1]))
