"""Breaking a lease as an operator does: only the one that was looked at, and only if it is what it was taken for."""

from dataclasses import dataclass
from datetime import datetime

from azguard import leases, owners
from azguard.account import Target
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.errors import Changed, Locked
from azguard.lease_state import Action, LeaseState, look, operation
from azguard.leases import LeaseDone
from azguard.operations import Condition
from azguard.times import http_date, span

# The holder may write while we look: each time we look again, but not for ever.
_TRIES = 5


@dataclass(frozen=True)
class Safeguards:
    """What must hold of the one who holds a lease; ``older_than`` is in seconds."""

    owner: str | None = None
    older_than: float | None = None

    def check(self, state: LeaseState, target: Target, now: datetime) -> None:
        """Judge by the record that the holder left.

        Raises:
            Changed: it says otherwise, or there is none.
        """
        holder = state.holder
        if self == Safeguards():
            return
        if holder is None:
            raise _refused(state, target, f"nobody left a record on {target} by which to judge")
        if self.owner is not None and not holder.is_named(self.owner):
            raise _refused(state, target, f"the lease on {target} is not held by {self.owner}")
        if self.older_than is None:
            return
        age = owners.age(holder.since, now)
        if age is None:
            raise _refused(state, target, f"when the lease on {target} was taken cannot be read")
        if age < self.older_than:
            raise _refused(state, target, f"the lease on {target} was taken {span(age)} ago, which is not long enough")


def leased(target: Target, deadline: Deadline) -> LeaseState:
    """Return the state of a lease that there is something to break of.

    Raises:
        Locked: there is none.
        NotFound: there is no such resource.
    """
    state = look(target, deadline)
    if state.state == "available":
        raise Locked(f"there is no lease on {target}", str(target.address), lease_state=state.state)
    return state


def break_shown(
    target: Target, shown: LeaseState, period: int | None, conditions: Conditions, deadline: Deadline
) -> LeaseDone:
    """Break the very lease that was shown.

    Without conditions of the caller's the break is tied to the version that was shown, so that the next holder, who
    leaves a record there, is never hit. The holder itself may write meanwhile.

    Raises:
        Locked: there is no lease any more.
        Changed: somebody else has taken the lease meanwhile, or the caller's condition does not hold.

    Not guaranteed: who takes the lease without leaving a record cannot be told from the one before.
    """
    state = shown
    for _ in range(_TRIES):
        tied = conditions if conditions.headers else _tied(target, state)
        try:
            return leases.break_(target, period, tied, deadline.fresh())
        except Changed:
            if conditions.headers:
                raise
        state = leased(target, deadline.fresh())
        if state.holder != shown.holder:
            raise _refused(state, target, f"somebody else holds the lease on {target} now")
    raise _refused(state, target, f"{target} is written so often that its lease cannot be broken safely")


def _tied(target: Target, state: LeaseState) -> Conditions:
    """Return what ties a break to the version that was shown, where the service honours something that does."""
    honours = operation(target, Action.BREAK).honours
    if Condition.IF_MATCH in honours:
        return Conditions({Condition.IF_MATCH.header: state.etag}, "if-match", state.etag)
    if Condition.IF_UNMODIFIED_SINCE in honours:
        return Conditions({Condition.IF_UNMODIFIED_SINCE.header: http_date(state.last_modified)}, "conditions")
    return Conditions()


def _refused(state: LeaseState, target: Target, words: str) -> Changed:
    return Changed(
        words,
        address=str(target.address),
        detail=() if state.holder is None else (f"held by {state.holder}",),
        current_etag=state.etag,
        lease_state=state.state,
        hint=f"nothing was broken; look again: azguard lease show {target.address}",
    )
