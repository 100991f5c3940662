"""Content out of the service: to a stream in order, or atomically to a file, in whatever order it comes.

Several ranges of one version are asked for at a time. What they may hold in memory is divided among the jobs of this
process.
"""

import _thread
import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from itertools import count, islice
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO, NamedTuple, Protocol, TypeVar

from azguard.accounts.account import Target
from azguard.errors import Changed, OutputFailed, UsageError
from azguard.frozen import frozen
from azguard.requests.deadline import Deadline
from azguard.wire.answers import Answer

_ANSWERED_RANGE = r"bytes (\d+)-(\d+)/(\d+)"
RANGE_BYTES = 4 * 1024 * 1024
#: How many ranges are in memory at once: asked for, or waiting to be written. With 8 MiB each a get needs 115 MiB.
AT_ONCE = 6
# The ranges of other resources that this process reads at the same time, as of a tree: they share what is in memory.
_open: set["Ranges"] = set()
# With one a job could not ask for more while it works on what it has.
_LEAST = 2
# How often to start again at least if it is overwritten while it is read; then until the deadline.
_RESTARTS = 5
Progress = Callable[[int, int], None]
#: Told the hash of what was read before that takes the place of a file; it raises, and the file stays as it is.
Admit = Callable[[str], None]
#: The device of a local file, and its number there.
Inode = tuple[int, int]
# From the header malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 1024 * 1024


