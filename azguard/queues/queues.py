"""Queues: create, show, list, delete; their metadata and access policies. A queue has neither ETag nor lease.

azguard makes an ETag of the content of the metadata, or of the policies. It can be compared before a write, and nothing
keeps others from writing in between. The lineage tells whose a write of metadata was.
"""

import hashlib
import json
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
from azguard.requests.results import MetadataShown, Written, without_time
from azguard.resources import lifecycles, parts, properties
from azguard.resources.lifecycles import Contents
from azguard.updates.compared import ComparedMetadata, StampedMetadata
from azguard.updates.resource import CommittedVersion


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


def get_metadata(target: Target, deadline: Deadline) -> MetadataShown:
    """Return the metadata of a queue.

    Raises:
        NotFound: there is no such queue.
    """
    stamped = properties.fetch(target, Conditions(), deadline).metadata
    return MetadataShown(
        address=str(target.address),
        etag=_compute_etag(stamped),
        last_modified=None,
        metadata=drop_lineage(stamped),
    )


def replace_metadata(target: Target, wanted: Mapping[str, str], conditions: Conditions, deadline: Deadline) -> Written:
    """Replace the metadata of a queue.

    Raises:
        Changed: they are not those that the ETag is of.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-queue-metadata
    """
    done = parts.replace_compared(
        target,
        wanted,
        conditions,
        deadline,
        lambda found: _compute_etag(found.metadata),
        reason="metadata_changed",
        what=f"the metadata of {target}",
    )
    return without_time(target, conditions.guard, done.settled.attempts, _compute_etag(done.stamped))


def _compute_etag(stamped: Mapping[str, str]) -> str:
    """Return the ETag that azguard makes of metadata with its own entry: no two writes of azguard have the same one."""
    canonical = sorted((name.lower(), value) for name, value in stamped.items())
    return f'"metadata-{hashlib.sha256(json.dumps(canonical).encode()).hexdigest()[:32]}"'


@frozen
class QueueMetadataUpdate(ComparedMetadata):
    """The metadata of a queue, as a JSON object of strings; their version is azguard's own, of their content."""

    def fetch(self, deadline: Deadline) -> StampedMetadata:
        stamped = properties.fetch(self.target, Conditions(), deadline).metadata
        return StampedMetadata(stamped, _compute_etag(stamped))

    def send(self, stamped: Mapping[str, str], lease_id: str | None, deadline: Deadline) -> CommittedVersion:
        """Send Set Queue Metadata once; no lease of a queue exists."""
        parts.send_metadata(self.target, stamped, Conditions(), deadline)
        return CommittedVersion(_compute_etag(stamped))


def count_messages(target: Target, deadline: Deadline) -> Contents:
    """Return about how many messages are in a queue, hidden ones included: there may be fewer, never more.

    Raises:
        Forbidden: its metadata may not be read.
        NotFound: it is not there.
    """

    def ask() -> Iterator[tuple[int, bool]]:
        yield show(target, Conditions(), deadline).approximate_message_count, False

    return lifecycles.count_first(ask(), target, "message", "messages")
