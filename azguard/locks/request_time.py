"""How long the requests of an acquisition may take, while it waits for other holders and after."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from azguard.locks.settings import ANSWER_SECONDS
from azguard.requests.deadline import Deadline

# Connecting takes milliseconds; a connection that takes longer is better opened anew.
_CONNECT_SECONDS = 2.0
# How much longer than the wait the requests may take: the wait is for other holders, and a service that is far away
# needs some round trips all the same.
_ALLOWANCE_SECONDS = 2.0
# No request is given less.
LEAST_SECONDS = 0.5


class RequestTime:
    """The time for the requests of one acquisition, which waits for others until ``deadline``."""

    def __init__(self, deadline: Deadline, patience: float) -> None:
        self.deadline = deadline
        self._patience = patience
        self._without_wait = deadline.restart(seconds=patience + _ALLOWANCE_SECONDS)

    @property
    def left(self) -> float:
        """Return how many seconds requests may still take."""
        if not self.deadline.seconds:
            return self._without_wait.remaining
        return max(0.0, self.deadline.seconds + _ALLOWANCE_SECONDS - self.deadline.elapsed)

    def start(self, seconds: float | None = None) -> Deadline:
        """Return how long a step of several requests may take from now on; None is the patience with the service."""
        left = max(LEAST_SECONDS, min(self._patience if seconds is None else seconds, self.left))
        answer_seconds = min(ANSWER_SECONDS, left)
        return replace(self.deadline, seconds=left, answer_seconds=answer_seconds, settle_seconds=left)

    def start_in_any_case(self, seconds: float) -> Deadline:
        """Return a deadline of so many seconds, even if the time for waiting is over."""
        return replace(self.deadline, seconds=seconds, answer_seconds=ANSWER_SECONDS)

    def start_silence(self) -> Deadline:
        """Return how long the service may be silent from now on."""
        return replace(self.deadline, seconds=self._patience, answer_seconds=ANSWER_SECONDS)

    def timeouts(self) -> Mapping[str, Any]:
        """Return the SDK's timeouts for one request that is made now, in seconds."""
        left = max(LEAST_SECONDS, self.left)
        return {"connection_timeout": min(_CONNECT_SECONDS, left), "read_timeout": min(ANSWER_SECONDS, left)}
