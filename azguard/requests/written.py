"""What a write did, as commands show it."""

from dataclasses import dataclass
from datetime import datetime

from azguard.accounts.target import Target


@dataclass(frozen=True)
class WriteResult:
    """What a write or a delete did, as commands show it."""

    address: str
    #: None after a delete, where there is none, and where a lost answer was settled without learning it.
    etag: str | None
    last_modified: datetime | None
    guard: str
    attempts: int
    conflicts: int = 0
    outcome: str = "committed"


def without_time(target: Target, guard: str, attempts: int, etag: str | None = None) -> WriteResult:
    """Return a write that was committed of what has no Last-Modified."""
    return WriteResult(
        address=str(target.address),
        etag=etag,
        last_modified=None,
        guard=guard,
        attempts=attempts,
    )
