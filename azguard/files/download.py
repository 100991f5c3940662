"""One version of a file, read in ranges whose ETags are compared: what is delivered is never a mixture of two.

The service evaluates no conditions on a read. Each answer tells the ETag of the version that its range is of. A program
that writes over SMB gives the file another ETag too; when, is up to the service.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import BadRequest, Changed
from azguard.files.entries import drop_own
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.requests import delivery
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.delivery import RANGE_BYTES, Piece, Ranges, Span
from azguard.requests.lineage import KEY
from azguard.requests.results import Shown
from azguard.requests.service_errors import build_wrong_range
from azguard.resources import properties
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.shares import FILE_GET


@dataclass(frozen=True, kw_only=True)
class FileGot(Shown):
    """What a get wrote to its output."""

    #: Of the file.
    content_length: int
    content_type: str | None
    #: Where the bytes that were asked for begin.
    start: int
    #: How many bytes were delivered.
    length: int
    #: Of the bytes that were delivered.
    content_hash: str
    file: str | None
    metadata: dict[str, str]
    #: Of the file that was written, as long as it had no other name than a temporary one.
    inode: delivery.Inode | None = field(default=None, metadata=columns.UNPRINTED)


class FileDownload:
    """One version of a file, being read; the constructor reads its first range."""

    def __init__(self, target: Target, lease_id: str | None, patience: Callable[[], Deadline], span: Span) -> None:
        self._target = target
        self._headers = Conditions(lease_id=lease_id).request_headers
        self._patience = patience
        self._span = span
        self._first, self.properties = self._read_first(lease_id)

    @property
    def end(self) -> int:
        """Return where the bytes that were asked for end."""
        size: int = self.properties.size
        return size if self._span.end is None else min(size, self._span.end)

    @property
    def size(self) -> int:
        """Return how many bytes are to be delivered."""
        return self.end - self._span.start

    @property
    def lineage(self) -> str | None:
        """Return the lineage that this version carries."""
        value: str | None = (self.properties.metadata or {}).get(KEY)
        return value

    def read_pieces(self, *, in_order: bool) -> Iterator[Piece]:
        """Yield the bytes that were asked for once, in order or as the answers come; the first begins at 0.

        Raises:
            Changed: the file was overwritten meanwhile.
        """
        start = self._span.start
        first = Piece(0, self._first)
        self._first = b""
        with closing(Ranges(self._read_range, start + len(first.content), self.end)) as rest:
            yield first
            del first
            for piece in rest.in_order() if in_order else rest.as_they_come():
                yield Piece(piece.offset - start, piece.content)

    def result(self, file: Path | None, content_hash: str) -> FileGot:
        """Return the result of the download, once the content is delivered."""
        found = self.properties
        return FileGot(
            address=str(self._target.address),
            etag=quote_etag(found.etag),
            last_modified=found.last_modified,
            content_length=found.size,
            content_type=found.content_settings.content_type or None,
            start=self._span.start,
            length=self.size,
            content_hash=content_hash,
            file=None if file is None else str(file),
            metadata=drop_own(found.metadata),
        )

    def _read_first(self, lease_id: str | None) -> tuple[bytes, Answer]:
        start = self._span.start
        most = RANGE_BYTES if self._span.end is None else min(RANGE_BYTES, self._span.end - start)
        while True:
            try:
                found = self._ask(start, most, None)
            except BadRequest as error:
                if error.http_status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise
                # There is no range in a file of no bytes.
                found = properties.fetch(self._target, Conditions(lease_id=lease_id), self._patience())
                if start > found.size:
                    raise BadRequest(
                        f"{self._target} has only {found.size} bytes",
                        str(self._target.address),
                        reason="range_beyond_end",
                    ) from error
                if start == found.size:
                    return b"", found
            else:
                return found.take_content(), found

    def _read_range(self, offset: int, length: int) -> bytes:
        return self._ask(offset, length, quote_etag(self.properties.etag)).content

    def _ask(self, offset: int, most: int, etag: str | None) -> Answer:
        """Return a range, of one version if that is named, and the properties that came with it."""
        asked = f"bytes={offset}-{offset + most - 1}"

        def ask(timeouts: Limits) -> Answer:
            found = call(FILE_GET, self._target, timeouts, headers=self._headers, range=asked)
            self._check(found, offset, most, etag)
            return found

        return read(ask, self._target, self._patience())

    def _check(self, found: Answer, offset: int, most: int, etag: str | None) -> None:
        """Refuse an answer that is of another version, or another part than the one asked for."""
        if etag is not None and quote_etag(found.etag or "") != etag:
            raise Changed(
                f"{self._target} was overwritten while it was read",
                address=str(self._target.address),
                expected_etag=etag,
                current_etag=quote_etag(found.etag or ""),
                reason="overwritten_while_read",
            )
        if not delivery.is_answer_to(offset, most, found):
            told = found.headers.get("Content-Range", "no Content-Range")
            raise build_wrong_range(
                self._target,
                f"asked for {most} bytes at {offset}, answered {found.status} with {told}, {len(found.content)} bytes",
            )


def to_stream(
    target: Target,
    conditions: Conditions,
    span: Span,
    stream: BinaryIO,
    deadline: Deadline,
    progress: Callable[[int, int], None],
) -> tuple[FileGot, str | None]:
    """Write a file's content, or a part of it, to a stream; return the result and the file's lineage.

    Raises:
        Changed: the file was overwritten while it was read; the content in the stream is incomplete.
        OutputFailed: the stream takes no more, as on a full disk.
    """
    download, content_hash = delivery.to_stream(
        target, lambda: FileDownload(target, conditions.lease_id, deadline.fresh, span), stream, progress
    )
    return download.result(None, content_hash), download.lineage


def to_file(
    target: Target,
    conditions: Conditions,
    span: Span,
    file: Path,
    deadline: Deadline,
    progress: Callable[[int, int], None],
    *,
    admit: delivery.Admit,
) -> tuple[FileGot, str | None]:
    """Write a file's content, or a part of it, to a local file, whole or not at all: temporary file, fsync, rename.

    Raises:
        UsageError: the folder does not exist or is not writable; nothing was requested.
        OutputFailed: the disk is full or fails; the local file is as it was.
        Changed: ``admit`` refused; the local file is as it was.
    """
    download, content_hash, inode = delivery.to_file(
        target, lambda: FileDownload(target, conditions.lease_id, deadline.fresh, span), file, deadline, progress, admit
    )
    # A device or a pipe is no copy.
    return replace(download.result(file if file.is_file() else None, content_hash), inode=inode), download.lineage
