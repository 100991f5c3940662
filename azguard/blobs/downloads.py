"""Content out of a blob: to a stream in order, or atomically to a file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from azguard.accounts.target import Target
from azguard.blobs.download import BlobGot, Download
from azguard.conditions.resolve import Conditions
from azguard.requests import delivery
from azguard.requests.deadline import Deadline


def to_stream(
    target: Target,
    conditions: Conditions,
    stream: BinaryIO,
    deadline: Deadline,
    progress: Callable[[int, int], None],
    *,
    validates: bool = False,
) -> tuple[BlobGot, str | None]:
    """Write a blob's content to a stream and return what was delivered and its lineage.

    ``validates`` has the service send the MD5 of each range, to find what was damaged on the way.

    Raises:
        Changed: the blob was overwritten while it was read; what the stream got so far is incomplete.
        OutputFailed: the stream takes no more, as on a full disk.
    """
    download, content_hash = delivery.to_stream(
        target, lambda: Download(target, conditions, deadline.fresh, validates=validates), stream, progress
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
) -> tuple[BlobGot, str | None]:
    """Write a blob's content to a file, whole or not at all: temporary file, fsync, rename.

    A device or a pipe is written to directly. An existing file keeps its permissions. ``validates``: see ``to_stream``.
    ``at_once`` is how many ranges after the first are in memory at once.

    Raises:
        UsageError: the folder does not exist or is not writable; nothing was requested.
        OutputFailed: the disk is full or fails; the file is as it was.
        Changed: ``admit`` refused; the file is as it was.
    """
    download, content_hash, inode = delivery.to_file(
        target,
        lambda: Download(target, conditions, deadline.fresh, validates=validates, at_once=at_once),
        file,
        deadline,
        progress,
        admit,
    )
    # A device or a pipe is no copy.
    return replace(download.result(file if file.is_file() else None, content_hash), inode=inode), download.lineage
