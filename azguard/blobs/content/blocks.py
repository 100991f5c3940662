"""Blocks of a block blob, one by one: staged, listed, and committed as the content of the blob.

Blocks that are staged are seen by no reader, and shared by all writers of the blob: a commit discards those that it
does not name, those of other writers too.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.blobs.content import put_blob
from azguard.blobs.content.put_blob import StagingPlace, stage_stream
from azguard.blobs.content.upload import Settings, Upload, fetch_blocks
from azguard.errors import BadRequest, Changed, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage, fresh_op
from azguard.requests.results import ContentWritten
from azguard.resources import properties
from azguard.resources.sources import read_up_to

#: The most that is staged as one block of the caller's own id.
MOST_BYTES = 100 * 1024 * 1024
COMMITTED, UNCOMMITTED = "committed", "uncommitted"
_MOST_BYTES = 64


@frozen
class Block:
    """One block of a blob."""

    COLUMNS: ClassVar = (columns.BLOCK_ID, columns.SIZE, columns.BLOCK_STATE)

    #: In base64.
    block_id: str
    #: In bytes.
    size: int
    state: str


@frozen(kw_only=True)
class BlocksCommitted(ContentWritten):
    """What a commit of blocks wrote."""

    version_id: str | None
    content_type: str | None
    block_count: int
    #: How many blocks were staged and not named, so that they are gone.
    discarded_blocks: int


def stage(
    target: Target,
    source: BinaryIO,
    block: str | None,
    lease_id: str | None,
    deadline: Deadline,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Block]:
    """Stage content as one block of this id, or as blocks of new ids, and yield each once it is staged.

    Staging a block again replaces it, so a lost answer does no harm.

    Raises:
        BadRequest: the blob has staged blocks whose ids have another length, or is no block blob.
        Locked: it is leased.
        UsageError: the content is empty, or too long for one block.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-block
    """
    place = StagingPlace(target=target, lease_id=lease_id, op=fresh_op(), patience=deadline.fresh)
    first = read_up_to(source, put_blob.BLOCK_BYTES if block is None else MOST_BYTES + 1)
    if not first:
        raise UsageError("the input is empty; nothing was staged", reason="block_is_empty")
    try:
        if block is None:
            for name, piece in stage_stream(place, first, source, progress):
                yield Block(name, len(piece), UNCOMMITTED)
            return
        if len(first) > MOST_BYTES:
            raise UsageError(f"the content is longer than one block of {MOST_BYTES:,} bytes", reason="block_too_long")
        put_blob.stage_block(place, block, first)
        yield Block(block, len(first), UNCOMMITTED)
    except Changed as error:
        if error.service_code != "InvalidBlobOrBlock":
            raise
        raise error.as_kind(
            BadRequest,
            message=f"{target} has staged blocks whose ids have another length",
            reason="blocks_of_other_length",
        ) from error


def list_blocks(target: Target, conditions: Conditions, kind: str, deadline: Deadline) -> list[Block]:
    """Return the blocks of a blob: ``committed``, ``uncommitted`` or ``all``, in the order of the blob.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-block-list
    """
    found = fetch_blocks(target, kind, deadline, conditions.request_headers)
    committed = [Block(*each, COMMITTED) for each in found.committed]
    return committed + [Block(*each, UNCOMMITTED) for each in found.uncommitted]


def commit(upload: Upload, chosen: Sequence[str]) -> tuple[BlocksCommitted, str | None]:
    """Make the blob of these blocks; return the result and the blob's lineage.

    Headers, metadata, index tags and tier of the version that is replaced stay, unless ``upload`` names others.

    Raises:
        BadRequest: a block is neither staged nor committed.
        Changed, Exists, LockLost, OutcomeUnknown: see ``uploads.commit_list``.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-block-list
    """
    known = _find_blocks(upload, chosen)
    upload = _keep_settings(upload).add_lineage()
    settled, conditions = put_blob.commit_list(upload, chosen)
    answer = settled.answer
    discarded = [block for block in known.values() if block.state == UNCOMMITTED and block.block_id not in chosen]
    done = BlocksCommitted(
        **describe_write(upload.target, conditions.guard, settled),
        version_id=answer.get("version_id"),
        content_length=sum(known[block].size for block in chosen),
        content_type=upload.settings.content_type,
        block_count=len(chosen),
        discarded_blocks=len(discarded),
    )
    return done, upload.stamp


def _find_blocks(upload: Upload, chosen: Sequence[str]) -> dict[str, Block]:
    """Return all blocks by their ids; of two with one id the one that was staged, which the commit takes."""
    lease = Conditions(lease_id=upload.conditions.lease_id)
    try:
        found = list_blocks(upload.target, lease, "all", upload.deadline)
    except NotFound as error:
        if error.service_code == "ContainerNotFound":
            raise
        found = []
    known = {block.block_id: block for block in found}
    missing = [block for block in chosen if block not in known]
    if missing:
        raise BadRequest(
            f"{upload.target} has no block {missing[0]}; nothing was written",
            address=str(upload.target.address),
            reason="block_missing",
            facts={"missing_blocks": missing},
        )
    return known


def _keep_settings(upload: Upload) -> Upload:
    lease_id, given = upload.conditions.lease_id, upload.settings
    found = properties.find(upload.target, upload.deadline, lease_id)
    if found is None:
        return replace(upload, settings=_fill(given, Settings.guess(upload.target)))
    kept = Settings.of_blob(found, drop_lineage(found.metadata))
    tags = refusals.fetch_tags(upload.target, lease_id, upload.deadline) if found.tag_count else None
    others = {key: value for key, value in (tags or {}).items() if upload.conditions.fence is None or key != "fence"}
    kept = replace(kept, tags=others or None, tier=refusals.find_chosen_tier(found))
    return replace(upload, settings=_fill(given, kept))


def _fill(given: Settings, kept: Settings) -> Settings:
    return replace(
        kept,
        content_type=given.content_type or kept.content_type,
        metadata=kept.metadata if given.metadata is None else given.metadata,
    )


def check_id(block: str) -> None:
    """Refuse a malformed block id.

    Raises:
        UsageError: it is no base64 of 1 to 64 bytes of text.
    """
    try:
        content = base64.b64decode(block, validate=True)
        content.decode()
    except ValueError:
        content = b""
    if not 0 < len(content) <= _MOST_BYTES:
        raise UsageError(
            f"{block!r} is no block id: base64 of a text of 1 to {_MOST_BYTES} bytes", reason="block_id_malformed"
        )


def check_ids(blocks: Sequence[str]) -> None:
    """Refuse ids of more than one length: the service takes one length for a blob.

    Raises:
        UsageError: two differ.
    """
    odd = next((block for block in blocks if len(block) != len(blocks[0])), None)
    if odd is not None:
        raise UsageError(
            f"the block ids {blocks[0]!r} and {odd!r} differ in length, and those of one blob must not",
            reason="block_ids_differ_in_length",
        )
