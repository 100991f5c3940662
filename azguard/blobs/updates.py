"""Safe-update of the content and of the metadata of a blob, and text that is added to an append blob."""

import json
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.blobs.content import put_blob
from azguard.blobs.content.download import read_whole
from azguard.blobs.content.upload import Settings, Upload
from azguard.documents import edits
from azguard.documents.edits import Edit
from azguard.errors import BadRequest, NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import POSITION, Conditions
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op, with_lineage
from azguard.resources import properties
from azguard.updates import recording
from azguard.updates.recording import LocalRecords, UpdateReport, UpdateRequest
from azguard.updates.resource import (
    RAW_OP,
    Commit,
    CommittedVersion,
    CurrentVersion,
    FencingWrite,
    KeptVersion,
    Leasable,
    UpdatableResource,
)
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_LEASE_ACQUIRE, BLOB_LEASE_RELEASE
from azguard.wire.rows import Condition

if TYPE_CHECKING:
    from azguard.blobs.content.append_blob import AppendDone, End
    from azguard.blobs.snapshots import VersionKeeper
    from azguard.cache.reads import Reads
    from azguard.leases.recorded import LeaseRecords

# An end of a line has at most two bytes.
_END_OF_LINE = 2


@frozen
class LeasableBlob(UpdatableResource, ABC):
    """What content and metadata have in common: the blob, its lease, the caller's fence, and its versions."""

    target: Target
    lease_id: str | None = None
    lock_fence: int | None = None
    #: Keeps each version that a write is about to replace.
    keeper: "VersionKeeper | None" = None
    takes_proposed_id: ClassVar[bool] = True

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return the write of ``mark``, bound to ``lease_id``."""
        mark = self.mark(state, lineage, lease_id, deadline)
        return lambda: mark(lease_id)

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        return replace(self, lease_id=None).read(deadline)

    @property
    def leases(self) -> Leasable:
        return self

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease on the version read (https://learn.microsoft.com/rest/api/storageservices/lease-blob)."""
        call(
            BLOB_LEASE_ACQUIRE,
            self.target,
            write_timeouts(deadline),
            headers={Condition.IF_MATCH.header: state.etag or "*"},
            lease_duration=seconds,
            proposed_lease_id=lease_id,
        )

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release a lease. Bounded: if the release fails, the lease expires on its own."""
        headers = Conditions(lease_id=lease_id).request_headers
        call(BLOB_LEASE_RELEASE, self.target, write_timeouts(deadline, at_least=1.0), headers=headers)

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        return str(properties.fetch(self.target, Conditions(lease_id=lease_id), deadline).etag)

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether the blob is locked by a lease; one that is breaking still is."""
        return bool(properties.fetch(self.target, Conditions(), deadline).lease.status == "locked")

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return the blob's kept versions, oldest first."""
        from azguard.blobs.listing import list_kept

        items = [item for item in list_kept(self.target, ["versions", "metadata"], deadline) if item.version_id]
        items.sort(key=lambda item: item.version_id)
        return [KeptVersion(item.etag, Lineage.find(item.metadata)) for item in items]

    def _keep(self, state: CurrentVersion, lease_id: str | None, deadline: Deadline) -> None:
        if self.keeper is not None and state.etag is not None:
            self.keeper.keep(state.etag, lease_id, deadline)

    def _set_metadata(
        self,
        state: CurrentVersion,
        metadata: Mapping[str, str],
        lineage: Lineage | None,
        lease_id: str | None,
        deadline: Deadline,
    ) -> CommittedVersion:
        stamped = with_lineage(metadata, state.carry_on(lineage))
        from azguard.resources import parts  # which an update that writes the content does not need

        return CommittedVersion.of(parts.send_metadata(self.target, stamped, _condition_on(state, lease_id), deadline))


class _Preserved(NamedTuple):
    """What a write of the content leaves as it is."""

    #: The tags are among them only where the fence was asked for.
    settings: Settings
    tag_count: int | None = None


