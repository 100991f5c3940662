"""Snapshots of a share: read-only copies of all that is in it.

A snapshot gets the metadata of the share and an entry of azguard's own, by which one whose answer was lost is found.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.etags import quote
from azguard.files import writes
from azguard.requests.calls import page_timeouts, pages, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op, with_lineage
from azguard.requests.settle import Finding, WriteRequest, send_until_settled


@dataclass(frozen=True)
class ShareSnapshot:
    """A snapshot that was made."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.SNAPSHOT, columns.ETAG)

    #: The share.
    address: str
    #: The time that names the snapshot among those of the share.
    snapshot: str
    #: The address of the snapshot; ``?snapshot=…`` also stands behind the address of a file in it.
    snapshot_address: str
    etag: str | None
    last_modified: datetime | None
    guard: str
    attempts: int
    conflicts: int
    outcome: str


def take(target: Target, metadata: Mapping[str, str], deadline: Deadline) -> ShareSnapshot:
    """Keep a share as it is now; it does not change. Without metadata, the snapshot has those of the share.

    Raises:
        NotFound: there is no such share.
        OutcomeUnknown: the answer was lost, and the snapshot is not in the list; it may still be made.
    Source: https://learn.microsoft.com/rest/api/storageservices/snapshot-share
    """
    op = fresh_op()
    found = writes.fetch(target, None, deadline)
    kept: Mapping[str, str] = found.metadata or {}
    lineage = Lineage.parse(kept.get(KEY)).after(op, found.etag)
    stamped = with_lineage(metadata or kept, lineage)
    client = target.account.share(target.address)
    request = WriteRequest[Any](
        target=target,
        send=lambda: client.create_snapshot(metadata=stamped, **write_timeouts(deadline)),
        look=lambda patience: _find_outcome(target, op, patience),
        # A second copy would make a second snapshot.
        resend=False,
    )
    settled = send_until_settled(request, deadline)
    answer: Mapping[str, Any] = settled.answer
    taken = str(answer["snapshot"])
    etag = answer.get("etag")
    return ShareSnapshot(
        address=str(target.address),
        snapshot=taken,
        snapshot_address=str(Address(Kind.SHARE, target.address.parts, taken)),
        etag=None if etag is None else quote(etag),
        last_modified=answer.get("last_modified"),
        guard="none",
        attempts=settled.attempts,
        conflicts=0,
        outcome="committed",
    )


def _find_outcome(target: Target, op: str, patience: Deadline) -> Finding[Any]:
    name = target.address.container
    every = target.account.share_service().list_shares(
        name_starts_with=name, include_metadata=True, include_snapshots=True, **page_timeouts(patience)
    )
    for item in pages(every, target, patience):
        if item.name == name and item.snapshot and op in Lineage.find(item.metadata):
            return Finding(Verdict.COMMITTED, {"snapshot": item.snapshot})
    return Finding(Verdict.UNKNOWN)
