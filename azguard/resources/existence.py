"""What a create finds where something is already, and what a delete finds before it is sent.

The create itself settles its own doubt. Here is looked once more whose the thing is, because a refusal may be of the
second copy of a request that the network has sent twice. A deleted thing has no mark of who deleted it. So each delete
looks first: what is missing before it is sent is missing for another reason; what is missing after it was refused may
have been deleted by its first copy.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from azguard.accounts.account import Target
from azguard.errors import Changed, Exists, Forbidden, Locked, NotFound, OutcomeUnknown
from azguard.guards.resolve import Conditions
from azguard.guards.versions import require_version
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import Lineage
from azguard.requests.results import EXISTS, WOULD_DELETE, WOULD_REFUSE, Written
from azguard.requests.service_errors import NOWHERE
from azguard.requests.settle import NOTHING_THERE, Finding

T = TypeVar("T")
# Only what exists has a lease, and Azure looks at that first.
_LEASED = "LeaseIdMissing"
# How the codes end by which a service that deletes in its own time refuses everything else.
_BEING_DELETED = "BeingDeleted"


@dataclass(frozen=True)
class Existence:
    """Whether a resource exists."""

    address: str
    exists: bool


def preview(
    target: Target,
    conditions: Conditions,
    found: Any,
    count: "Count | None",
    deadline: Deadline,
    outcome: str = WOULD_DELETE,
) -> Written:
    """Return the result of a write of what was found, without sending it; ``outcome`` is what it would do.

    ``count`` counts the contents, where they are not meant to be deleted too.

    Raises:
        Changed: it is not the version that is meant, or not empty.
    """
    require_version(target, conditions.expected_etag, getattr(found, "etag", ""))
    if count is not None:
        require_empty(count, target, deadline, None)
    is_free = conditions.lease_id is not None or getattr(found, "lease_state", None) not in ("leased", "breaking")
    return Written(
        address=str(target.address),
        etag=getattr(found, "etag", None),
        last_modified=getattr(found, "last_modified", None),
        guard=conditions.guard,
        attempts=0,
        outcome=outcome if is_free else WOULD_REFUSE,
    )


def ask_whether_exists(target: Target, look: Callable[[], object]) -> Existence:
    """Return whether there is what ``look`` asks for.

    Raises:
        NotFound: the container, the table, the queue or the share that it would be in does not exist.
    """
    try:
        look()
    except NotFound as error:
        if is_nowhere(target, error):
            raise
        return Existence(str(target.address), exists=False)
    return Existence(str(target.address), exists=True)


def is_nowhere(target: Target, error: NotFound) -> bool:
    """Return whether what a resource is in does not exist: its name may be mistyped, which proves no absence."""
    return len(target.address.parts) > 1 and error.service_code in NOWHERE


def look_before(look: Callable[[], T]) -> T | None:
    """Return the finding of ``look`` before a delete or a create is sent; None where the caller may not read.

    Raises:
        NotFound: the resource does not exist.
    """
    try:
        return look()
    except Forbidden:
        return None


def look_after(look: Callable[[], T]) -> T | None:
    """Return the finding of ``look`` after a delete was sent; None where the resource is gone or being deleted."""
    try:
        return look()
    except NotFound:
        return None
    except Locked as error:
        if not str(error.service_code).endswith(_BEING_DELETED):
            raise
        return None


def judge_refused_delete(before: object | None, look: Callable[[], object]) -> Finding[Any]:
    """Return the finding on a delete that was refused, by ``look``; ``before`` is the finding of ``look_before``."""
    if look_after(look) is not None:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE, may_be_ours=before is not None)


def create(make: Callable[[], T], look: Callable[[], Written], *, skip: bool) -> T | Written:
    """Create by ``make``; with ``skip``, return the finding of ``look`` where the resource exists already."""
    return _create_unless_exists(make, look) if skip else make()


def _create_unless_exists(make: Callable[[], T], look: Callable[[], Written]) -> T | Written:
    """Return the result of ``make``, or the finding of ``look`` where the resource exists already."""
    try:
        return make()
    except OutcomeUnknown as error:
        if error.seen is None:
            raise error.but(reason="create_unknown") from error
        # Refused, because something is there. Whose it is does not matter to a caller who leaves alone what exists.
        return look()
    except Exists:
        return look()
    # To a create-only write this says the same, unless it says that its blocks were discarded.
    except Changed:
        found = look()
        if found.etag is None:
            raise
        return found
    except Locked as error:
        if error.service_code != _LEASED:
            raise
        return look()


def judge_version(target: Target, etag: str | None, modified: datetime | None, lineage: Lineage, op: str) -> Written:
    """Return a version as another writer's or, if our op made it or one before it, as ours."""
    if op not in lineage:
        return leave_alone(target, etag, modified)
    is_newest = lineage.entries[0][0] == op
    return _describe(target, etag if is_newest else None, modified if is_newest else None)


def leave_alone(target: Target, etag: str | None, modified: datetime | None) -> Written:
    """Return the result of a create that found something and changed nothing."""
    return _describe(target, etag, modified, EXISTS)


def _describe(target: Target, etag: str | None, modified: datetime | None, outcome: str = "committed") -> Written:
    return Written(
        address=str(target.address),
        etag=etag,
        last_modified=modified,
        guard="if-none-match",
        attempts=1,
        outcome=outcome,
    )


@dataclass(frozen=True)
class Contents:
    """How many items there are."""

    number: int
    noun: str
    #: Whether there may be more than were counted.
    more: bool = False

    def __str__(self) -> str:
        return f"{'at least ' if self.more else ''}{self.number:,} {self.noun}"


#: What counts the blobs of a container, or the entities of a table.
Count = Callable[[Target, Deadline], Contents]


def require_empty(
    count: Count,
    target: Target,
    deadline: Deadline,
    confirm: Callable[[Contents], None] | None,
    *,
    stays: bool = False,
) -> None:
    """Make sure that a resource is empty, or that its contents are meant to be deleted too.

    ``confirm`` asks a person, and raises if the answer is no; None where no person can be asked. ``stays`` says that
    only the contents are to be deleted. Not guaranteed: what is written between the count and the delete is deleted
    too.

    Raises:
        Changed: it is not empty, and no person can be asked.
    """
    found = count(target, deadline)
    if not found.number:
        return
    if confirm is None:
        raise Changed(
            f"{target} is not empty: {found} would be deleted{'' if stays else ' with it'}",
            address=str(target.address),
            facts={"contents": found.number, "contents_counted": not found.more},
        )
    confirm(found)


def count_first(pages: Iterator[tuple[int, bool]], target: Target, one: str, many: str) -> Contents:
    """Count the items of a listing up to the end of the first page that has any; ``one`` and ``many`` name them.

    A page is how many items it has, and whether another one follows.

    Raises:
        Forbidden: it may not be listed.
        NotFound: it is not there.
    """
    try:
        # A page may be empty, and still another may follow it.
        found, more = next(((number, more) for number, more in pages if number), (0, False))
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known whether {target} is empty",
            reason="contents_not_listed",
        ) from error
    return Contents(found, one if found == 1 else many, more=more)
