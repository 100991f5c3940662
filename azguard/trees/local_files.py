"""The files of a folder."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from azguard.atomic_files import is_unfinished
from azguard.errors import AzguardError, UsageError

# No service takes a name of more parts, and each level costs a call within a call.
_MOST_LEVELS = 255


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class PassedOver:
    """What is in a folder and is no file that can be written elsewhere."""

    path: Path
    name: str
    #: Why, in a few words.
    reason: str
    #: Why it is a failure, if it is one: content that would be missing.
    error: AzguardError | None = None


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
