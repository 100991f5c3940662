"""The files of a folder: which there are, where a name of the service goes, and which hold what the service has.

No name leads out of the folder. That two places hold the same content is proved by a hash, or is not known.
"""

import base64
import hashlib
import os
import stat
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from azguard.accounts.account import Target
from azguard.atomic_files import is_unfinished, name_unfinished, remove_left
from azguard.cache import copies
from azguard.cache.copies import Copy
from azguard.cache.reads import KnownContent, Reads
from azguard.errors import AzguardError, UsageError
from azguard.frozen import frozen
from azguard.resources.tree_store import ListedItem, TreeStore
from azguard.trees.names import Fold, Patterns, TakenNames

# No service takes a name of more parts, and each level costs a call within a call.
_MOST_LEVELS = 255
# So many folders are remembered as made: a tree may have more of them than fit the memory.
_MOST_FOLDERS = 10_000
_PIECE_BYTES = 1 << 20
_NO_NAMES = frozenset(("", ".", ".."))


@frozen(kw_only=True)
class FolderTree:
    """A folder of this machine and what a service keeps under a prefix, of which one is to become as the other is."""

    store: TreeStore
    folder: Path
    patterns: Patterns
    #: Whether what is in the one alone is deleted, after all else.
    mirrors: bool = False
    #: Whether a mirror may delete all, because there is no file that is meant.
    allows_empty: bool = False

    @property
    def address(self) -> str:
        return self.store.address

    def selects(self, listed: ListedItem) -> bool:
        """Return whether a name is meant."""
        return self.patterns.selects(self.store.cut(listed))

    def refuse_to_empty(self, emptied: str) -> UsageError:
        """Return the error for a mirror that would delete all, because ``emptied`` has no file."""
        return UsageError(
            f"{emptied} has no file that is meant, so that a mirror of it deletes all; nothing was deleted",
            reason="tree_mirror_is_empty",
        )


@frozen
class LocalFile:
    """One file of a folder."""

    path: Path
    #: Relative to the folder, with slashes.
    name: str

    @property
    def size(self) -> int:
        """Return how many bytes it has now; none of a file that cannot be looked at."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


@frozen
class PassedOver:
    """What is in a folder and is no file that can be written elsewhere."""

    path: Path
    name: str
    #: Why, in a few words.
    reason: str
    #: Why it is a failure, if it is one: content that would be missing.
    error: AzguardError | None = None


def check_folder(folder: Path) -> None:
    """Refuse a folder that is not there.

    Raises:
        UsageError: it cannot be read, or is no folder.
    """
    try:
        mode = os.stat(folder).st_mode
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}") from None
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{folder} is not a folder", reason="tree_is_no_folder")


def walk(folder: Path, *, follows_links: bool) -> Iterator[LocalFile | PassedOver]:
    """Yield the files of a folder and of its folders, in order of name within each.

    A symbolic link is passed over unless links are followed; what is no file, such as a pipe, always is.
    """
    check_folder(folder)
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
        passed_over = _pass_over(entry, path, name, follows_links=follows_links)
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


def _pass_over(entry: "os.DirEntry[str]", path: Path, name: str, *, follows_links: bool) -> PassedOver | None:
    """Return why an entry is neither a file nor a folder to look into; None if it is one."""
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


class LocalFolder:
    """The folder that a tree is read into. Threads may use it at the same time."""

    def __init__(self, root: Path, fold: Fold | None = None) -> None:
        self.root = root
        self._taken = TakenNames(fold)
        self._lock = threading.Lock()
        #: The folders of names, relative to the root.
        self._checked = set[str]()

    @classmethod
    def make(cls, root: Path) -> "LocalFolder":
        """Make the folder if there is none, and find out which names its disk takes for one.

        Raises:
            UsageError: it cannot be made or written to.
        """
        try:
            root.mkdir(parents=True, exist_ok=True)
            return cls(root, find_fold(root))
        except FileExistsError:
            raise UsageError(f"{root} is not a folder", reason="tree_folder_fails") from None
        except OSError as error:
            raise UsageError(f"{root} cannot be written to: {error.strerror}", reason="tree_folder_fails") from None

    def find(self, name: str) -> Path:
        """Return where a name goes, relative to the prefix; nothing is made.

        Raises:
            UsageError: it would leave the folder, replace what is no file, or the disk takes no such name.
        """
        path = self.root.joinpath(*_split(name))
        with _refusing(name):
            for each in reversed(path.parents):
                if self.root in each.parents and not _is_folder(each, name):
                    return path
            _check_place(path, name)
        return path

    def claim(self, name: str) -> Path:
        """Return where a name goes, and make its folder; what killed runs left there is deleted.

        Raises:
            UsageError: it would leave the folder, replace what is no file, or take the place of another name; or the
                disk takes no such name.
        """
        path = self.root.joinpath(*_split(name))
        if not self._taken.take(name):
            raise _refuse(name, "for this disk another file of the tree has the same name")
        with _refusing(name):
            self._make_parents(path, name)
            _check_place(path, name)
        return path

    def _make_parents(self, path: Path, name: str) -> None:
        above = name.rpartition("/")[0]
        with self._lock:
            if above in self._checked:
                return
            folder = path.parent
            for each in [*reversed(folder.parents), folder]:
                if each == self.root or self.root not in each.parents:
                    continue
                if not _is_folder(each, name):
                    each.mkdir(exist_ok=True)
            remove_left(folder)
            if len(self._checked) >= _MOST_FOLDERS:
                self._checked.clear()
            self._checked.add(above)


def find_fold(folder: Path) -> Fold | None:
    """Return which names the disk of a folder takes for one; None where each name is its own."""
    # If the process is killed here, the next run takes it for what it is.
    probe = folder / name_unfinished("\N{LATIN SMALL LETTER E WITH ACUTE}")
    probe.touch(exist_ok=False)
    try:
        folds_case = (folder / probe.name.upper()).exists()
        folds_form = (folder / unicodedata.normalize("NFD", probe.name)).exists()
    finally:
        probe.unlink()
    if not folds_case and not folds_form:
        return None
    return lambda name: _normalize(name, case=folds_case)


def _normalize(name: str, *, case: bool) -> str:
    form = unicodedata.normalize("NFC", name)
    return unicodedata.normalize("NFC", form.casefold()) if case else form


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _refuse(name, f"the disk says {error.strerror!r}") from None


def _is_folder(path: Path, name: str) -> bool:
    mode = _find_mode(path, name)
    if mode is not None and not stat.S_ISDIR(mode):
        raise _refuse(name, f"{path} is no folder")
    return mode is not None


def _check_place(path: Path, name: str) -> None:
    mode = _find_mode(path, name)
    if mode is not None and not stat.S_ISREG(mode):
        raise _refuse(name, f"{path} is no file")


def _find_mode(path: Path, name: str) -> int | None:
    """Return the mode of the file or folder at a path, None if there is none; any link is refused."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise _refuse(name, f"{path} is a symbolic link")
    return mode


