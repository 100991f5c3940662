"""The circuit breaker: it stops the worker after so many failures in a row, or so many messages poisoned in a row."""

import threading

from azguard.errors import GaveUp
from azguard.worker.protocol import HandledMessage, Outcome
from azguard.worker.settings import WorkSettings

_FAILURES = (Outcome.RETRIED, Outcome.FAILED, Outcome.POISONED)
# Why a message is poisoned whose command has not run.
_NOT_RUN = ("received_too_often", "duplicate_differs")
# Why a message is poisoned at once, and what is at fault if that happens to all messages.
_AT_FAULT = {
    "data_error": "the command refuses everything",
    "no_key": "no message has the key that is claimed",
}


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