@frozen
class Span:
    """The bytes that are asked for: from the first, which counts from 0, to the one before ``end``."""

    start: int = 0
    #: None is the end of all.
    end: int | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether it is all of it."""
        return self.start == 0 and self.end is None


WHOLE = Span()


class Piece(NamedTuple):
    """Content, and where in the whole it begins."""

    offset: int
    content: bytes


class Ranges:
    """All ranges between two places of a blob or a file; the constructor begins to ask for them.

    ``read`` takes an offset and a length in bytes; no length is more than ``size``. Its threads are not waited for: an
    interruption, or a reader of the content that has gone, ends this process at once.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        begin: int,
        end: int,
        *,
        size: int = RANGE_BYTES,
        at_once: int | None = None,
    ) -> None:
        self._read = read
        self._end = end
        self._size = size
        self._offsets = range(begin, end, size)
        self._to_ask = iter(self._offsets)
        self._asked: SimpleQueue[int | None] = SimpleQueue()
        self._answered: SimpleQueue[Piece | BaseException] = SimpleQueue()
        _open.add(self)
        share = max(1, AT_ONCE // len(_open)) if at_once is None else at_once
        self._workers = min(share, len(self._offsets))
        self._is_closed = False
        if self._workers:
            return_large_blocks()
        for _ in range(self._workers):
            # Not threading.Thread, whose start takes locks that a signal can leave locked.
            _thread.start_new_thread(self._work, ())
        self._ask(self._workers)

    def in_order(self) -> Iterator[Piece]:
        """Yield the pieces from the first to the last."""
        early: dict[int, bytes] = {}
        for offset in self._offsets:
            while offset not in early:
                early.update((self._next_answer(),))
            yield Piece(offset, early.pop(offset))
            self._ask(1)

    def as_they_come(self) -> Iterator[Piece]:
        """Yield the pieces in the order of the answers."""
        for _ in self._offsets:
            yield self._next_answer()
            self._ask(1)

    def close(self) -> None:
        """Ask for no more."""
        _open.discard(self)
        self._is_closed = True
        for _ in range(self._workers):
            self._asked.put(None)

    def _ask(self, count: int) -> None:
        for offset in islice(self._to_ask, count):
            self._asked.put(offset)

    def _next_answer(self) -> Piece:
        answer = self._answered.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _work(self) -> None:
        while (offset := self._asked.get()) is not None and not self._is_closed:
            self._answered.put(self._answer(offset))

    def _answer(self, offset: int) -> Piece | BaseException:
        try:
            return Piece(offset, self._read(offset, min(self._size, self._end - offset)))
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
            return error


def is_answer_to(offset: int, length: int, answer: Answer) -> bool:
    """Return whether an answer is the range that was asked for; it is shorter where the content ends before."""
    answered = re.fullmatch(_ANSWERED_RANGE, answer.headers.get("Content-Range", ""))
    if answered is None or answer.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    begin, end, size = (int(number) for number in answered.groups())
    is_asked = (begin, end) == (offset, min(offset + length, size) - 1)
    return is_asked and len(answer.content) == end + 1 - begin


class Shares:
    """So many parts. A job takes what it can use of those that are free, once; it never waits while it holds some."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = count
        self._state = threading.Condition()

    @contextmanager
    def hold(self, wanted: int | None) -> Iterator[int]:
        """Yield how many parts the caller has until the block ends: all that are free, but no more than it wants.

        Waits until there are two, or as many as it wants. None is all of them.
        """
        most = self._count if wanted is None else max(1, min(wanted, self._count))
        least = min(most, _LEAST)
        with self._state:
            self._state.wait_for(lambda: self._free >= least)
            found = min(most, self._free)
            self._free -= found
        try:
            yield found
        finally:
            with self._state:
                self._free += found
                self._state.notify_all()


class Content(Protocol):
    """One version of a blob or a file, being read."""

    @property
    def size(self) -> int:
        """Return how many bytes there are."""

    def read_pieces(self, *, in_order: bool) -> Iterator[Piece]:
        """Yield the content once, in order or as the answers come.

        Raises:
            Changed: it was overwritten meanwhile.
        """


C = TypeVar("C", bound=Content)
#: Begins to read; what it returns is one version.
Open = Callable[[], C]


def to_stream(target: Target, begin: Open[C], stream: BinaryIO, progress: Progress) -> tuple[C, str]:
    """Write content to a stream; return the download and the hash of its content.

    Raises:
        Changed: the content was overwritten while it was read; the content in the stream is incomplete.
        OutputFailed: the stream takes no more, as on a full disk.
    """
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
    target: Target, begin: Open[C], file: Path, deadline: Deadline, progress: Progress, admit: Admit
) -> tuple[C, str, Inode | None]:
    """Write content to a file, whole or not at all: temporary file, fsync, rename. Return that file's inode, too.

    A device, a pipe or another name of an open file is written to directly. An existing file keeps its permissions.

    Raises:
        UsageError: the folder does not exist or is not writable; nothing was requested.
        OutputFailed: the disk is full or fails; the file is as it was.
        Changed: ``admit`` refused; the file is as it was.
    """
    from azguard.atomic_files import find_descriptor

    mode = find_mode(file)
    if mode is not None and (not stat.S_ISREG(mode) or find_descriptor(file) is not None):
        return *_to_device(target, begin, file, progress), None
    with replace_file(file, mode) as stream:
        download, content_hash = _copy_one_version(target, begin, stream, deadline, progress)
        admit(content_hash)
        return download, content_hash, find_inode(stream)


@contextmanager
def replace_file(file: Path, mode: int | None) -> Iterator[BinaryIO]:
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


def _to_device(target: Target, begin: Open[C], device: Path, progress: Progress) -> tuple[C, str]:
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
        return to_stream(target, begin, stream, progress)


def _copy_one_version(
    target: Target, begin: Open[C], stream: BinaryIO, deadline: Deadline, progress: Progress
) -> tuple[C, str]:
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


def _copy(download: Content, stream: BinaryIO, progress: Progress) -> str:
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


def _copy_in_place(download: Content, stream: BinaryIO, progress: Progress) -> str:
    """Write each piece to its place as it comes, so that a slow one holds up no other, and return the hash.

    The hash needs them in order: a piece that came early is read again from the file when its turn comes.
    """
    digest = hashlib.sha256()
    hashed = done = 0
    early: dict[int, int] = {}
    for offset, content in download.read_pieces(in_order=False):
        stream.seek(offset)
        stream.write(content)
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
            hashed += length
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
            reason="folder_not_writable",
            values={"folder": file.parent},
        ) from None


def find_inode(stream: BinaryIO) -> Inode:
    """Return which file is written to, whatever its name is then."""
    found = os.fstat(stream.fileno())
    return found.st_dev, found.st_ino


def find_mode(path: Path) -> int | None:
    """Return the type and the permissions of what is at a path; None if nothing is."""
    try:
        return path.stat().st_mode
    except OSError:
        return None


def return_large_blocks() -> None:
    """Have each block of a megabyte or more returned as soon as it is freed, where the C library is glibc.

    By default glibc keeps what a thread has freed for that thread: up to 16 MiB each if it was in large blocks.
    """
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    except (AttributeError, OSError, TypeError):
        pass  # Another C library. This only saves memory.
