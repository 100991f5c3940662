"""A folder into a service: its files, the last ones among them, and what is there and not in the folder."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from azguard.accounts.target import Target
from azguard.cache.reads import Reads
from azguard.conditions.requested import RequestedConditions
from azguard.errors import AzguardError, UsageError
from azguard.requests.pool import Done, Job, conclude
from azguard.trees import items
from azguard.trees.deletes import Deleting, FolderDeleting
from azguard.trees.file_writes import Writing
from azguard.trees.local_files import LocalFile, PassedOver, walk
from azguard.trees.names import Known, NameIndex, Patterns, TakenNames
from azguard.trees.runs import Control, after, pass_over
from azguard.trees.store import ListedItem, TreeStore


@dataclass(frozen=True, kw_only=True)
class TreeUpload:
    """One folder, and where its files go."""

    folder: Path
    store: TreeStore
    patterns: Patterns
    reads: Reads
    asked: RequestedConditions
    #: Whose reads guard the writes; part of each op.
    scope: str
    #: Whether what exists there is left alone, whatever it is.
    skips_existing: bool = False
    #: Whether a file is left alone whose content is there already.
    skips_unchanged: bool = False
    #: Whether a file is left alone that was not changed here since this scope got or put it, whatever is there now.
    skips_delivered: bool = False
    #: Whether what is there and not in the folder is deleted, after all else.
    mirrors: bool = False
    #: Whether a mirror may delete all, because the folder has no file that is meant.
    allows_empty: bool = False
    #: Whether a mirror leaves directories alone that are empty then.
    keeps_folders: bool = False
    #: Names that are written after all others, in this order.
    last: Sequence[str] = ()
    follows_links: bool = False

    @property
    def address(self) -> str:
        """Return what the prefix is."""
        return self.store.address

    def phases(self, control: Control) -> list[Iterator[Job]]:
        """Return what is done one after the other: the files, the last ones, the deletes.

        Raises:
            UsageError: the folder cannot be read, does not have one of the last files, or a mirror of it would delete
                all.
            AzguardError: no file can be written there.
        """
        self._check_last()
        self._check_any()
        self.store.check(control.patience.fresh())
        listed = self._list(control) if self.skips_unchanged or self.mirrors else None
        taken = TakenNames(self.store.fold)
        found = [after(lambda: self._walk(control, listed, taken))]
        found += [after(partial(self._write_last, name, control, listed, taken)) for name in self.last]
        if self.mirrors and listed is not None:
            found.append(after(lambda: self._delete_rest(control, listed)))
            found.append(after(lambda: self._delete_folders(control)))
        return found

    def sizes(self) -> Iterator[int]:
        """Yield how many bytes each file of the folder has."""
        for each in self._find_meant():
            yield each.size if isinstance(each, LocalFile) else 0

    def preview(self, control: Control) -> Iterator[Done]:
        """Yield what would be done, from one listing; nothing is written."""
        self._check_last()
        self._check_any()
        listed = self._list(control)
        taken = TakenNames(self.store.fold)
        for file in self._find_meant():
            listed.mark(self.store.prefix + file.name, with_all_below=isinstance(file, PassedOver))
            yield self._foresee(file, listed, taken)
        if self.mirrors:
            deleting = self._deleting
            yield from (deleting.foresee(each) for each in self._rest(listed))
            yield from self._deleting_folders(control).preview(lambda each: self._stays(each, listed, deleting))

    def _check_last(self) -> None:
        missing = set(self.last)
        for each in self._find_meant() if missing else ():
            missing -= {each.name} if isinstance(each, LocalFile) else set()
            if not missing:
                break
        if missing:
            raise UsageError(
                f"{self.folder} has no file {min(missing)} that is meant", argument="last", reason="tree_last_missing"
            )

    def _check_any(self) -> None:
        if not self.mirrors or self.allows_empty:
            return
        if not any(isinstance(each, LocalFile) for each in self._find_meant()):
            raise UsageError(
                f"{self.folder} has no file that is meant, so that a mirror of it deletes all; nothing was deleted",
                reason="tree_mirror_is_empty",
            )

    @property
    def _writing(self) -> Writing:
        return Writing(
            store=self.store,
            reads=self.reads,
            asked=self.asked,
            scope=self.scope,
            skips_existing=self.skips_existing,
            skips_unchanged=self.skips_unchanged,
            skips_delivered=self.skips_delivered,
        )

    def _find_meant(self) -> Iterator[LocalFile | PassedOver]:
        for file in walk(self.folder, follows_links=self.follows_links):
            if not self.patterns.selects(file.name):
                continue
            reason = self.store.find_reason_to_skip(self.store.prefix + file.name)
            yield file if reason is None else PassedOver(file.path, file.name, reason)

    def _list(self, control: Control) -> NameIndex:
        index = NameIndex(self.store.fold)
        index.add_all(self.store.list_items(control.patience.fresh()))
        return index

    def _walk(self, control: Control, listed: NameIndex | None, taken: TakenNames) -> Iterator[Job]:
        for file in self._find_meant():
            if listed is not None:
                # What is here is not deleted there, even if it cannot be written.
                listed.mark(self.store.prefix + file.name, with_all_below=isinstance(file, PassedOver))
            if file.name not in self.last:
                yield self._write(file, control, listed, taken)

    def _write_last(self, name: str, control: Control, listed: NameIndex | None, taken: TakenNames) -> Iterator[Job]:
        yield self._write(LocalFile(self.folder / name, name), control, listed, taken)

    def _write(
        self, file: LocalFile | PassedOver, control: Control, listed: NameIndex | None, taken: TakenNames
    ) -> Job:
        if isinstance(file, PassedOver):
            return pass_over(self._address(file.name), str(file.path), file.reason, file.error)
        try:
            target = self._locate(file, taken)
        except AzguardError as error:
            return pass_over(self._address(file.name), str(file.path), "", error)
        known = None if listed is None else listed.find(self.store.prefix + file.name)
        return self._writing.job(file, target, control, known)

    def _locate(self, file: LocalFile, taken: TakenNames) -> Target:
        target = self.store.locate_new(self.store.prefix + file.name)
        if not taken.take(file.name):
            raise UsageError(
                f"{file.name!r} cannot be written: the service ignores the case of letters, and another file of the "
                "folder has the same name",
                reason="tree_name_twice",
            )
        return target

    def _address(self, name: str) -> str:
        return f"{self.store.address}{name}"

    def _delete_rest(self, control: Control, listed: NameIndex) -> Iterator[Job]:
        # It may have been emptied since: a build that begins anew does that first.
        self._check_any()
        deleting = self._deleting
        yield from (deleting.job(each, control) for each in self._rest(listed))

    def _delete_folders(self, control: Control) -> Iterator[Job]:
        self._check_any()
        yield from self._deleting_folders(control).jobs()

    def _deleting_folders(self, control: Control) -> FolderDeleting:
        return FolderDeleting(
            folders=None if self.keeps_folders else self.store.folders,
            prefix=self.store.prefix,
            patterns=self.patterns,
            control=control,
            # The folder of the tree itself is here.
            keeps=lambda name: os.path.lexists(self.folder / name),
        )

    def _stays(self, item: ListedItem, listed: NameIndex, deleting: Deleting) -> bool:
        is_meant = self.patterns.selects(item.name.removeprefix(self.store.prefix))
        is_here = not is_meant or listed.is_marked(item.name)
        return is_here or deleting.foresee(item).outcome != items.WOULD_DELETE

    def _rest(self, listed: NameIndex) -> Iterator[Known]:
        for each in listed.list_unmarked():
            if self.patterns.selects(each.name.removeprefix(self.store.prefix)):
                yield each

    @property
    def _deleting(self) -> Deleting:
        return Deleting(store=self.store, reads=self.reads, asked=self.asked, only_seen=True)

    def _foresee(self, file: LocalFile | PassedOver, listed: NameIndex, taken: TakenNames) -> Done:
        if isinstance(file, PassedOver):
            return pass_over(self._address(file.name), str(file.path), file.reason, file.error).run()
        known = listed.find(self.store.prefix + file.name)
        address = self._address(file.name)
        return conclude(address, lambda: self._writing.foresee(file, self._locate(file, taken), known).done())
