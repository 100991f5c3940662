"""How long to keep trying, with the clock and the sleep as parameters."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from azguard.accounts import trace

# An endpoint that is not there is reported within five seconds, start-up included, unless --timeout says otherwise.
PATIENCE_SECONDS = 4.0
# How long a request that was sent may go unanswered: a write is then in doubt, a read is made again. Longer than the
# service's usual worst, shorter than people wait; a doubt costs one more read.
ANSWER_SECONDS = 20.0
# Asking for the outcome of a write is worth this long even when the time for trying is over.
SETTLE_SECONDS = 5.0
# One round trip on a slow network: less could not settle anything.
_SHORTEST_SETTLE_SECONDS = 1.0


@dataclass
class Deadline:
    """A moment after which no new attempt begins."""

    #: How long it lasts, from its construction.
    seconds: float = PATIENCE_SECONDS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    #: How long one request that was sent may go unanswered.
    answer_seconds: float = ANSWER_SECONDS
    #: How long to ask for the outcome of a write even after the deadline.
    settle_seconds: float = SETTLE_SECONDS
    started: float = field(init=False)

    @classmethod
    def strict(cls, seconds: float, answer_seconds: float = ANSWER_SECONDS) -> "Deadline":
        """Return a deadline that bounds the whole, answers and questions after them included, as the caller asked for.

        A write that was sent shortly before the end is still asked after, for at most a third longer.
        """
        settle_seconds = min(SETTLE_SECONDS, max(_SHORTEST_SETTLE_SECONDS, seconds / 3))
        return cls(seconds, answer_seconds=min(answer_seconds, seconds), settle_seconds=settle_seconds)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def elapsed(self) -> float:
        """Return the seconds since construction."""
        return self.clock() - self.started

    @property
    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self.started + self.seconds - self.clock())

    @property
    def passed(self) -> bool:
        """Return whether it is over."""
        return self.remaining == 0.0

    def fresh(self) -> "Deadline":
        """Return a deadline as long as this one that begins now.

        For the next piece of a long transfer: what bounds it is how long the service may stay silent, not its size.
        """
        return self.restart(seconds=self.seconds)

    def restart(self, *, seconds: float) -> "Deadline":
        """Return a deadline of another length that begins now."""
        return Deadline(seconds, self.clock, self.sleep, self.answer_seconds, self.settle_seconds)

    def restart_on(self, clock: Callable[[], float]) -> "Deadline":
        """Return a deadline as long as this one that begins now, by another clock."""
        return replace(self, clock=clock)

    def limit_answers(self, seconds: float) -> "Deadline":
        """Return this deadline with no answer waited for longer than this."""
        other = replace(self, answer_seconds=min(seconds, self.answer_seconds))
        other.started = self.started
        return other

    def pause(self, seconds: float) -> None:
        """Sleep so long, but not beyond the deadline."""
        shortened = min(seconds, self.remaining)
        if shortened:
            trace.tell(f"waiting {shortened:.2f} s before the next request")
        self.sleep(shortened)
