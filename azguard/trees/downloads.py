"""Out of a service into a folder: each file whole or not at all, with its version remembered."""

import os
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path

from azguard.accounts.account import Target
from azguard.cache import copies
from azguard.cache.reads import Reads
from azguard.errors import AzguardError, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.requests.deadline import Deadline
from azguard.resources.lifecycles import is_nowhere
from azguard.resources.pool import Done, Job, conclude
from azguard.resources.tree_store import ListedItem, TreeGet
from azguard.trees import local_files, runs
from azguard.trees.local_files import FolderTree, LocalFile, LocalFolder, walk
from azguard.trees.names import NameIndex
from azguard.trees.runs import Control, Task, TreeItem, after, pass_over

_CHANGED = "it was changed here since it was got"
_MARKER = "it is empty and marks a folder"


@frozen(kw_only=True)
class TreeDownload(FolderTree):
    """What is under a prefix, and the folder it goes into. A mirror deletes only files that came from there."""

    reads: Reads
    asked: RequestedConditions
    #: Whether a file that is in the folder is left alone, even with other content.
    skips_existing: bool = False
    #: Whether a file is left alone that holds the content already.
    skips_unchanged: bool = False
    #: Whether a file is replaced, too, that was changed here since azguard wrote or read it.
    overwrites: bool = False

    def phases(self, control: Control) -> list[Iterator[Job]]:
        """Return the phases of the download, one after the other: the files, then the deletes.

        Raises:
            UsageError: what is there is no folder.
        """
        self._check_folder()
        listed = NameIndex(self.store.fold) if self.mirrors else None
        found = [after(lambda: self._read_all(control, listed))]
        if listed is not None:
            found.append(after(lambda: self._delete_rest(listed)))
        return found

    def _check_folder(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"{self.folder} is not a folder", reason="tree_folder_fails")

    def sizes(self, patience: Deadline) -> Iterator[int]:
        """Yield how many bytes each file has, from a listing of its own."""
        for each in self._list(patience):
            yield each.content_length or 0

    def preview(self, control: Control) -> Iterator[Done]:
        """Yield the reads that would be made, from one listing; nothing is written."""
        self._check_folder()
        folder = LocalFolder(self.folder)
        listed = NameIndex(self.store.fold)
        for each in self._list_some(control):
            listed.add_all([each])
            yield conclude(self.store.name(self.store.cut(each)), partial(self._foresee, folder, each))
        # A folder that is missing is made, and has nothing to delete.
        if self.mirrors and self.folder.exists():
            for name, path in self._rest(listed):
                yield TreeItem(address=self.store.name(name), file=str(path), outcome=runs.WOULD_DELETE).done()

    def _foresee(self, folder: LocalFolder, listed: ListedItem) -> Done:
        if _is_marker(listed):
            return self._pass_over_marker(listed).run()
        target = self.store.locate(listed.name)
        path = folder.find(self.store.cut(listed))
        outcome = self._foresee_outcome(path, target, listed)
        reason = _CHANGED if outcome == runs.WOULD_REFUSE else None
        return TreeItem.of_listed(target, path, outcome, listed, reason=reason).done()

    def _foresee_outcome(self, path: Path, target: Target, listed: ListedItem) -> str:
        if self.skips_existing and path.exists():
            return runs.EXISTS
        if self.skips_unchanged and local_files.is_same(path, target, listed, self.reads):
            return runs.UNCHANGED
        return runs.WOULD_REFUSE if self._would_lose(path, target, listed) else runs.WOULD_READ

    def _would_lose(self, path: Path, target: Target, listed: ListedItem) -> bool:
        is_changed = not self.overwrites and self.reads.is_changed_here(target, path)
        return is_changed and not local_files.is_same(path, target, listed, self.reads)

    def _list(self, patience: Deadline) -> Iterator[ListedItem]:
        return filter(self.selects, self.store.list_items(patience.fresh()))

    def _list_some(self, control: Control) -> Iterator[ListedItem]:
        """Yield the listed files; a mirror has a refusal of its own for an empty listing."""
        count = 0
        for each in self._list(control.patience):
            count += 1
            yield each
        if not count and not self.mirrors and not self.allows_empty:
            chosen = " that the patterns select" if self.patterns.include or self.patterns.exclude else ""
            raise NotFound(
                f"there is no file below {self.address}{chosen}; nothing was read",
                address=self.address,
                reason="tree_has_no_file",
            )

    def _read_all(self, control: Control, listed: NameIndex | None) -> Iterator[Job]:
        found = self._list_some(control)
        # Where nothing can be listed, no folder is made.
        first = list(islice(found, 1))
        folder = LocalFolder.make(self.folder)
        for each in chain(first, found):
            if listed is not None:
                listed.add_all([each])
            yield self._read(folder, each, control)

    def _read(self, folder: LocalFolder, listed: ListedItem, control: Control) -> Job:
        name = self.store.cut(listed)
        if _is_marker(listed):
            return self._pass_over_marker(listed)
        try:
            target = self.store.locate(listed.name)
            path = folder.claim(name)
        except AzguardError as error:
            return pass_over(self.store.name(name), None, "", error)
        return _Reading(self, target, path, listed, control)

    def _pass_over_marker(self, listed: ListedItem) -> Task:
        return pass_over(self.store.name(self.store.cut(listed)), None, _MARKER)

    def _delete_rest(self, listed: NameIndex) -> Iterator[Job]:
        for name, path in self._rest(listed):
            yield Task(partial(_delete_local, self.store.name(name), path))

    def _rest(self, listed: NameIndex) -> Iterator[tuple[str, Path]]:
        """Yield the files that azguard read from there, unchanged since, and that are there no more."""
        for each in self._find_gone(listed):
            if listed.is_empty and not self.allows_empty:
                raise self.refuse_to_empty(self.address)
            yield each

    def _find_gone(self, listed: NameIndex) -> Iterator[tuple[str, Path]]:
        for file in walk(self.folder, follows_links=False):
            if not isinstance(file, LocalFile) or not self.patterns.selects(file.name):
                continue
            name = self.store.prefix + file.name
            if name not in listed and self._came_from(name, file.path):
                yield file.name, file.path

    def _came_from(self, name: str, path: Path) -> bool:
        try:
            target = self.store.locate(name)
        except AzguardError:
            return False
        return local_files.is_as_read(path, target, self.reads)


