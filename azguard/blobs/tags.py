"""The index tags of a blob: read, replaced, and as safe-update sees them.

Tags have no version in the service: a write of them moves no ETag, and no condition on an ETag is honoured. So azguard
makes a version of its own, of the blob's ETag and of the tags, and compares it under a lease, without which the service
writes no tags of a leased blob.

The tag that carries the fence of a lock stays, because without it a holder of the past could write the blob. After
tags were written under a fence, the blob gets another version of the same content under the same lease: else a holder
with a lower fence, whose write is bound to the version that it compared the fence on, could still replace the blob.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import refusals, updates
from azguard.blobs.updates import LeasableBlob
from azguard.documents import metadata as rules
from azguard.documents.metadata import as_json, flatten
from azguard.errors import (
    AzguardError,
    BadRequest,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    TransformFailed,
    UsageError,
)
from azguard.frozen import frozen
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.guards.versions import require_version
from azguard.leases import guard
from azguard.leases.owner_records import Moved
from azguard.leases.recorded import LeaseRecords
from azguard.requests.commits import Verdict, WriteRefused, look_under
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.results import Shown, Written, without_time
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.resources.properties import ContentHeaders
from azguard.updates.compared import RefusedHere, SingleWrite, fence_by_release
from azguard.updates.recording import ReadRecords
from azguard.updates.resource import Commit, CommittedVersion, CurrentVersion, FencingWrite, KeptVersion
from azguard.wire.operations.blobs import BLOB_SET_PROPERTIES, BLOB_SET_TAGS
from azguard.wire.rows import Condition

# Stands between the blob's ETag and the digest of the tags.
_MARK = "+"
_IMMUTABLE = "BlobImmutableDueToPolicy"


@frozen(kw_only=True)
class TagsRead(Shown):
    """The index tags of a blob; the ETag is azguard's own, of the blob's version and the tags."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    etag: str
    tags: Mapping[str, str]
    #: The blob's own, which tags do not move.
    blob_etag: str


def get(target: Target, conditions: Conditions, deadline: Deadline) -> TagsRead:
    """Return the index tags of a blob, a snapshot or a version.

    Raises:
        Changed: the condition on them does not hold.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-tags
    """
    # The ETag first: if that version is still there when tags are written, it is the one these tags are of.
    etag = properties.fetch(target, conditions, deadline).etag
    condition = conditions.headers.get(Condition.IF_TAGS.header)
    tags = refusals.fetch_tags(target, conditions.lease_id, deadline, condition)
    return TagsRead(
        address=str(target.address),
        etag=compute_etag(etag, tags),
        last_modified=None,
        tags=tags,
        blob_etag=etag,
    )


def compute_etag(blob_etag: str, tags: Mapping[str, str]) -> str:
    """Return the ETag that azguard makes of a version of a blob and its tags."""
    digest = hashlib.sha256(json.dumps(sorted(tags.items())).encode()).hexdigest()[:32]
    return f'{blob_etag[:-1]}{_MARK}{digest}"'


def replace_all(
    target: Target, tags: Mapping[str, str], conditions: Conditions, records: LeaseRecords, deadline: Deadline
) -> Written:
    """Replace the index tags of a blob.

    Raises:
        Changed: the version, or the tags, are not those that the conditions name.
        LockLost: a holder with a higher fence has written.
        Locked: it is leased, and the lease id is missing or wrong.
        OutcomeUnknown: the answer was lost. Tags do not tell whose they are; only a lease does.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-tags
    """
    is_free = conditions.guard in ("none", "lease") and conditions.expected_etag is None
    if target.address.version is not None and not is_free:
        raise UsageError(
            f"{target} is a version, which cannot be leased, so that nothing keeps another writer of its tags out",
            address=str(target.address),
            reason="version_not_leasable",
        )
    with (
        refusals.explain_gone(target, conditions.expected_etag),
        refusals.explain_refusal(target, conditions, deadline),
    ):
        if is_free:
            return _write(target, tags, conditions, deadline, is_own=False)
        with guard.hold(target, conditions.lease_id, records, deadline) as held:
            under = replace(conditions, lease_id=held.lease_id)
            done = _write(target, tags, under, held.patience, is_own=held.is_own)
            return done if under.fence is None else _exclude_lower_fences(target, done, held, records)


