"""One race of workers for the messages of a queue: an emulator, a proxy before it, kills, and the verdict.

The command of a message leaves a file when it succeeds. The proxy looks for that file when a delete arrives: so no
clock decides whether a message was deleted only after a success.
"""

import os
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azguard.emulators.azurite_process import Azurite
from azguard.requests.trace import VARIABLE
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request
from tests.support.forked_process import ForkedProcess
from tests.support.lock_world import processes
from tests.traces import records, rules

_QUEUE = "jobs"
_TABLE = "Once"
_MARK = "LOCK_WORLD"
_TRACE = "trace.jsonl"
_MESSAGE = re.compile(r"/messages/([0-9a-f-]+)\?")
_FAULTS = (Fault.DROP, Fault.FAIL_AFTER, Fault.HALF, Fault.RESET, Fault.FAIL_BEFORE, Fault.LATE, Fault.REPLAYED)
_WATCH_SECONDS = 0.25
_ENDING_SECONDS = 20.0
# Fails at first now and then, or takes longer than its message is hidden. What it does is known by its body.
_COMMAND = """#!/bin/sh
read -r body
echo "start $AZGUARD_MESSAGE_ID $AZGUARD_MESSAGE_DEQUEUE_COUNT" >> "$RACE/log"
case $body in
*slow*) sleep 3 ;;
*fails*) [ "$AZGUARD_MESSAGE_DEQUEUE_COUNT" -gt 1 ] || exit 1 ;;
*later*) [ "$AZGUARD_MESSAGE_DEQUEUE_COUNT" -gt 1 ] || exit 75 ;;
esac
echo "success $AZGUARD_MESSAGE_ID $AZGUARD_MESSAGE_DEQUEUE_COUNT" >> "$RACE/log"
: > "$RACE/done/$AZGUARD_MESSAGE_ID"
"""


@dataclass(frozen=True)
class Settings:
    """What a race is like: ``share`` of the requests meet a fault; a worker is killed every so many seconds."""

    seed: str
    workers: int = 4
    messages: int = 60
    jobs: int = 2
    share: float = 0.0
    #: 0 is never.
    kill_every: float = 0.0
    #: Whether each message is claimed first.
    once: bool = False


@dataclass
class Tally:
    """What a race came to."""

    #: Messages whose command never succeeded, though they are gone.
    lost: list[str]
    #: Messages that were deleted before their command had succeeded.
    early: list[str]
    #: How many messages succeeded more than once.
    twice: int
    #: How many messages were left in the queue.
    left: int
    #: The steps of the workers that break a rule.
    broken: list[str]
    counts: Counter[str] = field(default_factory=Counter)


