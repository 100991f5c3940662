"""The files and folders behind the shares, under their real names, and the room that a share has left by its quota.

Another program, such as Samba, may change them as well: ``measure`` tells whether one did. Only files and directories
count: a symbolic link or a device that such a program made is not there for the service, and nothing goes through it.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from azguard.emulators.files.answers import ServiceError
from azguard.emulators.files.database import ShareRecord

_PART = 1024 * 1024
_LONGEST_NAME_BYTES = 255
_BLOCK_BYTES = 512
# The last two ranges are the control characters.
_NEVER_IN_NAMES = re.compile(r'["\\:|<>*?\x00-\x1f\x7f-\x9f]')
_DEVICES = ("PRN", "AUX", "NUL", "CON", "CLOCK$", *(f"{name}{n}" for name in ("LPT", "COM") for n in range(1, 10)))
_LONGEST_PATH = 2048
# A disk keeps 4 KiB at most; the folder of the emulator is a part of that.
_LONGEST_PATH_BYTES = 3072
_MOST_DIRECTORIES = 250
# Of so many folders the names are remembered.
_MOST_FOLDERS = 64
_GIB = 1024**3


class Disk:
    """The folder of all shares; a share is the folder named by its number."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: The names in folders by their lower case, and when those folders were last changed.
        self._names: dict[Path, tuple[int, dict[str, str]]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def locate(self, root: int, path: str = "") -> Path:
        return self._folder / str(root) / path if path else self._folder / str(root)

    def find(self, root: int, path: str) -> str | None:
        """Return a path as it is written on the disk, however its case was given; None if it is not there."""
        found = ""
        here = self.locate(root)
        for part in path.split("/") if path else []:
            if not _is_plain(here):
                return None
            exact = here / part
            if not os.path.lexists(exact):
                same = self._read_names(here).get(part.lower())
                if same is None:
                    return None
                exact = here / same
            here = exact
            found = f"{found}/{exact.name}" if found else exact.name
        return found if _is_plain(here) else None

    def _read_names(self, folder: Path) -> dict[str, str]:
        """Return the names in a folder by their lower case; read anew if another program changed it."""
        changed = _find_change(folder)
        known = self._names.get(folder)
        if known is not None and known[0] == changed:
            return known[1]
        if len(self._names) >= _MOST_FOLDERS:
            self._names.clear()
        found = {each.lower(): each for each in _list_names(folder)}
        self._names[folder] = changed, found
        return found

    @contextmanager
    def _changing(self, path: Path) -> Iterator[None]:
        """Note that what is at a path is made or removed by us, so that its folder need not be read anew."""
        known = self._names.pop(path.parent, None)
        is_known = known is not None and known[0] == _find_change(path.parent)
        yield
        self._names.pop(path, None)
        if known is None or not is_known:
            return
        if os.path.lexists(path):
            known[1][path.name.lower()] = path.name
        else:
            known[1].pop(path.name.lower(), None)
        self._names[path.parent] = _find_change(path.parent), known[1]

    def list_names(self, root: int, path: str) -> list[str]:
        return _list_names(self.locate(root, path))

    def is_directory(self, root: int, path: str) -> bool:
        return self.locate(root, path).is_dir()

    def measure(self, root: int, path: str) -> list[int]:
        """Return the stamp that changes when a file is changed: time, length and inode."""
        found = self.locate(root, path).stat()
        return [found.st_mtime_ns, found.st_size, found.st_ino]

    def modified(self, root: int, path: str) -> float:
        """Return when a file was last changed, in seconds since 1970."""
        return self.locate(root, path).stat().st_mtime

    def make_directory(self, root: int, path: str = "") -> None:
        check_name(path)
        where = self.locate(root, path)
        with self._changing(where):
            try:
                where.mkdir()
            except FileExistsError:
                raise ServiceError("ResourceAlreadyExists") from None

    def make_file(self, root: int, path: str, size: int) -> None:
        """Make a file of zeros, over an existing one if there is one."""
        check_name(path)
        where = self.locate(root, path)
        with self._changing(where), _open(where, "wb") as file:
            file.truncate(size)

    def resize(self, root: int, path: str, size: int) -> None:
        """Cut a file, or lengthen it with zeros."""
        with _open(self.locate(root, path), "r+b") as file:
            file.truncate(size)

    def write(self, root: int, path: str, start: int, data: bytes) -> None:
        with _open(self.locate(root, path), "r+b") as file:
            file.seek(start)
            file.write(data)

    def take(self, root: int, path: str, file: Path) -> None:
        """Move a file that is none of a share's to a path, over what is there."""
        file.replace(self.locate(root, path))

    def clear(self, root: int, path: str, start: int, end: int) -> None:
        """Write zeros from ``start`` up to ``end``."""
        with _open(self.locate(root, path), "r+b") as file:
            # Holes are zeros already, and stay holes.
            for begin, stop in _find_data(file.fileno()):
                position = max(begin, start)
                file.seek(position)
                while position < min(stop, end):
                    position += file.write(bytes(min(_PART, min(stop, end) - position)))

    def copy_file(self, source: tuple[int, str], root: int, path: str) -> None:
        """Copy a file, given by its root and path, over another one or to a new one; holes stay holes."""
        begin, end = self.locate(*source), self.locate(root, path)
        if begin != end:
            with self._changing(end):
                _copy_sparsely(begin, end)

    def read(self, root: int, path: str, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``."""
        with _open(self.locate(root, path), "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def stream(self, root: int, path: str, start: int, end: int) -> Iterator[bytes]:
        """Open a file now, and yield its bytes from ``start`` up to ``end`` later."""
        file = _open(self.locate(root, path), "rb")
        file.seek(start)

        def parts() -> Iterator[bytes]:
            left = end - start
            with file:
                while left and (part := file.read(min(_PART, left))):
                    left -= len(part)
                    yield part

        return parts()

    def find_data(self, root: int, path: str) -> list[tuple[int, int]]:
        """Return where a file has data and no holes, as far as the disk tells."""
        with _open(self.locate(root, path), "rb") as file:
            return _find_data(file.fileno())

    def rename(self, root: int, source: str, target: str) -> None:
        """Rename a file or directory, over an existing file if there is one."""
        check_name(target)
        self.locate(root, source).replace(self.locate(root, target))
        # What is below a folder has another path now.
        self._names.clear()

    def remove(self, root: int, path: str) -> None:
        """Remove a file, or an empty directory."""
        where = self.locate(root, path)
        with self._changing(where):
            if where.is_dir():
                where.rmdir()
            else:
                where.unlink()

    def remove_share(self, root: int) -> None:
        shutil.rmtree(self.locate(root), ignore_errors=True)

    def copy_share(self, root: int, target: int) -> None:
        """Copy the folder of a share; nothing is left of a copy that fails, such as on a full disk."""
        # One that was cut off later had the same number.
        self.remove_share(target)
        try:
            shutil.copytree(self.locate(root), self.locate(target), symlinks=True, copy_function=_copy_sparsely)
        except BaseException:
            self.remove_share(target)
            raise

    def count_bytes(self, root: int) -> int:
        """Return how many bytes the files of a share have."""
        return sum(each.st_size for each in self._measure_all(root))

    def count_written(self, root: int) -> int:
        """Return how many bytes the files of a share take on the disk, where holes take none."""
        return sum(each.st_blocks * _BLOCK_BYTES for each in self._measure_all(root))

    def _measure_all(self, root: int) -> Iterator[os.stat_result]:
        for folder, _, names in os.walk(self.locate(root)):
            yield from (os.lstat(os.path.join(folder, name)) for name in names)


def check_name(path: str) -> None:
    """Refuse a path whose length, or whose last name, the service or the disk does not allow.

    Source: https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-shares--directories--files--and-metadata
    """
    check_length(path)
    name = path.rpartition("/")[2]
    if _NEVER_IN_NAMES.search(name):
        raise ServiceError("InvalidResourceName")
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME_BYTES or name.upper() in _DEVICES:
        raise ServiceError("InvalidResourceName")


def check_length(path: str) -> None:
    """Refuse a path that is too long for the service or the disk."""
    is_long = len(path) > _LONGEST_PATH or len(path.encode("utf-8", "surrogatepass")) > _LONGEST_PATH_BYTES
    if is_long or path.count("/") > _MOST_DIRECTORIES:
        raise ServiceError("InvalidFileOrDirectoryPathName")


def _find_data(number: int) -> list[tuple[int, int]]:
    """Return where an open file has data and no holes, as far as the disk tells."""
    found = []
    end, position = os.fstat(number).st_size, 0
    while position < end:
        try:
            start = os.lseek(number, position, os.SEEK_DATA)
        except OSError:
            break
        position = os.lseek(number, start, os.SEEK_HOLE)
        found.append((start, position))
    return found


def _copy_sparsely(source: str | Path, target: str | Path) -> None:
    """Copy the content of a file, over another one if there is one, without filling its holes."""
    with _open(source, "rb") as old, _open(target, "wb") as new:
        new.truncate(os.fstat(old.fileno()).st_size)
        for start, end in _find_data(old.fileno()):
            old.seek(start)
            new.seek(start)
            while part := old.read(min(_PART, end - old.tell())):
                new.write(part)


def _find_change(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _list_names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [each.name for each in entries if _is_plain(each)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_plain(path: "str | Path | os.DirEntry[str]") -> bool:
    """Tell whether a file or a directory is at a path, and not what leads out of the share."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _open(path: str | Path, mode: str) -> IO[bytes]:
    """Open a file, and not what a symbolic link in its place names."""
    try:
        return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666))
    except OSError as error:
        if mode == "wb" and os.path.lexists(path) and not _is_plain(path):
            raise ServiceError("ResourceAlreadyExists") from error
        raise


class Room:
    """The room of all shares."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: How many bytes can be written before a share has to be counted again, by its number and its quota.
        self._left: dict[tuple[int, int], int] = {}

    def take(self, share: ShareRecord, count: int) -> None:
        """Take room for so many bytes that a share has not held yet.

        Raises:
            ServiceError: its quota does not allow them.
        """
        quota = int(share.settings["x-ms-share-quota"]) * _GIB
        left = self._left.get((share.root, quota), 0)
        if left < count:
            left = quota - self._disk.count_written(share.root)
        if left < count:
            raise ServiceError("ShareSizeLimitReached")
        self._left[share.root, quota] = left - count
