"""How long to keep trying, with the clock and the sleep as parameters."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

# An endpoint that is not there is reported within five seconds, start-up included, unless --timeout says otherwise.
PATIENCE_SECONDS = 4.0


@dataclass
class Deadline:
    """A moment after which no new attempt begins. ``seconds`` counts from construction."""

    seconds: float = PATIENCE_SECONDS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

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
        return Deadline(self.seconds, self.clock, self.sleep)

    def pause(self, seconds: float) -> None:
        """Sleep so long, but not beyond the deadline."""
        self.sleep(min(seconds, self.remaining))