class _Network:
    """Spoils requests of the queue, and looks at each delete."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._dice, self._share = random.Random(f"{settings.seed} network"), settings.share
        self._done = folder / "done"
        self.early: list[str] = []
        self.faults: Counter[str] = Counter()

    def decide(self, request: Request) -> Chosen:
        found = _MESSAGE.search(request.path)
        if request.method == "DELETE" and found is not None and not (self._done / found[1]).exists():
            self.early.append(found[1])
        fault = self._dice.choice(_FAULTS) if self._dice.random() < self._share else Fault.NONE
        self.faults[fault.value] += 1
        return Chosen(fault)


class _Workers:
    """So many workers; one that has ended is begun anew, until the queue is empty."""

    def __init__(self, settings: Settings, folder: Path, environ: Mapping[str, str]) -> None:
        self._settings, self._folder, self._environ = settings, folder, environ
        self._running: list[ForkedProcess] = []
        self.kills = 0

    def keep(self) -> None:
        """Begin workers in place of those that have ended."""
        self._running = [each for each in self._running if each.poll() is None]
        while len(self._running) < self._settings.workers:
            self._running.append(self._begin())

    def kill_one(self, dice: random.Random) -> None:
        """Kill a worker, as the system does when memory is short."""
        dice.choice(self._running).kill()
        self.kills += 1

    def end(self) -> None:
        """End them in order, and what is left after that at once."""
        for each in self._running:
            each.send_signal(signal.SIGTERM)
        until = time.monotonic() + _ENDING_SECONDS
        for each in self._running:
            try:
                each.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()

    def _begin(self) -> ForkedProcess:
        once = ["--once-table", _TABLE] if self._settings.once else []
        # A message that is received so often by killed workers is no poison.
        options = ["--jobs", str(self._settings.jobs), "--visibility-timeout", "2s", "--retry-visibility", "1s"]
        words = ("queue", "work", _QUEUE, *options, "--max-dequeue", "1000", *once, "--poll-interval", "0.5s")
        with open(self._folder / "err", "ab") as err:
            return ForkedProcess(
                (*words, "--", str(self._folder / "command")), self._folder, self._environ,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
            )  # fmt: skip


def run(settings: Settings, most: float, emulator: Azurite, watch: Callable[[str], None] = lambda text: None) -> Tally:
    """Race until the queue is empty, ``most`` seconds at most, and check what happened."""
    with tempfile.TemporaryDirectory(prefix="azguard-queue-race-") as name, _queue_and_table(emulator) as client:
        folder = Path(name)
        (folder / "done").mkdir()
        (folder / "command").write_text(_COMMAND)
        (folder / "command").chmod(0o755)
        ids = _fill(client, settings)
        network = _Network(settings, folder)
        with proxy.running(emulator.ports["queue"], network.decide) as between:
            environ = _environ(emulator, between.port, folder)
            workers = _Workers(settings, folder, environ)
            with _ended(workers, environ[_MARK]):
                _race(settings, workers, lambda: _count(client), time.monotonic() + most, watch)
            counts = Counter(network.faults) + Counter({"kills": workers.kills})
        return _tally(folder, ids, network.early, _count(client), counts)


@contextmanager
def _queue_and_table(emulator: Azurite) -> Iterator[Any]:
    """Yield the SDK's client of the queue, which is there for the length of a ``with`` block, as the table is."""
    from azure.data.tables import TableServiceClient
    from azure.storage.queue import QueueClient

    text = emulator.connection_string
    with (
        QueueClient.from_connection_string(text, _QUEUE) as queue,
        TableServiceClient.from_connection_string(text) as tables,
    ):
        tables.create_table(_TABLE)
        queue.create_queue()
        try:
            yield queue
        finally:
            queue.delete_queue()
            tables.delete_table(_TABLE)


def _fill(client: Any, settings: Settings) -> list[str]:
    dice = random.Random(f"{settings.seed} messages")
    kinds = dice.choices(("quick", "slow", "fails", "later"), (8, 1, 2, 1), k=settings.messages)
    return [client.send_message(f"{number} {kind}\n").id for number, kind in enumerate(kinds)]


def _environ(emulator: Azurite, port: int, folder: Path) -> dict[str, str]:
    text = re.sub(r"(QueueEndpoint=http://127\.0\.0\.1:)\d+", rf"\g<1>{port}", emulator.connection_string)
    return {
        **os.environ,
        "AZURE_STORAGE_CONNECTION_STRING": text,
        "AZGUARD_CACHE_DIR": str(folder / "cache"),
        "AZGUARD_CONFIG_DIR": str(folder / "config"),
        "RACE": str(folder),
        _MARK: folder.name,
        VARIABLE: str(folder / _TRACE),
    }


def _count(client: Any) -> int:
    return int(client.get_queue_properties().approximate_message_count)


@contextmanager
def _ended(workers: _Workers, mark: str) -> Iterator[None]:
    """Leave no process behind."""
    try:
        yield
    finally:
        workers.end()
        for each in processes(mark):
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)


def _race(
    settings: Settings, workers: _Workers, count: Callable[[], int], until: float, watch: Callable[[str], None]
) -> None:
    dice, kill_at = random.Random(f"{settings.seed} killer"), time.monotonic() + settings.kill_every
    while (left := count()) > 0:
        assert time.monotonic() < until, f"{left} messages are not handled in time"
        workers.keep()
        if settings.kill_every and time.monotonic() >= kill_at:
            workers.kill_one(dice)
            kill_at = time.monotonic() + settings.kill_every * dice.uniform(0.5, 1.5)
        watch(f"{left} messages left, {workers.kills} killed")
        threading.Event().wait(_WATCH_SECONDS)


def _tally(folder: Path, ids: list[str], early: list[str], left: int, counts: Counter[str]) -> Tally:
    log = folder / "log"
    events = Counter(tuple(line.split()[:2]) for line in log.read_text().splitlines())
    successes = {each: events["success", each] for each in ids}
    counts["starts"] = sum(number for (what, _), number in events.items() if what == "start")
    counts["duplicates"] = sum(max(0, number - 1) for number in successes.values())
    return Tally(
        lost=[each for each, number in successes.items() if not number],
        early=early,
        twice=sum(number > 1 for number in successes.values()),
        left=left,
        broken=[str(each) for each in rules.Checker(records.read(folder / _TRACE), []).check()],
        counts=counts,
    )
