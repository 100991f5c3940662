"""What changes among all that is held: two listings compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from azguard import columns
from azguard.columns import Column
from azguard.leases.holding import Holding
from azguard.leases.holdings import ListingTally
from azguard.leases.owners import INFINITE

TAKEN = "taken"
FREED = "freed"
CHANGED = "changed"
# What moves by itself while nothing changes hands.
_MOVING = ("age", "alive", "etag", "last_modified")


@dataclass(frozen=True)
class HoldingChange(Holding):
    """One change; of what was freed, all else is as it was before."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (columns.ADDRESS, columns.CHANGE, *Holding.COLUMNS[1:])

    #: ``taken``, ``freed`` or ``changed``.
    change: str

    @classmethod
    def of(cls, change: str, holding: Holding) -> Self:
        """Return a change of a holding."""
        return cls(**{each.name: getattr(holding, each.name) for each in fields(Holding)}, change=change)


def index(found: Sequence[Holding]) -> Mapping[str, Holding]:
    """Return what is held now, by address."""
    return {each.address: each for each in found if each.is_held}


def carry_over(before: Mapping[str, Holding], now: Mapping[str, Holding], tally: ListingTally) -> Mapping[str, Holding]:
    """Return what is held now, and what was held in containers that could not be listed this time."""
    unseen = {(each.address or "").partition(":")[2] for each in tally.failed}
    kept = {address: each for address, each in before.items() if _container_of(address) in unseen}
    return {**kept, **now}


def compare(before: Mapping[str, Holding], now: Mapping[str, Holding]) -> list[HoldingChange]:
    """Return what was taken, was freed or changed between two listings, in order of address."""
    changes = []
    for address in sorted({*before, *now}):
        then, held = before.get(address), now.get(address)
        if held is None and then is not None:
            changes.append(HoldingChange.of(FREED, then))
        elif held is not None and then is None:
            changes.append(HoldingChange.of(TAKEN, held))
        elif held is not None and then is not None and _identify(held) != _identify(then):
            changes.append(HoldingChange.of(CHANGED, held))
    return changes


def _identify(holding: Holding) -> tuple[object, ...]:
    # The end of a lease with a term is told until it is renewed past it; that of one without moves by a write alone.
    moving = _MOVING if holding.lease_duration == INFINITE else (*_MOVING, "ends")
    return tuple(getattr(holding, each.name) for each in fields(Holding) if each.name not in moving)


def _container_of(address: str) -> str:
    return address.partition(":")[2].partition("/")[0]
