"""The circuit breaker: it stops the worker after so many failures in a row."""

import threading

from azguard.worker.protocol import HandledMessage, Outcome

_FAILURES = (Outcome.RETRIED, Outcome.FAILED, Outcome.POISONED)
# Why a message is poisoned whose command has not run.
_NOT_RUN = ("received_too_often", "duplicate_differs")


class Breaker:
    """Counts commands in a row that did not end with 0, of several threads."""

    def __init__(self, stop_after: int | None) -> None:
        self._stop_after = stop_after
        self._lock = threading.Lock()
        self._in_a_row = 0
        #: Why the worker has to stop: stop_after, strict or error; None while it goes on.
        self.tripped: str | None = None
        #: The same for people; None too where an error tells.
        self.why: str | None = None

    def note(self, settled: HandledMessage) -> None:
        """Count the outcome of a message; one whose command has not run says nothing."""
        with self._lock:
            if settled.outcome is Outcome.DONE:
                self._in_a_row = 0
            elif settled.outcome in _FAILURES and settled.reason not in _NOT_RUN:
                self._in_a_row += 1
            if self.tripped is not None:
                return
            if settled.error is not None:
                self.tripped = "error"
            elif settled.stops:
                self.tripped, self.why = "strict", _describe(settled)
            elif self._stop_after is not None and self._in_a_row >= self._stop_after:
                self.tripped, self.why = "stop_after", f"{self._in_a_row} commands in a row failed"


def _describe(settled: HandledMessage) -> str:
    if settled.status is None:
        return str(settled.facts.get("why", settled.reason))
    return f"exit status {settled.status} is not of the exit protocol"
