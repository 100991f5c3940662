"""Writing and clearing pages of a page blob, under a short lease of our own.

A page carries no trace of its writer. Only under a lease can a lost answer be settled: while it is held, no one else
can have moved the ETag. A write under the caller's own lease, or without any condition, has no such proof.

Source: https://learn.microsoft.com/rest/api/storageservices/put-page
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, cast

from azguard.blobs import refusals
from azguard.blobs.content import append_blob, page_blob
from azguard.blobs.content.page_blob import PAGE_BLOB, PAGE_BYTES, PIECE_BYTES, PagesWritten, PageWrite, check_range
from azguard.errors import AzguardError, Changed, NotFound, OutcomeUnknown, UsageError, build_incomplete
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.leases import guard
from azguard.leases.guard import GuardLease
from azguard.leases.recorded import LeaseRecords
from azguard.requests import commits
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import copies, properties
from azguard.resources.copies import SourcePiece
from azguard.resources.sources import read_up_to
from azguard.wire.operations.blobs import BLOB_CLEAR_PAGE, BLOB_PUT_PAGE, BLOB_PUT_PAGE_FROM_URL
from azguard.wire.rows import Operation

Answer = Mapping[str, Any]
_POLL_SECONDS = 0.1


@frozen
class _Pages:
    """Pages to write, or to clear if there is no content."""

    offset: int
    length: int
    content: bytes | SourcePiece | None = None


def put(
    given: PageWrite,
    source: BinaryIO | Iterator[SourcePiece],
    records: LeaseRecords,
    progress: Callable[[int], None] = lambda done: None,
) -> PagesWritten:
    """Write content over the pages from ``given.offset`` on.

    Raises:
        BadRequest: it is no page blob, or too short.
        Changed: it is no longer the version, or has not the sequence number, that the condition names.
        Locked: it is leased.
        OutcomeUnknown: an answer was lost under a lease that is not our own, or without a condition.
        Partial: some pages were written, and the rest was not.
        UsageError: the content is empty, or does not consist of whole pages.
    """
    check_range(given.offset, None)
    return _write(given, _read_pages(source, given.offset), records, progress)


def clear(given: PageWrite, length: int, records: LeaseRecords) -> PagesWritten:
    """Clear pages, so that they hold zeros and take no room. Raises as ``put`` does."""
    check_range(given.offset, length)
    return _write(given, iter([_Pages(given.offset, length)]), records, lambda done: None)


def _read_pages(source: BinaryIO | Iterator[SourcePiece], offset: int) -> Iterator[_Pages]:
    contents: Iterator[bytes | SourcePiece]
    if isinstance(source, Iterator) and not hasattr(source, "read"):
        contents = source
    else:
        contents = iter(lambda: read_up_to(cast("BinaryIO", source), PIECE_BYTES), b"")
    for content in contents:
        if len(content) % PAGE_BYTES:
            raise UsageError(
                f"the content ends in the middle of a page of {PAGE_BYTES} bytes", reason="content_not_whole_pages"
            )
        yield _Pages(offset, len(content), content)
        offset += len(content)


def _write(
    given: PageWrite, pieces: Iterator[_Pages], records: LeaseRecords, progress: Callable[[int], None]
) -> PagesWritten:
    first = next(pieces, None)
    if first is None:
        raise UsageError("the input is empty; nothing was written", reason="pages_are_empty")
    run = _PageRun(given, records, progress)
    try:
        with ExitStack() as until:
            run.prepare(until, first)
            commits.step_through(chain([first], pieces), run.add)
    except (AzguardError, KeyboardInterrupt) as error:
        if not run.done_bytes and not run.created:
            raise
        raise _build_partial(given, error, run) from error
    return run.build_result()


@dataclass
class _PageRun:
    """A write of pages under way."""

    given: PageWrite
    records: LeaseRecords
    progress: Callable[[int], None]
    lease: GuardLease | None = None
    #: Of the version that is written over next.
    etag: str = ""
    done_bytes: int = 0
    created: bool = False
    attempts: int = 0
    answer: Answer | None = None
    #: Whether a piece was sent under the lease and not for one version, so that a copy of it that comes late is taken.
    is_loose: bool = False

    def prepare(self, until: ExitStack, first: _Pages) -> None:
        """Find or create the blob, and acquire the lease that proves whose a write was."""
        given = self.given
        patience = given.deadline.fresh()
        while True:
            # The pages are still to come, so that a signal must still be heeded.
            with commits.step():
                end = first.offset + first.length
                self.etag, created = page_blob.find_or_create(given, end, given.deadline.fresh())
                self.created = self.created or created
            if given.is_unconditional or given.conditions.lease_id is not None:
                return
            held = guard.hold(given.target, None, self.records, given.deadline.fresh(), self.etag)
            try:
                self.lease = until.enter_context(held)
            except Changed:
                # Without a version of the caller's own, the next one is as good.
                if given.conditions.expected_etag is not None or patience.passed:
                    raise
                given.deadline.fresh().pause(_POLL_SECONDS)
            else:
                return

    def add(self, piece: _Pages) -> None:
        given, lease = self.given, self.lease
        deadline = given.deadline.fresh()
        if lease is not None:
            lease.renew_if_old(deadline)
            if self.is_loose:
                self._shut_out_copies(lease)
            deadline = lease.patience
        headers = given.build_headers(self.etag, is_first=not self.done_bytes)
        self.is_loose = "If-Match" not in headers
        lease_id = given.conditions.lease_id if lease is None else lease.lease_id
        under = Conditions(headers, lease_id=lease_id)
        operation, sent = _describe(piece, under)
        request = WriteRequest[Answer](
            operation=operation,
            target=given.target,
            given=sent,
            look=lambda patience: _find_outcome(given, piece, self.etag, lease, patience),
            expected_etag=given.conditions.expected_etag,
            resend=lease is not None or headers.get("If-Match") == self.etag,
            unknown=_build_unknown(given, piece, self.done_bytes),
        )
        try:
            with copies.explain_piece(piece.content, given.conditions, deadline):
                settled: Settled[Answer] = send_until_settled(request, deadline)
        except Changed as error:
            raise refusals.describe_conflict(error, given.target, deadline) from error
        self.attempts += settled.attempts
        self.done_bytes += piece.length
        self.answer = settled.answer
        self.etag = settled.answer["etag"] or ""
        self.progress(self.done_bytes)

    def _shut_out_copies(self, lease: GuardLease) -> None:
        """Have copies of what was sent refused, which would pass for the proof of the next piece."""
        lease.change_id(lease.deadline)
        # A copy may have come before that, and moved the ETag.
        self.etag = properties.fetch(self.given.target, Conditions(lease_id=lease.lease_id), lease.patience).etag

    def build_result(self) -> PagesWritten:
        given, answer = self.given, self.answer or {}
        return PagesWritten(
            **describe_write(given.target, given.conditions.guard, Settled(answer, self.attempts, 0)),
            blob_type=PAGE_BLOB,
            offset=given.offset,
            written_bytes=self.done_bytes,
            sequence_number=answer.get("page_blob_sequence_number"),
            created=self.created,
        )


def _describe(piece: _Pages, under: Conditions) -> tuple[Operation, Mapping[str, Any]]:
    content, headers = piece.content, under.request_headers
    sent = {"headers": headers, "range": f"bytes={piece.offset}-{piece.offset + piece.length - 1}"}
    if content is None:
        return BLOB_CLEAR_PAGE, sent
    if isinstance(content, SourcePiece):
        return BLOB_PUT_PAGE_FROM_URL, {**sent, "headers": {**headers, **content.pinned.condition}, **content.arguments}
    return BLOB_PUT_PAGE, {**sent, "body": content}


def _find_outcome(
    given: PageWrite, piece: _Pages, etag: str, lease: GuardLease | None, patience: Deadline
) -> Finding[Answer]:
    target = given.target
    try:
        lease_id = None if lease is None else lease.lease_id
        found, is_held = properties.fetch_whatever_lease(target, lease_id, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    if found.etag == etag:
        return Finding(Verdict.NOT_YET, seen=found)
    if is_held:
        answer = {
            "etag": found.etag,
            "last_modified": found.last_modified,
            "page_blob_sequence_number": found.page_blob_sequence_number,
        }
        return Finding(Verdict.COMMITTED, answer)
    wanted = bytes(piece.length) if piece.content is None and piece.length <= PIECE_BYTES else piece.content
    is_same = (
        not isinstance(wanted, bytes) or append_blob.read_range(target, piece.offset, piece.length, patience) == wanted
    )
    return Finding(Verdict.UNKNOWN, seen=found, may_be_ours=is_same)


def _build_unknown(given: PageWrite, piece: _Pages, done: int) -> OutcomeUnknown:
    before = f"{done:,} bytes were written; " if done else ""
    return OutcomeUnknown(
        f"{before}the pages from byte {piece.offset:,} to {piece.offset + piece.length:,} of {given.target} were sent, "
        "and whether they were written cannot be known",
        address=str(given.target.address),
        reason="pages_unknown",
        facts={"offset": piece.offset, "bytes": piece.length, "written_bytes": done},
    )


def _build_partial(given: PageWrite, error: AzguardError | KeyboardInterrupt, run: _PageRun) -> AzguardError:
    done = run.done_bytes
    facts = {"offset": given.offset, "written_bytes": done, "next_offset": given.offset + done}
    told = f"{done:,} bytes of {given.target} were written, and the rest was not"
    told = told if done else f"{given.target} was created, and no page of it was written"
    if isinstance(error, OutcomeUnknown):
        return error
    return build_incomplete(error, told, str(given.target.address), facts, reason="pages_incomplete")
