"""What a service keeps under a prefix, deleted file by file, and only in the version that was seen.

Then its directories that are empty, the innermost first. The service refuses to delete one that is not empty: it stays
if any writer puts something into it meanwhile.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator

from azguard.accounts.account import Target
from azguard.cache.reads import Reads
from azguard.errors import BadRequest, Changed
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.resources.pool import Done, Job, conclude
from azguard.resources.tree_store import ListedItem, TreeFolders, TreeStore
from azguard.trees import runs
from azguard.trees.names import Patterns
from azguard.trees.runs import Control, Task, TreeItem, after

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


@frozen(kw_only=True)
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
        for folders, each, above, level in self._walk():
            if level is not None and self._is_selected(each.name):
                above.begin()
                yield _FolderDelete(folders, each.name, level, above, self.control)
            else:
                above.holds = above.holds or each.name

    def preview(self, stays: Callable[[ListedItem], bool]) -> Iterator[Done]:
        """Yield which directories would be deleted, if of the files only those are there then that stay."""
        for folders, each, above, level in self._walk():
            if level is None:
                above.holds = each.name if stays(each) else above.holds
            elif level.holds is None and self._is_selected(each.name):
                address = str(folders.locate(each.name).address)
                yield TreeItem(address=address, file=None, outcome=runs.WOULD_DELETE).done()
            else:
                above.holds = each.name

    def _walk(self) -> Iterator[tuple[TreeFolders, ListedItem, _Level, _Level | None]]:
        """Yield files and directories with the level they are in, and a directory with its own."""
        # Those in which the walk is: few at any time, however many there are.
        levels = defaultdict[str, _Level](_Level)
        for each in [] if self.folders is None else self.folders.walk(self.control.patience.fresh()):
            assert self.folders is not None
            level = (levels.pop(each.name, None) or _Level()) if each.is_folder else None
            yield self.folders, each, levels[each.name.rpartition("/")[0]], level

    def _is_selected(self, name: str) -> bool:
        """Return whether a directory is meant: by its own name, not by those of what is in it."""
        if f"{name}/" == self.prefix:
            return not self.patterns.include and not self.patterns.exclude and not self.keeps("")
        relative = name.removeprefix(self.prefix)
        return self.patterns.selects(f"{relative}/") and not self.keeps(relative)


@frozen
class _FolderDelete:
    folders: TreeFolders
    name: str
    level: _Level
    above: _Level
    control: Control

    def run(self) -> Done:
        self.level.wait(self.control)
        address = str(self.folders.locate(self.name).address)
        done = self.control.conclude(address, lambda: self._run(address).done())
        is_gone = done.outcome in (runs.DELETED, runs.SKIPPED)
        self.above.end(kept=None if is_gone else self.name)
        return done

    def _run(self, address: str) -> TreeItem:
        self.control.check(self.name)
        if self.level.holds is not None:
            return TreeItem(address, None, runs.KEPT, reason=f"{self.level.holds} is in it")
        try:
            was_there = self.folders.delete(self.folders.locate(self.name), self.control.deadline())
        except BadRequest as error:
            if error.reason != "directory_not_empty":
                raise
            return TreeItem(address, None, runs.KEPT, reason="something has appeared in it")
        if was_there:
            return TreeItem(address, None, runs.DELETED)
        return TreeItem(address, None, runs.SKIPPED, reason=runs.GONE_THERE)


@frozen(kw_only=True)
class Deleting:
    """How files of a service are deleted: the version that this scope has read, else the one that was listed."""

    store: TreeStore
    reads: Reads
    #: With ``last_writer_wins`` the version that was listed is deleted, whether it was read here or not.
    asked: RequestedConditions
    #: Whether a fence or a condition of the caller's own stands beside the version that was read here, not for it.
    only_seen: bool = False

    def job(self, listed: ListedItem, control: Control) -> Job:
        """Return the delete of one file, ready to run."""
        name = self.store.name(self.store.cut(listed))
        return Task(lambda: control.conclude(name, lambda: self._delete(listed, control).done()))

    def _delete(self, listed: ListedItem, control: Control) -> TreeItem:
        target = self.store.locate(listed.name)
        conditions = self.conditions(target, listed)
        with control.name_holder(target):
            deleted = self.store.delete(target, conditions, control.deadline(), listed=listed.etag)
        self.reads.record_deleted(target, conditions.expected_etag or listed.etag)
        return TreeItem.of_write(target, None, runs.DELETED, deleted)

    def foresee(self, listed: ListedItem) -> Done:
        """Return the outcome that the delete of one file would have."""
        return conclude(self.store.name(self.store.cut(listed)), lambda: self._foresee(listed).done())

    def _foresee(self, listed: ListedItem) -> TreeItem:
        target = self.store.locate(listed.name)
        conditions = self.conditions(target, listed)
        is_current = conditions.expected_etag in (None, listed.etag)
        outcome = runs.WOULD_DELETE if is_current else runs.WOULD_REFUSE
        reason = None if is_current else runs.CHANGED_SINCE
        return TreeItem.of_listed(target, None, outcome, listed, guard=conditions.guard, reason=reason)

    def conditions(self, target: Target, listed: ListedItem) -> Conditions:
        """Return the conditions that guard the delete of one file.

        Raises:
            Changed: the file was never read here, or has changed since, where that is known before the delete is sent.
        """
        asked = RequestedConditions(etag=listed.etag) if self.asked.last_writer_wins else self.asked
        found = self.reads.resolve_conditions(self.store.DELETE, asked, target)
        if self.only_seen and found.expected_etag is None:
            self._check_seen(target, listed)
        return found

    def _check_seen(self, target: Target, listed: ListedItem) -> None:
        seen = self.reads.resolve_conditions(self.store.DELETE, RequestedConditions(), target)
        if seen.expected_etag != listed.etag:
            raise Changed(f"{target} changed since it was read here", address=str(target.address))


@frozen(kw_only=True)
class TreeDelete:
    """All files under a prefix that are meant."""

    deleting: Deleting
    patterns: Patterns
    #: Whether directories are left alone that are empty then.
    keeps_folders: bool = False

    @property
    def address(self) -> str:
        return self.deleting.store.address

    def phases(self, control: Control) -> list[Iterator[Job]]:
        """Return the deletes, as the listing finds the files; then those of the directories that are empty."""
        return [self._jobs(control), after(self._deleting_folders(control).jobs)]

    def preview(self, control: Control) -> Iterator[Done]:
        yield from map(self.deleting.foresee, self._list(control))
        yield from self._deleting_folders(control).preview(self._stays)

    def _jobs(self, control: Control) -> Iterator[Job]:
        for each in self._list(control):
            yield self.deleting.job(each, control)

    def _list(self, control: Control) -> Iterator[ListedItem]:
        return filter(self._is_selected, self.deleting.store.list_items(control.patience.fresh()))

    def _is_selected(self, item: ListedItem) -> bool:
        return self.patterns.selects(self.deleting.store.cut(item))

    def _stays(self, item: ListedItem) -> bool:
        return not self._is_selected(item) or self.deleting.foresee(item).outcome != runs.WOULD_DELETE

    def _deleting_folders(self, control: Control) -> FolderDeleting:
        store = self.deleting.store
        return FolderDeleting(
            folders=None if self.keeps_folders else store.folders,
            prefix=store.prefix,
            patterns=self.patterns,
            control=control,
        )
