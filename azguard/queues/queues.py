"""Queues: thin calls into the SDK, frozen values out. A queue has metadata, and neither ETag nor lease."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Account
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.resolve import Conditions
from azguard.errors import NotFound
from azguard.requests.calls import page_timeouts, pages, read, write_timeouts
from azguard.requests.commits import Verdict, WriteResult, without_time
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import existence

_PAGE = 5000


@dataclass(frozen=True)
class QueueListed:
    """A queue of a list, which does not tell how many messages are in it."""

    COLUMNS: ClassVar[tuple[columns.Column, ...]] = (columns.NAME, columns.ADDRESS)

    address: str
    name: str
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class QueueShown(QueueListed):
    """A queue and about how many messages are in it."""

    COLUMNS: ClassVar[tuple[columns.Column, ...]] = (columns.NAME, columns.ADDRESS, columns.MESSAGES)

    #: Hidden ones included. There may be fewer, never more.
    approximate_message_count: int


def create(target: Target, metadata: Mapping[str, str], deadline: Deadline, op: str) -> WriteResult:
    """Create a queue; it is always create-only, because its metadata have an entry that no other queue has.

    Raises:
        Exists: there is one of that name.
        Locked: a queue of that name is still being deleted, which takes the service 30 seconds or more.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-queue4
    """
    client = target.account.queue(target.address)
    stamped = {**metadata, KEY: str(Lineage().after(op, None))}
    request = WriteRequest[object](
        target=target,
        # For the same metadata, which only a copy of this request has, the SDK raises an error of status 204. It is
        # in doubt, and the look finds our op.
        send=lambda: client.create_queue(metadata=stamped, **write_timeouts(deadline)),
        look=lambda patience: _find_create_outcome(target, op, patience),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, "if-none-match", settled.attempts)


def fetch(target: Target, deadline: Deadline) -> Any:
    """Return the SDK's properties of a queue, the lineage in its metadata included.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-queue-metadata
    """
    client = target.account.queue(target.address)
    return read(lambda timeouts: client.get_queue_properties(**timeouts), target, deadline)


def show(target: Target, deadline: Deadline) -> QueueShown:
    """Return a queue's metadata and about how many messages are in it."""
    found = fetch(target, deadline)
    return QueueShown(
        address=str(target.address),
        name=target.address.container,
        metadata=drop_lineage(found.metadata),
        approximate_message_count=found.approximate_message_count,
    )


def list_queues(account: Account, deadline: Deadline, prefix: str | None, limit: int | None) -> Iterator[QueueListed]:
    """Yield the account's queues in order of name, with their metadata, page by page.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-queues1
    """
    everything = Target(account, Address(Kind.QUEUE, ("",)))
    found = account.queue_service().list_queues(
        name_starts_with=prefix,
        include_metadata=True,
        results_per_page=None if limit is None else min(limit, _PAGE),
        **page_timeouts(deadline),
    )
    for item in islice(pages(found, everything, deadline), limit):
        address = str(Address(Kind.QUEUE, (item.name,)))
        yield QueueListed(address, item.name, drop_lineage(item.metadata))


def delete(target: Target, conditions: Conditions, deadline: Deadline) -> WriteResult:
    """Delete a queue and all messages in it; the service has no condition for that.

    Raises:
        NotFound: there is no such queue.
        OutcomeUnknown: the answer was lost, or the request was refused. If the queue that was there before is gone,
            another may have deleted it; if it is there, it may be a new one, and a lost request may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-queue3
    """
    client = target.account.queue(target.address)
    before = existence.look_before(lambda: fetch(target, deadline))
    request = WriteRequest[object](
        target=target,
        send=lambda: client.delete_queue(**write_timeouts(deadline)),
        look=lambda _: Finding(Verdict.UNKNOWN),
        look_after_refusal=lambda patience: existence.judge_refused_delete(before, lambda: fetch(target, patience)),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, conditions.guard, settled.attempts)


def _find_create_outcome(target: Target, op: str, patience: Deadline) -> Finding[object]:
    """Return whether the queue that is there is the one we made."""
    try:
        found = fetch(target, patience)
    except NotFound:
        return Finding(Verdict.NOT_YET)
    is_ours = op in Lineage.parse((found.metadata or {}).get(KEY))
    return Finding(Verdict.COMMITTED if is_ours else Verdict.UNKNOWN)
