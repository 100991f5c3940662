"""A folder into a service: each file under the guard that it would have alone.

A file that azguard read there, or wrote there before, is written over that version only; any other one is only
created. The op of each write is made of the file's state and of what it replaces, so that a run that was killed can be
run again: what it has committed is recognized, and is not taken for another writer's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from azguard.accounts import endpoints
from azguard.accounts.target import Target
from azguard.cache import copies
from azguard.cache.copies import Copy
from azguard.cache.reads import Reads
from azguard.conditions.requested import CREATE_ONLY, RequestedConditions
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, UsageError
from azguard.requests.lineage import fresh_op, op_of_key
from azguard.requests.pool import Done, Job, conclude
from azguard.requests.verdicts import EXISTS as LEFT_ALONE
from azguard.trees import items, unchanged
from azguard.trees.deletes import Deleting
from azguard.trees.index import Known, NameIndex
from azguard.trees.items import TreeItem
from azguard.trees.local_files import LocalFile, PassedOver, UnchangedFile, as_stream, open_unchanged, walk
from azguard.trees.patterns import Patterns
from azguard.trees.runs import Control, after, pass_over
from azguard.trees.store import TreeStore

# How often to begin again with a file that is written to while it is read.
_RESTARTS = 3


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
    #: Whether what is there and not in the folder is deleted, after all else.
    mirrors: bool = False
    #: Whether a mirror may delete all, because the folder has no file that is meant.
    allows_empty: bool = False
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
        found = [after(lambda: self._walk(control, listed))]
        found += [iter([self._write(LocalFile(self.folder / name, name), control, listed)]) for name in self.last]
        if self.mirrors and listed is not None:
            found.append(after(lambda: self._delete_rest(control, listed)))
        return found

    def preview(self, control: Control) -> Iterator[Done]:
        """Yield what would be done, from one listing; nothing is written."""
        self._check_last()
        self._check_any()
        listed = self._list(control)
        for file in walk(self.folder, follows_links=self.follows_links):
            if self.patterns.selects(file.name):
                listed.mark(self.store.prefix + file.name, with_all_below=isinstance(file, PassedOver))
                yield self._foresee(file, listed)
        if self.mirrors:
            deleting = self._deleting(control)
            yield from (deleting.foresee(each) for each in self._rest(listed))

    def _check_last(self) -> None:
        for name in self.last:
            if not (self.folder / name).is_file():
                raise UsageError(f"{self.folder} has no file {name}", argument="last", reason="tree_last_missing")

    def _check_any(self) -> None:
        if not self.mirrors or self.allows_empty:
            return
        found = walk(self.folder, follows_links=self.follows_links)
        if not any(isinstance(each, LocalFile) and self.patterns.selects(each.name) for each in found):
            raise UsageError(
                f"{self.folder} has no file that is meant, so that a mirror of it deletes all; nothing was deleted",
                reason="tree_mirror_is_empty",
            )

    def _list(self, control: Control) -> NameIndex:
        index = NameIndex()
        index.add_all(self.store.list_items(control.patience.fresh()))
        return index

    def _walk(self, control: Control, listed: NameIndex | None) -> Iterator[Job]:
        for file in walk(self.folder, follows_links=self.follows_links):
            if not self.patterns.selects(file.name):
                continue
            if listed is not None:
                # What is here is not deleted there, even if it cannot be written.
                listed.mark(self.store.prefix + file.name, with_all_below=isinstance(file, PassedOver))
            if file.name not in self.last:
                yield self._write(file, control, listed)

    def _write(self, file: LocalFile | PassedOver, control: Control, listed: NameIndex | None) -> Job:
        if isinstance(file, PassedOver):
            return pass_over(self._address(file.name), str(file.path), file.reason, file.error)
        try:
            target = self.store.locate(self.store.prefix + file.name)
        except UsageError as error:
            return pass_over(self._address(file.name), str(file.path), "", error)
        known = listed.find(self.store.prefix + file.name) if self.skips_unchanged and listed is not None else None
        return _Writing(self, file, target, control, known)

    def _address(self, name: str) -> str:
        return f"{self.store.address}{name}"

    def _delete_rest(self, control: Control, listed: NameIndex) -> Iterator[Job]:
        # It may have been emptied since: a build that begins anew does that first.
        self._check_any()
        deleting = self._deleting(control)
        yield from (deleting.job(each, control) for each in self._rest(listed))

    def _rest(self, listed: NameIndex) -> Iterator[Known]:
        for each in listed.list_unmarked():
            if self.patterns.selects(each.name.removeprefix(self.store.prefix)):
                yield each

    def _deleting(self, control: Control) -> Deleting:
        return Deleting(store=self.store, reads=self.reads, asked=self.asked)

    def _foresee(self, file: LocalFile | PassedOver, listed: NameIndex) -> Done:
        if isinstance(file, PassedOver):
            return pass_over(self._address(file.name), str(file.path), file.reason, file.error).run()
        known = listed.find(self.store.prefix + file.name)
        address = self._address(file.name)
        return conclude(address, lambda: self._foresee_write(file, known).done())

    def _foresee_write(self, file: LocalFile, known: Known | None) -> TreeItem:
        target = self.store.locate(self.store.prefix + file.name)
        conditions = self.conditions(target, copies.find_at(file.path))
        size = file.path.stat().st_size

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
            return build(items.EXISTS)
        if known is not None and self.skips_unchanged and unchanged.is_same(file.path, target, known, self.reads):
            return build(items.UNCHANGED)
        if conditions.creates_only and known is not None:
            return build(items.WOULD_REFUSE, "it exists, and was never read here")
        if conditions.expected_etag is not None and (known is None or known.etag != conditions.expected_etag):
            return build(items.WOULD_REFUSE, "it changed since it was read here")
        return build(items.WOULD_CREATE if known is None else items.WOULD_REPLACE)

    def conditions(self, target: Target, copy: Copy) -> Conditions:
        """Return what guards the write of a file."""
        asked = CREATE_ONLY if self.skips_existing else self.asked
        return self.reads.resolve_conditions(self.store.put_operation, asked, target, copy)


@dataclass(frozen=True)
class _Writing:
    """One file, ready to be written."""

    tree: TreeUpload
    file: LocalFile
    target: Target
    control: Control
    known: Known | None

    def run(self) -> Done:
        return self.control.conclude(str(self.target.address), lambda: self._run().done())

    def _run(self) -> TreeItem:
        known = self.known
        if known is not None and unchanged.is_same(self.file.path, self.target, known, self.tree.reads):
            return TreeItem(
                address=str(self.target.address),
                file=str(self.file.path),
                outcome=items.UNCHANGED,
                etag=known.etag,
                last_modified=known.last_modified,
                content_length=known.content_length,
            )
        for _ in range(_RESTARTS - 1):
            try:
                return self._write()
            except Changed as error:
                if error.reason != "file_changed_while_read":
                    raise
        return self._write()

    def _write(self) -> TreeItem:
        tree = self.tree
        check = partial(self.control.check, self.file.name)
        with open_unchanged(self.file.path, check) as source:
            copy = copies.find_behind(source.fileno(), self.file.path)
            conditions = tree.conditions(self.target, copy)
            written, lineage = tree.store.put(
                self.target,
                as_stream(source),
                conditions,
                fresh_op() if tree.skips_existing else _choose_op(tree.scope, self.target, conditions, source),
                self.control.deadline(),
                self.control.meter(),
                skip=tree.skips_existing,
            )
        tree.reads.record(self.target, written, copy, lineage)
        return items.of_write(self.target, str(self.file.path), _name_outcome(conditions, written), written)


def _name_outcome(conditions: Conditions, written: Any) -> str:
    if written.outcome == LEFT_ALONE:
        return items.EXISTS
    if conditions.creates_only:
        return items.CREATED
    return items.WRITTEN if conditions.expected_etag is None else items.REPLACED


def _choose_op(scope: str, target: Target, conditions: Conditions, source: UnchangedFile) -> str:
    """Return the op of a write: the same for the same file over the same version, so that it is applied once.

    A write that depends on no version may be meant each time.
    """
    if not conditions.creates_only and conditions.expected_etag is None:
        return fresh_op()
    key = f"tree\n{scope}\n{source.state}\n{conditions.expected_etag or ''}"
    return op_of_key(key, endpoints.plain(target.endpoint), str(target.address))
