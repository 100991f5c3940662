"""Take a lock that is held without a process, once the time is over that its holder wrote on it.

The service's clock decides: by our own ticket if we have one, else by a refusal that tells the time; never by the Date
of an answer, which a gateway may write. The holder's lease is ended by its own id, which stands in the record, and only
at the very version that carries this record. So a holder that has prolonged its time since, and the lease of a next
holder, are never hit; nor is the lease of another program that left the record of an earlier holder there.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from azguard.accounts.target import Target
from azguard.conditions import values
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, Locked, NotFound, Unavailable
from azguard.leases import actions, owners
from azguard.leases.owners import Owner
from azguard.leases.state import LeaseState
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.requests.service_clock import ServiceClock

# A finite lease ends by itself.
_INFINITE = "infinite"


class OverdueLock:
    """A lock that is waited for, which may be overdue."""

    def __init__(self, target: Target, clock: ServiceClock, say: Callable[[str], None]) -> None:
        self._target = target
        self._clock = clock
        self._say = say
        #: The versions whose lease has ended, or is another's: nothing is to be done about them any more.
        self._settled: set[str] = set()

    def end(self, state: LeaseState | None, deadline: Deadline) -> bool:
        """End the lease if its holder's time is over; return whether that was done."""
        owner = None if state is None else _find_holder(state)
        if state is None or owner is None or state.etag in self._settled or not self._is_over(owner, deadline):
            return False
        conditions = Conditions({"If-Match": state.etag}, "if-match", state.etag, lease_id=owner.lease_id)
        try:
            with commits.suppress():
                actions.release(self._target, conditions, deadline)
        except (Changed, Locked, NotFound):
            self._settled.add(state.etag)
            return False  # Its holder has prolonged it, or another waiter was first.
        except AzguardError:
            return False  # The next attempt shows.
        self._settled.add(state.etag)
        self._say(f"the time of its holder is over, so {self._target.address} is free: {owner}")
        return True

    def _is_over(self, owner: Owner, deadline: Deadline) -> bool:
        """Return whether a holder's time is over for certain."""
        try:
            self._clock.learn(self._target.account, self._target.kind, deadline)
        except Unavailable:
            return False  # The next attempt shows.
        end, now = _find_end(owner), self._clock.read()
        return end is not None and now is not None and end < now


def _find_holder(state: LeaseState) -> Owner | None:
    """Return the holder of a lease without a term whose record tells the lease."""
    if state.state != "leased" or state.duration != _INFINITE:
        return None
    owner = owners.read_owner(state.metadata)
    return owner if owner is not None and values.is_guid(owner.lease_id or "") else None


def _find_end(owner: Owner) -> datetime | None:
    """Return when a holder's time is over; None if it has no end, or none that can be read."""
    try:
        found = datetime.fromisoformat(owner.until or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
