"""How long a lease has been held: by the service's clock, never by that of the machine that asks.

The service does not say when a lease was taken; a record in the metadata does. A record of azguard's has the service's
time. Terraform's, and those of earlier versions of azguard, have the time of the holder's machine, which may be wrong.
Such a record proves one thing: it was there when the resource was last written, which is by the service's clock.

Not guaranteed: a record of an earlier holder that is taken for one of the present lease tells the age of that holder's.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from azguard.accounts.target import Target
from azguard.leases.owners import HOLDER_CLOCK, SERVICE_CLOCK, parse_moment
from azguard.leases.state import Holder, LeaseState
from azguard.requests import service_clock
from azguard.requests.deadline import Deadline

# Times are in whole seconds, and the clocks of the service's machines are not the same to the second.
_SLACK_SECONDS = 5.0


@dataclass(frozen=True)
class LeaseAge:
    """How long ago a lease was taken, in seconds."""

    #: The age by the record's time and the service's clock; None if the record's time cannot be right.
    seconds: float | None
    #: The lease was certainly taken at least so long ago; None if nothing is certain.
    at_least: float | None
    #: Why ``seconds`` is missing or not certain, in words; None if it is certain.
    doubt: str | None
    #: By whose clock the lease was taken; None if ``seconds`` is.
    clock: str | None = None

    @property
    def whole(self) -> int | None:
        """Return the age in whole seconds."""
        return None if self.seconds is None else round(self.seconds)


_UNKNOWN_TIME = LeaseAge(None, None, "the service tells no time that can be trusted")


def ask_time(state: LeaseState, target: Target, deadline: Deadline) -> LeaseState:
    """Return the state of a lease with the service's own time instead of the Date of its answer.

    The Date may be that of a gateway: no lease is taken from its holder because of it.

    Raises:
        Unavailable: the service does not answer.
    """
    return replace(state, answered_at=service_clock.ask(target.account, target.kind, deadline))


def measure(state: LeaseState) -> LeaseAge:
    """Return how long ago the lease was taken, from what one answer of the service says."""
    holder = state.holder
    now = state.answered_at
    if holder is None:
        return LeaseAge(None, None, "there is no record of who holds it")
    if now is None:
        return _UNKNOWN_TIME
    unwritten = max(0.0, (now - state.last_modified).total_seconds())
    claimed = _seconds_since(holder, now)
    if claimed is None:
        return LeaseAge(None, unwritten, "its record has no time that can be read")
    if claimed < -_SLACK_SECONDS:
        return LeaseAge(None, unwritten, f"its record says {holder.since}, which is still to come: that clock is wrong")
    if holder.clock == SERVICE_CLOCK:
        return LeaseAge(max(0.0, claimed), max(0.0, claimed), None, SERVICE_CLOCK)
    if claimed < unwritten - _SLACK_SECONDS:
        return LeaseAge(
            None, unwritten, f"its record says {holder.since}, and is older than that: the holder's clock is wrong"
        )
    return LeaseAge(
        max(0.0, claimed), unwritten, f"its record says {holder.since}, by the holder's own clock", HOLDER_CLOCK
    )


def measure_since_written(state: LeaseState) -> LeaseAge:
    """Return how long ago the resource was written last, for a holder whose own write is the last."""
    if state.answered_at is None:
        return _UNKNOWN_TIME
    seconds = max(0.0, (state.answered_at - state.last_modified).total_seconds())
    return LeaseAge(seconds, seconds, None, SERVICE_CLOCK)


def _seconds_since(holder: Holder, now: datetime) -> float | None:
    then = parse_moment(holder.since)
    return None if then is None else (now - then).total_seconds()
