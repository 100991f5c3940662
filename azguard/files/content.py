"""The content of a file: one version of it read, ranges of it listed, written and cleared, and its length.

The service evaluates no conditions on a read. Each answer tells the ETag of the version that its range is of, which is
compared: what is delivered is never a mixture of two. A program that writes over SMB gives the file another ETag too;
when, is up to the service.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import AzguardError, BadRequest, Changed, NotFound, OutcomeUnknown, UsageError, build_incomplete
from azguard.files import guarding, temporary, writes
from azguard.files.entries import drop_own
from azguard.files.guarding import Guarding, Held
from azguard.files.writes import FileWrite
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests import commits
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.results import ContentWritten, Shown, Written
from azguard.requests.service_errors import build_wrong_range
from azguard.resources import properties
from azguard.resources.downloads import DataRange, Download, Got, Inode, name_range, walk_ranges
from azguard.resources.ranges import WHOLE, Span, is_answer_to
from azguard.resources.sources import read_up_to
from azguard.times import say_count
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.shares import FILE_GET, FILE_LIST_RANGES, FILE_PUT_RANGE, FILE_SET_PROPERTIES

# The most that one Put Range takes.
_PIECE_BYTES = 4 * 1024 * 1024
# The service clears whole blocks only.
_BLOCK_BYTES = 512


@frozen(kw_only=True)
class FileGot(Got):
    """What a get of a file wrote to its output."""

    FIRST: ClassVar = (*Shown.FIRST, "content_length", "content_type")


class FileDownload(Download):
    """One version of a file, being read; the constructor reads its first range."""

    def __init__(
        self, target: Target, lease_id: str | None, patience: Callable[[], Deadline], span: Span = WHOLE
    ) -> None:
        super().__init__(target, Conditions(lease_id=lease_id), patience, span)

    def result(self, file: Path | None, content_hash: str, inode: Inode | None = None) -> FileGot:
        return FileGot(**self.describe(file, content_hash, inode), metadata=drop_own(self.properties.metadata))

    def ask(self, offset: int, length: int, etag: str | None) -> Answer:
        asked = f"bytes={offset}-{offset + length - 1}"

        def ask(timeouts: Limits) -> Answer:
            headers = self.conditions.request_headers
            found = call(FILE_GET, self.target, timeouts, headers=headers, range=asked)
            self._check(found, offset, length, etag)
            return found

        return read(ask, self.target, self.patience())

    def _check(self, found: Answer, offset: int, most: int, etag: str | None) -> None:
        """Refuse an answer that is of another version, or another part than the one asked for."""
        if etag not in (None, found.etag):
            raise Changed(
                f"{self.target} was overwritten while it was read",
                address=str(self.target.address),
                expected_etag=etag,
                current_etag=found.etag,
                reason="overwritten_while_read",
            )
        if not is_answer_to(offset, most, found):
            told = found.headers.get("Content-Range", "no Content-Range")
            raise build_wrong_range(
                self.target,
                f"asked for {most} bytes at {offset}, answered {found.status} with {told}, {len(found.content)} bytes",
            )


@frozen
class RangesAsked:
    """Which ranges are listed."""

    #: Begin at this byte; None is the first.
    offset: int | None = None
    #: Look at so many bytes; None is all.
    length: int | None = None
    #: The time of a snapshot: list only what differs from it.
    previous: str | None = None


def list_ranges(target: Target, asked: RangesAsked, conditions: Conditions, deadline: Deadline) -> Iterator[DataRange]:
    """Yield the ranges of one version that hold data.

    Raises:
        Changed: the file changes faster than its ranges can be listed.
        Locked: the lease that the conditions name is not held.
        NotFound: there is no such file, or no such snapshot.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-ranges
    """
    before = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline).etag
    while True:
        found = _find(target, asked, conditions, deadline)
        # The service lists page by page, and takes no condition that would tie them to one version.
        now = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline).etag
        if now == before:
            break
        if deadline.passed:
            raise Changed(
                f"{target} changes faster than its ranges can be listed",
                str(target.address),
                current_etag=now,
                reason="file_keeps_changing",
            )
        before = now
    yield from found


def _find(target: Target, asked: RangesAsked, conditions: Conditions, deadline: Deadline) -> list[DataRange]:
    """Return the ranges; the share itself was there just now, so that one that is missing is the snapshot."""
    given = {"range": name_range(asked.offset, asked.length), "prevsharesnapshot": asked.previous}
    try:
        return list(walk_ranges(FILE_LIST_RANGES, target, conditions.request_headers, deadline, **given))
    except NotFound as error:
        if asked.previous is None or error.service_code != "ShareNotFound":
            raise
        share = target.address.container
        raise error.but(
            message=f"the share {share} has no snapshot {asked.previous}",
            reason="share_snapshot_not_found",
            values={"container": share},
        ) from error


@frozen(kw_only=True)
class RangeWritten(Written):
    """What a write of a range did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.OFFSET, columns.WRITTEN_BYTES, columns.ETAG)

    #: The byte at which the range begins.
    offset: int
    written_bytes: int


@frozen
class RangeWrite:
    """One write of a range that is not sent yet."""

    target: Target
    conditions: Conditions
    guarding: Guarding
    #: How long one piece is tried for.
    deadline: Deadline
    offset: int


