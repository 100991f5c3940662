"""An update that an earlier run of the same key applied: when, as which change, and whether another write followed."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.errors import Exists
from azguard.requests import lineage
from azguard.times import iso
from azguard.updates.resource import CurrentVersion

# The clocks of two machines that the service believes differ by less; so a version that is later by more is another.
_CLOCKS_DIFFER = timedelta(minutes=15)


class Change(NamedTuple):
    """What an update does, told apart from other changes under the same key."""

    digest: bytes
    #: For people; without values, which may be secrets.
    text: str

    @classmethod
    def of(cls, parts: Sequence[object], text: str) -> "Change":
        """Return the change that these parts, which JSON can hold, make up.

        The parts of a change must never be spelt in another way: each key that is remembered would then be refused.
        """
        whole = hashlib.sha256(json.dumps(parts).encode()).digest()
        return cls(whole[: lineage.CHANGE_BYTES], text)


@dataclass(frozen=True)
class Applied:
    """An update that was applied."""

    #: When, by the clock of the machine that applied it, to the minute; None where that was not recorded.
    at: datetime | None
    #: The digest of its change; None where that was not recorded.
    change: bytes | None
    #: Whether another write followed. False is no proof: a program that keeps the metadata is not seen within minutes.
    written_since: bool


def find_applied(state: CurrentVersion, op: str) -> Applied | None:
    """Return what a version tells of an update that was applied before it, or by it; None if it does not tell of it."""
    if op not in state.lineage and not state.in_ledger:
        return None
    key = state.ledger_key or state.lineage.find_key(op)
    at = None if key is None else key.at
    return Applied(at, None if key is None else key.change, _is_written_since(state, op, at))


def _is_written_since(state: CurrentVersion, op: str, at: datetime | None) -> bool:
    if state.etag is None:
        return True
    if op in state.lineage and [newest for newest, _ in state.lineage.entries[:1]] != [op]:
        return True
    return at is not None and state.last_modified is not None and state.last_modified - at > _CLOCKS_DIFFER


def check_change(target: Target, applied: Applied, change: Change | None) -> None:
    """Refuse a key that was used for another change. What was not recorded cannot be compared.

    Raises:
        Exists: it was.
    """
    if change is None or applied.change is None or applied.change == change.digest:
        return
    when = "" if applied.at is None else f", applied at {iso(applied.at)}"
    raise Exists(
        f"the key names another change of {target}: {applied.change.hex()}{when}; this one is {change.digest.hex()}, "
        f"{change.text}; nothing was written",
        address=str(target.address),
        reason="key_of_another_change",
        facts={
            "outcome": "key_of_another_change",
            "applied_at": iso(applied.at),
            "written_since": applied.written_since,
        },
    )


def count_remembered(kind: Kind) -> int:
    """Return how many keys a resource of a kind remembers, where there is room."""
    return lineage.MOST_IN_ENTITY if kind is Kind.ENTITY else lineage.MOST_IN_METADATA
