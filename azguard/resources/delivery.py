"""Content out of the service: to a stream in order, or atomically to a file, in whatever order it comes."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO

from azguard.accounts.account import Target
from azguard.errors import Changed, OutputFailed, UsageError
from azguard.requests.deadline import Deadline
from azguard.resources.downloads import Download, Got, Inode

# How often to start again at least if it is overwritten while it is read; then until the deadline.
_RESTARTS = 5
Progress = Callable[[int, int], None]
#: Told the hash of what was read before that takes the place of a file; it raises, and the file stays as it is.
Admit = Callable[[str], None]
#: Begins to read; what it returns is one version.
Open = Callable[[], Download]


def to_stream(target: Target, begin: Open, stream: BinaryIO, progress: Progress) -> tuple[Got, str | None]:
    """Write content, or a part of it, to a stream; return the result and the lineage.

    Raises:
        Changed: the content was overwritten while it was read; the content in the stream is incomplete.
        OutputFailed: the stream takes no more, as on a full disk.
    """
    download, content_hash = _write(target, begin, stream, progress)
    return download.result(None, content_hash), download.lineage


def _write(target: Target, begin: Open, stream: BinaryIO, progress: Progress) -> tuple[Download, str]:
    download = begin()
    try:
        with _explain_failed_output(target):
            content_hash = _copy(download, stream, progress)
            stream.flush()
    except Changed as error:
        raise Changed(
            f"{target} was overwritten while it was read; the output is incomplete",
            address=str(target.address),
            reason="overwritten_while_read",
        ) from error
    return download, content_hash


def to_file(
    target: Target, begin: Open, file: Path, deadline: Deadline, progress: Progress, admit: Admit
) -> tuple[Got, str | None]:
    """Write content, or a part of it, to a file, whole or not at all; return the result and the lineage.

    A device, a pipe or another name of an open file is written to directly. An existing file keeps its permissions.

    Raises:
        UsageError: the folder does not exist or is not writable; nothing was requested.
        OutputFailed: the disk is full or fails; the file is as it was.
        Changed: ``admit`` refused; the file is as it was.
    """
    from azguard.atomic_files import find_descriptor

    mode = _find_mode(file)
    if mode is not None and (not stat.S_ISREG(mode) or find_descriptor(file) is not None):
        download, content_hash = _to_device(target, begin, file, progress)
        # A device or a pipe is no copy.
        return download.result(file if file.is_file() else None, content_hash), download.lineage
    with _replace_file(file, mode) as stream:
        download, content_hash = _copy_one_version(target, begin, stream, deadline, progress)
        admit(content_hash)
        inode = _find_inode(stream)
    return download.result(file, content_hash, inode), download.lineage


@contextmanager
def _replace_file(file: Path, mode: int | None) -> Iterator[BinaryIO]:
    """Open what takes the place of a file when the block ends; ``mode`` is what the file has now, None is no file.

    Raises:
        UsageError: the folder does not exist or is not writable.
        OutputFailed: the disk is full or fails; the file is as it was.
    """
    try:
        with ExitStack() as stack:
            yield _enter(stack, file, mode)
    except OSError as error:
        raise OutputFailed(
            f"{file} cannot be written: {error.strerror}; {'nothing is there' if mode is None else 'it is as it was'}",
            reason="file_not_written",
        ) from error


def _to_device(target: Target, begin: Open, device: Path, progress: Progress) -> tuple[Download, str]:
    if device.is_dir():
        raise UsageError(
            f"{device} is a folder",
            reason="file_is_folder",
            values={"file": f"{device}/{Path(target.address.name).name}"},
        )
    from azguard.atomic_files import open_in_place

    try:
        stream = open_in_place(device)
    except OSError as error:
        raise UsageError(f"{device} cannot be written: {error.strerror}", reason="file_not_writable") from None
    # Closing writes what is left in the buffer, and may fail too.
    with _explain_failed_output(target), stream:
        return _write(target, begin, stream, progress)


def _copy_one_version(
    target: Target, begin: Open, stream: BinaryIO, deadline: Deadline, progress: Progress
) -> tuple[Download, str]:
    for attempt in count(1):
        download = begin()
        try:
            return download, _copy_in_place(download, stream, progress)
        except Changed as error:
            if attempt >= _RESTARTS and deadline.passed:
                raise Changed(
                    f"{target} is overwritten faster than it can be read",
                    address=str(target.address),
                    reason="overwritten_too_often",
                ) from error
            stream.seek(0)
            stream.truncate()
    raise AssertionError  # count() does not end


def _copy(download: Download, stream: BinaryIO, progress: Progress) -> str:
    """Write the content in order and return its hash."""
    digest = hashlib.sha256()
    done = 0
    for piece in download.read_pieces(in_order=True):
        digest.update(piece.content)
        stream.write(piece.content)
        done += len(piece.content)
        progress(done, download.size)
    return f"sha256:{digest.hexdigest()}"


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


def _copy_in_place(download: Download, stream: BinaryIO, progress: Progress) -> str:
    """Write each piece to its place as it comes, so that a slow one holds up no other, and return the hash.

    The hash needs them in order: a piece that came early is read again from the file when its turn comes.
    """
    digest = hashlib.sha256()
    hashed = done = place = 0
    early: dict[int, int] = {}
    for offset, content in download.read_pieces(in_order=False):
        if offset != place:
            stream.seek(offset)
        place = offset + stream.write(content)
        done += len(content)
        progress(done, download.size)
        if offset != hashed:
            early[offset] = len(content)
            continue
        digest.update(content)
        hashed += len(content)
        while (length := early.pop(hashed, None)) is not None:
            stream.seek(hashed)
            digest.update(stream.read(length))
            hashed = place = hashed + length
    return f"sha256:{digest.hexdigest()}"


def _enter(stack: ExitStack, file: Path, mode: int | None) -> BinaryIO:
    """Return the stream of the new file, which has the permissions of the one it replaces."""
    from azguard.atomic_files import replacing

    try:
        if mode is None:
            return stack.enter_context(replacing(file))
        return stack.enter_context(replacing(file, stat.S_IMODE(mode), exact=True))
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}",
            reason="folder_not_writable" if isinstance(error, FileNotFoundError) else "file_not_writable",
            values={"folder": file.parent},
        ) from None


def _find_inode(stream: BinaryIO) -> Inode:
    """Return which file is written to, whatever its name is then."""
    found = os.fstat(stream.fileno())
    return found.st_dev, found.st_ino


def _find_mode(path: Path) -> int | None:
    """Return the type and the permissions of what is at a path; None if nothing is."""
    try:
        return path.stat().st_mode
    except OSError:
        return None
