"""Which blobs of a container are leased."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.etags import quote
from azguard.errors import NotFound
from azguard.leases import facts, owners
from azguard.leases.state import LeaseState, read_blob_type
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline
from azguard.requests.service_dates import Answers

STATES = ("available", "leased", "breaking", "broken", "expired")
LOCKED = frozenset({"leased", "breaking"})
# The service has no filter by lease, so that every blob is read. A page of the largest size takes five times the memory
# and is hardly faster.
_PAGE = 1000


@dataclass(frozen=True)
class LeasedBlob:
    """A blob in a listing by lease."""

    COLUMNS: ClassVar = (
        columns.NAME,
        columns.ADDRESS,
        columns.HELD_BY,
        columns.AGE,
        columns.CLOCK,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.LEASE_STATE,
        columns.HOLDER,
    )

    address: str
    name: str
    lease_state: str
    lease_status: str
    lease_duration: str | None
    etag: str
    last_modified: datetime
    #: Who holds it by its record: ``user@host``, and all that the record has; also of a record of an earlier lease.
    held_by: str | None
    holder: str | None
    #: How many seconds ago it was taken by its record; None if it is free, or that is not known.
    age: int | None
    #: By whose clock the record's time is: ``service`` or ``holder``.
    clock: str | None


def list_by_state(
    target: Target,
    deadline: Deadline,
    among: AbstractSet[str],
    prefix: str | None,
    limit: int | None,
    page: int = _PAGE,
) -> Iterator[LeasedBlob]:
    """Yield a container's blobs whose lease is in one of these states, in order of name, in constant memory."""
    start = len(str(Address(Kind.BLOB, (target.address.container, ""))))
    # The leases on tickets keep places in the queues of locks; they protect nothing.
    states = (each for each in list_states(target, deadline, prefix, page) if not owners.is_ticket(each.metadata))
    found = (each for each in states if each.state in among)
    return (_build_leased_blob(each, each.address[start:]) for each in islice(found, limit))


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


def _build_leased_blob(state: LeaseState, name: str) -> LeasedBlob:
    found = facts.summarize(state)
    return LeasedBlob(
        address=state.address,
        name=name,
        lease_state=state.state,
        lease_status=state.status,
        lease_duration=state.duration,
        etag=state.etag,
        last_modified=state.last_modified,
        held_by=found.held_by,
        holder=None if state.free else state.describe_holder(),
        age=found.age,
        clock=found.clock,
    )