def put_range(given: RangeWrite, source: BinaryIO, progress: Callable[[int], None]) -> RangeWritten:
    """Write content over a file from ``given.offset`` on; the file keeps its length.

    Raises:
        BadRequest: the file ends before the content does.
        Changed: it is no longer the version that the condition names.
        Locked: it is leased, or another program has it open.
        OutcomeUnknown: an answer was lost under a lease that is not our own, or without a condition.
        Partial: some of the content was written, and the rest was not.
        UsageError: the content is empty.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-range
    """
    first = read_up_to(source, _PIECE_BYTES)
    if not first:
        raise UsageError("the input is empty; nothing was written", reason="range_is_empty")
    run = _RangeRun(given)

    def write(piece: bytes) -> None:
        run.write(len(piece), piece)
        progress(run.done_bytes)

    pieces = chain([first], iter(lambda: read_up_to(source, _PIECE_BYTES), b""))
    with ExitStack() as until:
        try:
            run.begin(until)
            commits.step_through(pieces, write)
        except (AzguardError, KeyboardInterrupt) as error:
            if not run.done_bytes:
                raise
            raise _build_partial(run, error) from error
        return run.finish()


def clear_range(given: RangeWrite, length: int) -> RangeWritten:
    """Clear a range, so that it holds zeros and takes no room.

    Raises:
        UsageError: it does not consist of whole blocks of 512 bytes.
        BadRequest, Changed, Locked, OutcomeUnknown: as ``put``.
    """
    for name, number in (("offset", given.offset), ("length", length)):
        if number % _BLOCK_BYTES:
            raise UsageError(
                f"{name} {number:,} is no multiple of {_BLOCK_BYTES}: whole blocks are cleared",
                argument=name,
                reason="not_whole_blocks",
            )
    run = _RangeRun(given)
    with ExitStack() as until:
        run.begin(until)
        run.write(length, None)
        return run.finish()


def resize_file(
    target: Target, size: int, conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> ContentWritten:
    """Set the length of a file: what is cut off is lost, what is added holds zeros.

    Raises:
        Changed, Locked, OutcomeUnknown: as ``put``.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-file-properties
    """
    given = temporary.describe_size(size)
    done = writes.perform(FILE_SET_PROPERTIES, target, conditions, guarding_by, deadline, **given)
    return ContentWritten(**vars(done), content_length=size)


@dataclass
class _RangeRun:
    """A write of a range under way."""

    given: RangeWrite
    #: The version that is there, under the lease; None without a version of the caller's own.
    held: Held | None = None
    size: int = 0
    done_bytes: int = 0
    attempts: int = 0
    last: Written | None = None

    def begin(self, until: ExitStack) -> None:
        """Acquire the lease that proves whose a write was, and learn the length of the file."""
        given = self.given
        conditions = guarding.take_over(given.target, given.conditions, given.guarding, given.deadline)
        given = self.given = replace(given, conditions=conditions)
        if given.conditions.expected_etag is None:
            self.size = properties.fetch(
                given.target, Conditions(lease_id=given.conditions.lease_id), given.deadline
            ).size
            return
        held = guarding.hold(given.target, given.conditions, given.guarding, given.deadline)
        self.held = until.enter_context(held)
        self.size = self.held.found.size

    def finish(self) -> RangeWritten:
        """Remove the record of the lease's holder, and return the result of the write."""
        given = self.given
        assert self.last is not None
        last = guarding.finish(given.target, self.held, self.last, given.deadline)
        done = {**vars(last), "guard": given.conditions.guard, "attempts": self.attempts}
        return RangeWritten(**done, offset=given.offset, written_bytes=self.done_bytes)

    def write(self, length: int, piece: bytes | None) -> None:
        """Write one piece; None clears the range."""
        given, start = self.given, self.given.offset + self.done_bytes
        end = start + length
        if end > self.size:
            raise BadRequest(
                f"{given.target} has {say_count(self.size, 'byte')}, so nothing can be written at byte {end - 1:,}",
                str(given.target.address),
                reason="range_behind_end",
                values={"needed": end},
            )
        deadline = given.deadline.fresh()
        if self.held is not None:
            self.held.lease.deadline = deadline
            deadline = self.held.lease.patience
        write = FileWrite(
            target=given.target,
            conditions=given.conditions,
            operation=FILE_PUT_RANGE,
            given=temporary.describe_range(start, length, piece),
        )
        if self.held is not None and self.held.may_move:
            self.held = guarding.exclude_late(self.held, deadline)
        self.last = writes.send(write, self.held, deadline)
        self.attempts += self.last.attempts
        self.done_bytes += length
        if self.held is not None:
            # The outcome of the next piece is told by the version that this one made.
            found = self.held.found.but(etag=self.last.etag)
            self.held = replace(self.held, found=found, may_move=self.last.attempts > 1 and self.held.lease.is_own)


def _build_partial(run: _RangeRun, error: AzguardError | KeyboardInterrupt) -> AzguardError:
    given, done = run.given, run.done_bytes
    facts = {"offset": given.offset, "written_bytes": done, "next_offset": given.offset + done}
    told = f"{done:,} bytes of {given.target} were written, and the rest was not"
    if isinstance(error, OutcomeUnknown):
        return error.but(facts={**error.facts, **facts})
    return build_incomplete(error, told, str(given.target.address), facts, reason="range_incomplete")
