"""Queues: create, show, list, delete; their metadata and access policies. A queue has neither ETag nor lease.

azguard makes an ETag of the content of the metadata, or of the policies. It can be compared before a write, and nothing
keeps others from writing in between. The lineage tells whose a write of metadata was.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.documents import metadata as rules
from azguard.errors import Forbidden, NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import require_version
from azguard.requests.calls import read, walk_pages, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op, with_lineage
from azguard.requests.results import MetadataShown, Written, without_time
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import existence, parts
from azguard.resources.access_policies import PolicyRules, UnversionedPolicies
from azguard.resources.existence import Contents
from azguard.updates.compared import ComparedMetadata, StampedMetadata
from azguard.updates.resource import CommittedVersion
from azguard.wire.call import call
from azguard.wire.operations.queues import (
    QUEUE_CREATE,
    QUEUE_DELETE,
    QUEUE_GET_ACL,
    QUEUE_GET_METADATA,
    QUEUE_LIST,
    QUEUE_SET_ACL,
)

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


def create(target: Target, metadata: Mapping[str, str], deadline: Deadline, op: str) -> Written:
    """Create a queue; it is always create-only, because its metadata have an entry that no other queue has.

    Raises:
        Exists: there is one of that name.
        Locked: a queue of that name is still being deleted, which takes the service 30 seconds or more.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-queue4
    """
    stamped = {**metadata, KEY: str(Lineage().after(op, None))}
    request = WriteRequest[object](
        target=target,
        send=lambda: call(QUEUE_CREATE, target, write_timeouts(deadline), metadata=stamped),
        look=lambda patience: _find_create_outcome(target, op, patience),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, "if-none-match", settled.attempts)


def fetch(target: Target, deadline: Deadline) -> Any:
    """Return the properties of a queue, the lineage in its metadata included.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-queue-metadata
    """
    return read(lambda timeouts: call(QUEUE_GET_METADATA, target, timeouts), target, deadline)


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
    most = None if limit is None else min(limit, _PAGE)
    asked: dict[str, Any] = {"prefix": prefix, "include": "metadata", "maxresults": most}
    pages = walk_pages(QUEUE_LIST, everything, deadline, "Queues", "Queue", **asked)
    for item in islice((item for page in pages for item in page.items), limit):
        yield QueueListed(str(Address(Kind.QUEUE, (item.name,))), item.name, drop_lineage(item.metadata))


def delete(target: Target, conditions: Conditions, deadline: Deadline) -> Written:
    """Delete a queue and all messages in it; the service has no condition for that.

    Raises:
        NotFound: there is no such queue.
        OutcomeUnknown: the answer was lost, or the request was refused. If the queue that was there before is gone,
            another may have deleted it; if it is there, it may be a new one, and a lost request may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-queue3
    """
    before = existence.look_before(lambda: fetch(target, deadline))
    request = WriteRequest[object](
        target=target,
        send=lambda: call(QUEUE_DELETE, target, write_timeouts(deadline)),
        look=lambda _: Finding(Verdict.UNKNOWN),
        look_after_refusal=lambda patience: existence.judge_refused_delete(before, lambda: fetch(target, patience)),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, conditions.guard, settled.attempts)


def _find_create_outcome(target: Target, op: str, patience: Deadline) -> Finding[object]:
    try:
        found = fetch(target, patience)
    except NotFound:
        return Finding(Verdict.NOT_YET)
    is_ours = op in Lineage.parse((found.metadata or {}).get(KEY))
    return Finding(Verdict.COMMITTED if is_ours else Verdict.UNKNOWN)


#: See https://learn.microsoft.com/rest/api/storageservices/get-queue-acl and set-queue-acl.
POLICIES = UnversionedPolicies(
    reads=QUEUE_GET_ACL,
    writes=QUEUE_SET_ACL,
    rules=PolicyRules("a queue", re.compile(r"r?a?u?p?"), "of r (read), a (add), u (update), p (process)"),
)


def get_metadata(target: Target, deadline: Deadline) -> MetadataShown:
    """Return the metadata of a queue.

    Raises:
        NotFound: there is no such queue.
    """
    stamped = _fetch_metadata(target, deadline)
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
    before = _fetch_metadata(target, deadline)
    current = _compute_etag(before)
    what = f"the metadata of {target}"
    require_version(target, conditions.expected_etag, current, reason="metadata_changed", what=what)
    op = fresh_op()
    stamped = with_lineage(wanted, Lineage.find(before).after(op, current))
    rules.check_size(stamped, own=(KEY,))
    request = WriteRequest[object](
        target=target,
        send=lambda: parts.send_metadata(target, stamped, Conditions(), deadline),
        look=lambda patience: _find_metadata_outcome(target, op, patience),
        # Nothing keeps a copy that comes late from undoing what another writes meanwhile.
        resend=False,
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, conditions.guard, settled.attempts, _compute_etag(stamped))


def _fetch_metadata(target: Target, deadline: Deadline) -> dict[str, str]:
    return dict(fetch(target, deadline).metadata or {})


def _compute_etag(stamped: Mapping[str, str]) -> str:
    """Return the ETag that azguard makes of metadata with its own entry: no two writes of azguard have the same one."""
    canonical = sorted((name.lower(), value) for name, value in stamped.items())
    return f'"metadata-{hashlib.sha256(json.dumps(canonical).encode()).hexdigest()[:32]}"'


def _find_metadata_outcome(target: Target, op: str, patience: Deadline) -> Finding[object]:
    """Return whether a write of the metadata is found. That it is not proves nothing: it depends on no version."""
    try:
        found = _fetch_metadata(target, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    return Finding(Verdict.COMMITTED if op in Lineage.parse(found.get(KEY)) else Verdict.UNKNOWN)


@dataclass(frozen=True)
class QueueMetadataUpdate(ComparedMetadata):
    """The metadata of a queue, as a JSON object of strings; their version is azguard's own, of their content."""

    def fetch(self, deadline: Deadline) -> StampedMetadata:
        """Return the metadata and the ETag that azguard makes of them."""
        stamped = _fetch_metadata(self.target, deadline)
        return StampedMetadata(stamped, _compute_etag(stamped))

    def send(self, stamped: Mapping[str, str], lease_id: str | None, deadline: Deadline) -> CommittedVersion:
        """Send Set Queue Metadata once; no lease of a queue exists."""
        parts.send_metadata(self.target, stamped, Conditions(), deadline)
        return CommittedVersion(_compute_etag(stamped))


def find_existing(target: Target, op: str, deadline: Deadline) -> Written:
    """Return the queue that is there: ours, if the network sent the create twice."""
    return existence.find_existing(target, op, lambda: fetch(target, deadline.fresh()))


def count_messages(target: Target, deadline: Deadline) -> Contents:
    """Return about how many messages are in a queue, hidden ones included: there may be fewer, never more.

    Raises:
        Forbidden: its metadata may not be read.
        NotFound: it is not there.
    """
    try:
        found = show(target, deadline).approximate_message_count
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known whether {target} is empty",
            reason="contents_not_listed",
        ) from error
    return Contents(found, "message" if found == 1 else "messages")
