"""When to ask an empty queue again, how long to bear a service that does not answer, and when failures in a row stop
the worker.
"""

import threading
from collections.abc import Callable

from azguard.errors import AzguardError, GaveUp, Unavailable
from azguard.worker.results import HandledMessage, Outcome
from azguard.worker.settings import WorkSettings

_FIRST_PAUSE_SECONDS = 0.1
# As everything in azguard waits.
_PATIENCE_SECONDS = 60.0
_FAILURES = (Outcome.RETRIED, Outcome.FAILED, Outcome.POISONED)
# Why a message is poisoned whose command has not run.
_NOT_RUN = ("received_too_often", "duplicate_differs")
# Why a message is poisoned at once, and what is at fault if that happens to all messages.
_AT_FAULT = {
    "data_error": "the command refuses everything",
    "no_key": "no message has the key that is claimed",
}


class Polling:
    """The pauses between receives: each empty one doubles the pause, up to a longest; a message ends it."""

    def __init__(
        self,
        longest: float,
        now: Callable[[], float],
        uniform: Callable[[float, float], float],
        patience: float | None = None,
    ) -> None:
        self._longest, self._now, self._uniform, self._patience = longest, now, uniform, patience
        self._pause = _FIRST_PAUSE_SECONDS
        self._due = float("-inf")
        self._failing_since: float | None = None
        self._has_answered = False

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._due - self._now())

    def ask_soon(self) -> None:
        """Ask as soon as possible."""
        self._due = float("-inf")

    def note_answer(self, number: int) -> None:
        """Note how many messages a receive has brought."""
        self._has_answered, self._failing_since = True, None
        if number:
            self._pause = _FIRST_PAUSE_SECONDS
            self.ask_soon()
        else:
            self._wait()

    def note_failure(self, error: AzguardError, *, bears_all: bool, asked: float = 0.0) -> bool:
        """Note a receive that failed for now; return whether to go on.

        ``asked`` is for how many seconds the service asks to be left alone.
        ``bears_all`` is of a worker that goes on for ever once it had an answer. One that never had an answer ends
        soon, since its settings may be wrong, unless there is a patience of its own.
        """
        if self._failing_since is None:
            self._failing_since = self._now()
        self._wait(asked)
        if self._has_answered and bears_all:
            return True
        if self._patience is None and isinstance(error, Unavailable) and not self._has_answered:
            return False
        patience = _PATIENCE_SECONDS if self._patience is None else self._patience
        return self._now() + asked - self._failing_since < patience

    @property
    def is_failing(self) -> bool:
        """Return whether the last receive failed."""
        return self._failing_since is not None

    def _wait(self, asked: float = 0.0) -> None:
        # At least half of it, at most all: workers do not ask at the same moment.
        self._due = self._now() + max(asked, self._uniform(self._pause / 2, self._pause))
        self._pause = min(self._longest, self._pause * 2)


class Breaker:
    """Counts commands in a row that did not end with 0, of several threads."""

    def __init__(self, settings: WorkSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._poisoned_in_a_row = 0
        #: Why the worker has to stop: stop_after, max_poison, strict or error; None while it goes on.
        self.tripped: str | None = None
        #: The same as an error; None too where the error of a message tells.
        self.error: GaveUp | None = None

    def note(self, settled: HandledMessage) -> None:
        """Count the outcome of a message; one whose command has not run says nothing."""
        with self._lock:
            self._count(settled)
            if self.tripped is None:
                self._trip(settled)

    def _count(self, settled: HandledMessage) -> None:
        if settled.outcome is Outcome.DONE:
            self._in_a_row = self._poisoned_in_a_row = 0
        elif settled.outcome in _FAILURES and settled.reason not in _NOT_RUN:
            self._in_a_row += 1
            if _is_poisoned_at_once(settled):
                self._poisoned_in_a_row += 1

    def _trip(self, settled: HandledMessage) -> None:
        settings = self._settings
        if settled.error is not None:
            self.tripped = "error"
        elif settled.stops:
            self._stop("strict", GaveUp(_describe(settled), reason="worker_stopped"))
        elif settings.max_poison is not None and self._poisoned_in_a_row >= settings.max_poison:
            if _is_poisoned_at_once(settled):
                self._stop("max_poison", self._explain_poison(settled.reason))
        elif settings.stop_after is not None and self._in_a_row >= settings.stop_after:
            self._stop("stop_after", GaveUp(f"{self._in_a_row} commands in a row failed", reason="worker_stopped"))

    def _stop(self, by: str, why: GaveUp) -> None:
        self.tripped = by
        self.error = why.but(message=f"{why.message}; the worker stopped", address=str(self._settings.queue.address))

    def _explain_poison(self, reason: str) -> GaveUp:
        number, poison = self._poisoned_in_a_row, self._settings.poison.address.short
        are = "1 message is" if number == 1 else f"{number} messages are"
        return GaveUp(
            f"{_AT_FAULT[reason]}: {are} in {poison}, and none was done in between",
            reason="messages_refused_in_a_row",
            values={"queue": self._settings.queue.address.short, "poison": poison},
        )


def _is_poisoned_at_once(settled: HandledMessage) -> bool:
    return settled.outcome is Outcome.POISONED and settled.reason in _AT_FAULT


def _describe(settled: HandledMessage) -> str:
    if settled.status is None:
        return str(settled.facts.get("why", settled.reason))
    return f"exit status {settled.status} is not of the exit protocol"
