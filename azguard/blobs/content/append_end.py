"""The end of an append blob: found, made by creating the blob, sealed, and looked at after a lost answer.

An Append Block is tied to its position. While the blob ends there, the block is not committed, and two transmissions of
it exclude each other. Once something else stands there, it never can be, because an append blob only grows. Equal bytes
prove nothing by themselves: two writers may append equal lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import properties, writes
from azguard.blobs.content import append_request
from azguard.blobs.content.append_request import APPEND_BLOB, MOST_BLOCKS, Append, End, Proof
from azguard.blobs.content.download import ask_range
from azguard.blobs.copy_sources import SourcePiece
from azguard.errors import AzguardError, BadRequest, Changed, Forbidden, NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources.properties import ContentHeaders
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_PUT_APPEND_BLOB, BLOB_SEAL_APPEND_BLOB
from azguard.wire.rows import Condition

Answer = Mapping[str, Any]


def find_or_create_end(given: Append, deadline: Deadline) -> tuple[End, bool]:
    """Return the end of the blob, and whether the blob was created for it. Raises as ``append`` does.

    Forbidden, too: it may be appended to, and not be looked at.
    """
    created = False
    while True:
        try:
            found = properties.fetch(given.target, Conditions(), deadline)
        except NotFound as error:
            if given.create is None or error.service_code == "ContainerNotFound":
                raise error if error.reason else error.but(reason="append_to_nothing") from error
            writes.check_creatable(given.target, given.conditions, error)
            created = _create(given, deadline)
        except Forbidden as error:
            raise error.but(reason="append_end_unknown") from error
        else:
            _check(given, found)
            end = End(
                _choose_position(given, found),
                found.creation_time,
                found.append_blob_committed_block_count or 0,
                found.etag,
            )
            return end, created


def _choose_position(given: Append, found: Any) -> int:
    """Return the byte at which to append: the one that the conditions name, or the end.

    Where the blob does not end at that byte, nothing is sent: equal bytes behind it are then not ours, whatever lease
    we hold. Only the caller's word that no other writer writes them makes them those of an earlier run.
    """
    size: int = found.size
    typed = given.conditions.headers.get(Condition.APPEND_POSITION.header)
    if typed is None:
        return size
    if int(typed) != size and given.proof is not Proof.CONTENT:
        refusal = Changed("", str(given.target.address), service_code=append_request.NOT_AT_END, seen=found)
        raise append_request.explain_failed_condition(refusal, given, End(int(typed)))
    return int(typed)


def _create(given: Append, deadline: Deadline) -> bool:
    """Create the blob, empty, only if there is none; return whether it is known to be ours.

    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob
    """
    settings = given.create
    assert settings is not None

    def look(patience: Deadline) -> Finding[Any]:
        try:
            properties.fetch(given.target, Conditions(), patience)
        except NotFound:
            return Finding(Verdict.NOT_YET)
        return Finding(Verdict.COMMITTED)  # Ours or not: an append is what was asked for.

    request = WriteRequest(
        target=given.target,
        send=lambda: call(
            BLOB_PUT_APPEND_BLOB,
            given.target,
            write_timeouts(deadline),
            headers={"If-None-Match": "*"},
            metadata=settings.metadata,
            **settings.given,
        ),
        look=look,
    )
    return send_until_settled(request, deadline).answer is not None


def _check(given: Append, found: Any) -> None:
    target, expected = given.target, given.conditions.expected_etag
    facts: Any = {"address": str(target.address)}
    kind = properties.type_of(found)
    if kind != APPEND_BLOB:
        raise BadRequest(
            f"{target} is {writes.describe_type(kind)}, to which nothing can be appended",
            reason="no_append_blob",
            **facts,
        )
    if found.is_append_blob_sealed:
        raise BadRequest(f"{target} is sealed, so that nothing can be appended", reason="blob_is_sealed", **facts)
    blocks = found.append_blob_committed_block_count
    if blocks is not None and blocks >= MOST_BLOCKS:
        raise BadRequest(
            f"{target} has {blocks:,} blocks, the most that an append blob can have", reason="too_many_blocks", **facts
        )
    if expected is not None and found.etag != expected:
        refusal = Changed(f"{target} changed since you read it", expected_etag=expected, seen=found, **facts)
        raise properties.describe_conflict(refusal, target, given.deadline)


def find_append_outcome(
    target: Target, end: End, piece: bytes | SourcePiece, proof: Proof, lease_id: str | None, patience: Deadline
) -> Finding[Answer]:
    """Return the finding on a piece that was to be appended at ``end``; ``lease_id`` is our own lease."""
    if end.position is None:
        return Finding(Verdict.UNKNOWN)
    try:
        found = properties.fetch(target, Conditions(), patience)
        if _is_another(found, end):
            return Finding(Verdict.UNKNOWN, seen=found)
        if found.size == end.position:
            return Finding(Verdict.NOT_YET, seen=found)
        theirs: bytes | SourcePiece = piece  # What a source holds is not known here, and taken for equal.
        if not isinstance(piece, SourcePiece):
            theirs = read_range(target, end.position, min(len(piece), found.size - end.position), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    except Changed:
        return Finding(Verdict.UNKNOWN)  # It was replaced between the two reads.
    if theirs != piece:
        return Finding(Verdict.NEVER, seen=found)
    if proof is Proof.CONTENT or (proof is Proof.LEASE and _is_held(target, lease_id, patience)):
        return Finding(Verdict.COMMITTED, {"append_offset": end.position})
    return Finding(Verdict.UNKNOWN, seen=found, may_be_ours=True)


def _is_another(found: Any, end: End) -> bool:
    """Return whether the blob was replaced by another of its name; the time of its creation tells whole seconds."""
    is_same = properties.type_of(found) == APPEND_BLOB and found.creation_time == end.created
    return (
        not is_same or found.size < (end.position or 0) or (found.append_blob_committed_block_count or 0) < end.blocks
    )


def read_range(target: Target, offset: int, length: int, deadline: Deadline) -> bytes:
    """Return so many bytes of a blob from ``offset`` on, fewer if it ends before."""
    return ask_range(target, offset, length, deadline).content


def _is_held(target: Target, lease_id: str | None, patience: Deadline) -> bool:
    """Return whether our own lease is held: the service answers under its id only then."""
    try:
        properties.fetch(target, Conditions(lease_id=lease_id), patience)
    except AzguardError:
        return False
    return lease_id is not None


@dataclass(frozen=True, kw_only=True)
class BlobSealed(Written):
    """What sealing a blob did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.ETAG)

    blob_type: str
    content_length: int
    sealed: bool


