"""Queues: show, list, count, delete. A queue has neither ETag nor lease."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from azguard import columns
from azguard.accounts.account import Account, Target
from azguard.address import Kind
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import Written
from azguard.resources import lifecycles, properties
from azguard.resources.lifecycles import Contents


@frozen
class QueueListed:
    """A queue of a list, which does not tell how many messages are in it."""

    COLUMNS: ClassVar[tuple[columns.Column, ...]] = (columns.NAME, columns.ADDRESS)

    address: str
    name: str
    metadata: Mapping[str, str]


@frozen
class QueueShown(QueueListed):
    """A queue and about how many messages are in it."""

    COLUMNS: ClassVar[tuple[columns.Column, ...]] = (columns.NAME, columns.ADDRESS, columns.MESSAGES)

    #: Hidden ones included. There may be fewer, never more.
    approximate_message_count: int


def show(target: Target, conditions: Conditions, deadline: Deadline) -> QueueShown:
    """Return a queue's metadata and about how many messages are in it."""
    found = properties.fetch(target, conditions, deadline)
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
    found = lifecycles.list_all(account, Kind.QUEUE, deadline, prefix, limit)
    return (QueueListed(str(address), item.name, drop_lineage(item.metadata)) for address, item in found)


def delete(target: Target, conditions: Conditions, deadline: Deadline) -> Written:
    """Delete a queue and all messages in it; see ``lifecycles.delete_unguarded``.

    Source: https://learn.microsoft.com/rest/api/storageservices/delete-queue3
    """
    look = partial(properties.fetch, target, Conditions())
    return lifecycles.delete_unguarded(target, conditions.guard, deadline, look)


def count_messages(target: Target, deadline: Deadline) -> Contents:
    """Return about how many messages are in a queue, hidden ones included: there may be fewer, never more.

    Raises:
        Forbidden: its metadata may not be read.
        NotFound: it is not there.
    """

    def ask() -> Iterator[tuple[int, bool]]:
        yield show(target, Conditions(), deadline).approximate_message_count, False

    return lifecycles.count_first(ask(), target, "message", "messages")
