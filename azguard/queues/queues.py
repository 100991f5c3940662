"""Queues: described, counted, deleted. A queue has neither ETag nor lease."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address
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


def describe_listed(address: Address, found: Any) -> QueueListed:
    """Return a queue as a list shows it."""
    return QueueListed(str(address), address.container, drop_lineage(found.metadata))


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
