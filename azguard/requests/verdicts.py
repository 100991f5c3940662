"""What a look at a resource says about a write in doubt, and what a create says that left it alone."""

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from azguard.errors import Locked
from azguard.requests.lineage import Lineage, bare

T = TypeVar("T")
#: The outcome of a create that found something, and left it alone.
EXISTS = "exists"


class Verdict(Enum):
    """What a look at the resource says about a write in doubt."""

    COMMITTED = "committed"
    NEVER = "never"  # another write has taken its place, so it can never commit
    NOT_YET = "not yet"  # what it would replace is still there; it may still arrive
    UNKNOWN = "unknown"


def look_under(lease_id: str | None, look: Callable[[str | None], T]) -> tuple[T, bool]:
    """Return what ``look`` finds under a lease id, and whether that lease is still held.

    Where it has ended, which the service may have refused the write for, the same is asked without it.
    """
    try:
        return look(lease_id), lease_id is not None
    except Locked:
        if lease_id is None:
            raise
        return look(None), False


def verdict_from_lineage(lineage: Lineage, op: str, parent: str | None, current: str | None) -> Verdict:
    """Return what the lineage of the current version says about ``op`` on ``parent`` (None is nothing there).

    Only sound if the lineage and the current ETag come from one response: see ``lineage``.
    """
    if op in lineage:
        return Verdict.COMMITTED
    if bare(parent) == bare(current):
        return Verdict.NOT_YET
    # "Nothing there" can recur (created, deleted, created again), so its successor proves nothing.
    if parent is not None and lineage.successor(parent) is not None:
        return Verdict.NEVER
    return Verdict.UNKNOWN
