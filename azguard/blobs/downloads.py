"""Content out of a blob: streamed in pinned ranges, to stdout or atomically to a file.

The first range carries the caller's conditions, every further one ``If-Match`` with the first one's ETag, so that
what is delivered is one version of the blob and no mixture.
"""

import hashlib
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from azguard.accounts.account import SINGLE_BYTES
from azguard.accounts.target import Target
from azguard.atomic_files import replacing
from azguard.blobs import properties as blob_properties
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, OutputFailed, UsageError
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY

RANGE_BYTES = SINGLE_BYTES
# How often to start again if the blob is overwritten while it is read.
_RESTARTS = 5


@dataclass(frozen=True)
class BlobGot:
    """What a get wrote to its output."""

    address: str
    etag: str
    last_modified: datetime
    content_length: int
    content_type: str | None
    blob_type: str | None
    content_hash: str
    file: str | None
    metadata: dict[str, str]


class Download:
    """One version of a blob, being read; the constructor reads its first range."""

    def __init__(self, target: Target, conditions: Conditions, patience: Callable[[], Deadline]) -> None:
        self.target = target
        #: Returns the deadline of one range.
        self.patience = patience
        self.lease_id = conditions.lease_id
        self._client = target.account.blob(target.address)
        with blob_properties.explain_stale_read(target, conditions, patience()):
            self.first, self.properties = self._read_first(conditions.request_headers)
        self._digest = hashlib.sha256()
        self._delivered = 0

    def __iter__(self) -> Iterator[bytes]:
        piece = self.first
        self.first = b""
        while True:
            self._digest.update(piece)
            self._delivered += len(piece)
            yield piece
            if self._delivered >= self.properties.size:
                return
            pinned = Conditions({"If-Match": self.properties.etag}, lease_id=self.lease_id).request_headers
            piece = self._read_next(pinned)

    def result(self, file: Path | None) -> BlobGot:
        """Return what was delivered, once it was."""
        found = self.properties
        return BlobGot(
            address=str(self.target.address),
            etag=found.etag,
            last_modified=found.last_modified,
            content_length=self._delivered,
            content_type=found.content_settings.content_type,
            blob_type=blob_properties.type_of(found),
            content_hash=f"sha256:{self._digest.hexdigest()}",
            file=None if file is None else str(file),
            metadata={key: value for key, value in (found.metadata or {}).items() if key != KEY},
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
                headers=dict(headers), decompress=False, raw_response_hook=answers.append, **timeouts
            )
            piece = next(stream.chunks(), b"") if stream.size > RANGE_BYTES else stream.readall()
            return piece, stream.properties

        while True:
            piece, properties = read(call, self.target, self.patience())
            if piece or _is_empty(answers):
                return piece, properties

    def _read_next(self, headers: dict[str, str]) -> bytes:
        def call(timeouts: Any) -> bytes:
            where = {
                "offset": self._delivered,
                "length": min(RANGE_BYTES, self.properties.size - self._delivered),
            }
            stream = self._client.download_blob(**where, headers=headers, decompress=False, **timeouts)
            content: bytes = stream.readall()
            return content

        return read(call, self.target, self.patience())


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
) -> tuple[BlobGot, str | None]:
    """Write a blob's content to a stream and return what was delivered and its lineage.

    Raises:
        Changed: the blob was overwritten while it was read; what the stream got so far is incomplete.
        OutputFailed: the stream takes no more, as on a full disk.
    """
    download = Download(target, conditions, deadline.fresh)
    try:
        with _explain_failed_output(target):
            _copy(download, stream, progress)
            stream.flush()
    except Changed as error:
        raise Changed(
            f"{target} was overwritten while it was read; the output is incomplete",
            address=str(target.address),
            reason="overwritten_while_read",
        ) from error
    return download.result(None), download.lineage


@contextmanager
def _explain_failed_output(target: Target) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"{target} was read, but not all of it could be written: {error.strerror}",
            address=str(target.address),
            reason="output_incomplete",
        ) from error


def to_file(
    target: Target,
    conditions: Conditions,
    file: Path,
    deadline: Deadline,
    progress: Callable[[int, int], None],
) -> tuple[BlobGot, str | None]:
    """Write a blob's content to a file, whole or not at all: temporary file, fsync, rename.

    A device or a pipe is written to directly. An existing file keeps its permissions.

    Raises:
        UsageError: the folder does not exist or is not writable; nothing was requested.
        OutputFailed: the disk is full or fails; the file is as it was.
    """
    mode = _read_mode(file)
    if mode is not None and not stat.S_ISREG(mode):
        if stat.S_ISDIR(mode):
            raise UsageError(
                f"{file} is a folder",
                reason="file_is_folder",
                values={"file": f"{file}/{Path(target.address.name).name}"},
            )
        try:
            stream = open(file, "wb")  # noqa: SIM115  # closed below
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}", reason="file_not_writable") from None
        # Closing writes what is left in the buffer, and may fail too.
        with _explain_failed_output(target), stream:
            return to_stream(target, conditions, stream, deadline, progress)
    try:
        with ExitStack() as stack:
            download = _copy_one_version(target, conditions, _enter(stack, file, mode), deadline, progress)
    except OSError as error:
        raise OutputFailed(
            f"{file} cannot be written: {error.strerror}; {'nothing is there' if mode is None else 'it is as it was'}",
            reason="file_not_written",
        ) from error
    return download.result(file), download.lineage


def _copy_one_version(
    target: Target,
    conditions: Conditions,
    stream: BinaryIO,
    deadline: Deadline,
    progress: Callable[[int, int], None],
) -> Download:
    for _ in range(_RESTARTS):
        download = Download(target, conditions, deadline.fresh)
        try:
            _copy(download, stream, progress)
        except Changed:
            stream.seek(0)
            stream.truncate()
        else:
            return download
    raise Changed(
        f"{target} is overwritten faster than it can be read",
        address=str(target.address),
        reason="overwritten_too_often",
    )


def _copy(download: Download, stream: BinaryIO, progress: Callable[[int, int], None]) -> None:
    done = 0
    for piece in download:
        stream.write(piece)
        done += len(piece)
        progress(done, download.properties.size)


def _enter(stack: ExitStack, file: Path, mode: int | None) -> BinaryIO:
    """Return the stream of the new file, which has the permissions of the one it replaces."""
    try:
        if mode is None:
            return stack.enter_context(replacing(file))
        return stack.enter_context(replacing(file, stat.S_IMODE(mode), exact=True))
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}",
            reason="folder_not_writable",
            values={"folder": file.parent},
        ) from None


def _read_mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None