def _exclude_lower_fences(target: Target, done: Written, held: guard.GuardLease, records: LeaseRecords) -> Written:
    """Return the write of tags under a fence, once no holder with a lower one can replace the version any more."""
    try:
        moved = move_version(target, held.lease_id, held.patience)
    except VersionNotMoved:
        raise
    except AzguardError as error:
        raise OutcomeUnknown(
            f"the tags of {target} were written, but a holder with a lower fence may still overwrite them",
            address=str(target.address),
            detail=(error.message,),
            reason="outcome_unknown",
        ) from error
    records.record_move(target, moved)
    return replace(done, etag=move_etag(str(done.etag), str(moved.after)))


def move_etag(etag: str, blob_etag: str) -> str:
    """Return azguard's ETag of the same tags on another version of the blob."""
    return f"{blob_etag[:-1]}{_MARK}{etag.rpartition(_MARK)[2]}"


def _write(
    target: Target, tags: Mapping[str, str], conditions: Conditions, deadline: Deadline, *, is_own: bool
) -> Written:
    """Compare, then write; ``is_own`` says that the lease was acquired for this write alone."""
    current = get(target, Conditions(lease_id=conditions.lease_id), deadline)
    _compare(target, conditions.expected_etag, current)
    wanted, condition = _carry_fence(target, tags, current.tags, conditions)
    request = WriteRequest[object](
        operation=BLOB_SET_TAGS,
        target=target,
        send=lambda: refusals.set_tags(target, wanted, conditions.lease_id, deadline, condition),
        look=lambda patience: _find_outcome(target, wanted, current, conditions, patience),
        # Tags that were there before the request prove nothing.
        look_after_refusal=(lambda _: Finding(Verdict.NEVER)) if current.tags == wanted else None,
        judge_refusal=_judge_refusal,
        # Under the caller's lease a copy that the network delivers late could undo what the caller writes next.
        resend=is_own,
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, conditions.guard, settled.attempts, compute_etag(current.blob_etag, wanted))


def _compare(target: Target, expected: str | None, current: TagsRead) -> None:
    there = current.etag if expected is not None and _MARK in expected else current.blob_etag
    is_of_tags = current.blob_etag[:-1] + _MARK == str(expected).rpartition(_MARK)[0] + _MARK
    what = f"the tags of {target}" if is_of_tags else ""
    require_version(target, expected, there, reason="tags_changed", what=what)


def _carry_fence(
    target: Target, tags: Mapping[str, str], before: Mapping[str, str], conditions: Conditions
) -> tuple[Mapping[str, str], str | None]:
    condition = conditions.headers.get(Condition.IF_TAGS.header)
    if conditions.fence is not None:
        theirs = fences.read_fence(before, target)
        fences.refuse_higher(target, conditions.fence, theirs)
        others = {key: value for key, value in tags.items() if key != fences.TAG}
        fences.check_tags(others)
        # Where there is no fence yet, the condition would not hold.
        return fences.with_fence_tag(others, conditions.fence), None if theirs is None else condition
    if fences.TAG in tags or not _is_fence(before, target):
        return tags, condition
    kept = {**tags, fences.TAG: before[fences.TAG]}
    rules.check_count(kept)
    return kept, condition


def _is_fence(tags: Mapping[str, str], target: Target) -> bool:
    """Return whether there is a fence among the tags, and not a tag of others that has its name."""
    try:
        return fences.read_fence(tags, target) is not None
    except BadRequest:
        return False


def _find_outcome(
    target: Target, wanted: Mapping[str, str], before: TagsRead, conditions: Conditions, patience: Deadline
) -> Finding[Any]:
    try:
        current, is_held = look_under(
            conditions.lease_id, lambda lease_id: get(target, Conditions(lease_id=lease_id), patience)
        )
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    if not is_held:
        return Finding(Verdict.UNKNOWN, may_be_ours=current.tags == wanted)
    # While the lease is held, the service takes tags from its holder alone. Those that were there before do not tell
    # whether a condition held.
    if current.tags == wanted and (before.tags != wanted or Condition.IF_TAGS.header not in conditions.headers):
        return Finding(Verdict.COMMITTED)
    return Finding(Verdict.NOT_YET if current.tags == before.tags else Verdict.UNKNOWN)


def _judge_refusal(_: AzguardError, found: Finding[object]) -> Finding[object]:
    """Return that nothing is applied where the lease is held and the tags are as before: so what refuses lasts."""
    return Finding(Verdict.NEVER) if found.verdict is Verdict.NOT_YET else found


class VersionNotMoved(WriteRefused):
    """The tags were written, and the caller may not give the blob another version."""


