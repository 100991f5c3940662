"""Something that is held, as every list of locks and leases shows it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from azguard import columns
from azguard.columns import Column
from azguard.leases import owners
from azguard.leases.actions import LONGEST
from azguard.leases.conventions import Claim
from azguard.leases.owners import FENCE, INFINITE, SERVICE_CLOCK
from azguard.leases.state import LeaseState
from azguard.times import iso

#: The end of a lease without a term.
NEVER = "never"
_HELD = ("held", "breaking")
_STATES = {"leased": "held", "breaking": "breaking", "broken": "broken"}
# The times of records and answers are in whole seconds.
_SLACK_SECONDS = 1.0


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
    """Return what the state of a resource and the claim on it say together."""
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
    since = owners.parse_moment(claim.since) if claim.age.clock == SERVICE_CLOCK else None
    if state.duration is None or since is None or claim.term is None:
        return None
    return iso(since + timedelta(seconds=claim.term))
