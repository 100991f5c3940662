"""The content of a write: a file or a pipe, read in pieces; a file must not change while it is read."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from azguard.errors import Changed, UsageError


def read_up_to(source: BinaryIO, size: int) -> bytes:
    """Read ``size`` bytes, or fewer at the end of the source; a pipe gives 64 KiB at a time."""
    # One system call at a time: read() makes several, and a signal between two of them waits until more content comes.
    once: Callable[[int], bytes] = getattr(source, "read1", source.read)
    pieces: list[bytes] = []
    missing = size
    while missing and (piece := once(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _read_state(stream: BinaryIO) -> tuple[int, ...]:
    """Return the size of a file, its identity and its times: a write or a replacement changes one of them."""
    found = os.fstat(stream.fileno())
    return found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


class UnchangedFile:
    """A file being read, which ends with an error as soon as it changed since it was opened."""

    def __init__(self, stream: BinaryIO, path: Path, check: Callable[[], None]) -> None:
        self._stream = stream
        self._check_run = check
        self._path = path
        self._begun = _read_state(stream)
        self._read = 0

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def size(self) -> int:
        return self._begun[0]

    @property
    def state(self) -> str:
        """Return the text that identifies the source's content: other content has another state."""
        return ":".join(map(str, self._begun))

    def fileno(self) -> int:
        return self._stream.fileno()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer only at its end.

        Raises:
            GaveUp: the run is to stop.
            Changed: it was written to since it was opened, so that what was read may be a mixture.
        """
        self._check_run()
        piece = self._stream.read(size)
        self._read += len(piece)
        # A file of /proc has content, and tells no size.
        is_longer = self._read > self.size > 0
        if is_longer or _read_state(self._stream) != self._begun:
            raise Changed(f"{self._path} changed while it was read", reason="file_changed_while_read")
        return piece


@contextmanager
def open_unchanged(path: Path, check: Callable[[], None] = lambda: None) -> Iterator[UnchangedFile]:
    """Open a file to be read whole and unchanged; ``check`` is called before each piece, and may end it.

    Raises:
        UsageError: it cannot be read, or is no file any more.
    """
    try:
        # A pipe that took the file's place would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"{path} is no file any more")
        yield UnchangedFile(stream, path, check)


def as_stream(file: UnchangedFile) -> BinaryIO:
    """Return it as what takes a stream: of that it reads, and asks for the descriptor and the name."""
    return cast("BinaryIO", file)
