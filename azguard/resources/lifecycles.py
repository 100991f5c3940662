"""How a container, a share, a directory, a queue or a table is made, listed and deleted: one mechanism over the rows.

A create settles its own doubt by the lineage that it leaves in the metadata. Where something is already, it is looked
once more whose that is, because a refusal may be of the second copy of a request that the network has sent twice.

A deleted thing has no mark of who deleted it. So each delete looks first: what is missing before it is sent is missing
for another reason; what is missing after it was refused may have been deleted by its first copy.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.errors import BadRequest, Changed, Exists, Forbidden, Locked, NotFound, OutcomeUnknown, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write, require_version
from azguard.requests.calls import walk_pages
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.results import EXISTS, WOULD_DELETE, WOULD_REFUSE, Written, without_time
from azguard.requests.service_codes import NOWHERE, TYPE_MISMATCH, is_being_deleted, is_of_encryption
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.wire.rows import Operation

if TYPE_CHECKING:
    from azguard.wire.xml import Listed

T = TypeVar("T")
# Only what exists has a lease, and Azure looks at that first.
_LEASED = "LeaseIdMissing"
# The most that one page holds.
_PAGE = 5000


def create(target: Target, metadata: Mapping[str, str], deadline: Deadline, op: str, **given: Any) -> Written:
    """Create a resource, never replacing one; ``given`` is what else the row of its create sends.

    A queue has an entry in its metadata that no other queue has, without which the service takes a second create of the
    same queue for done.

    Raises:
        Exists: there is one of that name.
        Locked: one of that name is still being deleted.
        NotFound: there is no share or directory that a directory could be in.
    """
    stamped = {**metadata, KEY: str(Lineage().after(op, None))}
    request = WriteRequest[Mapping[str, Any]](
        operation=_find(target.kind.noun, "create"),
        target=target,
        given={"metadata": stamped, **given},
        look=lambda patience: _find_created(target, op, patience),
    )
    return Written(**describe_write(target, "if-none-match", send_until_settled(request, deadline)))


def _find_created(target: Target, op: str, patience: Deadline) -> Finding[Any]:
    try:
        found = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.NOT_YET)
    except BadRequest as error:
        if error.service_code != TYPE_MISMATCH:
            raise
        # A file has the name, so that no directory of ours is there.
        return Finding(Verdict.NOT_YET)
    if op not in Lineage.find(found.metadata):
        return Finding(Verdict.UNKNOWN)
    # Another program may have changed it since, and have kept the lineage.
    return Finding(Verdict.COMMITTED, {"etag": None})


def find_existing(target: Target, op: str, deadline: Deadline) -> Written:
    """Return the result for the resource that exists: ours, if the network sent the create twice."""
    try:
        found = properties.fetch(target, Conditions(), deadline.fresh())
    except NotFound:  # deleted since
        return describe_existing(target)
    except BadRequest as error:
        # The version has another key: it is another writer's, and the caller cannot read it.
        if not is_of_encryption(error):
            raise
        return describe_existing(target)
    if op in Lineage.find(found.metadata):
        return describe_existing(target, outcome="committed")
    return describe_existing(target, found.get("etag"), found.get("last_modified"))


def list_all(
    account: Account,
    kind: Kind,
    deadline: Deadline,
    prefix: str | None,
    limit: int | None,
    include: Sequence[str] = (),
) -> "Iterator[tuple[Address, Listed]]":
    """Yield the account's containers, shares or queues in order of name, with their metadata, page by page.

    ``include`` can be ``deleted`` ones, and ``snapshots`` of shares.

    Source: the pages List Containers, List Shares and List Queues of
        https://learn.microsoft.com/rest/api/storageservices/
    """
    word = kind.noun.title()
    everything, most = Target(account, Address(kind, ("",))), None if limit is None else min(limit, _PAGE)
    asked: dict[str, Any] = {"prefix": prefix, "include": ",".join(["metadata", *include]), "maxresults": most}
    pages = walk_pages(_find(kind.noun, "list"), everything, deadline, f"{word}s", word, **asked)
    for item in islice((item for page in pages for item in page.items), limit):
        yield Address(kind, (item.name,), item.snapshot), item


def undelete(target: Target, version: str | None, deadline: Deadline) -> Written:
    """Bring back a container or share that was deleted and is still kept; without a version, the only one of its name.

    Raises:
        Exists: there is one of that name.
        NotFound: none of that name and version is kept.
        OutcomeUnknown: the answer was lost, and the version is not kept any more under that name.
        UsageError: several are kept, and no version is named.
    Source: https://learn.microsoft.com/rest/api/storageservices/restore-container and …/restore-share
    """
    noun, address, name = target.kind.noun, str(target.address), target.address.container
    kept = [each for each in _list_deleted(target, deadline) if version in (None, each.deleted_version)]
    if not kept:
        which = "" if version is None else f" of the version {version}"
        raise NotFound(f"no deleted {noun} {target}{which} is kept", address, reason="nothing_deleted_kept")
    if len(kept) > 1:
        raise UsageError(f"{len(kept)} deleted {noun}s {target} are kept", address=address, reason="several_kept")
    [before] = kept
    asked = {f"deleted_{noun}_name": name, f"deleted_{noun}_version": before.deleted_version}
    request = WriteRequest[Any](
        operation=_find(noun, "undelete"),
        target=target,
        given=asked,
        look=lambda patience: _find_undeleted(target, before, patience),
    )
    settled = send_until_settled(request, deadline)
    found = look_before(lambda: look_after(lambda: properties.fetch(target, Conditions(), deadline.fresh())))
    told = {} if found is None else {"etag": found.etag, "last_modified": found.last_modified}
    return Written(**describe_write(target, "if-none-match", replace(settled, answer=told)))


def _list_deleted(target: Target, deadline: Deadline) -> "list[Listed]":
    name = target.address.container
    found = list_all(target.account, target.kind, deadline, name, None, ["deleted"])
    return [each for _, each in found if each.name == name and each.deleted]


def _find_undeleted(target: Target, before: "Listed", patience: Deadline) -> Finding[Any]:
    """Return the finding on an undelete: nothing but that takes a version out of what is kept before its time."""
    if any(each.deleted_version == before.deleted_version for each in _list_deleted(target, patience)):
        return Finding(Verdict.NOT_YET)
    found = look_after(lambda: properties.fetch(target, Conditions(), patience))
    if found is None:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    is_it = properties.has_metadata(found, before.metadata)
    return Finding(Verdict.COMMITTED if is_it else Verdict.UNKNOWN, {}, seen=found)


def delete_unguarded(target: Target, guard: str, deadline: Deadline, look: Callable[[Deadline], object]) -> Written:
    """Delete a queue or a table with all that is in it; the service has no condition for that.

    ``look`` asks for it, and raises NotFound if there is none.

    Raises:
        NotFound: there is none.
        OutcomeUnknown: the answer was lost, or the request was refused. If the one that was there before is gone,
            another may have deleted it; if it is there, it may be a new one, and a lost request may still arrive.
    """
    before = look_before(lambda: look(deadline))
    request = WriteRequest[object](
        operation=_find(target.kind.noun, "delete"),
        target=target,
        look_after_refusal=lambda patience: _judge_refused_delete(before, lambda: look(patience)),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, guard, settled.attempts)


@frozen
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
    except BadRequest as error:
        # Only what is there is encrypted otherwise.
        if not is_of_encryption(error):
            raise
    return Existence(str(target.address), exists=True)


def is_nowhere(target: Target, error: NotFound) -> bool:
    """Return whether what a resource is in does not exist: its name may be mistyped, which proves no absence."""
    return len(target.address.parts) > 1 and error.service_code in NOWHERE


def look_before(look: Callable[[], T]) -> T | None:
    """Return the finding of ``look`` before a delete or a create is sent; None where the caller cannot read.

    Raises:
        NotFound: the resource does not exist.
    """
    try:
        return look()
    except Forbidden:
        return None
    except BadRequest as error:
        # It takes a key to read a blob, and none to delete it.
        if not is_of_encryption(error):
            raise
        return None


def look_after(look: Callable[[], T]) -> T | None:
    """Return the finding of ``look`` after a delete was sent; None where the resource is gone or being deleted."""
    try:
        return look()
    except NotFound:
        return None
    except Locked as error:
        if not is_being_deleted(error):
            raise
        return None


def _judge_refused_delete(before: object | None, look: Callable[[], object]) -> Finding[Any]:
    if look_after(look) is not None:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE, may_be_ours=before is not None)


def create_unless_exists(make: Callable[[], T], look: Callable[[], Written], *, skip: bool) -> T | Written:
    """Create by ``make``; with ``skip``, return the finding of ``look`` where the resource exists already."""
    if not skip:
        return make()
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


def describe_existing(
    target: Target, etag: str | None = None, modified: datetime | None = None, outcome: str = EXISTS
) -> Written:
    """Return the result of a create that found something and changed nothing.

    ``outcome`` is ``committed`` where the network has sent it twice, and this one came second.
    """
    return Written(
        address=str(target.address),
        etag=etag,
        last_modified=modified,
        guard="if-none-match",
        attempts=1,
        outcome=outcome,
    )


@frozen
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


def _find(noun: str, verb: str) -> Operation:
    from azguard.wire.catalogue import ALL  # which the write of an entity does not need

    return ALL[f"{noun}.{verb}"]
