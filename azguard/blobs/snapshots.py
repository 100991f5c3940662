"""Snapshots of a blob, those that a write makes of the version that it replaces, and the return of what is kept.

A snapshot may name metadata of its own; else the service gives it that of the blob. Ours names what the blob has, and
a lineage with the id of this snapshot. By that id a snapshot whose answer was lost is found in the list of snapshots.
The blob itself does not change.

A write that keeps what it replaces names the ETag that its snapshot named. If another comes between them, nothing is
replaced, and the snapshot is of a version that the other has replaced.

Source: https://learn.microsoft.com/rest/api/storageservices/snapshot-blob
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.blobs import deletes, refusals
from azguard.blobs.content.download import read_whole
from azguard.blobs.content.upload import BlobPut, Settings, Upload
from azguard.blobs.copies import BlobCopy
from azguard.blobs.listing import list_kept
from azguard.documents import diffs
from azguard.errors import AzguardError, Changed, NotFound, NotModified, OutcomeUnknown, Unavailable, UsageError
from azguard.frozen import frozen
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests import commits
from azguard.requests.calls import send_once
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op
from azguard.requests.results import SnapshotMade, Written
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.updates import recording
from azguard.updates.recording import LocalRecords, UpdateReport, UpdateRequest
from azguard.wire.operations.blobs import BLOB_SNAPSHOT, BLOB_UNDELETE
from azguard.wire.rows import Condition

_Answer = Mapping[str, Any]


@frozen(kw_only=True)
class BlobSnapshot(SnapshotMade):
    """A snapshot of a blob."""

    #: The version of the blob that is kept; None where the service was asked for no particular one.
    base_etag: str | None


@frozen(kw_only=True)
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


def take_snapshot(given: Snapshot) -> BlobSnapshot:
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
                raise refusals.describe_conflict(error, given.target, given.deadline) from error
            if given.deadline.passed:
                raise refusals.to_gave_up(given.target, changed) from error
            continue
        return _to_result(given, pinned, settled, changed)


def _pin(given: Snapshot) -> Snapshot:
    """Return the snapshot of the version that is there now, with its metadata; as it is where that cannot be."""
    is_by_tags = Condition.IF_TAGS.header in given.conditions.headers
    # A condition on tags holds for no version, so that the version could not stand in its place.
    if not given.has_lineage or is_by_tags:
        return given
    try:
        with refusals.explain_stale_read(given.target, given.conditions, given.deadline):
            found = properties.fetch(given.target, given.conditions, given.deadline)
    except NotModified as error:
        raise refusals.describe_conflict(_to_changed(error, given), given.target, given.deadline) from error
    own = drop_lineage(found.metadata)
    stamp = Lineage().after(given.op, found.etag)
    metadata = {**(own if given.metadata is None else given.metadata), KEY: str(stamp)}
    conditions = replace(given.conditions, headers={Condition.IF_MATCH.header: found.etag}, expected_etag=found.etag)
    return replace(given, conditions=conditions, metadata=metadata)


def _send_settled(pinned: Snapshot) -> Settled[_Answer]:
    request = WriteRequest[_Answer](
        operation=BLOB_SNAPSHOT,
        target=pinned.target,
        given={"headers": pinned.conditions.request_headers, "metadata": pinned.metadata},
        look=lambda patience: _find_outcome(pinned, patience),
        expected_etag=pinned.conditions.expected_etag,
        resend=pinned.may_repeat,
    )
    try:
        return send_until_settled(request, pinned.deadline)
    except NotModified as error:  # as the emulator has it
        raise _to_changed(error, pinned) from error


def _to_changed(error: NotModified, given: Snapshot) -> Changed:
    """Return the Changed error that stands for a read's "not modified": a snapshot is a write."""
    return error.as_kind(Changed, message=f"the condition did not hold for {given.target}")


def _find_outcome(pinned: Snapshot, patience: Deadline) -> Finding[_Answer]:
    if KEY not in (pinned.metadata or {}):
        return Finding(Verdict.UNKNOWN)
    for item in list_kept(pinned.target, ["snapshots", "metadata"], patience):
        if item.snapshot and pinned.op in Lineage.find(item.metadata):
            answer = {"snapshot": item.snapshot, "etag": item.etag, "last_modified": item.last_modified}
            return Finding(Verdict.COMMITTED, answer)
    return Finding(Verdict.NOT_YET)


def _to_result(given: Snapshot, pinned: Snapshot, settled: Settled[_Answer], changed: int) -> BlobSnapshot:
    answer = settled.answer
    snapshot = str(answer["snapshot"])
    return BlobSnapshot(
        **describe_write(given.target, given.conditions.guard, settled),
        snapshot=snapshot,
        snapshot_address=str(replace(given.target.address, snapshot=snapshot)),
        base_etag=pinned.conditions.expected_etag,
        conflicts=changed,
    )


@frozen(kw_only=True)
class BlobPutKept(BlobPut):
    """What a put wrote, and the snapshot of what it replaced."""

    #: The address of the snapshot; None where nothing was replaced.
    snapshot: str | None = None


