"""How a container, a share, a directory or a queue is made, read, listed and deleted: one mechanism over the rows.

A create settles its own doubt by the lineage that it leaves in the metadata. A table keeps no mark of its creator, and
what was deleted keeps none of who deleted it: see ``existence``.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.errors import BadRequest, NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write, quote_etag
from azguard.requests.calls import read, walk_pages, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.results import Written, without_time
from azguard.requests.service_codes import TYPE_MISMATCH
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import existence
from azguard.resources.properties import has_metadata
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.failures import Response
from azguard.wire.items import Listed
from azguard.wire.operations.queues import QUEUE_GET_METADATA

# The most that one page holds.
_PAGE = 5000


def fetch(
    target: Target, conditions: Conditions, deadline: Deadline, hear: Callable[[Response], object] | None = None
) -> Answer:
    """Return the properties of a resource, the lineage in its metadata included.

    Raises:
        NotFound: there is none.
        Locked: the lease that the conditions name is not held.
    Source: the pages Get Container Properties, Get Share Properties, Get Directory Properties, Get File Properties and
        Get Queue Metadata of https://learn.microsoft.com/rest/api/storageservices/
    """
    operation = QUEUE_GET_METADATA if target.kind is Kind.QUEUE else ALL[f"{target.kind.noun}.get_properties"]
    headers = conditions.request_headers
    return read(lambda timeouts: call(operation, target, timeouts, headers=headers, hear=hear), target, deadline)


def create(target: Target, metadata: Mapping[str, str], deadline: Deadline, op: str, **given: Any) -> Written:
    """Create a resource, never replacing one; ``given`` is what else the row of its create sends.

    A queue has an entry in its metadata that no other queue has, without which the service takes a second create of the
    same queue for done.

    Raises:
        Exists: there is one of that name.
        Locked: one of that name is still being deleted.
        NotFound: there is no share or directory that a directory could be in.
    """
    operation = ALL[f"{target.kind.noun}.create"]
    stamped = {**metadata, KEY: str(Lineage().after(op, None))}
    request = WriteRequest[Mapping[str, Any]](
        target=target,
        send=lambda: call(operation, target, write_timeouts(deadline), metadata=stamped, **given),
        look=lambda patience: _find_created(target, op, stamped, patience),
    )
    return Written(**describe_write(target, "if-none-match", send_until_settled(request, deadline)))


def _find_created(target: Target, op: str, stamped: Mapping[str, str], patience: Deadline) -> Finding[Any]:
    try:
        found = fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.NOT_YET)
    except BadRequest as error:
        if error.service_code != TYPE_MISMATCH:
            raise
        # A file has the name, so that no directory of ours is there.
        return Finding(Verdict.NOT_YET)
    if op not in Lineage.find(found.metadata):
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.COMMITTED, find_version(found, stamped))


def find_version(found: Answer, stamped: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the version that wrote these metadata; another tool may have made a later one, and kept the lineage."""
    if not has_metadata(found, stamped):
        return {"etag": None, "last_modified": None}
    return {"etag": found.get("etag"), "last_modified": found.get("last_modified")}


def find_existing(target: Target, op: str, deadline: Deadline) -> Written:
    """Return the result for the resource that exists: ours, if the network sent the create twice."""
    try:
        found = fetch(target, Conditions(), deadline.fresh())
    except NotFound:  # deleted since
        return existence.leave_alone(target, None, None)
    etag = found.get("etag")
    etag = None if etag is None else quote_etag(etag)
    return existence.judge_version(target, etag, found.get("last_modified"), Lineage.find(found.metadata), op)


def list_all(
    account: Account, kind: Kind, deadline: Deadline, prefix: str | None, limit: int | None, include: str = "metadata"
) -> Iterator[tuple[Address, Listed]]:
    """Yield the account's containers, shares or queues in order of name, page by page."""
    word = kind.noun.title()
    everything, most = Target(account, Address(kind, ("",))), None if limit is None else min(limit, _PAGE)
    asked: dict[str, Any] = {"prefix": prefix, "include": include, "maxresults": most}
    pages = walk_pages(ALL[f"{kind.noun}.list"], everything, deadline, f"{word}s", word, **asked)
    for item in islice((item for page in pages for item in page.items), limit):
        yield Address(kind, (item.name,), item.snapshot), item


def delete_unguarded(target: Target, guard: str, deadline: Deadline, look: Callable[[Deadline], object]) -> Written:
    """Delete a queue or a table with all that is in it; the service has no condition for that.

    ``look`` asks for it, and raises NotFound if there is none.

    Raises:
        NotFound: there is none.
        OutcomeUnknown: the answer was lost, or the request was refused. If the one that was there before is gone,
            another may have deleted it; if it is there, it may be a new one, and a lost request may still arrive.
    """
    before = existence.look_before(lambda: look(deadline))
    request = WriteRequest[object](
        target=target,
        send=lambda: call(ALL[f"{target.kind.noun}.delete"], target, write_timeouts(deadline)),
        look=lambda _: Finding(Verdict.UNKNOWN),
        look_after_refusal=lambda patience: existence.judge_refused_delete(before, lambda: look(patience)),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, guard, settled.attempts)
