"""One version of a blob, read in ranges that are pinned to it.

The first range carries the caller's conditions, every further one ``If-Match`` with the first one's ETag, so that
what is delivered is one version of the blob and no mixture.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

from azguard import columns
from azguard.accounts.account import SINGLE_BYTES, Target
from azguard.blobs import refusals
from azguard.errors import BadRequest, Changed, NotFound, Unavailable
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.requests import delivery
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.delivery import RANGE_BYTES, WHOLE, Piece, Ranges, Span
from azguard.requests.lineage import KEY, drop_lineage
from azguard.requests.results import Shown
from azguard.requests.service_errors import build_wrong_range
from azguard.resources import properties
from azguard.resources.properties import encode_md5
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.blobs import BLOB_GET


@dataclass(frozen=True, kw_only=True)
class BlobGot(Shown):
    """What a get wrote to its output."""

    #: Of the blob.
    content_length: int
    #: Where the bytes that were asked for begin, and how many were delivered.
    start: int
    length: int
    content_type: str | None
    blob_type: str | None
    #: Of the bytes that were delivered.
    content_hash: str
    file: str | None
    metadata: dict[str, str]
    #: Of the file that was written, as long as it had no other name than a temporary one.
    inode: delivery.Inode | None = field(default=None, metadata=columns.UNPRINTED)


class Download:
    """One version of a blob, being read; the constructor reads its first range."""

    def __init__(
        self,
        target: Target,
        conditions: Conditions,
        patience: Callable[[], Deadline],
        *,
        validates: bool = False,
        at_once: int | None = None,
        span: Span = WHOLE,
    ) -> None:
        self.target = target
        self._span = span
        #: Whether the service is asked for the MD5 of each range, which takes ranges of 4 MiB at most.
        self._validates = validates
        #: How many further ranges are in memory at once.
        self._at_once = at_once
        #: Returns the deadline of one range.
        self.patience = patience
        with refusals.explain_stale_read(target, conditions, patience()):
            self._first, self.properties = self._read_first(conditions.request_headers)
        self._pinned = Conditions({"If-Match": self.properties.etag}, lease_id=conditions.lease_id).request_headers

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.read_pieces(in_order=True):
            yield piece.content

    def read_pieces(self, *, in_order: bool) -> Iterator[Piece]:
        """Yield the bytes that were asked for once, in order or as the answers come; the first range is the first."""
        start = self._span.start
        first = Piece(0, self._first)
        self._first = b""
        # Azurite hashes each range of 4 MiB or less before it answers, whether asked to or not.
        size = RANGE_BYTES if self._validates else SINGLE_BYTES
        begin = start + len(first.content)
        ranges = Ranges(self._read_range, begin, start + self.size, size=size, at_once=self._at_once)
        with closing(ranges) as rest:
            yield first
            del first
            for piece in rest.in_order() if in_order else rest.as_they_come():
                yield piece if not start else Piece(piece.offset - start, piece.content)

    @property
    def size(self) -> int:
        """Return how many bytes are to be delivered."""
        size: int = self.properties.size
        return (size if self._span.end is None else min(size, self._span.end)) - self._span.start

    def result(self, file: Path | None, content_hash: str) -> BlobGot:
        """Return the result of the download, once the content is delivered."""
        found = self.properties
        return BlobGot(
            address=str(self.target.address),
            etag=found.etag,
            last_modified=found.last_modified,
            content_length=found.size,
            start=self._span.start,
            length=self.size,
            content_type=found.content_settings.content_type,
            blob_type=found.blob_type,
            content_hash=content_hash,
            file=None if file is None else str(file),
            metadata=drop_lineage(found.metadata),
        )

    @property
    def lineage(self) -> str | None:
        value: str | None = (self.properties.metadata or {}).get(KEY)
        return value

    def _read_first(self, headers: Mapping[str, str]) -> tuple[bytes, Any]:
        start, most = self._span.start, RANGE_BYTES if self._validates else SINGLE_BYTES
        length = most if self._span.end is None else min(most, self._span.end - start)
        while True:
            try:
                found = self._ask(start, length, headers, None)
            except BadRequest as error:
                if error.http_status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise
            else:
                return found.take_content(), found
            # A blob that ends there has no such range. If another writer made it longer meanwhile, it has one now.
            found = properties.fetch(self.target, Conditions(headers), self.patience())
            if found.size == start:
                return b"", found
            if found.size < start:
                told = f"{self.target} has only {found.size} bytes"
                raise BadRequest(told, str(self.target.address), reason="range_beyond_end")

    def _read_range(self, offset: int, length: int) -> bytes:
        return self._ask(offset, length, self._pinned, self.properties.etag).content

    def _ask(self, offset: int, length: int, headers: Mapping[str, str], etag: str | None) -> Answer:
        found = ask_range(
            self.target, offset, length, self.patience(), headers=headers, etag=etag, validates=self._validates
        )
        if self._validates:
            self._check_md5(found)
        return found

    def _check_md5(self, answer: Answer) -> None:
        found = encode_md5(hashlib.md5(answer.content, usedforsecurity=False).digest())
        told = answer.headers.get("Content-MD5")
        if found != told:
            raise Unavailable(
                f"the content of {self.target} was changed on its way here",
                address=str(self.target.address),
                detail=(f"the MD5 of a range is {found}; the service told {told or 'none'}",),
                reason="content_damaged",
            )


def ask_range(
    target: Target,
    offset: int,
    length: int,
    deadline: Deadline,
    *,
    headers: Mapping[str, str] | None = None,
    etag: str | None = None,
    validates: bool = False,
) -> Answer:
    """Ask for a range of a blob until it is answered; the answer is shorter where the blob ends before.

    ``etag`` is the version that it must be of. ``validates`` asks for the MD5 of the range, too.

    Raises:
        BadRequest: the blob ends before ``offset`` or there.
        Unavailable: the answer is of another range or version. What stands between may answer with the whole blob, or
            out of a cache without regard to If-Match.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob
    """
    asked = f"bytes={offset}-{offset + length - 1}"

    def ask(timeouts: Limits) -> Answer:
        found = call(BLOB_GET, target, timeouts, headers=headers, range=asked, range_md5="true" if validates else None)
        is_version = etag is None or quote_etag(found.etag or "") == quote_etag(etag)
        if not is_version or not delivery.is_answer_to(offset, length, found):
            range_ = found.headers.get("Content-Range", "no Content-Range")
            told = f"answered {found.status} with {range_}, ETag {found.etag or 'missing'}"
            raise build_wrong_range(target, f"asked for {asked}, {told}")
        return found

    return read(ask, target, deadline)


def read_whole(
    target: Target, conditions: Conditions, deadline: Deadline, check: Callable[[Any], None] = lambda found: None
) -> tuple[bytes, Any]:
    """Read one version whole, and return its content and properties; another one if it is overwritten meanwhile.

    ``check`` is given the properties before the content is read, and may raise.
    """
    while True:
        download = Download(target, conditions, lambda: deadline)
        check(download.properties)
        try:
            return b"".join(download), download.properties
        except (Changed, NotFound):
            # Another version, or none any more: that is read next.
            if deadline.passed:
                raise


def to_stream(
    target: Target,
    conditions: Conditions,
    stream: BinaryIO,
    deadline: Deadline,
    progress: Callable[[int, int], None],
    *,
    validates: bool = False,
    span: Span = WHOLE,
) -> tuple[BlobGot, str | None]:
    """Write a blob's content, or a part of it, to a stream; return the result and the blob's lineage.

    ``validates`` has the service send the MD5 of each range, to find damage on the way.

    Raises:
        Changed: the blob was overwritten while it was read; the content in the stream is incomplete.
        OutputFailed: the stream takes no more, as on a full disk.
    """
    download, content_hash = delivery.to_stream(
        target, lambda: Download(target, conditions, deadline.fresh, validates=validates, span=span), stream, progress
    )
    return download.result(None, content_hash), download.lineage


def to_file(
    target: Target,
    conditions: Conditions,
    file: Path,
    deadline: Deadline,
    progress: Callable[[int, int], None],
    admit: delivery.Admit,
    *,
    validates: bool = False,
    at_once: int | None = None,
    span: Span = WHOLE,
) -> tuple[BlobGot, str | None]:
    """Write a blob's content, or a part of it, to a file, whole or not at all: temporary file, fsync, rename.

    A device or a pipe is written to directly. An existing file keeps its permissions. ``validates``: see ``to_stream``.
    ``at_once`` is how many ranges after the first are in memory at once.

    Raises:
        UsageError: the folder does not exist or is not writable; nothing was requested.
        OutputFailed: the disk is full or fails; the file is as it was.
        Changed: ``admit`` refused; the file is as it was.
    """
    download, content_hash, inode = delivery.to_file(
        target,
        lambda: Download(target, conditions, deadline.fresh, validates=validates, at_once=at_once, span=span),
        file,
        deadline,
        progress,
        admit,
    )
    # A device or a pipe is no copy.
    return replace(download.result(file if file.is_file() else None, content_hash), inode=inode), download.lineage