@frozen(kw_only=True)
class UpdateReportKept(UpdateReport):
    """How an update ended, and the snapshot of what it replaced."""

    #: The address of the snapshot; None where nothing was replaced.
    snapshot: str | None = None


@dataclass
class VersionKeeper:
    """Keeps the versions of one blob that one write is about to replace."""

    target: Target
    #: The snapshots, by the ETag of the version; the last is of the version that the last attempt was for.
    made: dict[str, BlobSnapshot] = field(default_factory=dict)

    def keep(self, etag: str, lease_id: str | None, deadline: Deadline) -> None:
        """Keep a version, once.

        Raises:
            Changed: it is not the current version any more.
            Unavailable: it is not known to be kept, so that nothing was written.
        """
        if etag in self.made:
            return
        given = Snapshot(
            target=self.target,
            conditions=Conditions({"If-Match": etag}, "if-match", etag, lease_id=lease_id),
            deadline=deadline,
            op=fresh_op(),
            may_repeat=True,
        )
        try:
            # A step towards the write that the caller asked for.
            with commits.step():
                pinned = _pin(given)
                self.made[etag] = _to_result(given, pinned, _send_settled(pinned), 0)
        except NotFound as error:
            raise refusals.to_gone(self.target, etag, error) from error
        except Changed as error:
            told = f"{self.target} changed since you read it"
            # What is there now is told with the write that was meant.
            raise error.but(message=told, expected_etag=etag, current_etag=None, detail=()) from error
        except OutcomeUnknown as error:
            commits.raise_interruption(error)
            told = f"whether {self.target} was kept as a snapshot is not known, so it was not written"
            raise error.as_kind(Unavailable, message=told, reason="keeping_unknown") from error

    @contextmanager
    def name_in_errors(self) -> Iterator[None]:
        """Add to an error the snapshot that was made before."""
        try:
            yield
        except AzguardError as error:
            if not self.made:
                raise
            raise error.but(facts={**error.facts, "snapshot": self._newest}) from error

    def name_in(self, result: Any) -> Any:
        """Return the result of the write, with the snapshot of the version that it replaced."""
        kinds = {BlobPut: BlobPutKept, UpdateReport: UpdateReportKept}
        if type(result) not in kinds:
            return result
        replaced = self._newest if result.outcome == "committed" else None
        return kinds[type(result)](**vars(result), snapshot=replaced)

    def drop_others(self, outcome: str, deadline: Deadline) -> None:
        """Delete the snapshots of versions that other writers have replaced. What cannot be deleted stays."""
        others = list(self.made.values())
        for each in others[:-1] if outcome == "committed" else others:
            self._drop(each, deadline)

    def _drop(self, made: BlobSnapshot, deadline: Deadline) -> None:
        kept = self.target._replace(address=replace(self.target.address, snapshot=made.snapshot))
        send_once(lambda: deletes.send(kept, Conditions(), None, deadline))

    @property
    def _newest(self) -> str | None:
        return list(self.made.values())[-1].snapshot_address if self.made else None


def write_keeping(upload: Upload, write: Callable[[Upload], Any]) -> Any:
    """Put and keep what is replaced; the result names the snapshot.

    Raises:
        UsageError: the put names no version, so that the version kept may be another than the one replaced.
    """
    conditions = upload.conditions
    if conditions.expected_etag is None and not conditions.creates_only:
        raise UsageError(
            "what is replaced can be kept only if the write is for one version",
            argument="snapshot_first",
            reason="snapshot_first_needs_version",
        )
    keeper = VersionKeeper(upload.target)

    def keep(under: Conditions) -> None:
        if under.expected_etag is not None:
            keeper.keep(under.expected_etag, under.lease_id, upload.deadline.fresh())

    with keeper.name_in_errors():
        return keeper.name_in(write(replace(upload, before_commit=keep)))


def update_keeping(request: UpdateRequest, records: LocalRecords) -> UpdateReport:
    """Update and keep what is replaced; the report names the snapshot. Raises as ``recording.update_and_record``."""
    keeper: VersionKeeper = request.resource.keeper  # type: ignore[attr-defined]  # of blobs alone
    with keeper.name_in_errors():
        report = recording.update_and_record(request, records)
    keeper.drop_others(report.outcome, request.deadline.fresh())
    kept: UpdateReport = keeper.name_in(report)
    return kept


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
    settled = send_until_settled(WriteRequest[object](BLOB_UNDELETE, target), deadline)
    try:
        found = properties.fetch(target, Conditions(), deadline.fresh())
    except NotFound as error:
        raise error.but(
            message=f"the kept versions of {target} are back, but none is the current one",
            reason="undeleted_without_current",
        ) from error
    return Written(
        **properties.describe_version(target.address, found),
        guard="none",
        attempts=settled.attempts,
    )


def preview_restore(plan: BlobCopy) -> RestorePreview:
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
