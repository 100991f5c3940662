"""Where a name of the service goes in a folder of this machine, and never outside of it."""

import os
import stat
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from azguard.atomic_files import name_unfinished, remove_left
from azguard.errors import UsageError
from azguard.trees.taken_names import Fold, TakenNames

# So many folders are remembered as made: a tree may have more of them than fit the memory.
_MOST_FOLDERS = 10_000


class LocalFolder:
    """The folder that a tree is read into. Threads may use it at the same time."""

    def __init__(self, root: Path, fold: Fold | None = None) -> None:
        self.root = root
        self._taken = TakenNames(fold)
        self._lock = threading.Lock()
        self._checked = set[Path]()

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
            self._make_parents(path.parent, name)
            _check_place(path, name)
        return path

    def _make_parents(self, folder: Path, name: str) -> None:
        with self._lock:
            if folder in self._checked:
                return
            for each in [*reversed(folder.parents), folder]:
                if each == self.root or self.root not in each.parents:
                    continue
                if not _is_folder(each, name):
                    each.mkdir(exist_ok=True)
            remove_left(folder)
            if len(self._checked) >= _MOST_FOLDERS:
                self._checked.clear()
            self._checked.add(folder)


def find_fold(folder: Path) -> Fold | None:
    """Return which names the disk of a folder takes for one; None where each name is its own.

    Raises:
        OSError: it cannot be written to.
    """
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
    """Refuse a name for which the disk has an error: it is too long, or its folder cannot be read or written to."""
    try:
        yield
    except OSError as error:
        raise _refuse(name, f"the disk says {error.strerror!r}") from None


def _is_folder(path: Path, name: str) -> bool:
    """Return whether a folder is there; False if nothing is."""
    mode = _find_mode(path, name)
    if mode is not None and not stat.S_ISDIR(mode):
        raise _refuse(name, f"{path} is no folder")
    return mode is not None


def _check_place(path: Path, name: str) -> None:
    mode = _find_mode(path, name)
    if mode is not None and not stat.S_ISREG(mode):
        raise _refuse(name, f"{path} is no file")


def _find_mode(path: Path, name: str) -> int | None:
    """Return the mode of what is there, None if nothing is; a link is refused, wherever it leads."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise _refuse(name, f"{path} is a symbolic link")
    return mode


def _split(name: str) -> list[str]:
    """Return the parts of a name.

    Raises:
        UsageError: one of them is none that a file can have, or leads out of its folder.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise _refuse(name, "it has an empty, '.' or '..' part")
    if "\0" in name or (os.sep != "/" and os.sep in name) or any(Path(part).is_absolute() for part in parts):
        raise _refuse(name, "no file can have it")
    return parts


def _refuse(name: str, why: str) -> UsageError:
    return UsageError(f"{name!r} cannot be a file here: {why}", reason="tree_name_refused")
