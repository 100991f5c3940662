"""Appending to an append blob: each piece once, at a place that is known before it is sent.

The end of the blob is looked up, and each Append Block is tied to it: another writer who was first makes it fail, and
nothing is lost. An append that is for no version and no place is then made at the new end. Pieces after the first
are tied to the place behind it, so that one content stays in one piece; pieces of whole lines may stand apart.

Source: https://learn.microsoft.com/rest/api/storageservices/append-block
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, BinaryIO, TypeVar

from azguard.blobs.content import append_blob
from azguard.blobs.content.append_blob import APPEND_BLOB, Append, AppendDone, End, Proof, explain_failed_condition
from azguard.cache.reads import Reads
from azguard.errors import (
    AzguardError,
    BadRequest,
    Changed,
    GaveUp,
    Locked,
    OutcomeUnknown,
    Partial,
    UsageError,
    build_interrupted,
)
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.leases import guard
from azguard.leases.guard import GuardLease
from azguard.leases.recorded import LeaseRecords
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Settled, WriteRequest, send_until_settled
from azguard.resources import copies
from azguard.resources.copies import SourcePiece
from azguard.resources.sources import read_up_to
from azguard.times import say_count
from azguard.wire.operations.blobs import BLOB_APPEND_BLOCK, BLOB_APPEND_BLOCK_FROM_URL
from azguard.wire.rows import Operation

Item = TypeVar("Item")
Piece = bytes | SourcePiece
# Another writer's lease that guards an append lasts a few round trips. One that lasts longer is a lock.
_OTHERS_SECONDS = 3.0
_POLL_SECONDS = 0.1
# Two writers that meet again and again part within this.
_LONGEST_PAUSE_SECONDS = 0.4
#: The most that one Append Block takes, since service version 2022-11-02.
MOST_BYTES = 100 * 1024 * 1024
#: The length of a piece, which every service version takes.
PIECE_BYTES = 4 * 1024 * 1024


def append(
    given: Append,
    pieces: Iterator[Piece],
    records: LeaseRecords,
    progress: Callable[[int], None] = lambda done: None,
    *,
    allow_empty: bool = False,
) -> AppendDone:
    """Append the pieces to a blob, each exactly once, and return where they stand; none only with ``allow_empty``.

    Raises:
        BadRequest: it is no append blob, it is sealed, or it has no room for them.
        Changed: it is not the version, or does not end at the place, that the condition names.
        GaveUp: other writers were first until the time was up; nothing was appended.
        Locked: it is leased.
        NotFound: there is no such blob, and none is to be created.
        OutcomeUnknown: an answer was lost, and equal bytes stand there, which may be another writer's.
        Partial: some pieces were appended, and the next one was not.
    """
    run = _AppendRun(given, records, progress)
    first = next(pieces, None)
    if first is None:
        if not allow_empty:
            raise UsageError("the input is empty; nothing was appended", reason="append_is_empty")
        return replace(run.build_result(), outcome="unchanged")
    try:
        with ExitStack() as until:
            run.prepare(until)
            commits.step_through(chain([first], pieces), run.add)
    except (AzguardError, KeyboardInterrupt) as error:
        if not run.done_bytes and not run.created:
            raise
        if not run.done_bytes:
            raise build_created(given, error) from error
        raise build_partial(given, error, run.begun, run.done_bytes) from error
    return run.build_result()


def _describe(piece: Piece, under: Conditions) -> tuple[Operation, Mapping[str, Any]]:
    headers = under.request_headers
    if isinstance(piece, SourcePiece):
        return BLOB_APPEND_BLOCK_FROM_URL, {"headers": {**headers, **piece.pinned.condition}, **piece.arguments}
    return BLOB_APPEND_BLOCK, {"headers": headers, "body": piece}


def remember_append(given: Append, done: AppendDone, reads: Reads) -> None:
    """Record the version that an append made, if this scope knows all of its content: it guards the next write."""
    known = reads.find_last(given.target)
    if given.knows_content(done, None if known is None else known.etag):
        lineage = given.conditions.lineage or (None if known is None else known.lineage)
        reads.record(given.target, done, lineage=lineage)


@dataclass
class _AppendRun:
    """An append under way."""

    given: Append
    records: LeaseRecords
    progress: Callable[[int], None]
    #: Our own lease.
    lease: GuardLease | None = None
    #: The end behind our own last piece; None where it has to be looked up.
    end: End | None = None
    #: Where our first piece stands.
    begun: int | None = None
    #: The version that was found before it.
    found_etag: str | None = None
    done_bytes: int = 0
    created: bool = False
    attempts: int = 0
    conflicts: int = 0
    answer: Mapping[str, Any] | None = None

    def prepare(self, until: ExitStack) -> None:
        """Find or create the blob, and acquire the lease if one is to guard the append."""
        given = self.given
        if not given.is_anywhere or given.create is not None:
            self.end = self._find_end()
        if given.proof is Proof.LEASE:
            self.lease = self._acquire(until)

    def _acquire(self, until: ExitStack) -> GuardLease:
        given = self.given
        patience = given.deadline.restart(seconds=given.contention_seconds)
        while True:
            end = self.end or self._find_end()
            held = guard.hold(given.target, None, self.records, given.deadline.fresh(), end.etag)
            try:
                lease = until.enter_context(held)
            except Changed as error:
                if patience.passed:
                    raise build_gave_up(given, self.conflicts) from error
                self.end = None
                self.conflicts += 1
                self._pause(_POLL_SECONDS)
            else:
                self.end = end
                return lease

    def add(self, piece: Piece) -> None:
        given = self.given
        until = given.deadline.restart(seconds=given.contention_seconds)
        others = given.deadline.restart(seconds=_OTHERS_SECONDS)
        tries = 0
        with given.queue():
            while True:
                end = self.end or self._find_end()
                self.end = None
                piece = piece if given.build is None else given.build(end)
                try:
                    settled = self._send(piece, end)
                except Changed as error:
                    if not self._may_move(error):
                        raise explain_failed_condition(error, given, end) from error
                    if until.passed:
                        raise build_gave_up(given, self.conflicts) from error
                    self.conflicts += 1
                    tries += 1
                    self._pause(min(_LONGEST_PAUSE_SECONDS, 0.01 * 2**tries))
                except Locked as error:
                    if not self._may_wait(error, others):
                        raise
                    self._pause(_POLL_SECONDS)
                else:
                    self._note(piece, end, settled)
                    return

    def build_result(self) -> AppendDone:
        given, answer = self.given, self.answer or {}
        return AppendDone(
            **describe_write(given.target, given.guard, Settled(answer, self.attempts, 0)),
            blob_type=APPEND_BLOB,
            position=self.begun,
            appended_bytes=self.done_bytes,
            content_length=None if self.end is None else self.end.position,
            block_count=answer.get("append_blob_committed_block_count"),
            conflicts=self.conflicts,
            created=self.created,
            found_etag=self.found_etag,
        )

    def _find_end(self) -> End:
        given = self.given
        if given.is_anywhere and given.create is None:
            return End(None)
        # The append is still to come, so that a signal must still be heeded.
        with commits.step():
            end, created = append_blob.find_or_create_end(given, given.deadline.fresh())
            self.created = self.created or created
        return End(None) if given.is_anywhere else end

    def _send(self, piece: Piece, end: End) -> Settled[Mapping[str, Any]]:
        given, lease = self.given, self.lease
        # How long a pipe was silent, or others were given way to, does not count against this piece.
        deadline = given.deadline.fresh()
        if lease is not None:
            lease.renew_if_old(deadline)
            deadline = lease.patience
        lease_id = given.conditions.lease_id if lease is None else lease.lease_id
        headers = given.build_headers(end.position, is_first=not self.done_bytes)
        operation, sent = _describe(piece, Conditions(headers, lease_id=lease_id))

        def look(patience: Deadline) -> Any:
            own = None if lease is None else lease.lease_id
            return append_blob.find_append_outcome(given.target, end, piece, given.proof, own, patience)

        request = WriteRequest(
            operation=operation,
            target=given.target,
            given=sent,
            look=look,
            expected_etag=given.conditions.expected_etag,
            resend=end.position is not None,
            unknown=build_unknown(given, end, len(piece), self.done_bytes),
        )
        with copies.explain_piece(piece, given.conditions, deadline):
            return send_until_settled(request, deadline)

    def _may_move(self, error: Changed) -> bool:
        """Return whether another writer was first, and the piece may stand behind that writer's bytes."""
        is_first = error.service_code in (None, "AppendPositionConditionNotMet")
        return is_first and not self.given.is_pinned and (self.given.is_lines or not self.done_bytes)

    def _may_wait(self, error: Locked, others: Deadline) -> bool:
        own = self.given.conditions.lease_id or self.lease
        return own is None and error.service_code == "LeaseIdMissing" and not others.passed

    def _pause(self, seconds: float) -> None:
        self.given.deadline.fresh().pause(self.given.chance.uniform(0.0, 1.0) * seconds)

    def _note(self, piece: Piece, end: End, settled: Settled[Mapping[str, Any]]) -> None:
        answer = settled.answer
        at = answer.get("append_offset")
        position = end.position if at is None else at
        if self.begun is None:
            self.begun = position
            self.found_etag = end.etag
        self.attempts += settled.attempts
        self.done_bytes += len(piece)
        self.answer = answer
        self.end = None if position is None else End(position + len(piece), end.created, end.blocks + 1)
        self.progress(self.done_bytes)