@frozen
class BlobContent(LeasableBlob):
    """A block blob's content. Headers, metadata, index tags and tier survive a write.

    A read of the content does not tell the tier. The service is documented to keep it, and Azurite to the contrary
    forgets it, so it is asked for and sent: one more request where the last write was not azguard's, or chose a tier.
    Source: https://learn.microsoft.com/azure/storage/blobs/access-tiers-overview

    Not guaranteed: tags have no version, so a change of tags between our reading them and our write is undone. That
    does not touch the fence, which is a tag too: see ``_add_fence``.
    """

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read content, ETag and lineage from one response; a large blob in ranges pinned to its ETag.

        Raises:
            BadRequest: it is an append or page blob.
            Changed: it is overwritten faster than it can be read before the deadline.
        """
        under = Conditions(lease_id=self.lease_id)
        while True:
            try:
                content, found = read_whole(self.target, under, deadline, partial(_refuse_other_types, self.target))
            except NotFound as error:
                return to_missing_version(error, b"", _Preserved(Settings.guess(self.target)))
            settings = Settings.of_blob(found, drop_lineage(found.metadata))
            state = to_current_version(content, found, _Preserved(settings, found.tag_count), settings.content_type)
            if self.lock_fence is None:
                return state
            try:
                return self._add_fence(state, deadline)
            except NotFound:
                continue

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the Put Blob, or the Put Block List after the blocks were staged."""
        kept: _Preserved = state.preserved
        tags = self._find_tags(kept, deadline)
        tier = self._find_tier(state, lease_id, deadline)
        settings = replace(kept.settings, tags=tags, tier=tier)
        if lineage is not None:
            lineage = replace(lineage, tiered=settings.tier is not None)
        stamp = with_lineage(settings.metadata or {}, state.carry_on(lineage)).get(KEY)
        upload = Upload(
            target=self.target,
            settings=settings,
            conditions=_condition_on(state, lease_id),
            deadline=deadline,
            op=fresh_op(),
            stamp=stamp,
        )
        commit = put_blob.prepare(upload, content)
        self._keep(state, lease_id, deadline)
        return lambda held: CommittedVersion.of(commit(_condition_on(state, held)))

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        kept: _Preserved = state.preserved
        if lineage is not None and not state.lineage.entries:
            lineage = replace(lineage, tiered=True)  # unknown here, so the next writer asks
        return lambda held: self._set_metadata(state, kept.settings.metadata or {}, lineage, held, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        kept: _Preserved = state.preserved
        from azguard.documents.metadata import count_room

        return count_room(kept.settings.metadata or {}, KEY)

    def _find_tier(self, state: CurrentVersion, lease_id: str | None, deadline: Deadline) -> str | None:
        """Return the tier to send, None for the account's default; asked only where it may have been chosen."""
        if state.etag is None or (state.lineage.entries and not state.lineage.tiered):
            return None
        return refusals.find_chosen_tier(properties.fetch(self.target, _condition_on(state, lease_id), deadline))

    def _find_tags(self, kept: _Preserved, deadline: Deadline) -> Mapping[str, str] | None:
        """Return the tags to send, ours among them; read as late as possible where they hold no fence."""
        if self.lock_fence is not None:
            from azguard.guards import fences

            return fences.with_fence_tag(kept.settings.tags or {}, self.lock_fence)
        return refusals.fetch_tags(self.target, self.lease_id, deadline) if kept.tag_count else None

    def _add_fence(self, state: CurrentVersion, deadline: Deadline) -> CurrentVersion:
        """Return the state with the fence on it, and its other tags among what is kept.

        The fence is read after the content, and belongs to that version although tags have none: a write under a
        fence changes ETag and tag in one request. A holder with a higher fence who writes after our read makes our
        If-Match fail, and the next read finds that fence. The count of tags is no substitute: it may be withheld.
        """
        theirs, others = refusals.read_standing_fence(self.target, self.lease_id, deadline)
        kept = _Preserved(replace(state.preserved.settings, tags=others or None))
        # Write even the same content: it records our fence, so that a holder with a lower one is refused.
        return replace(state, preserved=kept, fence=theirs, must_rewrite=theirs != self.lock_fence)


@frozen
class BlobMetadata(LeasableBlob):
    """A blob's metadata, as a JSON object of strings. Works on every type of blob."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the metadata and ETag from one response."""
        from azguard.documents.metadata import as_json  # which an update of content does not need

        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            fence = self._read_fence(deadline)
        except NotFound as error:
            return to_missing_version(error, b"{}", None)
        rest = (Settings.of_blob(found, {}), found.size, found.content_settings.content_md5)
        state = to_current_version(as_json(drop_lineage(found.metadata)), found, rest)
        return replace(
            state, lineage=replace(state.lineage, tiered=refusals.find_chosen_tier(found) is not None), fence=fence
        )

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the Set Blob Metadata."""
        from azguard.documents.metadata import from_json

        if state.etag is None:
            raise NotFound(f"there is no blob {self.target}", address=str(self.target.address))
        metadata = from_json(content)
        self._keep(state, lease_id, deadline)
        return lambda held: self._set_metadata(state, metadata, lineage, held, deadline)

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return a Set Blob Metadata that changes nothing but the ETag and the lineage."""
        metadata: dict[str, str] = json.loads(state.content)
        return lambda held: self._set_metadata(state, metadata, lineage, held, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        from azguard.documents.metadata import count_room

        return count_room(json.loads(content), KEY)

    def canonicalize(self, content: bytes) -> bytes:
        from azguard.documents.metadata import as_json, from_json

        return as_json(from_json(content))

    def _read_fence(self, deadline: Deadline) -> int | None:
        # The fence is compared only: Set Blob Metadata takes no tags, so that a write of metadata cannot raise it.
        if self.lock_fence is None:
            return None
        fence, _ = refusals.read_standing_fence(self.target, self.lease_id, deadline)
        return fence


def _condition_on(state: CurrentVersion, lease_id: str | None) -> Conditions:
    headers = {"If-None-Match": "*"} if state.etag is None else {"If-Match": state.etag}
    return Conditions(headers, "if-match", state.etag, lease_id=lease_id)


def to_current_version(
    content: bytes, found: Any, preserved: object, content_type: str | None = None
) -> CurrentVersion:
    """Return the version that properties describe."""
    return CurrentVersion(
        content=content,
        etag=found.etag,
        lineage=Lineage.find(found.metadata),
        preserved=preserved,
        version_id=found.version_id,
        last_modified=found.last_modified,
        lease_duration=found.lease.duration,
        content_type=content_type,
    )


def to_missing_version(error: NotFound, content: bytes, preserved: object) -> CurrentVersion:
    """Return the state of a blob that does not exist."""
    if error.service_code == "ContainerNotFound":
        raise error
    return CurrentVersion(content=content, etag=None, lineage=Lineage(), preserved=preserved)


def _refuse_other_types(target: Target, found: Any) -> None:
    kind = found.blob_type
    if kind != "BlockBlob":
        raise BadRequest(
            f"{target} is of type {kind}; safe-update rewrites block blobs",
            address=str(target.address),
            reason="no_block_blob_to_update",
            values={"blob_type": kind},
        )


@frozen
class TextEdits:
    """Edits that only add text at the end."""

    edits: Sequence[Edit]
    leases: "LeaseRecords"
    #: Where the version that was made is recorded.
    reads: "Reads"


def update_text(request: UpdateRequest, records: LocalRecords, text: TextEdits) -> UpdateReport:
    """Apply the edits exactly once, whatever the type. Raises as ``recording.update_and_record`` and ``append`` do."""
    try:
        return recording.update_and_record(request, records)
    except BadRequest as error:
        if error.values.get("blob_type") != "AppendBlob":
            raise
    return _report(request, _append(request, records, text))


def _append(request: UpdateRequest, records: LocalRecords, text: TextEdits) -> "AppendDone":
    from azguard.blobs.content import append_blob, append_write  # which other updates do not need

    target, plan = request.target, request.plan

    def build(end: "End") -> bytes:
        before = min(_END_OF_LINE, end.position or 0)
        tail = b""
        if before:
            tail = append_blob.read_range(target, (end.position or 0) - before, before, request.deadline.fresh())
        return edits.apply(text.edits, tail)[len(tail) :]

    given = append_blob.Append(
        target=target,
        conditions=Conditions({}, POSITION, lease_id=plan.lease_id),
        deadline=request.deadline,
        proof=append_blob.Proof.LEASE if plan.guard_by_lease else append_blob.Proof.NONE,
        is_lines=True,
        contention_seconds=request.deadline.seconds,
        queue=lambda: recording.join_queue(request, records),
        build=build,
    )
    done = append_write.append(given, iter([edits.apply(text.edits, b"")]), text.leases)
    append_write.remember_append(given, done, text.reads)
    return done


def _report(request: UpdateRequest, done: "AppendDone") -> UpdateReport:
    return UpdateReport(
        address=done.address,
        etag=done.etag,
        last_modified=done.last_modified,
        version_id=None,
        content_length=done.content_length,
        guard=done.guard,
        attempts=done.attempts,
        conflicts=done.conflicts,
        doubts=0,
        outcome=done.outcome,
        created=False,
        op_id=f"{RAW_OP}{request.plan.op}",
    )
