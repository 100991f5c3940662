"""A lease as operators see it: whether it is held, by whom, for how long, and with which fence."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from azguard import columns
from azguard.leases import age as lease_age
from azguard.leases import owners
from azguard.leases.owners import FENCE, HOLDER_CLOCK, Owner, TerraformLock
from azguard.leases.state import LeaseState
from azguard.times import span


@dataclass(frozen=True)
class LeaseFacts:
    """What ``lease show``, ``lease wait`` and ``lock show`` print."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        columns.STATE,
        columns.HELD_BY,
        columns.AGE,
        columns.CLOCK,
        columns.FENCE,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.LEASE_STATE,
    )

    address: str
    #: ``held`` or ``free``: whether it can be acquired.
    state: str
    held: bool
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
    #: The same two of who held it before: where it is free, or where that record is not of the lease that is held.
    last_owner: Owner | None
    last_terraform: TerraformLock | None
    #: The service's words.
    lease_state: str
    lease_status: str
    lease_duration: str | None
    etag: str
    last_modified: datetime


@dataclass(frozen=True)
class BrokenLease:
    """The lease that a break has hit, as it was just before; the fields are those of ``LeaseFacts``."""

    COLUMNS: ClassVar = (columns.HELD_BY, columns.AGE, columns.CLOCK, columns.FENCE, columns.LEASE_STATE)

    held_by: str | None
    age: int | None
    clock: str | None
    fence: int | None
    owner: Owner | None
    terraform: TerraformLock | None
    lease_state: str
    lease_duration: str | None


def summarize(state: LeaseState) -> LeaseFacts:
    """Return what one answer of the service says about a lease."""
    holder = None if state.free else state.holder
    age = None if state.free else lease_age.measure(state)
    owner = owners.read_owner(state.metadata)
    terraform = owners.read_terraform(state.metadata)
    return LeaseFacts(
        address=state.address,
        state="free" if state.free else "held",
        held=not state.free,
        held_by=None if holder is None else holder.name,
        age=None if age is None else age.whole,
        clock=None if age is None else age.clock,
        fence=owners.read_number(state.metadata, FENCE),
        owner=holder if isinstance(holder, Owner) else None,
        terraform=holder if isinstance(holder, TerraformLock) else None,
        last_owner=None if isinstance(holder, Owner) else owner,
        last_terraform=None if isinstance(holder, TerraformLock) else terraform,
        lease_state=state.state,
        lease_status=state.status,
        lease_duration=state.duration,
        etag=state.etag,
        last_modified=state.last_modified,
    )


def summarize_broken(state: LeaseState) -> BrokenLease:
    """Return what is reported of a lease that was broken, from the state that was read last."""
    holder = state.holder
    age = lease_age.measure(state)
    return BrokenLease(
        held_by=None if holder is None else holder.name,
        age=age.whole,
        clock=age.clock,
        fence=owners.read_number(state.metadata, FENCE),
        owner=holder if isinstance(holder, Owner) else None,
        terraform=holder if isinstance(holder, TerraformLock) else None,
        lease_state=state.state,
        lease_duration=state.duration,
    )


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
    age = lease_age.measure(state)
    if age.seconds is None:
        return f"{words}, held by {holder}; for how long is not known: {age.doubt}"
    by_holder = " (by its holder's clock)" if age.clock == HOLDER_CLOCK else ""
    return f"{words}, held for {span(age.seconds)}{by_holder} by {holder}"
