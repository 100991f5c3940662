"""The outcome of a message by the exit status of its command, the counts of outcomes, and what the command shows of
them.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import ClassVar

from azguard import columns
from azguard.errors import AzguardError, ConfigError, Forbidden, NotFound, Unauthenticated
from azguard.worker.settings import WorkSettings

#: What the service refuses for good: no further try mends it.
FINAL = (Unauthenticated, Forbidden, NotFound, ConfigError)

# As in sysexits.h.
DONE_STATUS, AGAIN_STATUS = 0, 75
# So many of them are kept apart; with more, the worker has not handled all.
_MOST_APART = 10_000


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


@dataclass(frozen=True)
class MessageVerdict:
    """The outcome that a message is to have, and why."""

    outcome: Outcome
    reason: str
    #: Whether the worker stops.
    stops: bool = False


@dataclass(frozen=True)
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


def judge(status: int, dequeue_count: int, settings: WorkSettings) -> MessageVerdict:
    """Return the outcome for a message whose command ended with this status."""
    if status == DONE_STATUS:
        return MessageVerdict(Outcome.DONE, "exit_status")
    if status == AGAIN_STATUS:
        return MessageVerdict(Outcome.RETRIED, "asked_for_retry")
    if status == settings.poison_status:
        return MessageVerdict(Outcome.POISONED, "data_error")
    if settings.strict:
        # Never to the poison queue: the deployment is broken, and not the message.
        return MessageVerdict(Outcome.FAILED, "status_outside_protocol", stops=True)
    return judge_failure("exit_status", dequeue_count, settings)


def judge_failure(reason: str, dequeue_count: int, settings: WorkSettings) -> MessageVerdict:
    """Return the outcome for a message whose command failed."""
    if dequeue_count >= settings.max_dequeue and not settings.strict:
        return MessageVerdict(Outcome.POISONED, reason)
    return MessageVerdict(Outcome.FAILED, reason)


# How a message ends that is not handled: it comes again.
_NOT_HANDLED = (Outcome.FAILED, Outcome.LOST, Outcome.UNSETTLED)


@dataclass(frozen=True)
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
        """Count messages that were received, which are being handled from now on."""
        with self._lock:
            self._received += number
            self._running += number

    def note_receive_in_doubt(self) -> None:
        with self._lock:
            self._receives_in_doubt += 1

    def note_command(self, seconds: float) -> None:
        """Count a command that has ended."""
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
        """Return the counts of now."""
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


@dataclass(frozen=True)
class WorkSummary:
    """What a worker did: how many messages it received, and their outcomes."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        *(columns.Column(name=name, unit=columns.Unit.ITEMS) for name in ("received", "done", "retried", "failed")),
        columns.Column(name="poisoned", unit=columns.Unit.ITEMS),
        columns.Column(name="lost", unit=columns.Unit.ITEMS),
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


@dataclass(frozen=True)
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