def seal(target: Target, conditions: Conditions, deadline: Deadline) -> BlobSealed:
    """Seal an append blob. There is no way back; sealing it again changes nothing.

    Raises:
        BadRequest: it is no append blob.
        Changed: it is not the version, or does not end at the place, that the condition names.
        OutcomeUnknown: the answer was lost, and whether the blob is sealed cannot be known.
    Source: https://learn.microsoft.com/rest/api/storageservices/append-blob-seal
    """
    before = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    _check_type(target, properties.type_of(before))
    request = WriteRequest(
        target=target,
        send=lambda: call(BLOB_SEAL_APPEND_BLOB, target, write_timeouts(deadline), headers=conditions.request_headers),
        look=lambda patience: _find_outcome(target, conditions, before, patience),
        expected_etag=conditions.expected_etag,
        is_idempotent=True,
    )
    try:
        settled = send_until_settled(request, deadline)
    except Changed as error:
        raise properties.describe_conflict(error, target, deadline) from error
    return BlobSealed(
        **describe_write(target, conditions.guard, settled),
        blob_type=APPEND_BLOB,
        content_length=before.size,
        sealed=True,
    )


def _check_type(target: Target, kind: str | None) -> None:
    if kind != APPEND_BLOB:
        raise BadRequest(
            f"{target} is {writes.describe_type(kind)}, which cannot be sealed",
            address=str(target.address),
            reason="no_append_blob_to_seal",
        )


def _find_outcome(target: Target, conditions: Conditions, before: Any, patience: Deadline) -> Finding[Any]:
    """Return whether the blob is sealed with the content that the caller meant; ``before`` is what was there first.

    The service keeps the ETag when it seals, and the emulator gives a new one; a blob that is sealed does not grow, so
    its length tells whether another writer appended to it before.
    """
    expected, position = conditions.expected_etag, conditions.headers.get(Condition.APPEND_POSITION.header)
    try:
        found = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    meant = found.size if expected is None else before.size
    if position is not None:
        meant = int(position)
    is_same_blob = expected is None or (expected, found.creation_time) == (before.etag, before.creation_time)
    if found.is_append_blob_sealed and is_same_blob and found.size == meant:
        # Another writer may have changed headers or metadata since.
        kept = [(ContentHeaders.of(each), each.metadata or {}) for each in (before, found)]
        answer = {"etag": found.etag, "last_modified": found.last_modified} if kept[0] == kept[1] else {"etag": None}
        return Finding(Verdict.COMMITTED, answer)
    is_replaced = expected is not None and found.etag != expected
    is_over = found.is_append_blob_sealed or is_replaced or found.size > meant
    return Finding(Verdict.NEVER if is_over else Verdict.NOT_YET, seen=found)
