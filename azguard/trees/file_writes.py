"""How each file of a folder is written to a service, under the guard that it would have alone.

A file that azguard read there, or wrote there before, is written over that version only, and needs no write if it was
not changed here since; any other one is only created. The op of each write is made of the file's state, of what else it
sets and of what it replaces, so that a run that was killed can be run again: what it has committed is recognized, and
is not taken for another writer's.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from azguard.accounts import endpoints
from azguard.accounts.target import Target
from azguard.cache import copies
from azguard.cache.copies import Copy
from azguard.cache.reads import Reads
from azguard.conditions.requested import RequestedConditions
from azguard.conditions.resolve import Conditions, resolve
from azguard.errors import Changed, Forbidden
from azguard.requests.commits import EXISTS as LEFT_ALONE
from azguard.requests.lineage import fresh_op, op_of_key
from azguard.requests.pool import Done, Job
from azguard.requests.sources import UnchangedFile, as_stream, open_unchanged
from azguard.trees import items, local_files
from azguard.trees.items import TreeItem
from azguard.trees.local_files import LocalFile
from azguard.trees.names import Known
from azguard.trees.runs import Control
from azguard.trees.store import TreeStore

# How often to begin again with a file that is written to while it is read.
_RESTARTS = 3


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How files are written: over the version that this scope has read, else they are only created."""

    store: TreeStore
    reads: Reads
    asked: RequestedConditions
    #: Whose reads guard the writes; part of each op.
    scope: str
    #: Whether what exists there is left alone, whatever it is.
    skips_existing: bool
    #: Whether a file is left alone whose content is there already.
    skips_unchanged: bool
    #: Whether a file is left alone that was not changed here since this scope got or put it, whatever is there now.
    skips_delivered: bool

    def job(self, file: LocalFile, target: Target, control: Control, known: Known | None) -> Job:
        """Return the write of one file, ready to run; ``known`` is what was listed of it."""
        return _Write(self, file, target, control, known)

    def foresee(self, file: LocalFile, target: Target, known: Known | None) -> TreeItem:
        """Return what the write of one file would do, by what was listed of it."""
        with open_unchanged(file.path) as source:
            conditions = self.conditions(target, copies.find_behind(source.fileno(), file.path))
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
            return build(items.EXISTS)
        if known is not None and self.skips_unchanged and local_files.is_same(file.path, target, known, self.reads):
            return build(items.UNCHANGED)
        delivered = None if known is None else self.find_delivered(file, target)
        if known is not None and delivered is not None:
            return build(*_judge_delivered(delivered, known.etag))
        if _creates_only(conditions) and known is not None:
            return build(items.WOULD_REFUSE, "it exists, and was never read here")
        if conditions.expected_etag is not None and (known is None or known.etag != conditions.expected_etag):
            return build(items.WOULD_REFUSE, items.CHANGED_SINCE)
        return build(items.WOULD_CREATE if known is None else items.WOULD_REPLACE)

    def conditions(self, target: Target, copy: Copy) -> Conditions:
        """Return what guards the write of a file."""
        if self.skips_existing:
            # Even if this scope has read a version.
            return resolve(self.store.put_operation, RequestedConditions(), target)
        return self.reads.resolve_conditions(self.store.put_operation, self.asked, target, copy)

    def find_delivered(self, file: LocalFile, target: Target) -> str | None:
        """Return the version that would guard the write of a file, if the file has its very content; else None."""
        if not self.skips_delivered:
            return None
        etag = self.conditions(target, copies.find_at(file.path)).expected_etag
        return etag if etag is not None and local_files.is_version(file.path, target, etag, self.reads) else None

    def choose_op(self, target: Target, conditions: Conditions, source: UnchangedFile) -> str:
        """Return the op of a write: the same for the same file over the same version, so that it is applied once.

        A write that depends on no version, or leaves alone what exists, may be meant each time.
        """
        if self.skips_existing or (not _creates_only(conditions) and conditions.expected_etag is None):
            return fresh_op()
        settings = self.store.describe_settings(target)
        key = f"tree\n{self.scope}\n{source.state}\n{conditions.expected_etag or ''}\n{settings}"
        return op_of_key(key, endpoints.plain(target.endpoint), str(target.address))


@dataclass(frozen=True)
class _Write:
    writing: Writing
    file: LocalFile
    target: Target
    control: Control
    known: Known | None

    def run(self) -> Done:
        return self.control.conclude(str(self.target.address), lambda: self._run().done(), self.file.size)

    def _run(self) -> TreeItem:
        known = self.known if self.writing.skips_unchanged else None
        # The file is proved to hold this version whole: an earlier put may have been killed before it recorded it.
        if known is not None and local_files.record_same(self.file.path, self.target, known, self.writing.reads):
            return items.of_listed(self.target, self.file.path, items.UNCHANGED, known)
        delivered = self._leave_delivered()
        if delivered is not None:
            return delivered
        for _ in range(_RESTARTS - 1):
            try:
                return self._write()
            except Changed as error:
                if error.reason != "file_changed_while_read":
                    raise
        return self._write()

    def _leave_delivered(self) -> TreeItem | None:
        """Return the item of a file that needs no put; None if it was changed here, or is there no more."""
        writing = self.writing
        delivered = writing.find_delivered(self.file, self.target)
        if delivered is None:
            return None
        known = None if self.known is None else self.known.etag
        try:
            there = known or writing.store.find_etag(self.target, self.control.deadline())
        except Forbidden:  # The guard of the put tells.
            return None
        if there is None:
            return None
        outcome, reason = _judge_delivered(delivered, there)
        return TreeItem(str(self.target.address), str(self.file.path), outcome, there, reason=reason)

    def _write(self) -> TreeItem:
        writing = self.writing
        check = partial(self.control.check, self.file.name)
        with self.control.name_holder(self.target), open_unchanged(self.file.path, check) as source:
            copy = copies.find_behind(source.fileno(), self.file.path)
            conditions = writing.conditions(self.target, copy)
            written, lineage = writing.store.put(
                self.target,
                as_stream(source),
                conditions,
                writing.choose_op(self.target, conditions, source),
                self.control.deadline(),
                self.control.meter(str(self.target.address)),
                skip=writing.skips_existing,
            )
        writing.reads.record(self.target, written, copy, lineage)
        return items.of_write(self.target, str(self.file.path), _name_outcome(conditions, written), written)


def _judge_delivered(delivered: str, there: str | None) -> tuple[str, str | None]:
    """Return how a file ends that was not changed here, and why: the version that is there may be another."""
    return (items.UNCHANGED, None) if there == delivered else (items.SKIPPED, items.NEWER_THERE)


def _creates_only(conditions: Conditions) -> bool:
    """Return whether a write replaces nothing, by a header or by the nature of the operation."""
    return conditions.guard == "if-none-match"


def _name_outcome(conditions: Conditions, written: Any) -> str:
    if written.outcome == LEFT_ALONE:
        return items.EXISTS
    if _creates_only(conditions):
        return items.CREATED
    return items.WRITTEN if conditions.expected_etag is None else items.REPLACED
