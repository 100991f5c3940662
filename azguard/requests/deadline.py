"""How long to keep trying, or to look again and again, with the clock and the sleep as parameters."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from azguard.wire import listeners

# An endpoint that is not there is reported within five seconds, start-up included, unless --timeout says otherwise.
PATIENCE_SECONDS = 4.0
# How long a request that was sent may go unanswered: a write is then in doubt, a read is made again. Longer than the
# service's usual worst, shorter than people wait; a doubt costs one more read.
ANSWER_SECONDS = 20.0
# Asking for the outcome of a write is worth this long even when the time for trying is over.
SETTLE_SECONDS = 5.0
#: One round trip on a slow network: less could not settle anything.
SHORTEST_SETTLE_SECONDS = 1.0
# Ctrl-C over a tree lets the deadlines of its threads pass, which is noticed between two sleeps.
_LONGEST_SLEEP_SECONDS = 2.0
# What is to be done after the end of all is tried once, and briefly.
_LAST_SECONDS = 0.5
# A look that only explains a refusal, which is known already.
_EXPLAIN_SECONDS = 2.0
T = TypeVar("T")
# Of polling: short enough to notice a change soon, long enough for many waiters.
_FIRST_POLL_PAUSE_SECONDS = 1.0
_POLL_PAUSE_GROWTH = 1.3
# The pause is random between this part of the longest and the longest, so that waiters do not ask all at once.
_SHORTEST_PART = 0.25


# Not ``mutable``: this makes a function whose default is the clock, which tests replace there.
@dataclass(eq=False, repr=False)
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
    #: When all has to end, by the clock, with what is done after the deadline; None if the caller set no bound.
    ends: float | None = None
    started: float = field(init=False)

    @classmethod
    def strict(
        cls, seconds: float, answer_seconds: float = ANSWER_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> "Deadline":
        """Return a deadline that bounds the whole, answers and questions after them included, as the caller asked for.

        A write that was sent shortly before the end is still asked after, for at most a third longer.
        """
        settle_seconds = min(SETTLE_SECONDS, max(SHORTEST_SETTLE_SECONDS, seconds / 3))
        made = cls(seconds, clock, answer_seconds=min(answer_seconds, seconds), settle_seconds=settle_seconds)
        made.ends = made.started + seconds + settle_seconds
        return made

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def elapsed(self) -> float:
        return self.clock() - self.started

    @property
    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self.started + self.seconds - self.clock())

    @property
    def passed(self) -> bool:
        return self.remaining == 0.0

    def fresh(self) -> "Deadline":
        """Return a deadline as long as this one that begins now.

        For the next piece of a long transfer: what bounds it is how long the service may stay silent, not its size.
        """
        other = self.restart(seconds=self.seconds)
        other.ends = None if self.ends is None else other.started + self.seconds + self.settle_seconds
        return other

    def restart(self, *, seconds: float) -> "Deadline":
        return Deadline(seconds, self.clock, self.sleep, self.answer_seconds, self.settle_seconds, self.ends)

    def briefly(self, seconds: float = _EXPLAIN_SECONDS) -> "Deadline":
        """Return a deadline that begins now, of at most so many seconds: by default for a look that only explains."""
        return self.restart(seconds=min(seconds, self.seconds))

    def afterwards(self, seconds: float, at_least: float = _LAST_SECONDS) -> "Deadline":
        """Return a deadline for what is done even if this one is over, such as a release: at most so many seconds.

        Where the caller asked for a bound of the whole, all of that ends with it, after ``at_least`` so many seconds.
        """
        left = seconds if self.ends is None else self.ends - self.clock()
        return self.restart(seconds=min(seconds, max(at_least, left)))

    def restart_on(self, clock: Callable[[], float]) -> "Deadline":
        """Return a deadline as long as this one that begins now, by another clock."""
        return Deadline(self.seconds, clock, self.sleep, self.answer_seconds, self.settle_seconds, self.ends)

    def limit_answers(self, seconds: float) -> "Deadline":
        """Return this deadline with no answer waited for longer than this."""
        other = replace(self, answer_seconds=min(seconds, self.answer_seconds))
        other.started = self.started
        return other

    def pause(self, seconds: float) -> None:
        """Sleep so long, but not beyond the deadline, which another thread may make pass meanwhile."""
        left = min(seconds, self.remaining)
        if left:
            listeners.tell_listeners(f"waiting {left:.2f} s before the next request")
        self.sleep(min(left, _LONGEST_SLEEP_SECONDS))
        while (left := left - _LONGEST_SLEEP_SECONDS) > 0 and not self.passed:
            self.sleep(min(left, _LONGEST_SLEEP_SECONDS))


def poll(
    look: Callable[[Deadline], T | None],
    patience: Deadline,
    uniform: Callable[[float, float], float],
    *,
    longest_pause_seconds: float = _FIRST_POLL_PAUSE_SECONDS,
) -> T | None:
    """Return the first finding of ``look``, or None if the time is up before ``look`` finds anything.

    ``look`` takes the deadline of one look, which has all the time that is left: transient errors are tolerated until
    then. The pauses between two looks grow. ``uniform`` draws a random number between two others.
    """
    pause = min(_FIRST_POLL_PAUSE_SECONDS, longest_pause_seconds)
    while True:
        found = look(patience.restart(seconds=max(patience.settle_seconds, patience.remaining)))
        if found is not None or patience.passed:
            return found
        patience.pause(uniform(_SHORTEST_PART * pause, pause))
        pause = min(longest_pause_seconds, _POLL_PAUSE_GROWTH * pause)
