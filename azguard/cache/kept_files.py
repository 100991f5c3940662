"""What azguard keeps in files beside what the scopes have read: list it, and delete what is not in use.

The kinds are the rows of ``folders.KEPT``. A file is in use as long as a process has it locked. Of some kinds the file
itself tells that it is in use, which a function of ``Uses`` reads.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from azguard import columns
from azguard.columns import Column, Unit
from azguard.errors import ConfigError
from azguard.folders import KEPT, Keeping, check_own
from azguard.frozen import frozen
from azguard.processes import locked_file
from azguard.times import iso

#: By the name of a kind, what tells of its file or folder whether it is in use.
Uses = Mapping[str, Callable[[Path], bool]]
# The files of one lease: its record, the log of its process, and its lock.
_PARTS = frozenset({".json", ".log", ".lock"})
# A process makes its file, and locks it: in between it is empty.
_EMPTY_SECONDS = 60.0


@frozen
class KeptItem:
    """One thing that is kept."""

    COLUMNS: ClassVar = (
        Column(name="kind"),
        columns.SIZE,
        Column(name="age", unit=Unit.SECONDS),
        Column(name="in_use", title="in use", usual=False),
        Column(name="path"),
    )

    kind: str
    #: Its file or folder; where it has several files, the first of them.
    path: str
    purpose: str
    #: Of all its files, in bytes.
    size: int
    #: When one of them was last written.
    modified: str | None
    #: In seconds since then.
    age: int
    #: Whether a process uses it, or the lock that it records may be held: it is never deleted then.
    in_use: bool
    row: Keeping = field(metadata=columns.UNPRINTED)
    paths: tuple[Path, ...] = field(metadata=columns.UNPRINTED)

    def is_due(self, older_than: timedelta) -> bool:
        """Return whether it may be deleted because of its age: it is older than this, and than its kind is kept."""
        return self.row.days is not None and self.age > max(older_than, timedelta(days=self.row.days)).total_seconds()


@frozen
class CacheEnded:
    """What ``cache clear`` and ``cache prune`` ended, or would end."""

    #: Of how many resources the versions are forgotten.
    forgotten: int
    #: How many kept items were deleted.
    deleted: int
    deleted_bytes: int
    #: How many were chosen, and stay because they are in use.
    in_use: int
    dry_run: bool


def find(cache: Path, now: datetime, uses: Uses) -> Iterator[KeptItem]:
    """Yield the kept items of the cache folder, kind by kind.

    Raises:
        ConfigError: another user can have put it there.
    """
    for row in KEPT:
        folder = cache / row.folder
        check_own(folder)
        for _, paths in groupby(sorted(folder.glob(row.pattern)), _find_stem):
            with suppress(FileNotFoundError):  # Its process has just ended it.
                yield _describe(row, tuple(paths), now, uses)


def delete(items: Iterable[KeptItem], uses: Uses) -> Iterator[KeptItem]:
    """Delete the items that are not in use and were not written since they were found; yield those that were deleted.

    Raises:
        ConfigError: one cannot be deleted; all others were.
    """
    failed: list[OSError] = []
    for each in items:
        with _lock_unused(each.row, each.paths, uses) as is_unused, suppress(FileNotFoundError):
            if not is_unused or iso(_find_last_write(map(os.lstat, _list_all(each.paths)))) != each.modified:
                continue
            try:
                for path in each.paths:
                    _remove(path)
            except OSError as error:
                failed.append(error)
            else:
                yield each
    if failed:
        words = f"{failed[0].filename} cannot be deleted: {failed[0].strerror}"
        raise ConfigError(words, reason="kept_file_not_deleted")


def _find_stem(path: Path) -> str:
    return path.stem if path.suffix in _PARTS else path.name


def _describe(row: Keeping, paths: tuple[Path, ...], now: datetime, uses: Uses) -> KeptItem:
    found = list(map(os.lstat, _list_all(paths)))
    written = _find_last_write(found)
    with _lock_unused(row, paths, uses) as is_unused:
        in_use = not is_unused
    return KeptItem(
        kind=row.kind,
        path=str(paths[0]),
        purpose=row.purpose,
        size=sum(each.st_size for each in found if stat.S_ISREG(each.st_mode)),
        modified=iso(written),
        age=max(0, int((now - written).total_seconds())),
        in_use=in_use,
        row=row,
        paths=paths,
    )


def _find_last_write(found: Iterable[os.stat_result]) -> datetime:
    return datetime.fromtimestamp(int(max(each.st_mtime for each in found)), UTC)


def _list_all(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield files, and folders with all that is in them; no link is followed."""
    for path in paths:
        yield path
        if path.is_dir() and not path.is_symlink():
            for folder, folders, files in os.walk(path):
                yield from (Path(folder, name) for name in (*folders, *files))


@contextmanager
def _lock_unused(row: Keeping, paths: tuple[Path, ...], uses: Uses) -> Iterator[bool]:
    """Keep all files of an item locked meanwhile; yield whether nothing uses one of them."""
    with ExitStack() as stack:
        # What is never deleted may be thousands of files.
        is_unlocked = row.days is None or all(_lock_one(each, stack) for each in _list_all(paths))
        yield is_unlocked and not (row.kind in uses and any(map(uses[row.kind], paths)))


def _lock_one(path: Path, stack: ExitStack) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False  # Whether it is used cannot be told.
    if not stat.S_ISREG(found.st_mode):
        return True
    if not found.st_size and datetime.now(UTC).timestamp() - found.st_mtime < _EMPTY_SECONDS:
        return False
    return stack.enter_context(locked_file.lock_unused(path, if_missing=True))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
