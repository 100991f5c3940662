"""What a service keeps under a prefix, deleted file by file, and only in the version that was seen."""

from collections.abc import Iterator
from dataclasses import dataclass

from azguard.accounts.target import Target
from azguard.cache.reads import Reads
from azguard.conditions.requested import RequestedConditions
from azguard.conditions.resolve import Conditions
from azguard.requests.pool import Done, Job, conclude
from azguard.trees import items
from azguard.trees.items import TreeItem
from azguard.trees.patterns import Patterns
from azguard.trees.runs import Control
from azguard.trees.store import ListedItem, TreeStore


@dataclass(frozen=True, kw_only=True)
class Deleting:
    """How files of a service are deleted: the version that this scope has read, else the one that was listed."""

    store: TreeStore
    reads: Reads
    #: With ``last_writer_wins`` the version that was listed is deleted, whether it was read here or not.
    asked: RequestedConditions

    def job(self, listed: ListedItem, control: Control) -> Job:
        """Return the delete of one file, ready to run."""
        return _Delete(self, listed, control)

    def foresee(self, listed: ListedItem) -> Done:
        """Return what the delete of one file would do."""
        address = str(self.store.locate(listed.name).address)
        return conclude(address, lambda: self._foresee(listed).done())

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
            Changed: it was never read here.
        """
        asked = RequestedConditions(if_match=listed.etag) if self.asked.last_writer_wins else self.asked
        return self.reads.resolve_conditions(self.store.delete_operation, asked, target)


@dataclass(frozen=True, kw_only=True)
class TreeDelete:
    """All files under a prefix that are meant."""

    deleting: Deleting
    patterns: Patterns

    @property
    def address(self) -> str:
        """Return what the prefix is."""
        return self.deleting.store.address

    def phases(self, control: Control) -> list[Iterator[Job]]:
        """Return the deletes, as the listing finds the files."""
        return [self._jobs(control)]

    def preview(self, control: Control) -> Iterator[Done]:
        """Yield what would be deleted."""
        return map(self.deleting.foresee, self._list(control))

    def _jobs(self, control: Control) -> Iterator[Job]:
        for each in self._list(control):
            yield self.deleting.job(each, control)

    def _list(self, control: Control) -> Iterator[ListedItem]:
        store = self.deleting.store
        for each in store.list_items(control.patience.fresh()):
            if self.patterns.selects(each.name.removeprefix(store.prefix)):
                yield each


@dataclass(frozen=True)
class _Delete:
    """One delete, ready to run."""

    deleting: Deleting
    listed: ListedItem
    control: Control

    def run(self) -> Done:
        address = str(self.deleting.store.locate(self.listed.name).address)
        return self.control.conclude(address, lambda: self._run().done())

    def _run(self) -> TreeItem:
        store = self.deleting.store
        target = store.locate(self.listed.name)
        conditions = self.deleting.conditions(target, self.listed)
        deleted = store.delete(target, conditions, self.control.deadline())
        self.deleting.reads.forget(target)
        return items.of_write(target, None, items.DELETED, deleted)
