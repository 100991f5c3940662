"""An append blob: one append to it as a value, its end, which is found, made or sealed, and what stands there.

An Append Block is tied to its position. While the blob ends there, the block is not committed, and two transmissions of
it exclude each other. Once something else stands there, it never can be, because an append blob only grows. Equal bytes
prove nothing by themselves: two writers may append equal lines.
"""

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import refusals
from azguard.blobs.content.download import ask_range
from azguard.blobs.content.upload import Settings, create_empty
from azguard.errors import (
    AzguardError,
    BadRequest,
    Changed,
    Forbidden,
    NotFound,
)
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.resources.copies import SourcePiece
from azguard.resources.properties import ContentHeaders
from azguard.times import say_count
from azguard.wire.operations.blobs import BLOB_PUT_APPEND_BLOB, BLOB_SEAL_APPEND_BLOB
from azguard.wire.rows import DATES, Condition

APPEND_BLOB = "AppendBlob"
#: The most blocks that one append blob has.
MOST_BLOCKS = 50_000
# What ties an append to one version or one place, so that it is not made at another one.
_PINS = {Condition.IF_MATCH, Condition.IF_NONE_MATCH, Condition.APPEND_POSITION, *DATES}
#: How the service refuses an append at a place that is not the end.
NOT_AT_END = "AppendPositionConditionNotMet"
Answer = Mapping[str, Any]


class Proof(StrEnum):
    """What proves after a lost answer that the bytes that stand where ours belong are ours."""

    NONE = "position"  # nothing: other bytes are not ours, and equal bytes may be another writer's
    CONTENT = "content"  # the caller, who says that no other writer writes equal bytes
    LEASE = "lease"  # a lease of our own, under which no other writer could write


@frozen(kw_only=True)
class AppendDone(Written):
    """What an append wrote."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.POSITION, columns.APPENDED_BYTES, columns.ETAG)

    blob_type: str
    #: Where the first byte stands.
    position: int | None
    appended_bytes: int
    #: The length of the blob behind the last byte that was appended.
    content_length: int | None
    #: How many blocks the blob has; None where that was not told.
    block_count: int | None
    #: Whether the blob was created for it.
    created: bool
    #: The version that was found there before; None where it was not looked up.
    found_etag: str | None = field(default=None, metadata=columns.UNPRINTED)


@frozen(kw_only=True)
class Append:
    """One append that is not sent yet."""

    target: Target
    conditions: Conditions
    #: How long one piece is tried for.
    deadline: Deadline
    proof: Proof = Proof.NONE
    #: Whether other writers' bytes may come between the pieces, because each piece is whole lines.
    is_lines: bool = False
    #: Whether the end of the blob is not even looked up, so that a lost answer stays unknown.
    is_anywhere: bool = False
    #: The settings of the blob to create where there is none; None creates none.
    create: Settings | None = None
    #: How long other writers are given way to, in seconds.
    contention_seconds: float = 60.0
    #: Joins the queue of the writers on this machine.
    queue: Callable[[], AbstractContextManager[Any]] = nullcontext
    #: Makes the one piece for the end that was found; None where the pieces are known before.
    build: "Callable[[End], bytes] | None" = None
    chance: random.Random = field(default_factory=random.Random)

    def knows_content(self, done: AppendDone, known_etag: str | None) -> bool:
        """Return whether the caller knows all content of the version that was written, so that it may guard a write.

        ``known_etag`` is the version that the caller knew before. Nothing but our bytes came behind it if our first
        piece is tied to its end, and the last one to ours.
        """
        if done.outcome != "committed" or done.position is None:
            return False
        is_in_one_piece = done.content_length == done.position + done.appended_bytes
        is_behind_known = done.found_etag is not None and done.found_etag == known_etag
        return is_in_one_piece and (done.position == 0 or is_behind_known or self.conditions.expected_etag is not None)

    @property
    def is_pinned(self) -> bool:
        """Return whether the conditions name one version or one position, so that no other end of the blob is taken."""
        return any(each.header in self.conditions.headers for each in _PINS)

    @property
    def guard(self) -> str:
        """Return the name of what guards it, as results show it."""
        if self.proof is Proof.LEASE:
            return "lease"
        if self.is_anywhere or self.is_pinned or self.conditions.guard == "conditions":
            return self.conditions.guard
        return str(Proof.NONE)

    def build_headers(self, position: int | None, *, is_first: bool) -> dict[str, str]:
        """Return the condition headers of one piece; a piece behind our own one is tied to its place alone."""
        headers: Mapping[str, str] = self.conditions.without_source().headers
        if not is_first:
            pins = {each.header for each in _PINS}
            headers = {name: value for name, value in headers.items() if name not in pins}
        place = {} if position is None else {Condition.APPEND_POSITION.header: str(position)}
        return {**headers, **place}


@frozen
class End:
    """The end of an append blob, as it was found or made."""

    #: None where it was not looked up.
    position: int | None
    #: Of the blob itself: another one of the same name has another time. None where that was not told.
    created: datetime | None = None
    #: How many blocks the blob had at least.
    blocks: int = 0
    #: Of the version that was found; None where it was made.
    etag: str | None = None


def explain_failed_condition(error: Changed, given: Append, end: End) -> AzguardError:
    """Return a failed condition with what is there now."""
    target = given.target
    if error.service_code == "MaxBlobSizeConditionNotMet":
        most = int(given.conditions.headers[Condition.MAX_SIZE.header])
        return error.but(
            message=f"{target} would be longer than {say_count(most, 'byte')}; it was not appended to",
            facts={**error.facts, "position": end.position},
            reason="append_over_size",
        )
    if error.service_code == NOT_AT_END:
        error = error.but(message=f"{target} does not end at byte {end.position:,}", reason="append_elsewhere")
    return refusals.describe_conflict(error, target, given.deadline)


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
            refusals.check_creatable(given.target, given.conditions, error)
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

    Where the blob does not end at that byte, nothing is sent: equal bytes behind it are then not ours, even under
    our lease. Only the caller's word that no other writer writes them makes them those of an earlier run.
    """
    size: int = found.size
    typed = given.conditions.headers.get(Condition.APPEND_POSITION.header)
    if typed is None:
        return size
    if int(typed) != size and given.proof is not Proof.CONTENT:
        refusal = Changed("", str(given.target.address), service_code=NOT_AT_END, seen=found)
        raise explain_failed_condition(refusal, given, End(int(typed)))
    return int(typed)


