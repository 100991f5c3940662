"""How each file of a tree ended, the summary of all, and whether the service went away in the middle."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, OutcomeUnknown, Partial, Unavailable
from azguard.requests import results
from azguard.requests.pool import FAILED, UNKNOWN, Done
from azguard.resources.tree_store import ListedItem

CREATED = "created"
REPLACED = "replaced"
#: Created or replaced: the condition of the write does not tell.
WRITTEN = "written"
UNCHANGED = "unchanged"
EXISTS = "exists"
READ = "read"
DELETED = "deleted"
SKIPPED = "skipped"
#: Why a file is skipped that was not changed here, while another wrote it there.
NEWER_THERE = "theirs is newer"
#: Why a file would be refused.
CHANGED_SINCE = "it changed since it was read here"
#: Why what was listed is skipped.
GONE_THERE = "it was deleted there since it was listed"
#: A directory that is not empty.
KEPT = "kept"
#: The service did not answer any more for those before it.
NOT_TRIED = "not tried"
#: What a dry run says would happen.
WOULD_CREATE = "would create"
WOULD_REPLACE = "would replace"
WOULD_READ = "would read"
WOULD_DELETE, WOULD_REFUSE = results.WOULD_DELETE, results.WOULD_REFUSE
# Each file waits for its own deadline. After two rounds of them the next one would wait in vain, too.
ROUNDS = 2


@dataclass(frozen=True)
class TreeItem:
    """How one file of a tree ended."""

    COLUMNS: ClassVar = (
        columns.ADDRESS,
        columns.TREE_OUTCOME,
        columns.CONTENT_LENGTH,
        columns.ETAG,
        columns.REASON,
    )

    address: str
    file: str | None
    outcome: str
    #: None where nothing was read or written, and where a lost answer was settled without learning it.
    etag: str | None = None
    last_modified: datetime | None = None
    content_length: int | None = None
    guard: str | None = None
    #: Why it was skipped or kept, or would be refused.
    reason: str | None = None

    def done(self) -> Done:
        """Return it as the end of a job; what is newer there has a number of its own in the summary."""
        is_newer = (self.outcome, self.reason) == (SKIPPED, NEWER_THERE)
        return Done(self.address, f"{SKIPPED} ({NEWER_THERE})" if is_newer else self.outcome, result=self)


def of_write(target: Target, file: str | None, outcome: str, written: Any) -> TreeItem:
    """Return the item of a write that was committed."""
    return TreeItem(
        address=str(target.address),
        file=file,
        outcome=outcome,
        etag=written.etag,
        last_modified=written.last_modified,
        content_length=getattr(written, "content_length", None),
        guard=getattr(written, "guard", None),
    )


def of_listed(
    target: Target,
    file: Path | None,
    outcome: str,
    listed: ListedItem,
    *,
    guard: str | None = None,
    reason: str | None = None,
) -> TreeItem:
    """Return the item of a file that is left alone in the version that was listed, or would be read or deleted."""
    return TreeItem(
        address=str(target.address),
        file=None if file is None else str(file),
        outcome=outcome,
        etag=listed.etag,
        last_modified=listed.last_modified,
        content_length=listed.content_length,
        guard=guard,
        reason=reason,
    )


@dataclass
class Failures:
    """Of which kinds the failures of a run are."""

    exit_codes: set[int] = field(default_factory=set)
    reasons: set[str | None] = field(default_factory=set)
    #: Whether another run may do what this one did not.
    is_retriable: bool = False

    def note(self, done: Done) -> None:
        """Count how a file ended."""
        if done.error is not None:
            self.exit_codes.add(done.error.exit_code)
            self.reasons.add(done.error.reason)
            self.is_retriable |= done.error.retriable or done.outcome == UNKNOWN

    def build_error(self, message: str, address: str) -> AzguardError:
        """Return the error that stands for all: where another writer is the cause of each, it is a conflict, too."""
        if self.exit_codes == {Changed.exit_code}:
            is_here = self.reasons == {"copy_changed_here"}
            return Changed(message, address=address, reason="copies_changed_here" if is_here else "tree_conflicts")
        return Partial(message, address=address, reason="some_files_busy" if self.is_retriable else "some_files_failed")


@dataclass(frozen=True)
class TreeSummary:
    """How many files of a tree ended in which way."""

    address: str
    #: How many of each outcome; only those that there were.
    outcomes: dict[str, int]

    @classmethod
    def of(cls, address: str, counts: Counter[str]) -> "TreeSummary":
        """Return the summary of so many files of each outcome."""
        return cls(address, {outcome: count for outcome, count in sorted(counts.items()) if count})

    @property
    def wrong(self) -> int:
        """Return how many failed, have an outcome that is not known, or were not tried."""
        return sum(self.outcomes.get(each, 0) for each in (FAILED, UNKNOWN, NOT_TRIED))

    def check(self, failures: Failures) -> None:
        """Refuse to call it done if not all files ended well.

        Raises:
            Changed: some failed, and all of these are conflicts.
            Partial: some failed, were not tried, or their outcome is unknown.
        """
        if not self.wrong:
            return
        total = sum(self.outcomes.values())
        counts = [f"{self.outcomes[each]} {each}" for each in (FAILED, UNKNOWN, NOT_TRIED) if self.outcomes.get(each)]
        message = f"{self.wrong} of {total} files of {self.address}: {', '.join(counts)}"
        if NOT_TRIED in self.outcomes:
            raise Partial(
                f"{message}, since the service did not answer any more",
                address=self.address,
                reason="tree_service_gone",
            )
        raise failures.build_error(message, self.address)


@dataclass
class Outage:
    """Whether the service is gone, as far as the ends of files tell. Threads may use it at the same time."""

    #: After so many files in a row that did not reach it.
    most: int
    _in_a_row: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_certain(self) -> bool:
        """Return whether no other file is to be tried."""
        return self._in_a_row >= self.most

    def note(self, done: Done) -> None:
        """Count a file that did not reach the service; one that was answered proves that the service is there."""
        with self._lock:
            if _is_lost(done.error):
                self._in_a_row += 1
            elif _is_answered(done) and not self.is_certain:
                self._in_a_row = 0


def _is_lost(error: AzguardError | None) -> bool:
    return isinstance(error, Unavailable) or (
        isinstance(error, OutcomeUnknown) and isinstance(error.__cause__, Unavailable)
    )


def _is_answered(done: Done) -> bool:
    """Return whether the end of a file needed an answer: what only this machine says proves nothing."""
    return done.outcome != UNCHANGED if done.error is None else done.error.http_status is not None
