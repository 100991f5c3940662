"""What a worker tells: the outcome of each message, their counts, its summary, and two files.

**Events.** A JSON line for each thing that happened to a message. Workers may share one file: each line is appended
whole, by one write. A file that was moved is begun anew. A line that cannot be written is told once and counted; the
work goes on: messages matter more than the record of them.

**Metrics.** The counts as OpenMetrics, in a file that is replaced whole: see ``documents.open_metrics``.
"""

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from azguard import columns
from azguard.documents import open_metrics
from azguard.documents.open_metrics import Metric, Sample
from azguard.errors import AzguardError, UsageError
from azguard.frozen import frozen
from azguard.times import iso

# So many of them are kept apart; with more, the worker has not handled all.
_MOST_APART = 10_000
_COLUMNS = ("received", "done", "retried", "failed", "poisoned", "lost")
_PREFIX = "azguard_queue"


class Outcome(Enum):
    """How the handling of a message ended."""

    #: The command succeeded, and the message is deleted.
    DONE = "done"
    #: The command asked to be run again later.
    RETRIED = "retried"
    #: The command failed; the message is tried again.
    FAILED = "failed"
    #: It was moved to the poison queue.
    POISONED = "poisoned"
    #: Its receipt, or its claim, was lost: it is received again.
    LOST = "lost"
    #: Another worker has claimed its key.
    HELD = "held"
    #: Its key was done before: it is deleted, and nothing was run.
    DUPLICATE = "duplicate"
    #: Its key was done before with another body: it is deleted, and nothing was run.
    DUPLICATE_DIFFERS = "duplicate_differs"
    #: It was given back, because the worker was told to stop.
    RELEASED = "released"
    #: Its outcome is not known, or could not be told to the service: it may be received again.
    UNSETTLED = "unsettled"


# How a message ends that is not handled: it comes again.
_NOT_HANDLED = (Outcome.FAILED, Outcome.LOST, Outcome.UNSETTLED)


@frozen
class HandledMessage:
    """The outcome that a message had."""

    outcome: Outcome
    reason: str
    #: The exit status of the command, if it has run and ended by itself.
    status: int | None = None
    #: Whether the worker stops.
    stops: bool = False
    #: What else is to be recorded.
    facts: dict[str, object] = field(default_factory=dict)
    #: Why the worker cannot go on: the command could not be started, or the service refuses; None if it can.
    error: AzguardError | None = None


@frozen
class WorkCounts:
    """The counts at one moment."""

    received: int
    #: How many messages are being handled.
    running: int
    outcomes: Mapping[Outcome, int]
    #: Of all commands that have ended.
    command_seconds: float
    commands: int
    #: Receives whose answers were lost.
    receives_in_doubt: int
    #: Whether no message went to the poison queue, and the last handling of each was no failure.
    are_all_handled: bool
    #: Since the worker began.
    seconds: float


class Counts:
    """Counts of several threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._lock = threading.Lock()
        self._outcomes: Counter[Outcome] = Counter()
        self._received = 0
        self._running = 0
        self._not_handled: set[str] = set()
        self._command_seconds = 0.0
        self._commands = 0
        self._receives_in_doubt = 0

    def note_received(self, number: int) -> None:
        with self._lock:
            self._received += number
            self._running += number

    def note_receive_in_doubt(self) -> None:
        with self._lock:
            self._receives_in_doubt += 1

    def note_command(self, seconds: float) -> None:
        with self._lock:
            self._commands += 1
            self._command_seconds += seconds

    def note_end(self, outcome: Outcome, message_id: str) -> None:
        """Count a message whose handling ended; what is tried again in this run counts as it ended last."""
        with self._lock:
            self._running -= 1
            self._outcomes[outcome] += 1
            if len(self._not_handled) >= _MOST_APART:
                return
            if outcome in _NOT_HANDLED:
                self._not_handled.add(message_id)
            else:
                self._not_handled.discard(message_id)

    def take(self) -> WorkCounts:
        with self._lock:
            return WorkCounts(
                received=self._received,
                running=self._running,
                outcomes=MappingProxyType({each: self._outcomes[each] for each in Outcome}),
                command_seconds=self._command_seconds,
                commands=self._commands,
                receives_in_doubt=self._receives_in_doubt,
                are_all_handled=not (self._not_handled or self._outcomes[Outcome.POISONED]),
                seconds=self._now() - self._began,
            )


@frozen
class WorkSummary:
    """What a worker did: how many messages it received, and their outcomes."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        *(columns.Column(name=name, unit=columns.Unit.ITEMS) for name in _COLUMNS),
        columns.Column(name="stopped_by"),
    )

    address: str
    received: int
    done: int
    retried: int
    failed: int
    poisoned: int
    lost: int
    held: int
    duplicates: int
    #: Of a key that was done with another body.
    duplicate_differs: int
    released: int
    unsettled: int
    #: Receives whose answers were lost: what they received is hidden until its time is over.
    receives_in_doubt: int
    #: Lines that could not be written to the file of events.
    events_lost: int
    seconds: float
    #: Why the worker ended: drained, max_messages, signal, second_signal, stop_after,
    #: max_poison, strict or error.
    stopped_by: str