def build_gave_up(given: Append, conflicts: int) -> GaveUp:
    """Return the error that other writers were first again and again."""
    return GaveUp(
        f"other writers appended to {given.target} first, {say_count(conflicts, 'time')}; nothing was appended",
        address=str(given.target.address),
        reason="append_gave_up",
    )


def build_unknown(given: Append, end: End, length: int, done: int) -> OutcomeUnknown:
    """Return the error that a piece was sent, and that it cannot be known whether it was appended."""
    where = "" if end.position is None else f" at byte {end.position:,}"
    before = f"{say_count(done, 'byte', 'was')} appended before; " if done else ""
    return OutcomeUnknown(
        f"{before}{say_count(length, 'byte', 'was')} sent to the end of {given.target}{where}, and whether "
        "it was appended cannot be known",
        address=str(given.target.address),
        reason="append_unknown" if given.proof is Proof.NONE and end.position is not None else "outcome_unknown",
        facts={"position": end.position, "bytes": length, "appended_bytes": done},
    )


def build_created(given: Append, error: AzguardError | KeyboardInterrupt) -> AzguardError:
    """Return the error that the blob was created, and nothing is known to be appended to it."""
    told = f"{given.target} was created for it, and stays"
    if isinstance(error, KeyboardInterrupt):
        return build_interrupted(
            error, f"{told}, and nothing was appended", str(given.target.address), {"created": True}
        )
    return error.but(detail=(*error.detail, told), facts={**error.facts, "created": True})


def build_partial(given: Append, error: AzguardError | KeyboardInterrupt, begun: int | None, done: int) -> AzguardError:
    """Return the error that the first ``done`` bytes were appended, and the next piece was not."""
    end = None if begun is None or given.is_lines else begun + done
    facts = {"position": begun, "appended_bytes": done, "next_position": end}
    told = f"{say_count(done, 'byte', 'was')} appended to {given.target}, and the rest was not"
    if isinstance(error, KeyboardInterrupt):
        return build_interrupted(error, told, str(given.target.address), facts, reason="append_incomplete")
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


def _build_too_long(length: int) -> BadRequest:
    return BadRequest(
        f"a line of {length:,} bytes or more cannot be appended in one piece; the service takes {MOST_BYTES:,}",
        reason="line_too_long",
    )
