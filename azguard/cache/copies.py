"""Files that hold a copy of a resource: identified by their real path, and by their inode.

The path identifies a file that an editor replaced under the same name; the inode identifies one that was moved or
linked. The number of an inode is used again after its file is deleted, so that the time of its creation is needed too.
Where the system does not give that time, the size and the time of the last change replace it: a file that was edited is
then known by its path alone.
"""

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from azguard.frozen import frozen

# Linux, from the header linux/stat.h; Python has no statx before 3.15.
_HERE = -100
_EMPTY_PATH = 0x1000
_BIRTH_TIME = 0x800
_STATX_BYTES = 256
_BIRTH_OFFSET = 80
# macOS, from the header sys/fcntl.h.
_F_GETPATH = 50
_LONGEST_PATH = 1024


@frozen
class Copy:
    """A file that holds a copy. Bytes, for not every path is text."""

    #: Its real path; None if it has none, or none that can be found.
    path: bytes | None
    #: The identity of its inode among all others, past ones included. No path begins with its first byte.
    inode: bytes | None = None

    @property
    def marks(self) -> tuple[bytes, ...]:
        """Return the values that identify the copy."""
        return tuple(mark for mark in (self.path, self.inode) if mark is not None)


def find_at(path: str | os.PathLike[str]) -> Copy:
    """Return the copy in the file at a path; there need not be one yet."""
    real = os.path.realpath(path)
    try:
        return Copy(os.fsencode(real), _identify_inode(real, os.stat(real)))
    except OSError:
        return Copy(os.fsencode(real))


def find_written(path: Path, inode: tuple[int, int] | None) -> Copy | None:
    """Return the copy in a file that was just written; None if another file has taken its place since."""
    if inode is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        # The file may not be read, or it is gone.
        return find_at(path)
    try:
        found = os.fstat(descriptor)
        return find_behind(descriptor, path, found) if (found.st_dev, found.st_ino) == inode else None
    finally:
        os.close(descriptor)


def find_behind(descriptor: int, path: Path | None = None, found: os.stat_result | None = None) -> Copy:
    """Return the copy in an open file of this status; ``path`` is where it is if the system does not tell."""
    found = found or os.fstat(descriptor)
    real = _find_path(descriptor, found)
    if real is None and path is not None:
        real = os.fsencode(os.path.realpath(path))
    return Copy(real, _identify_inode(descriptor, found))


def _identify_inode(file: int | str, found: os.stat_result) -> bytes:
    born = _find_birth(file, found)
    moment = f"changed {found.st_size}:{found.st_mtime_ns}" if born is None else f"born {born}"
    return f"\0{found.st_dev}:{found.st_ino} {moment}".encode()


def _find_birth(file: int | str, found: os.stat_result) -> int | None:
    """Return when a file's inode was created, in nanoseconds, if the system gives that time."""
    seconds = getattr(found, "st_birthtime", None)
    if seconds is not None:
        return int(getattr(found, "st_birthtime_ns", seconds * 1e9))
    return _find_birth_by_statx(file) if sys.platform == "linux" else None


def _find_birth_by_statx(file: int | str) -> int | None:
    import ctypes
    import struct

    answer = ctypes.create_string_buffer(_STATX_BYTES)
    statx = _find_statx()
    if statx is None:
        return None
    folder, path, flags = (file, b"", _EMPTY_PATH) if isinstance(file, int) else (_HERE, os.fsencode(file), 0)
    if statx(folder, path, flags, _BIRTH_TIME, answer) != 0:
        return None
    (told,) = struct.unpack_from("=I", answer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BIRTH_OFFSET)
    return int(seconds * 1_000_000_000 + nanoseconds) if told & _BIRTH_TIME else None


@lru_cache(maxsize=1)
def _find_statx() -> Any:
    """Return the function of the C library; None if the library is older than it."""
    import ctypes

    try:
        return ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None


def _find_path(descriptor: int, found: os.stat_result) -> bytes | None:
    try:
        if sys.platform == "darwin":
            import fcntl

            path = fcntl.fcntl(descriptor, _F_GETPATH, b"\0" * _LONGEST_PATH).rstrip(b"\0")
        else:
            path = os.readlink(f"/proc/self/fd/{descriptor}".encode())
        same = os.path.samestat(os.stat(path), found)
    except OSError:
        return None
    return path if same else None