@frozen
class WorkEnd:
    """How a worker ended."""

    summary: WorkSummary
    status: int
    #: Why it could not go on; None if it ended in order.
    error: AzguardError | None = None


def summarize(address: str, counts: WorkCounts, stopped_by: str, events_lost: int) -> WorkSummary:
    """Return the summary of these counts."""
    found = counts.outcomes
    return WorkSummary(
        address=address,
        received=counts.received,
        done=found[Outcome.DONE],
        retried=found[Outcome.RETRIED],
        failed=found[Outcome.FAILED],
        poisoned=found[Outcome.POISONED],
        lost=found[Outcome.LOST],
        held=found[Outcome.HELD],
        duplicates=found[Outcome.DUPLICATE],
        duplicate_differs=found[Outcome.DUPLICATE_DIFFERS],
        released=found[Outcome.RELEASED],
        unsettled=found[Outcome.UNSETTLED],
        receives_in_doubt=counts.receives_in_doubt,
        events_lost=events_lost,
        seconds=round(counts.seconds, 3),
        stopped_by=stopped_by,
    )


class Events:
    """Appends events to a file; without a file they go nowhere."""

    def __init__(
        self, path: Path | None, warn: Callable[[str], None], now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Open the file.

        Raises:
            UsageError: it cannot be opened.
        """
        self._warn, self._now = warn, now
        self._lock = threading.Lock()
        self._path = path
        self._descriptor = None if path is None else _open(path)
        self._is_torn = False
        #: How many lines could not be written.
        self.lost = 0

    def note(self, event: str, **facts: Any) -> None:
        if self._path is None or self._descriptor is None:
            return
        text = json.dumps({"time": iso(self._now()), "event": event, **facts}, ensure_ascii=False)
        # Half of a pair, which a key may hold, is written as JSON escapes it.
        line = text.encode(errors="backslashreplace")
        with self._lock:
            self._descriptor = self._follow(self._path, self._descriptor)
            self._append(self._descriptor, line)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _follow(self, path: Path, descriptor: int) -> int:
        """Open the file again if it was moved or deleted, as logrotate does; return its descriptor.

        As long as it cannot be opened again, the lines go where the file was moved to.
        """
        try:
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return descriptor
        except OSError:
            pass  # it is not there
        try:
            opened = _open(path)
        except UsageError:
            return descriptor
        os.close(descriptor)
        self._is_torn = False
        return opened

    def _append(self, descriptor: int, line: bytes) -> None:
        # After a line of which only a part was written, the next one begins a line of its own.
        content = (b"\n" if self._is_torn else b"") + line + b"\n"
        try:
            written = os.write(descriptor, content)
        except OSError as error:
            self._note_lost(error.strerror or "it failed")
            return
        self._is_torn = written < len(content)
        if self._is_torn:
            self._note_lost("only a part of a line was written")

    def _note_lost(self, why: str) -> None:
        self.lost += 1
        if self.lost == 1:
            self._warn(
                f"an event could not be written: {why}; the work goes on, and the lines that are lost are counted"
            )


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", reason="work_file_not_writable") from None


def build_metrics(queue: str, counts: WorkCounts) -> str:
    """Return the counts as OpenMetrics text."""
    labels = {"queue": queue}
    ended = [
        Sample(number, {**labels, "outcome": outcome.value}, "_total") for outcome, number in counts.outcomes.items()
    ]
    ran = [Sample(counts.commands, labels, "_count"), Sample(counts.command_seconds, labels, "_sum")]
    received = [Sample(counts.received, labels, "_total")]
    in_doubt = [Sample(counts.receives_in_doubt, labels, "_total")]
    running = [Sample(counts.running, labels)]
    return open_metrics.build_text(
        (
            Metric(f"{_PREFIX}_messages_received", "counter", "Messages that were received.", received),
            Metric(f"{_PREFIX}_messages", "counter", "Messages that were handled, by outcome.", ended),
            Metric(f"{_PREFIX}_receives_in_doubt", "counter", "Receives whose answers were lost.", in_doubt),
            Metric(f"{_PREFIX}_messages_running", "gauge", "Messages that are being handled.", running),
            Metric(f"{_PREFIX}_command_seconds", "summary", "How long the commands ran.", ran, "seconds"),
        )
    )
