"""A lease as operators see it: is it held, by whom, for how long, with which fence; and the wait for one.

The service does not say when a lease was taken; a record in the metadata does. A record of azguard's has the service's
time. Terraform's, and those of earlier versions of azguard, have the time of the holder's machine, which may be wrong.
Such a record proves one thing: it was there when the resource was last written, which is by the service's clock.

Not guaranteed: a record of an earlier holder that is taken for one of the present lease tells that holder's age.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.columns import Column
from azguard.errors import GaveUp
from azguard.frozen import frozen
from azguard.leases import owners
from azguard.leases.owners import FENCE, HOLDER_CLOCK, SERVICE_CLOCK, Owner, TerraformLock
from azguard.leases.state import LeaseState, look
from azguard.requests import calls
from azguard.requests.deadline import Deadline, poll
from azguard.times import find_moment, span

# Times are in whole seconds, and the clocks of the service's machines are not the same to the second.
_SLACK_SECONDS = 5.0


@frozen(kw_only=True)
class BrokenLease:
    """The lease that a break has hit, as it was just before."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *(columns.HELD_BY, columns.FENCE, columns.AGE, columns.CLOCK, columns.LEASE_STATE),
    )
    LAST: ClassVar[tuple[str, ...]] = ("lease_state", "lease_status", "lease_duration", "etag", "last_modified")

    #: Who says to hold it now, as ``user@host``.
    held_by: str | None
    #: How many seconds ago it was taken by its record; None if it is free, or that is not known.
    age: int | None
    #: By whose clock the record's time is: ``service`` or ``holder``.
    clock: str | None
    #: The number of the lock's last holder.
    fence: int | None
    #: azguard's record of who holds it now, and Terraform's.
    owner: Owner | None
    terraform: TerraformLock | None
    #: The service's words.
    lease_state: str
    lease_duration: str | None


@frozen(kw_only=True)
class LeaseFacts(BrokenLease):
    """What ``lease show``, ``lease wait`` and ``lock show`` print."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        columns.STATE,
        columns.HELD_BY,
        columns.FENCE,
        columns.AGE,
        columns.CLOCK,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.LEASE_STATE,
    )
    FIRST: ClassVar = ("address", "state", "held")

    address: str
    #: ``held`` or ``free``: whether it can be acquired.
    state: str
    held: bool
    #: The two records of who held it before: where it is free, or where a record is not of the lease that is held.
    last_owner: Owner | None
    last_terraform: TerraformLock | None
    lease_status: str
    etag: str
    last_modified: datetime


def summarize(state: LeaseState) -> LeaseFacts:
    """Return the facts about a lease that one answer of the service tells."""
    facts = _describe_holder(state, is_shown=not state.free)
    return LeaseFacts(
        address=state.address,
        state="free" if state.free else "held",
        held=not state.free,
        **facts,
        last_owner=owners.read_owner(state.metadata) if facts["owner"] is None else None,
        last_terraform=owners.read_terraform(state.metadata) if facts["terraform"] is None else None,
        lease_status=state.status,
        etag=state.etag,
        last_modified=state.last_modified,
    )


def summarize_broken(state: LeaseState) -> BrokenLease:
    """Return the report on a lease that was broken, from the state that was read last."""
    return BrokenLease(**_describe_holder(state, is_shown=True))


def _describe_holder(state: LeaseState, *, is_shown: bool) -> dict[str, Any]:
    holder = state.holder if is_shown else None
    age = measure(state) if is_shown else None
    return {
        "held_by": None if holder is None else holder.name,
        "age": None if age is None else age.whole,
        "clock": None if age is None else age.clock,
        "fence": owners.read_number(state.metadata, FENCE),
        "owner": holder if isinstance(holder, Owner) else None,
        "terraform": holder if isinstance(holder, TerraformLock) else None,
        "lease_state": state.state,
        "lease_duration": state.duration,
    }


def describe(state: LeaseState) -> str:
    """Return in a few words what the state of a lease is, for how long it has been held, and by whom."""
    words = state.state + (f", {state.duration}" if state.duration else "")
    holder = state.describe_holder()
    if state.free:
        return f"{words}; it is free" + ("" if holder is None else f", and was held last by {holder}")
    if holder is None:
        return f"{words}; no record says who holds it"
    if state.holder is None:
        return f"{words}, held by {holder}"
    age = measure(state)
    if age.seconds is None:
        return f"{words}, held by {holder}; for how long is not known: {age.doubt}"
    by_holder = " (by its holder's clock)" if age.clock == HOLDER_CLOCK else ""
    return f"{words}, held for {span(age.seconds)}{by_holder} by {holder}"


def wait_until_free(
    target: Target,
    patience: Deadline,
    tell: Callable[[LeaseState], None],
    uniform: Callable[[float, float], float],
) -> LeaseState:
    """Wait until the lease is free to be acquired, and return its state then.

    ``tell`` is called with the first state, and again whenever the holder changes. ``uniform`` draws a random number
    between two others.

    Raises:
        GaveUp: it is still held when the time is up.
        NotFound: there is no such resource.
    """
    told: LeaseState | None = None
    state: LeaseState | None = None

    def look_once(deadline: Deadline) -> LeaseState | None:
        nonlocal told, state
        state = look(target, deadline)
        if state.free:
            return state
        if told is None or told.describe_holder() != state.describe_holder():
            tell(state)
            told = state
        return None

    if (free := poll(look_once, patience, uniform)) is not None:
        return free
    assert state is not None
    raise build_gave_up(target, patience, state.state, state.held_by)


def build_gave_up(target: Target, patience: Deadline, state: str | None, detail: tuple[str, ...]) -> GaveUp:
    """Return the error for a lease that was not free in time."""
    return GaveUp(
        f"{target} is still leased after {span(patience.seconds)}",
        address=str(target.address),
        detail=detail,
        lease_state=state,
        reason="lease_not_free_in_time",
    )


@frozen
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
        return None if self.seconds is None else round(self.seconds)


_UNKNOWN_TIME = LeaseAge(None, None, "the service tells no time that can be trusted")


def ask_time(state: LeaseState, target: Target, deadline: Deadline) -> LeaseState:
    """Return the state of a lease with the service's own time instead of the Date of its answer.

    The Date may be that of a gateway: no lease is taken from its holder because of it.
    """
    return replace(state, answered_at=calls.ask_service_time(target.account, target.kind, deadline))


def measure(state: LeaseState) -> LeaseAge:
    """Return how long ago the lease was taken, from what one answer of the service says."""
    holder = state.holder
    now = state.answered_at
    if holder is None:
        return LeaseAge(None, None, "there is no record of who holds it")
    if now is None:
        return _UNKNOWN_TIME
    unwritten = max(0.0, (now - state.last_modified).total_seconds())
    since = find_moment(holder.since)
    if since is None:
        return LeaseAge(None, unwritten, "its record has no time that can be read")
    claimed = (now - since).total_seconds()
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
