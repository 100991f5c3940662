"""The files of a folder, and one of them as a stream that does not change while it is read."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from azguard.atomic_files import is_unfinished
from azguard.errors import AzguardError, Changed, UsageError

# No service takes a name of more parts, and each level costs a call within a call.
_MOST_LEVELS = 255


@dataclass(frozen=True)
class LocalFile:
    """One file of a folder."""

    path: Path
    #: Relative to the folder, with slashes.
    name: str


@dataclass(frozen=True)
class PassedOver:
    """What is in a folder and is no file that can be written elsewhere."""

    path: Path
    name: str
    #: Why, in a few words.
    reason: str
    #: Why it is a failure, if it is one: content that would be missing.
    error: AzguardError | None = None


class _State(NamedTuple):
    """What changes when a file is written to or replaced."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, descriptor: int) -> "_State":
        found = os.fstat(descriptor)
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def walk(folder: Path, *, follows_links: bool) -> Iterator[LocalFile | PassedOver]:
    """Yield the files of a folder and of its folders, in order of name within each.

    A symbolic link is passed over unless links are followed; what is no file, such as a pipe, always is.

    Raises:
        UsageError: it is no folder, or it cannot be read.
    """
    try:
        mode = os.stat(folder).st_mode
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}") from None
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{folder} is not a folder", reason="tree_is_no_folder")
    yield from _walk(folder, "", frozenset(), follows_links=follows_links)


def _walk(
    folder: Path, prefix: str, above: frozenset[tuple[int, int]], *, follows_links: bool
) -> Iterator[LocalFile | PassedOver]:
    try:
        found = os.stat(folder)
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError as error:
        failure = UsageError(f"{folder} cannot be read: {error.strerror}")
        yield PassedOver(folder, prefix.rstrip("/") or ".", "cannot be read", failure)
        return
    here = (found.st_dev, found.st_ino)
    for entry in entries:
        name = prefix + entry.name
        path = Path(entry.path)
        passed_over = _pass_over(entry, name, follows_links=follows_links)
        if passed_over is not None:
            yield passed_over
        elif not entry.is_dir():
            yield LocalFile(path, name)
        elif here in above:
            yield PassedOver(path, name, "its folder contains itself, through a link")
        elif len(above) >= _MOST_LEVELS:
            yield PassedOver(path, name, "too deep", UsageError(f"it is in more than {_MOST_LEVELS} folders"))
        else:
            yield from _walk(path, f"{name}/", above | {here}, follows_links=follows_links)


def _pass_over(entry: "os.DirEntry[str]", name: str, *, follows_links: bool) -> PassedOver | None:
    """Return why an entry is neither a file nor a folder to look into; None if it is one."""
    path = Path(entry.path)
    if not _is_text(name):
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        return PassedOver(path, shown, "its name is not UTF-8", UsageError(f"the name of {shown} is not UTF-8"))
    if is_unfinished(entry.name):
        return PassedOver(path, name, "a run that was killed left it")
    if entry.is_symlink() and not follows_links:
        return PassedOver(path, name, "it is a symbolic link")
    try:
        is_either = entry.is_dir() or entry.is_file()
    except OSError as error:
        # A link that leads to itself, or to where nothing may be looked at.
        return PassedOver(path, name, "cannot be read", UsageError(f"{path} cannot be read: {error.strerror}"))
    return None if is_either else PassedOver(path, name, "it is no file")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class UnchangedFile:
    """A file being read, which ends with an error as soon as it changed since it was opened."""

    def __init__(self, stream: BinaryIO, path: Path, check: Callable[[], None]) -> None:
        self._stream = stream
        self._check_run = check
        self._path = path
        self._begun = _State.of(stream.fileno())
        self._read = 0

    @property
    def name(self) -> str:
        """Return its path."""
        return str(self._path)

    @property
    def size(self) -> int:
        """Return its size in bytes when it was opened."""
        return self._begun.size

    @property
    def state(self) -> str:
        """Return what identifies its content: another one has another state."""
        return ":".join(map(str, self._begun))

    def fileno(self) -> int:
        """Return its descriptor."""
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
        self._check_state()
        return piece

    def _check_state(self) -> None:
        # A file of /proc has content, and tells no size.
        is_longer = self._read > self._begun.size > 0
        if is_longer or _State.of(self._stream.fileno()) != self._begun:
            raise Changed(f"{self._path} changed while it was read", reason="file_changed_while_read")


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
