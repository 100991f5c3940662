"""What can happen to a request, besides that it is done and answered."""

from dataclasses import replace
from enum import Enum

from tests.explorer.service import http_date
from tests.explorer.wire import Answer, Silence

#: By which an answer comes late, and still in time: a renewal is waited for 3 s.
DELAY_SECONDS = 2.0
# As far as the Date of a gateway is ahead.
_AHEAD_SECONDS = 7200


class Fault(Enum):
    """What happens to one request; the value is how a story tells it."""

    LOST_AFTER = "applied, answer lost"
    LOST_BEFORE = "lost before the service"
    TWICE = "applied twice, the second answer given"
    LATE = "no answer; it arrives later"
    COPIED = "applied and answered; a copy arrives later"
    AHEAD = "a copy arrives first, and is applied"
    BUSY_AFTER = "503 after it was applied"
    STORED = "answered with the answer of an earlier request"
    DATE_AHEAD = "applied, its Date two hours ahead"
    SLOW = "applied, no answer in time"
    DELAYED = "applied, answered 2 s later"


#: Those of the network, for everything that goes by versions alone.
USUAL = (Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.TWICE, Fault.LATE, Fault.BUSY_AFTER, Fault.STORED)
#: Where time counts: an answer that is waited for, a clock that is wrong, an acquire that arrives twice.
OF_TIME = (*USUAL, Fault.COPIED, Fault.DATE_AHEAD, Fault.SLOW)
#: What differs from a lost answer, or from a lost request, in its words alone: after the first fault it is left out.
ALIKE = (Fault.BUSY_AFTER, Fault.STORED)
_APPLIED = {
    Fault.LOST_AFTER: 1,
    Fault.TWICE: 2,
    Fault.COPIED: 1,
    Fault.BUSY_AFTER: 1,
    Fault.DATE_AHEAD: 1,
    Fault.SLOW: 1,
    Fault.DELAYED: 1,
}
_UNDER_WAY = (Fault.LATE, Fault.COPIED)


def possible(alphabet: tuple[Fault, ...], *, changes: bool) -> tuple[Fault, ...]:
    """Return what can happen to a request; to one that only reads less, since much of it is the same."""
    if changes:
        return alphabet
    return tuple(
        each for each in (Fault.LOST_BEFORE, Fault.STORED, Fault.DATE_AHEAD, Fault.DELAYED) if each in alphabet
    )


def times_applied(fault: Fault | None) -> int:
    """Return how often the service does the request now."""
    return 1 if fault is None else _APPLIED.get(fault, 0)


def is_under_way(fault: Fault | None) -> bool:
    """Return whether the request, or a copy of it, arrives later."""
    return fault in _UNDER_WAY


def spoil(fault: Fault | None, answer: Answer | None, stored: Answer | None, now: float) -> Answer | Silence:
    """Return what the sender is told, instead of the answer that the service gave, if it gave one."""
    match fault:
        case None | Fault.TWICE | Fault.COPIED | Fault.DELAYED:
            assert answer is not None
            return answer
        case Fault.BUSY_AFTER:
            assert answer is not None
            return Answer(503, (*answer.headers[:3], ("x-ms-error-code", "ServerBusy")))
        case Fault.STORED:
            return Silence.BROKEN if stored is None else replace(stored, is_of_another=True)
        case Fault.DATE_AHEAD:
            assert answer is not None
            ahead = tuple(pair for pair in answer.headers if pair[0] != "Date")
            return replace(answer, headers=(*ahead, ("Date", http_date(now + _AHEAD_SECONDS))))
        case Fault.SLOW:
            return Silence.TIMEOUT
    return Silence.BROKEN
