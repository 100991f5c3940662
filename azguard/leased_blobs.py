"""Which blobs of a container are leased."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from azguard import owners
from azguard.account import Target
from azguard.address import Address, Kind
from azguard.deadline import Deadline
from azguard.errors import NotFound
from azguard.etags import quoted
from azguard.transmission import page_timeouts, pages

STATES = ("available", "leased", "breaking", "broken", "expired")
LOCKED = frozenset({"leased", "breaking"})
# The service knows no filter by lease, so every blob passes through; a page of the largest size takes five times the
# memory and is hardly faster.
_PAGE = 1000


@dataclass(frozen=True)
class LeasedBlob:
    """A blob in a listing by lease; ``holder`` is who says to hold it."""

    address: str
    name: str
    lease_state: str
    lease_status: str
    lease_duration: str | None
    etag: str
    last_modified: datetime
    holder: str | None


def listed(
    target: Target, deadline: Deadline, states: Set[str], prefix: str | None, limit: int | None, page: int = _PAGE
) -> Iterator[LeasedBlob]:
    """Yield a container's blobs whose lease is in one of these states, in order of name, in constant memory.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    found = target.account.container(target.address).list_blobs(
        name_starts_with=prefix, include=["metadata"], results_per_page=page, **page_timeouts(deadline)
    )
    try:
        yield from islice(_in(pages(found, target, deadline), target.address.container, states), limit)
    except NotFound as error:
        error.message = f"there is no container {target.address.container}"
        raise


def _in(items: Iterator[Any], container: str, states: Set[str]) -> Iterator[LeasedBlob]:
    for item in items:
        if item.lease.state not in states:
            continue
        holder = owners.holder(item.metadata or {}) if item.lease.state in LOCKED else None
        yield LeasedBlob(
            address=str(Address(Kind.BLOB, (container, item.name))),
            name=item.name,
            lease_state=item.lease.state,
            lease_status=item.lease.status,
            lease_duration=item.lease.duration,
            etag=quoted(item.etag),
            last_modified=item.last_modified,
            holder=None if holder is None else str(holder),
        )