def _split(name: str) -> list[str]:
    parts = name.split("/")
    if not _NO_NAMES.isdisjoint(parts):
        raise _refuse(name, "it has an empty, '.' or '..' part")
    if "\0" in name or (os.sep != "/" and (os.sep in name or any(map(os.path.isabs, parts)))):
        raise _refuse(name, "no file can have it")
    return parts


def _refuse(name: str, why: str) -> UsageError:
    return UsageError(f"{name!r} cannot be a file here: {why}", reason="tree_name_refused")


class SameVersion(NamedTuple):
    """A version that was listed, and that a file holds: what a read of it would have told."""

    etag: str | None
    last_modified: datetime | None
    content_length: int | None
    content_hash: str
    blob_type: str | None
    #: None if it is not known here.
    lineage: str | None
    #: The file that holds it, even if another has taken its place since.
    copy: Copy
    #: Whether all of that is recorded already.
    is_recorded: bool


def is_same(file: Path, target: Target, listed: ListedItem, reads: Reads) -> bool:
    """Return whether a file holds the content of the version that was listed.

    It does if the service's MD5 or the hash that was recorded for that very version says so. An equal size, time or
    name says nothing. Not known is not the same, as of a file that is gone or cannot be read.
    """
    return _find_same(file, target, listed, reads) is not None


def _find_same(file: Path, target: Target, listed: ListedItem, reads: Reads) -> SameVersion | None:
    with suppress(OSError):
        with open(file, "rb", buffering=0) as stream:
            if listed.content_length not in (None, (found := os.fstat(stream.fileno())).st_size):
                return None
            copy = copies.find_behind(stream.fileno(), file, found)
            known = reads.find_content(target, listed.etag, copy)
            if known is not None:
                is_it = _hash_stream(stream, "sha256") == [known.sha256]
                return _build(listed, known, copy) if is_it else None
            if listed.content_md5 is None:
                return None
            # In one pass: between two of them the file could change.
            sha256, md5 = _hash_stream(stream, "sha256", "md5")
        if md5 == base64.b64decode(listed.content_md5):
            return _build(listed, KnownContent(sha256, None, listed.blob_type), copy)
    return None


def record_same(file: Path, target: Target, listed: ListedItem, reads: Reads) -> bool:
    """Record the listed version as read into a file that holds it; return whether the file does: see ``is_same``."""
    same = _find_same(file, target, listed, reads)
    if same is not None and not same.is_recorded:
        reads.record(target, same, same.copy, same.lineage)
    return same is not None


def is_version(file: Path, copy: Copy, target: Target, etag: str, reads: Reads) -> bool:
    """Return whether a file holds the content of a version that this scope got or put, by its recorded hash."""
    with suppress(OSError):
        known = reads.find_content(target, etag, copy)
        return known is not None and _hash(file) == known.sha256
    return False


def is_as_read(file: Path, target: Target, reads: Reads) -> bool:
    """Return whether a file holds what was read into it from there, unchanged since."""
    with suppress(OSError):
        read = reads.find_read_hash(target, copies.find_at(file))
        return read is not None and _hash(file) == read
    return False


def _build(listed: ListedItem, known: KnownContent, copy: Copy) -> SameVersion:
    return SameVersion(
        etag=listed.etag,
        last_modified=listed.last_modified,
        content_length=listed.content_length,
        content_hash=f"sha256:{known.sha256.hex()}",
        blob_type=known.blob_type,
        lineage=known.lineage,
        copy=copy,
        is_recorded=known.is_recorded,
    )


def _hash(file: Path) -> bytes:
    with open(file, "rb", buffering=0) as stream:
        return _hash_stream(stream, "sha256")[0]


def _hash_stream(stream: FileIO, *algorithms: str) -> list[bytes]:
    # MD5 is what the service stores; here it finds equal content and proves no origin.
    digests = [hashlib.new(each, usedforsecurity=False) for each in algorithms]
    # What a read may have is asked of the system before it: no more than the file has, and a byte by which it ends.
    most = min(_PIECE_BYTES, os.fstat(stream.fileno()).st_size + 1)
    for piece in iter(partial(stream.read, most), b""):
        for each in digests:
            each.update(piece)
    return [each.digest() for each in digests]
