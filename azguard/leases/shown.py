"""A lease as operators see it, alone or as a row of a list: is it held, by whom, for how long, with which fence."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from azguard import columns
from azguard.columns import Column
from azguard.leases import owners
from azguard.leases import state as lease_age
from azguard.leases.actions import LONGEST
from azguard.leases.conventions import Claim
from azguard.leases.owners import FENCE, HOLDER_CLOCK, INFINITE, SERVICE_CLOCK, Owner, TerraformLock
from azguard.leases.state import LeaseState
from azguard.times import find_moment, iso, span

#: The end of a lease without a term.
NEVER = "never"
_HELD = ("held", "breaking")
_STATES = {"leased": "held", "breaking": "breaking", "broken": "broken"}
# The times of records and answers are in whole seconds.
_SLACK_SECONDS = 1.0


@dataclass(frozen=True)
class LeaseFacts:
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

    COLUMNS: ClassVar = (columns.HELD_BY, columns.FENCE, columns.AGE, columns.CLOCK, columns.LEASE_STATE)

    held_by: str | None
    age: int | None
    clock: str | None
    fence: int | None
    owner: Owner | None
    terraform: TerraformLock | None
    lease_state: str
    lease_duration: str | None


def summarize(state: LeaseState) -> LeaseFacts:
    """Return the facts about a lease that one answer of the service tells."""
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
    """Return the report on a lease that was broken, from the state that was read last."""
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


@dataclass(frozen=True)
class Holding:
    """Something that is held, or was: who holds it, since when and why, and whether the holder is there."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        columns.ADDRESS,
        columns.HOLDING_STATE,
        columns.HOLDER,
        columns.HOLDING_SINCE,
        columns.HOLDING_REASON,
        columns.HOLDING_FENCE,
        columns.ALIVE,
        columns.ENDS,
        columns.KIND,
        columns.CLOCK,
    )

    address: str
    #: ``free``, ``held``, ``breaking`` or ``broken``; what is free or broken can be acquired.
    state: str
    #: Who says to hold it, such as ``user@host``.
    holder: str | None
    #: When it was taken, ISO 8601; None if that is not known.
    since: str | None
    #: What the holder says that it is for, or the program that runs under it.
    reason: str | None
    #: The number of the lock's last holder.
    fence: int | None
    #: ``yes``: held for longer than its term, so that a live process renews it; ``unknown``; None of what is not held.
    alive: str | None
    #: When it ends unless it is renewed, ISO 8601, or ``never``; None if that is not known.
    ends: str | None
    #: Whose convention it is: ``azguard``, ``terraform``, ``pulumi`` …, or ``unknown``.
    kind: str
    #: How many seconds ago it was taken, or renewed where only that is known.
    age: int | None
    #: By whose clock that is: ``service`` or ``holder``.
    clock: str | None
    #: The URL of a CI run.
    run: str | None
    #: The service's words for the lease; a lock without a lease has those of a blob that is not leased.
    lease_state: str
    lease_status: str
    lease_duration: str | None
    etag: str
    last_modified: datetime

    @property
    def is_held(self) -> bool:
        """Return whether it is held now, also by a lease that is being broken."""
        return self.state in _HELD


def build_holding(state: LeaseState, claim: Claim) -> Holding:
    """Return the holding that the state of a resource and the claim on the resource make together."""
    told = "held" if claim.is_leaseless else _STATES.get(state.state, "free")
    is_held = told in _HELD
    is_renewed = is_held and _is_renewed(state, claim)
    return Holding(
        address=state.address,
        state=told,
        holder=claim.who if is_held else None,
        since=claim.since if is_held else None,
        reason=claim.reason if is_held else None,
        fence=owners.read_number(state.metadata, FENCE),
        alive=("yes" if is_renewed else "unknown") if is_held else None,
        ends=_find_end(state, claim) if is_held and not is_renewed else None,
        kind=claim.kind,
        age=claim.age.whole if is_held else None,
        clock=claim.age.clock if is_held else None,
        run=claim.run if is_held else None,
        lease_state=state.state,
        lease_status=state.status,
        lease_duration=state.duration,
        etag=state.etag,
        last_modified=state.last_modified,
    )


def _is_renewed(state: LeaseState, claim: Claim) -> bool:
    """Return whether a lease with a term is held for longer: without a process that renews it, it would be over."""
    least = claim.age.at_least
    return state.duration == "fixed" and least is not None and least > (claim.term or LONGEST) + _SLACK_SECONDS


def _find_end(state: LeaseState, claim: Claim) -> str | None:
    if state.duration == INFINITE:
        return claim.until or NEVER
    since = find_moment(claim.since) if claim.age.clock == SERVICE_CLOCK else None
    if state.duration is None or since is None or claim.term is None:
        return None
    return iso(since + timedelta(seconds=claim.term))
