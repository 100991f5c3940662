"""Look at something again and again, until it is as wanted or the time is up."""

from collections.abc import Callable
from typing import TypeVar

from azguard.requests.deadline import Deadline

T = TypeVar("T")
# Short enough to notice a change soon, long enough for many waiters.
_FIRST_PAUSE_SECONDS = 1.0
_GROWTH = 1.3
# The pause is random between this part of the longest and the longest, so that waiters do not ask all at once.
_SHORTEST_PART = 0.25


def poll(
    look: Callable[[Deadline], T | None],
    patience: Deadline,
    uniform: Callable[[float, float], float],
    *,
    longest_pause_seconds: float = _FIRST_PAUSE_SECONDS,
) -> T | None:
    """Return what ``look`` finds first, or None if it has found nothing when the time is up.

    ``look`` takes the deadline of one look, which has all the time that is left: transient errors are tolerated so
    long. The pauses between two looks grow. ``uniform`` draws a random number between two others.
    """
    pause = min(_FIRST_PAUSE_SECONDS, longest_pause_seconds)
    while True:
        found = look(patience.restart(seconds=max(patience.settle_seconds, patience.remaining)))
        if found is not None or patience.passed:
            return found
        patience.pause(uniform(_SHORTEST_PART * pause, pause))
        pause = min(longest_pause_seconds, _GROWTH * pause)
