"""What the service keeps of a blob: found, brought back, and compared with what is there; a preview writes nothing."""

import json
from dataclasses import replace
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Address
from azguard.blobs import refusals
from azguard.blobs.content.download import read_whole
from azguard.blobs.content.upload import Settings
from azguard.blobs.copies import BlobCopy
from azguard.blobs.listing import list_kept, order_in_time
from azguard.documents import diffs
from azguard.errors import NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import Written
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_UNDELETE


@frozen
class RestorePreview:
    """What a restore would do now."""

    address: str
    source: str
    #: Of the version that is there now; None where there is none.
    etag: str | None
    #: ``dry_run``, ``unchanged`` where both are equal, or ``would refuse``.
    outcome: str
    #: Why it would be refused; None where it would not.
    reason: str | None
    diff: str


class _Whole(NamedTuple):
    """One version, read whole."""

    content: bytes
    #: The headers, metadata and tags that a restore sets, as JSON on many lines.
    settings: bytes
    #: The properties that the service told; None where there is no blob.
    found: Any = None


def undelete(target: Target, deadline: Deadline) -> Written:
    """Bring back a blob that was deleted and is still kept, with its snapshots. If it is there, nothing changes.

    Raises:
        NotFound: nothing of it is kept; or only snapshots and versions are, and there is no current blob.
        BadRequest: the service, such as the emulator, cannot do it.
    Source: https://learn.microsoft.com/rest/api/storageservices/undelete-blob
    """
    request = WriteRequest[object](
        target=target,
        send=lambda: call(BLOB_UNDELETE, target, write_timeouts(deadline)),
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
    return Written(
        address=str(target.address),
        etag=found.etag,
        last_modified=found.last_modified,
        guard="none",
        attempts=settled.attempts,
    )


def find_newest(target: Target, kind: str, deadline: Deadline) -> Address:
    """Return the address of the newest ``snapshot`` of a blob, or of the newest ``version`` before the current one.

    Raises:
        NotFound: there is none.
    """
    kept = list_kept(target, [f"{kind}s"], deadline)
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
    kept = list_kept(target, ["snapshots", "versions"], deadline)
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
    return replace(target.address, snapshot=found.snapshot, version=None if found.snapshot else found.version_id)


def preview(plan: BlobCopy) -> RestorePreview:
    """Compare what is there now with what a restore would write.

    Raises:
        NotFound: there is no such snapshot or version, or no container.
        Changed: the blob is overwritten faster than it can be read before the deadline.
    """
    kept = _read(plan.source, plan.deadline)
    try:
        current = _read(plan.target, plan.deadline)
    except NotFound as error:
        if error.service_code == "ContainerNotFound":
            raise
        current = _Whole(b"", b"")
    reason = _find_refusal(plan.conditions, current.found)
    name = plan.target.address.short
    diff = diffs.compare(current.content, kept.content, name)
    diff += diffs.compare(current.settings, kept.settings, f"{name} properties")
    planned = "dry_run" if diff or current.found is None else "unchanged"
    return RestorePreview(
        address=str(plan.target.address),
        source=str(plan.source.address),
        etag=None if current.found is None else current.found.etag,
        outcome=planned if reason is None else "would refuse",
        reason=reason,
        diff=diff,
    )


def _read(target: Target, deadline: Deadline) -> _Whole:
    content, found = read_whole(target, Conditions(), deadline)
    return _Whole(content, _describe(target, found, deadline), found)


def _describe(target: Target, found: Any, deadline: Deadline) -> bytes:
    settings = Settings.of_blob(found, drop_lineage(found.metadata))
    tags = refusals.fetch_tags(target, None, deadline) if found.tag_count else {}
    tags.pop(fences.TAG, None)
    named = {**vars(settings), "blob_type": found.blob_type, "tags": tags}
    told = {key: value for key, value in named.items() if value not in (None, "", {})}
    return (json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _find_refusal(conditions: Conditions, current: Any) -> str | None:
    """Return why a restore would be refused now, as far as a look tells; None if it would not."""
    if current is None:
        return None if conditions.expected_etag is None else "it was deleted since it was read here"
    if conditions.creates_only:
        return "it exists, and was never read here"
    if conditions.expected_etag not in (None, current.etag):
        return "it changed since it was read here"
    if current.lease.status == "locked" and conditions.lease_id is None:
        return "it is leased, and no lease id was given"
    return None