def _is_marker(listed: ListedItem) -> bool:
    return listed.name.endswith("/") and listed.content_length == 0


@frozen
class _Reading:
    tree: TreeDownload
    target: Target
    path: Path
    listed: ListedItem
    control: Control

    def run(self) -> Done:
        return self.control.conclude(
            str(self.target.address), lambda: self._run().done(), self.listed.content_length or 0
        )

    def _run(self) -> TreeItem:
        tree = self.tree
        if tree.skips_existing and self.path.exists():
            return TreeItem.of_listed(self.target, self.path, runs.EXISTS, self.listed)
        # The file is proved to hold this version whole, as if it had just been read.
        if tree.skips_unchanged and local_files.record_same(self.path, self.target, self.listed, tree.reads):
            return TreeItem.of_listed(self.target, self.path, runs.UNCHANGED, self.listed)
        conditions = tree.reads.resolve_conditions(tree.store.GET, tree.asked, self.target)
        meter = partial(self.control.headway.move, str(self.target.address))

        def count(done: int) -> None:
            meter(done)
            self.control.check(str(self.target))

        get = TreeGet(
            target=self.target,
            conditions=conditions,
            file=self.path,
            deadline=self.control.deadline(),
            progress=count,
            admit=partial(tree.reads.check_copy, self.target, self.path, overwrites=tree.overwrites),
            size=self.listed.content_length,
        )
        try:
            with self.control.name_holder(self.target):
                got, lineage = tree.store.get(get)
        except NotFound as error:
            if is_nowhere(self.target, error):
                raise
            return TreeItem(str(self.target.address), str(self.path), runs.SKIPPED, reason=runs.GONE_THERE)
        tree.reads.record(self.target, got, copies.find_written(self.path, got.inode), lineage)
        return TreeItem.of_write(self.target, str(self.path), runs.READ, got)


def _delete_local(address: str, path: Path) -> Done:
    def delete() -> Done:
        os.unlink(path)
        return TreeItem(address=address, file=str(path), outcome=runs.DELETED).done()

    return conclude(address, delete)
