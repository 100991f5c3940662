"""The directories of a service that are empty once files are deleted: only those are deleted, the innermost first.

The service refuses to delete a directory that is not empty. So a directory stays if any
writer puts something into it meanwhile.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from azguard.errors import BadRequest
from azguard.requests.pool import Done, Job
from azguard.trees import items
from azguard.trees.items import TreeItem
from azguard.trees.patterns import Patterns
from azguard.trees.runs import Control
from azguard.trees.store import ListedItem, TreeFolders

_GONE = "it was deleted there since it was listed"
# So often a job looks whether the run is to stop while it waits for others.
_LOOK_SECONDS = 0.1


class _Level:
    """A directory while what is in it is listed and deleted."""

    def __init__(self) -> None:
        #: The name of something in it that stays.
        self.holds: str | None = None
        self._under_way = 0
        self._changed = threading.Condition()

    def begin(self) -> None:
        """Count a directory in it whose delete begins."""
        with self._changed:
            self._under_way += 1

    def end(self, *, kept: str | None) -> None:
        """Count a directory in it whose delete has ended; it may have been kept."""
        with self._changed:
            self._under_way -= 1
            self.holds = self.holds or kept
            self._changed.notify_all()

    def wait(self, control: Control) -> None:
        """Wait until the deletes of all directories in it have ended, or the run is to stop."""
        with self._changed:
            while self._under_way and not control.is_stopped:
                self._changed.wait(_LOOK_SECONDS)


@dataclass(frozen=True, kw_only=True)
class FolderDeleting:
    """How directories are deleted, below a prefix and with it."""

    #: None where the service has none, or all are to be kept.
    folders: TreeFolders | None
    prefix: str
    patterns: Patterns
    control: Control
    #: Returns whether a directory is kept in any case; its name is relative to the prefix, empty for that itself.
    keeps: Callable[[str], bool] = lambda name: False

    def jobs(self) -> Iterator[Job]:
        """Yield the deletes. That of a directory waits for those in it, all of which are yielded before."""
        if self.folders is None:
            return
        levels = _Levels()
        for each in self.folders.walk(self.control.patience.fresh()):
            above = levels.find_above(each.name)
            if not each.is_folder:
                above.holds = above.holds or each.name
                continue
            level = levels.pop(each.name)
            if self._is_meant(each.name):
                above.begin()
                yield _FolderDelete(self.folders, each.name, level, above, self.control)
            else:
                above.holds = above.holds or each.name

    def preview(self, stays: Callable[[ListedItem], bool]) -> Iterator[Done]:
        """Yield which directories would be deleted, if of the files only those are there then that stay."""
        if self.folders is None:
            return
        levels = _Levels()
        for each in self.folders.walk(self.control.patience.fresh()):
            above = levels.find_above(each.name)
            if not each.is_folder:
                above.holds = each.name if stays(each) else above.holds
            elif levels.pop(each.name).holds is None and self._is_meant(each.name):
                address = str(self.folders.locate(each.name).address)
                yield TreeItem(address=address, file=None, outcome=items.WOULD_DELETE).done()
            else:
                above.holds = each.name

    def _is_meant(self, name: str) -> bool:
        """Return whether a directory is meant: by its own name, not by those of what is in it."""
        if f"{name}/" == self.prefix:
            return not self.patterns.include and not self.patterns.exclude and not self.keeps("")
        relative = name.removeprefix(self.prefix)
        return self.patterns.selects(f"{relative}/") and not self.keeps(relative)


@dataclass(frozen=True)
class _Levels:
    """The directories in which a walk is: few at any time, however many there are."""

    _of: dict[str, _Level] = field(default_factory=dict)

    def find_above(self, name: str) -> _Level:
        return self._of.setdefault(name.rpartition("/")[0], _Level())

    def pop(self, name: str) -> _Level:
        return self._of.pop(name, None) or _Level()


@dataclass(frozen=True)
class _FolderDelete:
    """The delete of one directory, ready to run."""

    folders: TreeFolders
    name: str
    level: _Level
    above: _Level
    control: Control

    def run(self) -> Done:
        self.level.wait(self.control)
        address = str(self.folders.locate(self.name).address)
        done = self.control.conclude(address, lambda: self._run(address).done())
        is_gone = done.outcome in (items.DELETED, items.SKIPPED)
        self.above.end(kept=None if is_gone else self.name)
        return done

    def _run(self, address: str) -> TreeItem:
        self.control.check(self.name)
        if self.level.holds is not None:
            return _keep(address, f"{self.level.holds} is in it")
        try:
            was_there = self.folders.delete(self.folders.locate(self.name), self.control.deadline())
        except BadRequest as error:
            if error.reason != "directory_not_empty":
                raise
            return _keep(address, "something has appeared in it")
        return TreeItem(
            address=address,
            file=None,
            outcome=items.DELETED if was_there else items.SKIPPED,
            reason=None if was_there else _GONE,
        )


def _keep(address: str, reason: str) -> TreeItem:
    return TreeItem(address=address, file=None, outcome=items.KEPT, reason=reason)
