"""Something that is held, as a listing of all that is held shows it."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from azguard import columns
from azguard.leases import owners
from azguard.leases.conventions import Claim
from azguard.leases.owners import FENCE
from azguard.leases.state import LeaseState


@dataclass(frozen=True)
class Holding:
    """Something that is held, who holds it, since when and why."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        columns.KIND,
        columns.HOLDING_STATE,
        columns.HELD_BY,
        columns.AGE,
        columns.CLOCK,
        columns.WHY,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.LEASE_STATE,
    )

    address: str
    #: Whose convention it is: ``azguard``, ``terraform``, ``pulumi`` …, or ``unknown``.
    kind: str
    #: ``held`` or ``free``.
    state: str
    held: bool
    #: Who says to hold it, such as ``user@host``.
    held_by: str | None
    #: When it was taken, ISO 8601; None if that is not known.
    since: str | None
    #: How many seconds ago it was taken, or renewed where only that is known.
    age: int | None
    #: By whose clock that is: ``service`` or ``holder``.
    clock: str | None
    why: str | None
    #: The URL of a CI run.
    run: str | None
    fence: int | None
    #: The service's words for the lease; a lock without a lease has those of a blob that is not leased.
    lease_state: str
    lease_status: str
    lease_duration: str | None
    etag: str
    last_modified: datetime


def build_holding(state: LeaseState, claim: Claim) -> Holding:
    """Return what the state of a resource and the claim on it say together."""
    is_held = claim.is_leaseless or not state.free
    return Holding(
        address=state.address,
        kind=claim.kind,
        state="held" if is_held else "free",
        held=is_held,
        held_by=claim.who if is_held else None,
        since=claim.since if is_held else None,
        age=claim.age.whole if is_held else None,
        clock=claim.age.clock if is_held else None,
        why=claim.why if is_held else None,
        run=claim.run if is_held else None,
        fence=owners.read_number(state.metadata, FENCE),
        lease_state=state.state,
        lease_status=state.status,
        lease_duration=state.duration,
        etag=state.etag,
        last_modified=state.last_modified,
    )
