"""Files that hold a copy of a resource: told by their real path, and by the inode behind it.

A path tells a file that an editor wrote anew under the same name; an inode tells one that was moved or linked. An inode
number is used again after its file is gone, so the moment when the inode was made belongs to it. Where the system does
not tell that moment, size and time of the last change take its place: a file that was edited is then known by its path
alone.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

# Linux, from the header linux/stat.h; Python has no statx before 3.15.
_HERE, _EMPTY_PATH, _BIRTH_TIME, _STATX_BYTES, _BIRTH_OFFSET = -100, 0x1000, 0x800, 256, 80
_F_GETPATH, _LONGEST_PATH = 50, 1024


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that holds a copy. Bytes, for not every path is text."""

    #: Its real path; None if it has none, or none that can be learnt.
    path: bytes | None
    #: What tells its inode from all others, past ones included. No path begins with its first byte.
    inode: bytes | None = None

    @property
    def marks(self) -> tuple[bytes, ...]:
        """Return what the copy is known by."""
        return tuple(mark for mark in (self.path, self.inode) if mark is not None)


def find_at(path: str | os.PathLike[str]) -> Copy:
    """Return the copy in the file at a path; there need not be one yet."""
    real = os.path.realpath(path)
    try:
        return Copy(os.fsencode(real), _identify_inode(real))
    except OSError:
        return Copy(os.fsencode(real))


def find_behind(descriptor: int, path: Path | None = None) -> Copy:
    """Return the copy in an open file; its path is looked for if it is not given."""
    real = _find_path(descriptor) if path is None else os.fsencode(os.path.realpath(path))
    return Copy(real, _identify_inode(descriptor))


def _identify_inode(file: int | str) -> bytes:
    found = os.stat(file)
    born = _find_birth(file, found)
    moment = f"changed {found.st_size}:{found.st_mtime_ns}" if born is None else f"born {born}"
    return f"\0{found.st_dev}:{found.st_ino} {moment}".encode()


def _find_birth(file: int | str, found: os.stat_result) -> int | None:
    """Return when a file's inode was made, in nanoseconds, if the system tells it."""
    seconds = getattr(found, "st_birthtime", None)
    if seconds is not None:
        return int(getattr(found, "st_birthtime_ns", seconds * 1e9))
    return _find_birth_by_statx(file) if sys.platform == "linux" else None


def _find_birth_by_statx(file: int | str) -> int | None:
    import ctypes
    import struct

    answer = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        statx = ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None  # This C library is older than the call.
    folder, path, flags = (file, b"", _EMPTY_PATH) if isinstance(file, int) else (_HERE, os.fsencode(file), 0)
    if statx(folder, path, flags, _BIRTH_TIME, answer) != 0:
        return None
    (told,) = struct.unpack_from("=I", answer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BIRTH_OFFSET)
    return int(seconds * 1_000_000_000 + nanoseconds) if told & _BIRTH_TIME else None


def _find_path(descriptor: int) -> bytes | None:
    """Return the path of an open file, if it still leads there."""
    try:
        if sys.platform == "darwin":
            import fcntl

            path = fcntl.fcntl(descriptor, _F_GETPATH, b"\0" * _LONGEST_PATH).rstrip(b"\0")
        else:
            path = os.readlink(f"/proc/self/fd/{descriptor}".encode())
        same = os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return None
    return path if same else None
