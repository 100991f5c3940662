"""What a service keeps under a prefix, deleted file by file, and only in the version that was seen."""

from collections.abc import Iterator
from dataclasses import dataclass

from azguard.accounts.target import Target
from azguard.cache.reads import Reads
from azguard.conditions.requested import RequestedConditions
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed
from azguard.requests.pool import Done, Job, conclude
from azguard.trees import items
from azguard.trees.folders import FolderDeleting
from azguard.trees.items import TreeItem
from azguard.trees.patterns import Patterns
from azguard.trees.runs import Control, after
from azguard.trees.store import ListedItem, TreeStore


@dataclass(frozen=True, kw_only=True)
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
        return _Delete(self, listed, control)

    def foresee(self, listed: ListedItem) -> Done:
        """Return what the delete of one file would do."""
        return conclude(self.name(listed), lambda: self._foresee(listed).done())

    def name(self, listed: ListedItem) -> str:
        """Return the address of a file for its line, even if its name is one that cannot be asked for."""
        return f"{self.store.address}{listed.name.removeprefix(self.store.prefix)}"

    def _foresee(self, listed: ListedItem) -> TreeItem:
        target = self.store.locate(listed.name)
        conditions = self.conditions(target, listed)
        is_current = conditions.expected_etag in (None, listed.etag)
        return TreeItem(
            address=str(target.address),
            file=None,
            outcome=items.WOULD_DELETE if is_current else items.WOULD_REFUSE,
            etag=listed.etag,
            last_modified=listed.last_modified,
            content_length=listed.content_length,
            guard=conditions.guard,
            reason=None if is_current else "it changed since it was read here",
        )

    def conditions(self, target: Target, listed: ListedItem) -> Conditions:
        """Return what guards the delete of one file.

        Raises:
            Changed: it was never read here, or has changed since, where that is known before anything is sent.
        """
        asked = RequestedConditions(etag=listed.etag) if self.asked.last_writer_wins else self.asked
        found = self.reads.resolve_conditions(self.store.delete_operation, asked, target)
        if self.only_seen and found.expected_etag is None:
            self._check_seen(target, listed)
        return found

    def _check_seen(self, target: Target, listed: ListedItem) -> None:
        seen = self.reads.resolve_conditions(self.store.delete_operation, RequestedConditions(), target)
        if seen.expected_etag != listed.etag:
            raise Changed(f"{target} changed since it was read here", address=str(target.address))


@dataclass(frozen=True, kw_only=True)
class TreeDelete:
    """All files under a prefix that are meant."""

    deleting: Deleting
    patterns: Patterns
    #: Whether directories are left alone that are empty then.
    keeps_folders: bool = False

    @property
    def address(self) -> str:
        """Return what the prefix is."""
        return self.deleting.store.address

    def phases(self, control: Control) -> list[Iterator[Job]]:
        """Return the deletes, as the listing finds the files; then those of the directories that are empty."""
        return [self._jobs(control), after(self._deleting_folders(control).jobs)]

    def preview(self, control: Control) -> Iterator[Done]:
        """Yield what would be deleted."""
        yield from map(self.deleting.foresee, self._list(control))
        yield from self._deleting_folders(control).preview(self._stays)

    def _jobs(self, control: Control) -> Iterator[Job]:
        for each in self._list(control):
            yield self.deleting.job(each, control)

    def _list(self, control: Control) -> Iterator[ListedItem]:
        return filter(self._is_meant, self.deleting.store.list_items(control.patience.fresh()))

    def _is_meant(self, item: ListedItem) -> bool:
        return self.patterns.selects(item.name.removeprefix(self.deleting.store.prefix))

    def _stays(self, item: ListedItem) -> bool:
        """Return whether a file would be there after the deletes."""
        return not self._is_meant(item) or self.deleting.foresee(item).outcome != items.WOULD_DELETE

    def _deleting_folders(self, control: Control) -> FolderDeleting:
        store = self.deleting.store
        return FolderDeleting(
            folders=None if self.keeps_folders else store.folders,
            prefix=store.prefix,
            patterns=self.patterns,
            control=control,
        )


@dataclass(frozen=True)
class _Delete:
    """One delete, ready to run."""

    deleting: Deleting
    listed: ListedItem
    control: Control

    def run(self) -> Done:
        return self.control.conclude(self.deleting.name(self.listed), lambda: self._run().done())

    def _run(self) -> TreeItem:
        store = self.deleting.store
        target = store.locate(self.listed.name)
        conditions = self.deleting.conditions(target, self.listed)
        with self.control.name_holder(target):
            deleted = store.delete(target, conditions, self.control.deadline(), listed=self.listed.etag)
        self.deleting.reads.record_deleted(target, conditions.expected_etag or self.listed.etag)
        return items.of_write(target, None, items.DELETED, deleted)
