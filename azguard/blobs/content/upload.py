"""One upload: what it writes, under which conditions, what it wrote, and its outcome where the answer was lost.

The outcome is found from the lineage, or from the ids of the blocks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote

from azguard.accounts.account import Target
from azguard.errors import NotFound
from azguard.frozen import frozen
from azguard.guards.requested import CREATE_ONLY
from azguard.guards.resolve import Conditions, resolve
from azguard.requests.calls import read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, UNSEEN, Lineage, with_lineage
from azguard.requests.results import ContentPut
from azguard.resources import properties
from azguard.resources.properties import ContentHeaders, encode_md5, has_metadata
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.failures import Unreadable
from azguard.wire.operations.blobs import BLOB_GET_BLOCK_LIST, BLOB_PUT_BLOCK_BLOB, BLOB_PUT_BLOCK_LIST
from azguard.wire.rows import Operation
from azguard.wire.xml import build_document, parse

if TYPE_CHECKING:
    from azguard.requests.settle import Finding


@frozen
class Settings(ContentHeaders):
    """The properties of a blob that a put sets besides its content. ``content_md5`` is what the caller says it is."""

    tier: str | None = None
    metadata: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None

    @classmethod
    def of_blob(cls, found: Any, metadata: Mapping[str, str]) -> Self:
        """Return the settings that a write of the content has to send again; the service computes the MD5 anew."""
        return replace(cls.of(found), content_md5=None, metadata=metadata)

    @classmethod
    def guess(cls, target: Target) -> Self:
        """Return those of a new blob, with the content type that its name suggests."""
        import mimetypes

        return cls(mimetypes.guess_type(target.address.name)[0] or "application/octet-stream", metadata={})


@frozen(kw_only=True)
class BlobPut(ContentPut):
    """What a put wrote."""

    version_id: str | None


@frozen
class Upload:
    """One put that is not sent yet: what it writes to, under which conditions, as which op."""

    target: Target
    settings: Settings
    conditions: Conditions
    deadline: Deadline
    op: str
    #: The lineage that it carries; None without one.
    stamp: str | None = None
    #: That of the content, if one Put Blob writes it: then the service stores it.
    md5: bytes | None = None
    #: Whether it may replace an append or page blob.
    any_type: bool = False
    #: What is done right before the request that commits, with the conditions of that request.
    before_commit: Callable[[Conditions], None] | None = None

    def add_lineage(self, *, wanted: bool = True) -> "Upload":
        """Return the upload with the lineage of the version it is guarded by, carried on, if that is ``wanted``."""
        if not wanted:
            return self
        stamp = build_stamp(self.conditions, self.op, self.settings.metadata, tiered=self.settings.tier is not None)
        return replace(self, stamp=stamp)

    @property
    def metadata(self) -> dict[str, str]:
        """Return the metadata the new version carries, the lineage included."""
        return {**(self.settings.metadata or {}), **({KEY: self.stamp} if self.stamp else {})}

    @property
    def tags(self) -> dict[str, str] | None:
        """Return the index tags the new version carries, the fence included."""
        tags = self.settings.tags or {}
        fence = self.conditions.fence
        if fence is None:
            return dict(tags) or None
        from azguard.guards import fences

        return fences.with_fence_tag(tags, fence) or None


def build_stamp(conditions: Conditions, op: str, metadata: Mapping[str, str] | None, *, tiered: bool) -> str:
    """Return the lineage of a new version beside its metadata; ``tiered`` says that its tier may have been chosen."""
    parent = conditions.expected_etag
    if parent is None and not conditions.creates_only:
        parent = UNSEEN
    lineage = Lineage.parse(conditions.lineage).after(op, parent)
    return with_lineage(metadata or {}, replace(lineage, tiered=True) if tiered else lineage)[KEY]


class ListedBlock(NamedTuple):
    """A block as the service lists it."""

    #: In base64.
    id: str
    #: In bytes.
    size: int


class BlockLists(NamedTuple):
    """The blocks of a blob, those that it is made of and those that are only staged, from one answer."""

    committed: list[ListedBlock]
    uncommitted: list[ListedBlock]
    etag: str | None


def create_only(target: Target) -> Conditions:
    """Return the conditions of a put that only creates, even if this scope has read a version."""
    return resolve(BLOB_PUT_BLOCK_BLOB, CREATE_ONLY, target)


def send(upload: Upload, content: bytes) -> Mapping[str, Any]:
    """Put a blob by one request, and return its answer.

    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob
    """
    return _send(BLOB_PUT_BLOCK_BLOB, upload, content)


def commit_blocks(upload: Upload, ids: Sequence[str]) -> Mapping[str, Any]:
    """Commit blocks, whose ids are in base64, by one request, and return its answer.

    Source: https://learn.microsoft.com/rest/api/storageservices/put-block-list
    """
    blocks = "".join(f"<Latest>{block}</Latest>" for block in ids)
    return _send(BLOB_PUT_BLOCK_LIST, upload, build_document(f"<BlockList>{blocks}</BlockList>"))


def _send(operation: Operation, upload: Upload, body: bytes) -> Mapping[str, Any]:
    return call(
        operation,
        upload.target,
        write_timeouts(upload.deadline),
        headers=upload.conditions.request_headers,
        body=body,
        access_tier=upload.settings.tier,
        metadata=upload.metadata,
        tags=write_tags(upload.tags),
        **upload.settings.given,
    )


def create_empty(
    operation: Operation, target: Target, settings: Settings, deadline: Deadline, **given: Any
) -> Mapping[str, Any]:
    """Create an append or a page blob where there is none, by one request, and return its answer."""
    headers = {"If-None-Match": "*"}
    return call(operation, target, write_timeouts(deadline), headers=headers, **settings.given, **given)


def write_tags(tags: Mapping[str, str] | None) -> str | None:
    """Return index tags as a header has them; None without any."""
    if not tags:
        return None
    return "&".join(f"{quote(name, safe='.-')}={quote(value, safe='.-')}" for name, value in tags.items())


def find_outcome(upload: Upload, ids: Sequence[str], patience: Deadline) -> "Finding[Mapping[str, Any]]":
    """Return the finding on a put, with the ETag it made if that is known; ``ids`` are its blocks."""
    from azguard.requests.commits import Verdict
    from azguard.requests.lineage import verdict_from_lineage
    from azguard.requests.settle import NOTHING_THERE, Finding

    parent = upload.conditions.expected_etag
    found = properties.find(upload.target, patience)
    if found is None:
        return Finding(Verdict.NOT_YET if upload.conditions.creates_only else Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.find(found.metadata)
    verdict = verdict_from_lineage(history, upload.op, parent, found.etag)
    if verdict is Verdict.UNKNOWN and ids:
        return replace(_compare_blocks(upload, ids, patience), seen=found)
    if verdict is not Verdict.COMMITTED:
        return Finding(verdict, seen=found, may_be_ours=verdict is Verdict.UNKNOWN and _equals(upload, found))
    # Another writer may have made the version after ours, and have left our lineage.
    is_ours = history.entries[0][0] == upload.op and _is_as_sent(upload, found)
    return Finding(verdict, _as_answer(found) if is_ours else {"etag": None})


def _is_as_sent(upload: Upload, found: Any) -> bool:
    """Return whether headers and metadata are ours: another tool may have changed them, and kept the lineage."""
    wanted = {each.name: getattr(upload.settings, each.name) for each in fields(ContentHeaders)}
    # What the service sets where they are not given.
    wanted["content_type"] = wanted["content_type"] or "application/octet-stream"
    wanted["content_md5"] = wanted["content_md5"] or encode_md5(upload.md5)
    return ContentHeaders.of(found) == ContentHeaders(**wanted) and has_metadata(found, upload.metadata)


def _equals(upload: Upload, found: Any) -> bool:
    theirs = found.content_settings.content_md5
    return upload.stamp is None and upload.md5 is not None and theirs is not None and bytes(theirs) == upload.md5


def _compare_blocks(upload: Upload, ids: Sequence[str], patience: Deadline) -> "Finding[Mapping[str, Any]]":
    """Return whether the blob consists of our blocks: no other upload has their ids."""
    from azguard.requests.commits import Verdict
    from azguard.requests.settle import Finding

    try:
        listed = fetch_blocks(upload.target, "committed", patience)
        if [block.id for block in listed.committed] != list(ids):
            return Finding(Verdict.UNKNOWN)
        found = properties.fetch(upload.target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN)
    # Another writer may have changed the metadata since, which makes another version of the same blocks.
    same = listed.etag == found.etag and _is_as_sent(upload, found)
    return Finding(Verdict.COMMITTED, _as_answer(found) if same else {"etag": None})


def fetch_blocks(target: Target, kind: str, deadline: Deadline, headers: Mapping[str, str] | None = None) -> BlockLists:
    """Return the blocks of a blob: ``committed``, ``uncommitted`` or ``all``.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-block-list
    """

    def ask(timeouts: Limits) -> BlockLists:
        answer = call(BLOB_GET_BLOCK_LIST, target, timeouts, headers=headers, blocklisttype=kind)
        root = parse(answer, "list of blocks")
        try:
            committed, uncommitted = (
                [
                    ListedBlock(block.findtext("Name", ""), int(block.findtext("Size", "")))
                    for block in root.iterfind(each)
                ]
                for each in ("CommittedBlocks/Block", "UncommittedBlocks/Block")
            )
        except ValueError as error:
            raise Unreadable(f"the answer is no list of blocks: {error}") from error
        return BlockLists(committed, uncommitted, answer.etag)

    return read(ask, target, deadline)


def _as_answer(found: Any) -> Mapping[str, Any]:
    return {"etag": found.etag, "last_modified": found.last_modified, "version_id": found.version_id}