def _create(given: Append, deadline: Deadline) -> bool:
    """Create the blob, empty, only if there is none; return whether it is known to be ours.

    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob
    """
    settings = given.create
    assert settings is not None

    def look(patience: Deadline) -> Finding[Any]:
        if properties.find(given.target, patience) is None:
            return Finding(Verdict.NOT_YET)
        return Finding(Verdict.COMMITTED)  # Ours or not: an append is what was asked for.

    def send() -> Any:
        return create_empty(BLOB_PUT_APPEND_BLOB, given.target, settings, deadline, metadata=settings.metadata)

    request = WriteRequest(BLOB_PUT_APPEND_BLOB, given.target, look, send=send)
    return send_until_settled(request, deadline).answer is not None


def _check(given: Append, found: Any) -> None:
    target, expected = given.target, given.conditions.expected_etag
    facts: Any = {"address": str(target.address)}
    kind = found.blob_type
    if kind != APPEND_BLOB:
        raise BadRequest(
            f"{target} is {refusals.describe_type(kind)}, to which nothing can be appended",
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
        raise refusals.describe_conflict(refusal, target, given.deadline)


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
    is_same = found.blob_type == APPEND_BLOB and found.creation_time == end.created
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


@frozen(kw_only=True)
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
    _check_type(target, before.blob_type)
    request = WriteRequest(
        operation=BLOB_SEAL_APPEND_BLOB,
        target=target,
        given={"headers": conditions.request_headers},
        look=lambda patience: _find_outcome(target, conditions, before, patience),
        expected_etag=conditions.expected_etag,
    )
    with refusals.explain_refusal(target, conditions, deadline):
        settled = send_until_settled(request, deadline)
    return BlobSealed(
        **describe_write(target, conditions.guard, settled),
        blob_type=APPEND_BLOB,
        content_length=before.size,
        sealed=True,
    )


def _check_type(target: Target, kind: str | None) -> None:
    if kind != APPEND_BLOB:
        raise BadRequest(
            f"{target} is {refusals.describe_type(kind)}, which cannot be sealed",
            address=str(target.address),
            reason="no_append_blob_to_seal",
        )


def _find_outcome(target: Target, conditions: Conditions, before: Any, patience: Deadline) -> Finding[Any]:
    """Return whether the blob is sealed with the content that the caller meant; ``before`` is what was there first.

    The service keeps the ETag when it seals, and the emulator gives a new one; a blob that is sealed does not grow, so
    its length tells whether another writer appended to it before.
    """
    expected, position = conditions.expected_etag, conditions.headers.get(Condition.APPEND_POSITION.header)
    found = properties.find(target, patience)
    if found is None:
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
