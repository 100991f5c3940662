"""A folder into a service: its files, the last ones among them, and what is there and not in the folder.

A file that azguard read there, or wrote there before, is written over that version only, and needs no write if it was
not changed here since; any other one is only created. The op of each write is made of the file's state, of what else it
sets and of what it replaces, so that a run that was killed can be run again: what it has committed is recognized.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from azguard.accounts import endpoints
from azguard.accounts.account import Target
from azguard.cache import copies
from azguard.cache.copies import Copy
from azguard.cache.reads import Reads
from azguard.errors import AzguardError, Changed, Forbidden, UsageError
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions, resolve
from azguard.requests.lineage import fresh_op, op_of_key
from azguard.requests.results import EXISTS as LEFT_ALONE
from azguard.resources.pool import Done, Job, conclude
from azguard.resources.sources import UnchangedFile, as_stream, open_unchanged
from azguard.resources.tree_store import ListedItem, TreePut, TreeStore
from azguard.trees import local_files, runs
from azguard.trees.deletes import Deleting, FolderDeleting
from azguard.trees.local_files import FolderTree, LocalFile, PassedOver, check_folder, walk
from azguard.trees.names import NameIndex, TakenNames
from azguard.trees.runs import Control, TreeItem, after, pass_over

# How often to begin again with a file that is written to while it is read.
_RESTARTS = 3


@frozen(kw_only=True)
class FileWrites:
    """How files are written: over the version that this scope has read, else they are only created."""

    store: TreeStore
    reads: Reads
    asked: RequestedConditions
    #: Whose reads guard the writes; part of each op.
    scope: str
    #: Whether a blob or file that exists is left alone.
    skips_existing: bool = False
    #: Whether a file is left alone whose content is there already.
    skips_unchanged: bool = False
    #: Whether a file is left alone that was not changed here since this scope got or put it; the other may be newer.
    skips_delivered: bool = False

    def job(self, file: LocalFile, target: Target, control: Control, known: ListedItem | None) -> Job:
        """Return the write of one file, ready to run; ``known`` is what was listed of it."""
        return _Write(self, file, target, control, known)

    def foresee(self, file: LocalFile, target: Target, known: ListedItem | None) -> TreeItem:
        """Return the outcome that the write of one file would have, by the facts in the listing."""
        with open_unchanged(file.path) as source:
            copy = copies.find_behind(source.fileno(), file.path)
            conditions = self.conditions(target, copy)
            size = source.size

        def build(outcome: str, reason: str | None = None) -> TreeItem:
            return TreeItem(
                address=str(target.address),
                file=str(file.path),
                outcome=outcome,
                etag=None if known is None else known.etag,
                content_length=size,
                guard=conditions.guard,
                reason=reason,
            )

        if known is not None and self.skips_existing:
            return build(runs.EXISTS)
        if known is not None and self.skips_unchanged and local_files.is_same(file.path, target, known, self.reads):
            return build(runs.UNCHANGED)
        delivered = None if known is None else self.find_delivered(copy, file, target, conditions)
        if known is not None and delivered is not None:
            return build(*_judge_delivered(delivered, known.etag))
        if _creates_only(conditions) and known is not None:
            return build(runs.WOULD_REFUSE, "it exists, and was never read here")
        if conditions.expected_etag is not None and (known is None or known.etag != conditions.expected_etag):
            return build(runs.WOULD_REFUSE, runs.CHANGED_SINCE)
        return build(runs.WOULD_CREATE if known is None else runs.WOULD_REPLACE)

    def conditions(self, target: Target, copy: Copy) -> Conditions:
        if self.skips_existing:
            # Even if this scope has read a version.
            return resolve(self.store.PUT, RequestedConditions(), target)
        return self.reads.resolve_conditions(self.store.PUT, self.asked, target, copy)

    def find_delivered(self, copy: Copy, file: LocalFile, target: Target, conditions: Conditions) -> str | None:
        """Return the version that would guard the write of a file, if the file has its very content; else None."""
        if not self.skips_delivered:
            return None
        etag = conditions.expected_etag
        is_it = etag is not None and local_files.is_version(file.path, copy, target, etag, self.reads)
        return etag if is_it else None

    def choose_op(self, target: Target, conditions: Conditions, source: UnchangedFile, settings: Any) -> str:
        """Return the op of a write: the same for the same file over the same version, so that it is applied once.

        A write that depends on no version, or leaves alone what exists, may be meant each time.
        """
        if self.skips_existing or (not _creates_only(conditions) and conditions.expected_etag is None):
            return fresh_op()
        key = f"tree\n{self.scope}\n{source.state}\n{conditions.expected_etag or ''}\n{settings!r}"
        return op_of_key(key, endpoints.plain(target.endpoint), str(target.address))


@frozen
class _Write:
    writes: FileWrites
    file: LocalFile
    target: Target
    control: Control
    known: ListedItem | None

    def run(self) -> Done:
        return self.control.conclude(str(self.target.address), lambda: self._run().done(), self.file.size)

    def _run(self) -> TreeItem:
        known = self.known if self.writes.skips_unchanged else None
        # The file is proved to hold this version whole: an earlier put may have been killed before it recorded it.
        if known is not None and local_files.record_same(self.file.path, self.target, known, self.writes.reads):
            return TreeItem.of_listed(self.target, self.file.path, runs.UNCHANGED, known)
        for _ in range(_RESTARTS - 1):
            try:
                return self._write()
            except Changed as error:
                if error.reason != "file_changed_while_read":
                    raise
        return self._write()

    def _leave_delivered(self, copy: Copy, conditions: Conditions) -> TreeItem | None:
        """Return the item of a file that needs no put; None if it was changed here, or is there no more."""
        writes = self.writes
        delivered = writes.find_delivered(copy, self.file, self.target, conditions)
        if delivered is None:
            return None
        known = None if self.known is None else self.known.etag
        try:
            there = known or writes.store.find_etag(self.target, self.control.deadline())
        except Forbidden:  # The guard of the put tells.
            return None
        if there is None:
            return None
        outcome, reason = _judge_delivered(delivered, there)
        return TreeItem(str(self.target.address), str(self.file.path), outcome, there, reason=reason)

    def _write(self) -> TreeItem:
        writes = self.writes
        check = partial(self.control.check, self.file.name)
        with self.control.name_holder(self.target), open_unchanged(self.file.path, check) as source:
            copy = copies.find_behind(source.fileno(), self.file.path)
            conditions = writes.conditions(self.target, copy)
            delivered = self._leave_delivered(copy, conditions)
            if delivered is not None:
                return delivered
            settings = writes.store.settings(self.target.address.name)
            put = TreePut(
                target=self.target,
                source=as_stream(source),
                conditions=conditions,
                settings=settings,
                op=writes.choose_op(self.target, conditions, source, settings),
                deadline=self.control.deadline(),
                progress=partial(self.control.headway.move, str(self.target.address)),
                skip=writes.skips_existing,
            )
            written, lineage = writes.store.put(put)
        writes.reads.record(self.target, written, copy, lineage)
        return TreeItem.of_write(self.target, str(self.file.path), _name_outcome(conditions, written), written)


def _judge_delivered(delivered: str, there: str | None) -> tuple[str, str | None]:
    """Return how a file ends that was not changed here, and why: the version that is there may be another."""
    return (runs.UNCHANGED, None) if there == delivered else (runs.SKIPPED, runs.NEWER_THERE)


def _creates_only(conditions: Conditions) -> bool:
    """Return whether a write replaces nothing, by a header or by the nature of the operation."""
    return conditions.guard == "if-none-match"


def _name_outcome(conditions: Conditions, written: Any) -> str:
    if written.outcome == LEFT_ALONE:
        return runs.EXISTS
    if _creates_only(conditions):
        return runs.CREATED
    return runs.WRITTEN if conditions.expected_etag is None else runs.REPLACED


@frozen(kw_only=True)
class TreeUpload(FileWrites, FolderTree):
    """One folder, and where and how its files are written."""

    #: Whether a mirror leaves directories alone that are empty then.
    keeps_folders: bool = False
    #: Names that are written after all others, in this order.
    last: Sequence[str] = ()
    follows_links: bool = False

    def phases(self, control: Control) -> list[Iterator[Job]]:
        """Return the phases of the upload, one after the other: the files, the last files, the deletes.

        Raises:
            UsageError: the folder cannot be read, does not have one of the last files, or a mirror of it would delete
                all.
            AzguardError: no file can be written there.
        """
        self._check_folder()
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
        """Yield the writes that would be made, from one listing; nothing is written."""
        self._check_folder()
        listed = self._list(control)
        taken = TakenNames(self.store.fold)
        for file in self._find_meant():
            listed.mark(self.store.prefix + file.name, with_all_below=isinstance(file, PassedOver))
            yield self._foresee(file, listed, taken)
        if self.mirrors:
            deleting = self._deleting
            yield from (deleting.foresee(each) for each in self._rest(listed))
            yield from self._deleting_folders(control).preview(lambda each: self._stays(each, listed, deleting))

    def _check_folder(self) -> None:
        """Refuse a folder that cannot be what is meant, before any request."""
        check_folder(self.folder)
        self._check_last()
        self._check_any()

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
            raise self.refuse_to_empty(str(self.folder))

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
            if self.mirrors and listed is not None:
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
            return pass_over(self.store.name(file.name), str(file.path), file.reason, file.error)
        try:
            target = self._locate(file, taken)
        except AzguardError as error:
            return pass_over(self.store.name(file.name), str(file.path), "", error)
        known = None if listed is None else listed.find(self.store.prefix + file.name)
        return self.job(file, target, control, known)

    def _locate(self, file: LocalFile, taken: TakenNames) -> Target:
        target = self.store.locate_new(self.store.prefix + file.name)
        if not taken.take(file.name):
            raise UsageError(
                f"{file.name!r} cannot be written: the service ignores the case of letters, and another file of the "
                "folder has the same name",
                reason="tree_name_twice",
            )
        return target

    def _delete_rest(self, control: Control, listed: NameIndex) -> Iterator[Job]:
        # The folder may have been emptied since: a build that begins anew does that first.
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
        is_here = not self.selects(item) or listed.is_marked(item.name)
        return is_here or deleting.foresee(item).outcome != runs.WOULD_DELETE

    def _rest(self, listed: NameIndex) -> Iterator[ListedItem]:
        return filter(self.selects, listed.list_unmarked())

    @property
    def _deleting(self) -> Deleting:
        return Deleting(store=self.store, reads=self.reads, asked=self.asked, only_seen=True)

    def _foresee(self, file: LocalFile | PassedOver, listed: NameIndex, taken: TakenNames) -> Done:
        if isinstance(file, PassedOver):
            return pass_over(self.store.name(file.name), str(file.path), file.reason, file.error).run()
        known = listed.find(self.store.prefix + file.name)
        address = self.store.name(file.name)
        return conclude(address, lambda: self.foresee(file, self._locate(file, taken), known).done())
