"""One append to an append blob: what it is tied to, its pieces, what proves that it is ours, and how it can fail."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, BinaryIO, ClassVar, TypeVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.blobs import properties
from azguard.blobs.content.upload import Settings
from azguard.errors import AzguardError, BadRequest, Changed, GaveUp, Interrupted, OutcomeUnknown, Partial
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.requests.sources import read_up_to
from azguard.wire.rows import DATES, Condition

APPEND_BLOB = "AppendBlob"
#: The most that one Append Block takes, since service version 2022-11-02.
MOST_BYTES = 100 * 1024 * 1024
#: The most blocks that one append blob has.
MOST_BLOCKS = 50_000
# What ties an append to one version or one place, so that it is not made at another one.
_PINS = {Condition.IF_MATCH, Condition.IF_NONE_MATCH, Condition.APPEND_POSITION, *DATES}
#: How the service refuses an append at a place that is not the end.
NOT_AT_END = "AppendPositionConditionNotMet"
Item = TypeVar("Item")
#: The length of a piece, which every service version takes.
PIECE_BYTES = 4 * 1024 * 1024


class Proof(StrEnum):
    """What proves after a lost answer that the bytes that stand where ours belong are ours."""

    NONE = "position"  # nothing: other bytes are not ours, and equal bytes may be another writer's
    CONTENT = "content"  # the caller, who says that no other writer writes equal bytes
    LEASE = "lease"  # a lease of our own, under which no other writer could write


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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
        """Return whether it is for one version or one place, so that another end is no place for it."""
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


@dataclass(frozen=True)
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
            message=f"{target} would be longer than {most:,} bytes; it was not appended to",
            facts={**error.facts, "position": end.position},
            reason="append_over_size",
        )
    if error.service_code == NOT_AT_END:
        error = error.but(message=f"{target} does not end at byte {end.position:,}", reason="append_elsewhere")
    return properties.describe_conflict(error, target, given.deadline)


def build_gave_up(given: Append, conflicts: int) -> GaveUp:
    """Return the error that other writers were first again and again."""
    return GaveUp(
        f"other writers appended to {given.target} first, {conflicts} times; nothing was appended",
        address=str(given.target.address),
        reason="append_gave_up",
    )


def build_unknown(given: Append, end: End, length: int, done: int) -> OutcomeUnknown:
    """Return the error that a piece was sent, and that it cannot be known whether it was appended."""
    where = "" if end.position is None else f" at byte {end.position:,}"
    before = f"{done:,} bytes before them were appended; " if done else ""
    return OutcomeUnknown(
        f"{before}{length:,} bytes were sent to the end of {given.target}{where}, and whether they were appended "
        "cannot be known",
        address=str(given.target.address),
        reason="append_unknown" if given.proof is Proof.NONE and end.position is not None else "outcome_unknown",
        facts={"position": end.position, "bytes": length, "appended_bytes": done},
    )


def build_interrupted(
    target: Target, signal: KeyboardInterrupt, told: str, facts: Mapping[str, Any], reason: str | None = None
) -> Interrupted:
    """Return the error of a write that a signal ended: what is ``told`` was done."""
    status = getattr(signal, "status", Interrupted.exit_code)
    return Interrupted(
        f"interrupted: {told}", str(target.address), facts=dict(facts), reason=reason, exit_status=status
    )


def build_created(given: Append, error: AzguardError | KeyboardInterrupt) -> AzguardError:
    """Return the error that the blob was created, and nothing is known to be appended to it."""
    told = f"{given.target} was created for it, and stays"
    if isinstance(error, KeyboardInterrupt):
        return build_interrupted(given.target, error, f"{told}, and nothing was appended", {"created": True})
    return error.but(detail=(*error.detail, told), facts={**error.facts, "created": True})


def build_partial(given: Append, error: AzguardError | KeyboardInterrupt, begun: int | None, done: int) -> AzguardError:
    """Return the error that the first ``done`` bytes were appended, and the next piece was not."""
    end = None if begun is None or given.is_lines else begun + done
    facts = {"position": begun, "appended_bytes": done, "next_position": end}
    told = f"{done:,} bytes were appended to {given.target}, and the rest was not"
    if isinstance(error, KeyboardInterrupt):
        return build_interrupted(given.target, error, told, facts, reason="append_incomplete")
    if isinstance(error, OutcomeUnknown):
        return error
    return Partial(
        f"{told}: {error.message}",
        address=str(given.target.address),
        http_status=error.http_status,
        service_code=error.service_code,
        request_id=error.request_id,
        detail=error.detail,
        facts={**facts, "cause": error.kind},
        reason="append_incomplete" if end is not None else "append_lines_incomplete",
    )


def read_pieces(source: BinaryIO) -> Iterator[bytes]:
    """Yield the content in pieces."""
    while piece := read_up_to(source, PIECE_BYTES):
        yield piece


def read_lines(source: BinaryIO) -> Iterator[bytes]:
    """Yield the content in pieces of whole lines; a last line without an end gets one.

    Raises:
        BadRequest: a line is longer than the service takes in one piece.
    """
    rest = b""
    while len(read := read_up_to(source, PIECE_BYTES)) == PIECE_BYTES:
        rest += read
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        if len(rest) >= MOST_BYTES:
            raise _build_too_long(len(rest))
    if last := rest + read:
        yield last if last.endswith(b"\n") else last + b"\n"


def join_lines(lines: Sequence[str]) -> bytes:
    """Return lines as one piece, so that they stand together or not at all.

    Raises:
        BadRequest: they are longer than the service takes in one piece.
    """
    # An argument that was not UTF-8 arrives with its bytes as surrogates, and leaves as it was typed.
    piece = b"".join(line.encode("utf-8", "surrogateescape") + b"\n" for line in lines)
    if len(piece) > MOST_BYTES:
        raise _build_too_long(len(piece))
    return piece


def mark_last(pieces: Iterator[Item]) -> Iterator[tuple[Item, bool]]:
    """Yield each piece with whether it is the last one; a piece is asked for while the one before it waits."""
    before = next(pieces, None)
    if before is None:
        return
    for piece in pieces:
        yield before, False
        before = piece
    yield before, True


def _build_too_long(length: int) -> BadRequest:
    return BadRequest(
        f"a line of {length:,} bytes or more cannot be appended in one piece; the service takes {MOST_BYTES:,}",
        reason="line_too_long",
    )
