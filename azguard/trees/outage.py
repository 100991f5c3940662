"""A service that goes away in the middle of a run: so many files in a row do not reach it that no other is tried."""

import threading
from dataclasses import dataclass, field

from azguard.errors import AzguardError, OutcomeUnknown, Unavailable
from azguard.requests.pool import Done
from azguard.trees.items import UNCHANGED

# Each file waits for its own deadline. After two rounds of them the next one would wait in vain, too.
ROUNDS = 2


@dataclass
class Outage:
    """Whether the service is gone, as far as the ends of files tell. Threads may use it at the same time."""

    #: After so many files in a row that did not reach it.
    most: int
    _in_a_row: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_certain(self) -> bool:
        """Return whether no other file is to be tried."""
        return self._in_a_row >= self.most

    def note(self, done: Done) -> None:
        """Count a file that did not reach the service; one that was answered proves that the service is there."""
        with self._lock:
            if _is_lost(done.error):
                self._in_a_row += 1
            elif _is_answered(done) and not self.is_certain:
                self._in_a_row = 0


def _is_lost(error: AzguardError | None) -> bool:
    return isinstance(error, Unavailable) or (
        isinstance(error, OutcomeUnknown) and isinstance(error.__cause__, Unavailable)
    )


def _is_answered(done: Done) -> bool:
    """Return whether the end of a file needed an answer: what only this machine says proves nothing."""
    return done.outcome != UNCHANGED if done.error is None else done.error.http_status is not None