def move_version(target: Target, lease_id: str | None, deadline: Deadline) -> Moved:
    """Give a blob another ETag and leave all else as it is; ``lease_id`` is held, so that only we can write it.

    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-properties
    """
    under = Conditions(lease_id=lease_id)
    found = properties.fetch(target, under, deadline)
    tied = replace(under, headers={Condition.IF_MATCH.header: found.etag})
    same = ContentHeaders.of(found)

    def look(patience: Deadline) -> Finding[Mapping[str, Any]]:
        current, is_held = properties.fetch_whatever_lease(target, lease_id, patience)
        if current.etag == found.etag:
            return Finding(Verdict.NOT_YET)
        return Finding(Verdict.COMMITTED if is_held else Verdict.UNKNOWN, {"etag": current.etag})

    request = WriteRequest[Mapping[str, Any]](
        operation=BLOB_SET_PROPERTIES,
        target=target,
        given={"headers": tied.request_headers, **same.given},
        look=look,
        expected_etag=found.etag,
    )
    try:
        after: str = send_until_settled(request, deadline).answer["etag"]
    except Forbidden as error:
        if error.service_code != _IMMUTABLE:
            told = "the tags were written, but a holder with a lower fence may still overwrite them"
            raise error.as_kind(VersionNotMoved, detail=(*error.detail, told)) from error
        after = found.etag  # No holder can replace the content.
    return Moved(found.etag, after, found.last_modified, (found.metadata or {}).get(KEY))


@frozen
class BlobTags(LeasableBlob):
    """The index tags of a blob, as a JSON object of strings. Their version is azguard's own."""

    #: For a write under the caller's lease, which does not end with the update.
    single: SingleWrite = field(default_factory=SingleWrite)
    #: The tags that were sent under a fence.
    fenced: list[Mapping[str, str]] = field(default_factory=list)
    #: What this scope has read; None records nothing.
    reads: ReadRecords | None = None

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the version of the blob, then its tags."""
        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
            there = refusals.fetch_tags(self.target, self.lease_id, deadline)
        except NotFound as error:
            return updates.to_missing_version(error, b"{}", None)
        fence = None if self.lock_fence is None else fences.read_fence(there, self.target)
        return CurrentVersion(
            content=as_json(there),
            etag=compute_etag(found.etag, there),
            lineage=Lineage(),
            preserved=found.etag,
            lease_duration=found.lease.duration,
            fence=fence,
            must_rewrite=fence != self.lock_fence,
        )

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease on the version read. Its tags are compared too, since they move no ETag."""
        blob = replace(state, etag=state.preserved)
        super().acquire(blob, lease_id, seconds, deadline)
        if get(self.target, Conditions(lease_id=lease_id), deadline).etag != state.etag:
            raise RefusedHere.as_changed()

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        """Return the current version of the tags, which the service tells only to the holder of ``lease_id``."""
        found = get(self.target, Conditions(lease_id=lease_id), deadline)
        return self._exclude_lower_fences(found.etag, lease_id, deadline) if found.tags in self.fenced else found.etag

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the Set Blob Tags."""
        if state.etag is None:
            raise NotFound(f"there is no blob {self.target}", address=str(self.target.address))
        wanted: dict[str, str] = json.loads(content)
        if self.lock_fence is not None:
            wanted = fences.with_fence_tag(wanted, self.lock_fence)

        def send(held: str | None) -> CommittedVersion:
            if self.lock_fence is not None:
                self.fenced.append(wanted)
            refusals.set_tags(self.target, wanted, held, deadline)
            made = compute_etag(state.preserved, wanted)
            return CommittedVersion(self._exclude_lower_fences(made, held, deadline) if self.fenced else made)

        return send if self.lease_id is None else lambda held: self.single.send(lambda: send(held))

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return 0: tags hold no lineage."""
        return 0

    def _exclude_lower_fences(self, etag: str, lease_id: str | None, deadline: Deadline) -> str:
        moved = move_version(self.target, lease_id, deadline)
        if self.reads is not None:
            self.reads.follow(self.target, moved.before, moved.after, moved.lineage)
        return move_etag(etag, str(moved.after))

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return a function that makes a write in doubt impossible: it frees the lease and checks the version."""
        own = None if lease_id == self.lease_id else lease_id
        return fence_by_release(self, self.read, state, own, deadline)

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return none: what is kept of older versions does not tell who wrote their tags."""
        return []

    def canonicalize(self, content: bytes) -> bytes:
        """Return the tags as indented JSON; numbers, true and false become their text."""
        try:
            return as_json(rules.check_tags(flatten(json.loads(content))))
        except ValueError as error:
            raise TransformFailed(f"the new tags are not JSON: {error}") from None
        except UsageError as error:
            raise error.as_kind(TransformFailed) from None
