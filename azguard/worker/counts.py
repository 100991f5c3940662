"""How many messages came to which end."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from azguard.worker.protocol import Outcome

# How a message ends that is not handled: it comes again.
_NOT_HANDLED = (Outcome.FAILED, Outcome.LOST, Outcome.UNSETTLED)
# So many of them are kept apart; with more, the worker has not handled all.
_MOST_APART = 10_000


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
        """Count a receive whose answer was lost."""
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
