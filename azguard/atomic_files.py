"""Files that are replaced whole or not at all: written beside their place, and renamed into it.

It is locked while it is written, so that what a killed process left can be told from what a living one writes.
"""

import errno
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# A name may have 255 bytes; a character may take four of them.
_NAME_CHARACTERS = 40
_RANDOM_BYTES = 6
_BUFFER_BYTES = 8192
# Some network file systems lock nothing: there a file counts as left only if it was not written to for so long.
_LEFT_SECONDS = 60.0
_HAS_LOCKS = os.name == "posix"
#: What this process is writing now.
_unfinished: set[str] = set()
# The names under which a process finds its own open files.
_OPEN_FILE = r"/dev/(std(?:in|out|err))|/(?:dev|proc/self)/fd/([0-9]+)"
_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}
_UNFINISHED = rf"(?s)\..*\.azguard-[0-9a-f]{{{2 * _RANDOM_BYTES}}}"


def is_unfinished(name: str) -> bool:
    """Return whether a file of this name is one that a killed process left, and not what its user made."""
    return re.fullmatch(_UNFINISHED, name) is not None


def find_descriptor(path: Path) -> int | None:
    """Return which open file of this process a path is another name of, as ``/dev/stderr`` is; None if it is not."""
    found = re.fullmatch(_OPEN_FILE, str(path))
    if found is None or os.name != "posix":
        return None
    return _STANDARD[found[1]] if found[1] else int(found[2])


def open_in_place(path: Path) -> BinaryIO:
    """Open what is there to be written to as it is: a device, a pipe, or a file that this process has open.

    Into the latter it is written where the last write to it ended: to open it anew would empty it.
    """
    descriptor = find_descriptor(path)
    return open(path, "wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb")


def discard_unfinished() -> None:
    """Delete the files that threads of this process are still writing: it is about to end without waiting for them."""
    for each in list(_unfinished):
        with suppress(OSError):
            os.unlink(each)


def remove_left(folder: Path, name: str | None = None) -> None:
    """Delete the files that killed processes left in a folder, but none that a living process may still write.

    With ``name`` only what was to take the place of the file of that name. What cannot be deleted stays.
    """
    beginning = "" if name is None else _begin_name(name)
    with suppress(OSError), os.scandir(folder) as entries:
        for each in entries:
            if each.name.startswith(beginning) and is_unfinished(each.name):
                with suppress(OSError):
                    _remove_if_left(Path(each.path))


def name_unfinished(name: str) -> str:
    """Return the name of a file beside one of this name: hidden, unlike any other, and known if it is left."""
    return f"{_begin_name(name)}{os.urandom(_RANDOM_BYTES).hex()}"


def _begin_name(name: str) -> str:
    return f".{name[:_NAME_CHARACTERS]}.azguard-"


def _remove_if_left(path: Path) -> None:
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_mtime > time.time() - _LEFT_SECONDS or not _HAS_LOCKS:
        return
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            os.unlink(path)
    finally:
        os.close(descriptor)


@contextmanager
def _lock(descriptor: int) -> Iterator[None]:
    """Lock a file until the block ends, even if the descriptor is closed before; a system without locks has none."""
    if not _HAS_LOCKS:
        yield
        return
    import fcntl

    kept = os.dup(descriptor)
    try:
        with suppress(OSError):
            fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(kept)


def write_atomically(path: Path, content: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Write a file: a reader finds what was there before or all of the content, never a part.

    Raises:
        OSError: the file is as it was.
    """
    with replacing(path, mode, durable=durable) as stream:
        stream.write(content)


def write_where_named(path: Path, content: bytes) -> None:
    """Write to a path that a user named: a file as ``write_atomically`` does; else see ``open_in_place``.

    A file that is there keeps its permissions.

    Raises:
        OSError: it cannot be written; a file is as it was.
    """
    mode = path.stat().st_mode if path.exists() else None
    if mode is not None and (not stat.S_ISREG(mode) or find_descriptor(path) is not None):
        with open_in_place(path) as stream:
            stream.write(content)
        return
    allowed = 0o666 if mode is None else stat.S_IMODE(mode)
    with replacing(path, allowed, exact=mode is not None) as stream:
        stream.write(content)


@contextmanager
def replacing(path: Path, mode: int = 0o666, *, exact: bool = False, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path`` when the block ends; if the block fails, it is removed.

    A symbolic link is followed; a device or a pipe is never replaced. ``mode`` is the permissions of the new file, less
    the umask unless they are ``exact``.
    ``durable`` waits until the content and the rename are on the disk.

    Not guaranteed: if the process is killed, the new file stays, under a hidden name beside ``path``.

    Raises:
        OSError: the file cannot be made, written or renamed; ``path`` is as it was.
    """
    real = _find_replaced(path)
    folder, name = os.path.split(real)
    beside = os.path.join(folder, name_unfinished(name))
    # With a size of the buffer the file is not asked whether it is a terminal.
    stream = open(beside, "x+b", _BUFFER_BYTES, opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115  # closed below
    _unfinished.add(beside)
    try:
        with _lock(stream.fileno()):
            with stream:
                yield stream
                stream.flush()
                if durable:
                    os.fsync(stream.fileno())
            if exact:
                os.chmod(beside, mode)
            os.replace(beside, real)
    except BaseException:
        with suppress(OSError):  # Its folder is gone, or it was renamed already.
            os.unlink(beside)
        raise
    finally:
        _unfinished.discard(beside)
    if durable:
        _sync_shared(folder)


def _find_replaced(path: Path) -> str:
    """Return which file is to be replaced: the one behind a link. A link above it leads to the same folder for both.

    What is no file is refused: as root, a rename would take the place of /dev/null itself.
    """
    real = str(path) if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(real).st_mode
        if stat.S_ISLNK(mode):
            real = os.path.realpath(real)
            mode = os.lstat(real).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), real)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", real)
    return real


class _FolderSync:
    """The syncs of one folder, of which threads share one where they can."""

    def __init__(self) -> None:
        self.users = 0
        self._state = threading.Condition()
        self._is_running = False
        self._begun = 0
        self._ended = 0

    def wait(self, folder: str) -> None:
        """Wait until a sync has ended that began after this call: it takes all renames along that came before it."""
        with self._state:
            wanted = self._begun + 1
            while self._is_running and self._ended < wanted:
                self._state.wait()
            if self._ended >= wanted:
                return
            self._is_running = True
            self._begun += 1
            mine = self._begun
        try:
            _sync_folder(folder)
        finally:
            with self._state:
                self._is_running = False
                self._ended = mine
                self._state.notify_all()


#: The folders that are being synced now.
_syncs: dict[str, _FolderSync] = {}
_syncs_lock = threading.Lock()


def _sync_shared(folder: str) -> None:
    """Make a rename into a folder durable, in one sync with those of other threads at the same time."""
    with _syncs_lock:
        found = _syncs.setdefault(folder, _FolderSync())
        found.users += 1
    try:
        found.wait(folder)
    finally:
        with _syncs_lock:
            found.users -= 1
            if not found.users:
                _syncs.pop(folder, None)


def _sync_folder(folder: str) -> None:
    """Make the rename itself durable, where folders can be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass  # Some file systems cannot sync a folder; the file itself is synced.
    finally:
        os.close(handle)
