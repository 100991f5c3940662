"""Appending to an append blob: each piece once, at a place that is known before it is sent.

The end of the blob is looked up, and each Append Block is tied to it: another writer who was first makes it fail, and
nothing is lost. An append that is for no version and no place is then made at the new end. Pieces after the first
are tied to the place behind it, so that one content stays in one piece; pieces of whole lines may stand apart.

Source: https://learn.microsoft.com/rest/api/storageservices/append-block
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from azguard.blobs import copy_sources
from azguard.blobs.content import append_end
from azguard.blobs.content.append_request import (
    APPEND_BLOB,
    Append,
    AppendDone,
    End,
    Proof,
    build_created,
    build_gave_up,
    build_partial,
    build_unknown,
    explain_failed_condition,
    mark_last,
)
from azguard.blobs.copy_sources import SourcePiece
from azguard.cache.reads import Reads
from azguard.documents import edits
from azguard.documents.edits import Edit
from azguard.errors import AzguardError, BadRequest, Changed, Locked, UsageError
from azguard.guards.resolve import POSITION, Conditions
from azguard.guards.versions import describe_write
from azguard.leases import guard
from azguard.leases.guard import GuardLease
from azguard.leases.recorded import LeaseRecords
from azguard.requests import commits
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Settled, WriteRequest, send_until_settled
from azguard.updates import recording
from azguard.updates.plan import RAW_OP
from azguard.updates.recording import LocalRecords, UpdateReport, UpdateRequest
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_APPEND_BLOCK, BLOB_APPEND_BLOCK_FROM_URL

Piece = bytes | SourcePiece
# Another writer's lease that guards an append lasts a few round trips. One that lasts longer is a lock.
_OTHERS_SECONDS = 3.0
_POLL_SECONDS = 0.1
# Two writers that meet again and again part within this.
_LONGEST_PAUSE_SECONDS = 0.4
# An end of a line has at most two bytes.
_END_OF_LINE = 2


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
            for piece, is_last in mark_last(chain([first], pieces)):
                # A piece that is not the last one is no end: a signal after it must still be heeded.
                with nullcontext() if is_last else commits.step():
                    run.add(piece)
    except (AzguardError, KeyboardInterrupt) as error:
        if not run.done_bytes and not run.created:
            raise
        if not run.done_bytes:
            raise build_created(given, error) from error
        raise build_partial(given, error, run.begun, run.done_bytes) from error
    return run.build_result()


def _send_once(given: Append, piece: Piece, headers: Mapping[str, str], deadline: Deadline) -> Mapping[str, Any]:
    timeouts = write_timeouts(deadline)
    if isinstance(piece, SourcePiece):
        sent = {**headers, **piece.condition}
        return call(BLOB_APPEND_BLOCK_FROM_URL, given.target, timeouts, headers=sent, **piece.arguments)
    return call(BLOB_APPEND_BLOCK, given.target, timeouts, headers=headers, body=piece)


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
        """Append one piece."""
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
        """Return the result of the append."""
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
            end, created = append_end.find_or_create_end(given, given.deadline.fresh())
            self.created = self.created or created
        return End(None) if given.is_anywhere else end

    def _send(self, piece: Piece, end: End) -> Settled[Mapping[str, Any]]:
        given, lease = self.given, self.lease
        # How long a pipe was silent, or others were given way to, does not count against this piece.
        deadline = given.deadline.fresh()
        if lease is not None:
            guard.renew_if_old(lease, given.target, deadline)
            deadline = lease.patience
        lease_id = given.conditions.lease_id if lease is None else lease.lease_id
        headers = given.build_headers(end.position, is_first=not self.done_bytes)
        sent = Conditions(headers, lease_id=lease_id).request_headers

        def look(patience: Deadline) -> Any:
            own = None if lease is None else lease.lease_id
            return append_end.find_append_outcome(given.target, end, piece, given.proof, own, patience)

        request = WriteRequest(
            target=given.target,
            send=lambda: _send_once(given, piece, sent, deadline),
            look=look,
            expected_etag=given.conditions.expected_etag,
            resend=end.position is not None,
            unknown=build_unknown(given, end, len(piece), self.done_bytes),
        )
        with copy_sources.explain_piece(piece, given.conditions, deadline):
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


@dataclass(frozen=True)
class TextEdits:
    """Edits that only add text at the end."""

    edits: Sequence[Edit]
    leases: LeaseRecords
    #: Where the version that was made is recorded.
    reads: Reads


def update_text(request: UpdateRequest, records: LocalRecords, text: TextEdits) -> UpdateReport:
    """Apply the edits exactly once, whatever the type. Raises as ``recording.update_and_record`` and ``append`` do."""
    try:
        return recording.update_and_record(request, records)
    except BadRequest as error:
        if error.values.get("blob_type") != APPEND_BLOB:
            raise
    return _report(request, _append(request, records, text))


def _append(request: UpdateRequest, records: LocalRecords, text: TextEdits) -> AppendDone:
    target, plan = request.target, request.plan

    def build(end: End) -> bytes:
        before = min(_END_OF_LINE, end.position or 0)
        tail = b""
        if before:
            tail = append_end.read_range(target, (end.position or 0) - before, before, request.deadline.fresh())
        return edits.apply(text.edits, tail)[len(tail) :]

    given = Append(
        target=target,
        conditions=Conditions({}, POSITION, lease_id=plan.lease_id),
        deadline=request.deadline,
        proof=Proof.LEASE if plan.guard_by_lease else Proof.NONE,
        is_lines=True,
        contention_seconds=request.deadline.seconds,
        queue=lambda: recording.join_queue(request, records),
        build=build,
    )
    done = append(given, iter([edits.apply(text.edits, b"")]), text.leases)
    remember_append(given, done, text.reads)
    return done


def _report(request: UpdateRequest, done: AppendDone) -> UpdateReport:
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
