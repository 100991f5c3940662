"""A blob as a copy of another blob, under the conditions of both.

The service copies the source's metadata if the request names none, and then the source's lineage would pass for the
history of the destination. So the request names the metadata: what the source has, and our lineage. By that lineage a
lost answer is settled, as for any put. The metadata comes from a read of the source, and the copy takes the version
that was read and no other; if the source has changed meanwhile, it is read again.

The service copies the content and its headers. It copies neither the index tags, nor the access tier, nor snapshots.

Source: https://learn.microsoft.com/rest/api/storageservices/copy-blob
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.blobs.content.upload import build_stamp, write_tags
from azguard.errors import AzguardError, Changed, Exists, GaveUp, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, verdict_from_lineage
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import copies, properties
from azguard.resources.copies import PENDING, SUCCESS, Copied, PinnedSource
from azguard.resources.properties import has_metadata
from azguard.times import say_count
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_COPY
from azguard.wire.rows import Condition

# What stands in the place of the source's lineage where the copy has no other metadata: it is no history.
_NO_HISTORY = "none"


@frozen
class CopySettings:
    """What a copy sets besides the content."""

    #: None is that of the source.
    metadata: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None
    #: None is the account's default.
    tier: str | None = None
    #: Whether the source's index tags come along.
    keeps_tags: bool = False


@frozen(kw_only=True)
class BlobCopied(Copied):
    """What a copy wrote, or began to write."""

    version_id: str | None
    blob_type: str | None


@frozen(kw_only=True)
class BlobCopy:
    """One copy that is not sent yet."""

    target: Target
    source: Target
    settings: CopySettings
    #: Those on the destination, and those on the source.
    conditions: Conditions
    deadline: Deadline
    op: str
    has_lineage: bool = True

    @property
    def stamp(self) -> str | None:
        """Return the lineage of the new version; None without one."""
        if not self.has_lineage:
            return None
        # Which tier it gets, only the service knows; so the next writer asks.
        return build_stamp(self.conditions, self.op, self.settings.metadata, tiered=True)

    @property
    def follows_source(self) -> bool:
        """Return whether the copy takes the version that the source has at that time, and not one that was named."""
        return Condition.SOURCE_IF_MATCH.header not in self.conditions.source_headers

    def check(self) -> None:
        """Refuse settings that a copy cannot keep.

        Raises:
            UsageError: the condition on the source's tags stands beside metadata that only the source has; or the tags
                leave no place for the fence.
        """
        if self.conditions.fence is not None:
            fences.check_tags(self.settings.tags or {})
        if not self.pins and self.has_lineage and self.settings.metadata is None:
            # The service is not known to evaluate it together with the ETag that ties the metadata to the content.
            raise UsageError(
                "the metadata of the source cannot be read and copied as one under a condition on its tags",
                argument=Condition.SOURCE_IF_TAGS.argument,
                reason="source_tags_need_metadata",
            )

    @property
    def pins(self) -> bool:
        """Return whether the request names the version of the source."""
        return Condition.SOURCE_IF_TAGS.header not in self.conditions.source_headers


def copy(given: BlobCopy) -> BlobCopied:
    """Copy a blob, or have the service begin to.

    Raises:
        Changed: the destination or the source is no longer the version that the condition names; ``facts["side"]``
            says which.
        Exists: create-only, and the destination exists.
        GaveUp: the condition names no version of the source, and others wrote it before each copy until the deadline.
        NotFound, Forbidden: the source, or the container of the destination.
        OutcomeUnknown: the answer was lost, and it cannot be known whether the copy was begun.
    """
    given.check()
    moved = 0
    while True:
        pinned = (
            copies.pin_source(given.source, given.conditions.source_headers, given.deadline) if given.pins else None
        )
        try:
            with refusals.explain_refusal(given.target, given.conditions, given.deadline):
                settled, under = _write(given, pinned)
        except Changed as error:
            moved += 1
            if error.facts.get("side") != "source" or pinned is None or not given.follows_source:
                raise
            if given.deadline.passed:
                raise refusals.to_gave_up(given.source, moved) from error
            continue
        return _to_result(given, pinned, settled, under, moved)


def _write(given: BlobCopy, pinned: PinnedSource | None) -> tuple[Settled[Mapping[str, Any]], Conditions]:
    settings = given.settings
    if settings.keeps_tags and pinned is not None and pinned.found.tag_count:
        tags = refusals.fetch_tags(given.source, None, given.deadline)
        tags.pop(fences.TAG, None)
        settings = replace(settings, tags={**tags, **(settings.tags or {})})
    ready = replace(given, settings=replace(settings, metadata=_choose_metadata(given, pinned)))

    def attempt(under: Conditions) -> Settled[Mapping[str, Any]]:
        return _attempt(replace(ready, conditions=under), pinned, given.conditions.source_headers)

    return refusals.write_fenced(given.target, given.conditions.without_source(), given.deadline, attempt, creates=True)


def _choose_metadata(given: BlobCopy, pinned: PinnedSource | None) -> Mapping[str, str] | None:
    """Return the metadata to send, without the lineage; None lets the service copy that of the source."""
    if given.settings.metadata is not None or pinned is None:
        return given.settings.metadata
    if given.has_lineage:
        return pinned.metadata
    if KEY not in pinned.found.metadata:
        return None
    return pinned.metadata or {KEY: _NO_HISTORY}


def _attempt(
    given: BlobCopy, pinned: PinnedSource | None, source_headers: Mapping[str, str]
) -> Settled[Mapping[str, Any]]:
    conditions = given.conditions
    on_source = source_headers if pinned is None else pinned.condition
    request = WriteRequest(
        operation=BLOB_COPY,
        target=given.target,
        send=lambda: _send(given, on_source),
        look=lambda patience: _find_outcome(given, patience),
        expected_etag=conditions.expected_etag,
        resend=conditions.expected_etag is not None or conditions.creates_only,
    )
    try:
        return send_until_settled(request, given.deadline)
    except AzguardError as error:
        found = copies.judge_refusal(error, given.source, pinned, conditions, given.deadline)
        if isinstance(found, Changed) and conditions.creates_only and found.facts["side"] == "destination":
            # The documentation has 412 for what is there already, and the emulator 409.
            found = found.as_kind(Exists, message=f"{given.target} exists already")
        if found is error:
            raise
        raise found from error


def _send(given: BlobCopy, on_source: Mapping[str, str]) -> Mapping[str, Any]:
    settings, fence = given.settings, given.conditions.fence
    tags = dict(settings.tags or {})
    metadata = {**(settings.metadata or {}), **({KEY: given.stamp} if given.stamp else {})}
    return call(
        BLOB_COPY,
        given.target,
        write_timeouts(given.deadline),
        headers={**given.conditions.request_headers, **on_source},
        copy_source=copies.to_url(given.source),
        metadata=metadata,
        tags=write_tags(tags if fence is None else fences.with_fence_tag(tags, fence)),
        access_tier=settings.tier,
    )


def _find_outcome(given: BlobCopy, patience: Deadline) -> Finding[Mapping[str, Any]]:
    """Return the finding on a copy, with the ETag and the id of the copy if they are known."""
    conditions = given.conditions
    found = properties.find(given.target, patience)
    if found is None:
        return Finding(Verdict.NOT_YET if conditions.creates_only else Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.find(found.metadata)
    verdict = verdict_from_lineage(history, given.op, conditions.expected_etag, found.etag)
    if verdict is not Verdict.COMMITTED:
        same = verdict is Verdict.UNKNOWN and given.stamp is None and _is_copy_of(found, given.source)
        return Finding(verdict, seen=found, may_be_ours=same)
    if history.entries[0][0] != given.op or not _is_still_ours(given, found):
        return Finding(verdict, {"etag": None})  # Another writer has made this version, and perhaps left our lineage.
    told = {"etag": found.etag, "last_modified": found.last_modified, "version_id": found.version_id}
    return Finding(verdict, {**told, "copy_id": found.copy.id, "copy_status": found.copy.status})


def _is_still_ours(given: BlobCopy, found: Any) -> bool:
    ended = found.copy.completion_time
    is_touched = ended is not None and found.last_modified > ended
    sent = {**(given.settings.metadata or {}), KEY: given.stamp or ""}
    return _is_copy_of(found, given.source) and not is_touched and has_metadata(found, sent)


def _is_copy_of(found: Any, source: Target) -> bool:
    theirs, ours = ((url or "").partition("?")[0] for url in (found.copy.source, copies.to_url(source)))
    return bool(theirs == ours)


def _to_result(
    given: BlobCopy, pinned: PinnedSource | None, settled: Settled[Mapping[str, Any]], under: Conditions, moved: int
) -> BlobCopied:
    answer, source = settled.answer, None if pinned is None else pinned.found
    return BlobCopied(
        **describe_write(given.target, under.guard, settled),
        source=copies.describe(given.source, given.target),
        source_etag=None if source is None else source.etag,
        version_id=answer.get("version_id"),
        content_length=None if source is None else source.size,
        blob_type=None if source is None else source.blob_type,
        copy_id=answer.get("copy_id"),
        copy_status=answer.get("copy_status"),
        conflicts=moved,
        created=under.is_creation,
    )


def await_copy(
    begun: BlobCopied, target: Target, deadline: Deadline, tell: Callable[[int, int | None], None]
) -> BlobCopied:
    """Return a copy once it has ended well; ``tell`` is given the bytes that are copied, and how many there are.

    Raises:
        Changed: another write has replaced it, it was stopped, or its source was changed meanwhile.
        NotFound, Forbidden, Unavailable: it failed, by what the service says.
        GaveUp: it is still pending at the deadline.
    """
    for pause in copies.pauses():
        found = _fetch(target, begun, deadline)
        if found.copy.status != PENDING:
            break
        tell(*copies.read_progress(found.copy.progress))
        if deadline.remaining <= pause:
            raise _to_gave_up(begun, target, found)
        deadline.pause(pause)
    if found.copy.status != SUCCESS:
        failure = copies.build_failure(target, found, f"{target} is now an empty blob")
        raise failure.but(current_etag=found.etag)
    return replace(
        begun,
        etag=found.etag,
        last_modified=found.last_modified,
        version_id=found.version_id,
        content_length=found.size,
        copy_status=SUCCESS,
    )


def _fetch(target: Target, begun: BlobCopied, deadline: Deadline) -> Any:
    try:
        found = properties.fetch(target, Conditions(), deadline)
    except NotFound as error:
        raise refusals.to_gone(target, begun.etag or "", error).but(
            reason="copy_replaced", facts={"copy_id": begun.copy_id}
        ) from error
    if begun.copy_id is not None and found.copy.id == begun.copy_id:
        return found
    raise Changed(
        f"another writer replaced {target} before its copy was seen to end",
        address=str(target.address),
        current_etag=found.etag,
        reason="copy_replaced",
        facts={"copy_id": begun.copy_id, "current_copy_id": found.copy.id},
    )


def _to_gave_up(begun: BlobCopied, target: Target, found: Any) -> GaveUp:
    done, total = copies.read_progress(found.copy.progress)
    return GaveUp(
        f"the copy to {target} is still pending, with {done:,} of {say_count(total or 0, 'byte')}; it goes on",
        address=str(target.address),
        reason="copy_pending",
        values={"copy_id": begun.copy_id},
        facts={"copy_id": begun.copy_id, "copy_status": PENDING, "copy_progress": found.copy.progress},
    )
