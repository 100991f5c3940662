"""The leases on the blobs of a container, as its listing tells them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.etags import quote
from azguard.errors import NotFound
from azguard.leases.state import LeaseState, read_blob_type
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import Answers

STATES = ("available", "leased", "breaking", "broken", "expired")
LOCKED = frozenset({"leased", "breaking"})
# The service has no filter by lease, so that every blob is read. A page of the largest size takes five times the memory
# and is hardly faster.
_PAGE = 1000


def list_states(target: Target, deadline: Deadline, prefix: str | None, page: int = _PAGE) -> Iterator[LeaseState]:
    """Yield the state of the lease of every blob in a container, in order of name, in constant memory.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    answers = Answers()
    found = target.account.container(target.address).list_blobs(
        name_starts_with=prefix,
        include=["metadata"],
        results_per_page=page,
        raw_response_hook=answers.hear,
        **page_timeouts(deadline),
    )
    try:
        for item in pages(found, target, deadline):
            yield parse_state(item, Address(Kind.BLOB, (target.address.container, item.name)), answers.date)
    except NotFound as error:
        raise error.but(message=f"there is no container {target.address.container}") from error


def parse_state(item: Any, address: Address, answered_at: datetime | None) -> LeaseState:
    """Return the state of a lease as the SDK's item of a listing tells it."""
    return LeaseState(
        address=str(address),
        state=str(item.lease.state),
        status=str(item.lease.status),
        duration=item.lease.duration,
        etag=quote(item.etag),
        last_modified=item.last_modified,
        metadata=item.metadata or {},
        answered_at=answered_at,
        blob_type=read_blob_type(item),
        created_at=getattr(item, "creation_time", None),
    )
