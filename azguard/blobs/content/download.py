"""One version of a blob, read in ranges that are pinned to it.

The first range carries the caller's conditions, every further one ``If-Match`` with the first one's ETag, so that
what is delivered is one version of the blob and no mixture.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

from azguard import columns
from azguard.accounts.account import SINGLE_BYTES, Target
from azguard.blobs import properties as blob_properties
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
from azguard.resources.properties import encode_md5
from azguard.wire import sdk

_ASKED_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_ANSWERED_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


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
        self._client = sdk.blob(target.account, target.address)
        with blob_properties.explain_stale_read(target, conditions, patience()):
            read_first = self._read_first if span.is_whole and not validates else self._read_first_range
            self._first, self.properties = read_first(conditions.request_headers)
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
            blob_type=blob_properties.type_of(found),
            content_hash=content_hash,
            file=None if file is None else str(file),
            metadata=drop_lineage(found.metadata),
        )

    @property
    def lineage(self) -> str | None:
        """Return the lineage that this version carries."""
        value: str | None = (self.properties.metadata or {}).get(KEY)
        return value

    def _read_first(self, headers: dict[str, str]) -> tuple[bytes, Any]:
        answers: list[Any] = []

        def call(timeouts: Any) -> tuple[bytes, Any]:
            answers.clear()
            # Without an offset the SDK also reads a blob of no bytes, for which a range is refused (416).
            stream = self._client.download_blob(
                headers=dict(headers), decompress=False, raw_response_hook=self._check(answers, None), **timeouts
            )
            piece = next(stream.chunks(), b"")
            self._check_length(piece, min(SINGLE_BYTES, stream.size))
            return piece, stream.properties

        while True:
            piece, properties = read(call, self.target, self.patience())
            if piece or _is_empty(answers):
                return piece, properties

    def _read_first_range(self, headers: dict[str, str]) -> tuple[bytes, Any]:
        answers: list[Any] = []
        start, most = self._span.start, RANGE_BYTES if self._validates else SINGLE_BYTES
        length = most if self._span.end is None else min(most, self._span.end - start)

        def call(timeouts: Any) -> tuple[bytes, Any]:
            answers.clear()
            return self._ask(start, length, headers, self._check(answers, None), timeouts)

        try:
            piece, properties = read(call, self.target, self.patience())
        except BadRequest as error:
            if error.http_status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            # A blob of no bytes has no ranges, and no content that could be damaged.
            return self._read_first(headers) if start == 0 else (b"", self._find_end(headers))
        properties.size = int(answers[0].http_response.headers["Content-Range"].rpartition("/")[2])
        self._check_length(piece, min(length, properties.size - start))
        if self._validates:
            self._check_md5(piece, answers[0])
        return piece, properties

    def _find_end(self, headers: dict[str, str]) -> Any:
        """Return the properties of a blob that ends where the bytes that were asked for begin.

        Raises:
            BadRequest: it ends before.
        """
        found = blob_properties.fetch(self.target, Conditions(headers), self.patience())
        if self._span.start != found.size:
            raise BadRequest(
                f"{self.target} has only {found.size} bytes", str(self.target.address), reason="range_beyond_end"
            )
        return found

    def _read_range(self, offset: int, length: int) -> bytes:
        answers: list[Any] = []

        def call(timeouts: Any) -> bytes:
            answers.clear()
            check = self._check(answers, self.properties.etag)
            content, _ = self._ask(offset, length, self._pinned, check, timeouts)
            self._check_length(content, length)
            return content

        content = read(call, self.target, self.patience())
        if self._validates:
            self._check_md5(content, answers[0])
        return content

    def _ask(
        self, offset: int, length: int, headers: dict[str, str], check: Callable[[Any], None], timeouts: Any
    ) -> tuple[bytes, Any]:
        asked = {"x-ms-range-get-content-md5": "true"} if self._validates else {}
        stream = self._client.download_blob(
            offset=offset,
            length=length,
            headers={**headers, **asked},
            decompress=False,
            raw_response_hook=check,
            **timeouts,
        )
        # Unlike readall(), this does not copy the content.
        return b"".join(stream.chunks()), stream.properties

    def _check_md5(self, content: bytes, answer: Any) -> None:
        found = encode_md5(hashlib.md5(content, usedforsecurity=False).digest())
        told = answer.http_response.headers.get("Content-MD5")
        if found != told:
            raise Unavailable(
                f"the content of {self.target} was changed on its way here",
                address=str(self.target.address),
                detail=(f"the MD5 of a range is {found}; the service told {told or 'none'}",),
                reason="content_damaged",
            )

    def _check(self, answers: list[Any], etag: str | None) -> Callable[[Any], None]:
        """Return a hook that checks that an answer with content is the range asked for, of the version read so far.

        What stands between may answer a range with the whole blob, or out of a cache without regard to If-Match. The
        hook raises Unavailable then. It adds each answer to ``answers``. There must be one: the SDK asks for the rest
        of an answer that is too short, and would put it behind content that may have begun elsewhere.
        """

        def check(answer: Any) -> None:
            answers.append(answer)
            response = answer.http_response
            asked = _ASKED_RANGE.fullmatch(answer.http_request.headers.get("x-ms-range", ""))
            if asked is None or response.status_code not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                return
            found = response.headers.get("ETag", "")
            is_version = etag is None or quote_etag(found) == quote_etag(etag)
            if not (is_version and _is_answer_to(asked, response) and len(answers) == 1):
                range_ = response.headers.get("Content-Range", "no Content-Range")
                raise build_wrong_range(
                    self.target,
                    f"asked for {asked[0]}, answered {response.status_code} with {range_}, ETag {found or 'missing'}",
                )

        return check

    def _check_length(self, content: bytes, expected: int) -> None:
        if len(content) != expected:
            raise build_wrong_range(self.target, f"asked for {expected} bytes, answered {len(content)}")


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


def _is_answer_to(asked: re.Match[str], response: Any) -> bool:
    answered = _ANSWERED_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if answered is None or response.status_code != HTTPStatus.PARTIAL_CONTENT:
        return False
    begin, end, size = (int(number) for number in answered.groups())
    # A proxy may send it in chunks instead, whose length is known when they were read.
    length = int(response.headers.get("Content-Length", end + 1 - begin))
    return (begin, end, length) == (int(asked[1]), min(int(asked[2]), size - 1), end + 1 - begin)


def _is_empty(answers: list[Any]) -> bool:
    """Return whether the last answer is of a blob of no bytes.

    When a range is refused, the SDK takes the blob to be empty and asks again for the rest. If another writer filled
    it in between, it returns no content under the new version's ETag: a write over that would lose the content.
    """
    return bool(answers) and answers[-1].http_response.headers.get("Content-Length", "0") == "0"


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
