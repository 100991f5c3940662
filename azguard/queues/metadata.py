"""The metadata of a queue: reading them, and replacing all of them.

The service gives them no version, so azguard makes one of their content, its own entry included. It can be compared
before a write, and nothing keeps others from writing in between. The lineage tells whose a write was.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.documents import metadata as rules
from azguard.errors import Changed, NotFound
from azguard.queues import queues
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict, WriteResult, without_time
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op, with_lineage
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled


@dataclass(frozen=True)
class QueueMetadata:
    """The metadata of a queue; the ETag is azguard's own, of their content."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    address: str
    etag: str
    last_modified: None
    metadata: Mapping[str, str]


def get(target: Target, deadline: Deadline) -> QueueMetadata:
    """Return the metadata of a queue.

    Raises:
        NotFound: there is no such queue.
    """
    stamped = fetch(target, deadline)
    return QueueMetadata(
        address=str(target.address),
        etag=compute_etag(stamped),
        last_modified=None,
        metadata=drop_lineage(stamped),
    )


def replace_all(target: Target, wanted: Mapping[str, str], conditions: Conditions, deadline: Deadline) -> WriteResult:
    """Replace the metadata of a queue.

    Raises:
        Changed: they are not those that the ETag is of.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-queue-metadata
    """
    before = fetch(target, deadline)
    current = compute_etag(before)
    if conditions.expected_etag not in (None, current):
        raise Changed(
            f"the metadata of {target} changed since you read them",
            address=str(target.address),
            expected_etag=conditions.expected_etag,
            current_etag=current,
            reason="metadata_changed",
        )
    op = fresh_op()
    stamped = with_lineage(wanted, Lineage.find(before).after(op, current))
    rules.check_size(stamped, own=(KEY,))
    request = WriteRequest[object](
        target=target,
        send=lambda: send(target, stamped, deadline),
        look=lambda patience: find_outcome(target, op, patience),
        # Nothing keeps a copy that comes late from undoing what another writes meanwhile.
        resend=False,
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, conditions.guard, settled.attempts, compute_etag(stamped))


def fetch(target: Target, deadline: Deadline) -> dict[str, str]:
    """Return the metadata of a queue with azguard's own entry."""
    return dict(queues.fetch(target, deadline).metadata or {})


def send(target: Target, stamped: Mapping[str, str], deadline: Deadline) -> None:
    """Send the metadata of a queue once."""
    target.account.queue(target.address).set_queue_metadata(dict(stamped), **write_timeouts(deadline))


def compute_etag(stamped: Mapping[str, str]) -> str:
    """Return the ETag that azguard makes of metadata with its own entry: no two writes of azguard have the same one."""
    canonical = sorted((name.lower(), value) for name, value in stamped.items())
    return f'"metadata-{hashlib.sha256(json.dumps(canonical).encode()).hexdigest()[:32]}"'


def find_outcome(target: Target, op: str, patience: Deadline) -> Finding[object]:
    """Return whether a write of the metadata is found. That it is not proves nothing: it depends on no version."""
    try:
        found = fetch(target, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    return Finding(Verdict.COMMITTED if op in Lineage.parse(found.get(KEY)) else Verdict.UNKNOWN)
