"""What is known of a transaction whose answer was lost, from what is known of its items."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from azguard.requests.commits import Verdict
from azguard.tables.write import EntityWrite


class Evidence(Enum):
    """What an item says about the transaction where nothing is certain."""

    UNTOUCHED = "the version that it would replace is still there"
    ABSENT = "the entity that it would insert is not there"
    REPLACED = "another version is there, and nothing tells whose"
    NONE = "it has no condition, so that what is there tells nothing"


@dataclass(frozen=True)
class ItemVerdict:
    """What a look says about one item."""

    verdict: Verdict
    #: Whether it makes the entity.
    inserts: bool
    #: Whether of two transmissions of it only one can commit.
    excludes_itself: bool

    @classmethod
    def of(cls, write: EntityWrite, verdict: Verdict) -> "ItemVerdict":
        """Return a verdict on one write."""
        return cls(verdict, inserts=write.inserts, excludes_itself=write.excludes_itself)

    @property
    def evidence(self) -> Evidence:
        """Return what it says where it is not certain."""
        if not self.excludes_itself:
            return Evidence.NONE
        if self.verdict is Verdict.UNKNOWN:
            return Evidence.REPLACED
        return Evidence.ABSENT if self.inserts else Evidence.UNTOUCHED


def tells_of_all(refused: EntityWrite, verdict: Verdict) -> bool:
    """Return whether the verdict on an item that was refused is one on all.

    That what it would insert is not there does not tell: our insert may have been committed, and deleted since.
    """
    if verdict is Verdict.NOT_YET:
        return not refused.inserts
    return verdict is not Verdict.UNKNOWN


def verdict_from_items(items: Iterable[ItemVerdict]) -> Verdict:
    """Return what is known of a whole transaction: what is certain of one item is certain of all.

    Of an insert it is never certain that it was not applied, because what it made may have been deleted. So it is
    believed only where no other item is against it. Items after the first certain one are not asked for.
    """
    found = set()
    for item in items:
        if item.verdict in (Verdict.COMMITTED, Verdict.NEVER):
            return item.verdict
        found.add(item.evidence)
    if Evidence.UNTOUCHED in found or (Evidence.ABSENT in found and Evidence.REPLACED not in found):
        return Verdict.NOT_YET
    return Verdict.UNKNOWN
