"""Snapshots of a blob, and what the service keeps of a deleted one.

A snapshot may name metadata of its own; else the service gives it that of the blob. Ours names what the blob has, and
a lineage with the id of this snapshot. By that id a snapshot whose answer was lost is found in the list of snapshots.
The blob itself does not change.

Source: https://learn.microsoft.com/rest/api/storageservices/snapshot-blob and /undelete-blob
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address
from azguard.blobs import properties, write_refusals
from azguard.blobs.listing import order_in_time
from azguard.conditions.etags import quote
from azguard.conditions.operations import Condition
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, NotFound, NotModified, UsageError
from azguard.requests.calls import page_timeouts, pages, write_timeouts
from azguard.requests.commits import Verdict, WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled

_Answer = Mapping[str, Any]


@dataclass(frozen=True)
class BlobSnapshot:
    """A snapshot that was made."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.SNAPSHOT, columns.ETAG)

    #: The blob.
    address: str
    #: The time that names the snapshot among those of the blob.
    snapshot: str
    #: The address of the snapshot, which every command takes that reads a blob.
    snapshot_address: str
    #: The version of the blob that is kept; None where the service was asked for no particular one.
    base_etag: str | None
    #: Of the snapshot, which has its own where it has its own metadata.
    etag: str | None
    last_modified: datetime | None
    guard: str
    attempts: int
    conflicts: int
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One snapshot that is not asked for yet."""

    target: Target
    conditions: Conditions
    deadline: Deadline
    op: str
    #: None is that of the blob.
    metadata: Mapping[str, str] | None = None
    has_lineage: bool = True
    #: Whether a second snapshot does no harm, so that it is asked for again where the first was not found.
    may_repeat: bool = False


def take(given: Snapshot) -> BlobSnapshot:
    """Keep the blob as it is now.

    Raises:
        Changed: it is no longer the version that the condition names.
        GaveUp: it names none, and others wrote between each look and the request until the deadline.
        OutcomeUnknown: the answer was lost, and the snapshot is not in the list; it may still be made.
    """
    changed = 0
    while True:
        pinned = _pin(given)
        try:
            settled = _send_settled(pinned)
        except Changed as error:
            changed += 1
            if given.conditions.expected_etag is not None or pinned is given:
                raise properties.describe_conflict(error, given.target, given.deadline) from error
            if given.deadline.passed:
                raise write_refusals.to_gave_up(given.target, changed) from error
            continue
        return _to_result(given, pinned, settled, changed)


def take_version(given: Snapshot) -> BlobSnapshot:
    """Keep the version that the condition names, or nothing.

    Raises:
        Changed: it is not the current version any more.
        NotFound: there is none.
        OutcomeUnknown: the answers were lost, and the snapshot is not in the list.
    """
    pinned = _pin(given)
    return _to_result(given, pinned, _send_settled(pinned), 0)


def undelete(target: Target, deadline: Deadline) -> WriteResult:
    """Bring back a blob that was deleted and is still kept, with its snapshots. If it is there, nothing changes.

    Raises:
        NotFound: nothing of it is kept; or only snapshots and versions are, and there is no current blob.
        BadRequest: the service, such as the emulator, cannot do it.
    """
    client = target.account.blob(target.address)
    request: WriteRequest[None] = WriteRequest(
        target=target,
        send=lambda: client.undelete_blob(**write_timeouts(deadline)),
        # That the blob is there does not tell that its snapshots are back too.
        look=lambda _: Finding(Verdict.UNKNOWN),
        look_after_refusal=lambda _: Finding(Verdict.UNKNOWN),
        is_idempotent=True,
    )
    settled = send_until_settled(request, deadline)
    try:
        found = properties.fetch(target, Conditions(), deadline.fresh())
    except NotFound as error:
        raise error.but(
            message=f"the kept versions of {target} are back, but none is the current one",
            reason="undeleted_without_current",
        ) from error
    return WriteResult(str(target.address), found.etag, found.last_modified, "none", settled.attempts)


def find_newest(target: Target, kind: str, deadline: Deadline) -> Address:
    """Return the address of the newest ``snapshot`` of a blob, or of the newest ``version`` before the current one.

    Raises:
        NotFound: there is none.
    """
    kept = _list_kept(target, [f"{kind}s"], deadline)
    found = [
        each for each in kept if not order_in_time(each)[0] and (each.snapshot is not None) == (kind == "snapshot")
    ]
    if not found:
        raise NotFound(f"no {kind} of {target} is kept", address=str(target.address), reason="nothing_kept")
    return _locate(target, max(found, key=order_in_time))


def find_by_id(target: Target, moment: str, deadline: Deadline) -> Address:
    """Return the address of the snapshot or version of a blob that has this id.

    Raises:
        NotFound: there is none.
        UsageError: a snapshot and a version have it.
    """
    kept = _list_kept(target, ["snapshots", "versions"], deadline)
    found = {_locate(target, each) for each in kept if moment in (each.snapshot, each.version_id)}
    if not found:
        raise NotFound(
            f"no snapshot or version of {target} has the id {moment}",
            address=str(target.address),
            reason="no_such_id_kept",
        )
    if len(found) > 1:
        raise UsageError(
            f"a snapshot and a version of {target} have the id {moment}",
            address=str(target.address),
            reason="id_of_snapshot_and_version",
        )
    return found.pop()


def _locate(target: Target, found: Any) -> Address:
    """Return the address of a line of a listing."""
    return replace(target.address, snapshot=found.snapshot, version=None if found.snapshot else found.version_id)


def _list_kept(target: Target, include: list[str], deadline: Deadline) -> Iterator[Any]:
    """Yield what a container has under the name of a blob, in any order."""
    container, name = target.account.container(target.address), target.address.name
    listed = container.list_blobs(name_starts_with=name, include=include, **page_timeouts(deadline))
    for item in pages(listed, target, deadline):
        if item.name == name:  # Others begin with this name.
            yield item


def _pin(given: Snapshot) -> Snapshot:
    """Return the snapshot of the version that is there now, with its metadata; as it is where that cannot be."""
    is_by_tags = Condition.IF_TAGS.header in given.conditions.headers
    # A condition on tags holds for no version, so that the version could not stand in its place.
    if not given.has_lineage or is_by_tags:
        return given
    try:
        with properties.explain_stale_read(given.target, given.conditions, given.deadline):
            found = properties.fetch(given.target, given.conditions, given.deadline)
    except NotModified as error:
        raise properties.describe_conflict(_to_changed(error, given), given.target, given.deadline) from error
    own = drop_lineage(found.metadata)
    stamp = Lineage().after(given.op, found.etag)
    metadata = {**(own if given.metadata is None else given.metadata), KEY: str(stamp)}
    conditions = replace(given.conditions, headers={Condition.IF_MATCH.header: found.etag}, expected_etag=found.etag)
    return replace(given, conditions=conditions, metadata=metadata)


def _send_settled(pinned: Snapshot) -> Settled[_Answer]:
    client = pinned.target.account.blob(pinned.target.address)
    request: WriteRequest[_Answer] = WriteRequest(
        target=pinned.target,
        send=lambda: client.create_snapshot(
            metadata=dict(pinned.metadata or {}) or None,
            headers=pinned.conditions.request_headers,
            **write_timeouts(pinned.deadline),
        ),
        look=lambda patience: _find_outcome(pinned, patience),
        expected_etag=pinned.conditions.expected_etag,
        resend=pinned.may_repeat,
    )
    try:
        return send_until_settled(request, pinned.deadline)
    except NotModified as error:  # as the emulator has it
        raise _to_changed(error, pinned) from error


def _to_changed(error: NotModified, given: Snapshot) -> Changed:
    """Return what an answer to a read means for a snapshot, which is a write."""
    return error.as_kind(Changed, message=f"the condition did not hold for {given.target}")


def _find_outcome(pinned: Snapshot, patience: Deadline) -> Finding[_Answer]:
    """Return our snapshot, if it is in the list."""
    if KEY not in (pinned.metadata or {}):
        return Finding(Verdict.UNKNOWN)
    for item in _list_kept(pinned.target, ["snapshots", "metadata"], patience):
        if item.snapshot and pinned.op in Lineage.find(item.metadata):
            answer = {"snapshot": item.snapshot, "etag": quote(item.etag), "last_modified": item.last_modified}
            return Finding(Verdict.COMMITTED, answer)
    return Finding(Verdict.NOT_YET)


def _to_result(given: Snapshot, pinned: Snapshot, settled: Settled[_Answer], changed: int) -> BlobSnapshot:
    answer = settled.answer
    snapshot = str(answer["snapshot"])
    return BlobSnapshot(
        address=str(given.target.address),
        snapshot=snapshot,
        snapshot_address=str(replace(given.target.address, snapshot=snapshot)),
        base_etag=pinned.conditions.expected_etag,
        etag=answer.get("etag"),
        last_modified=answer.get("last_modified"),
        guard=given.conditions.guard,
        attempts=settled.attempts,
        conflicts=changed,
        outcome="committed",
    )
