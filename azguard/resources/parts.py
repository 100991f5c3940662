"""The metadata of a resource: read and replaced alike, whatever service keeps them.

azguard's own keys stay: the lineage, to which each write adds its op, and what a lock keeps on its resource.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Self

from azguard.accounts.account import Target
from azguard.documents import metadata as rules
from azguard.errors import NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write, quote_etag, require_version
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op, with_lineage
from azguard.requests.results import MetadataShown, Written
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Operation


@frozen
class Rewritten:
    """A write that left the content as it was."""

    written: Written
    #: The ETag of the version that it replaced; None if that is not known.
    before: str | None
    lineage: str | None

    @classmethod
    def of(
        cls, target: Target, guarded_by: str, settled: Settled[Any], before: str | None, lineage: str | None
    ) -> Self:
        """Describe a write by the answer to it."""
        return cls(Written(**describe_write(target, guarded_by, settled)), before, lineage)


def describe(
    target: Target, found: Answer, drop_own: Callable[[Mapping[str, str]], dict[str, str]] = drop_lineage
) -> tuple[MetadataShown, str | None]:
    """Return the metadata among the properties, and the lineage; ``drop_own`` takes azguard's keys away."""
    shown = MetadataShown(
        address=str(target.address),
        etag=quote_etag(found.etag),
        last_modified=found.last_modified,
        metadata=drop_own(found.metadata),
    )
    return shown, found.metadata.get(KEY)


def stamp(
    wanted: Mapping[str, str], before: Mapping[str, str], op: str, etag: str, own: Collection[str]
) -> dict[str, str]:
    """Return metadata with the keys ``own`` of the version that they replace, and with the op in the lineage.

    Raises:
        UsageError: they are too large together.
    """
    given = {key.lower() for key in wanted}
    kept = {key: value for key, value in before.items() if key.lower() in own and key.lower() not in given}
    stamped = with_lineage({**kept, **wanted}, Lineage.find(before).after(op, etag))
    rules.check_size(stamped, own=(*kept, KEY))
    return stamped


def find_setter(target: Target) -> Operation:
    """Return the operation that replaces the metadata of a resource."""
    return ALL[f"{target.kind.noun}.set_metadata"]


def send_metadata(target: Target, stamped: Mapping[str, str], under: Conditions, deadline: Deadline) -> Answer:
    """Replace the metadata of a resource by one request, and return its answer."""
    headers = under.request_headers
    return call(find_setter(target), target, write_timeouts(deadline), headers=headers, metadata=stamped)


class Replaced(NamedTuple):
    """Metadata that were replaced."""

    before: str
    stamped: Mapping[str, str]
    settled: Settled[Any]


def replace_compared(
    target: Target,
    wanted: Mapping[str, str],
    conditions: Conditions,
    deadline: Deadline,
    find_version: Callable[[Answer], str],
    own: Collection[str] = (),
    **refusal: str,
) -> Replaced:
    """Replace the metadata of a resource of which neither the service nor a lease keeps a version.

    azguard compares, then writes, and another writer can come in between. ``find_version`` returns the version that is
    compared, and ``refusal`` is for ``require_version``.

    Raises:
        Changed: it is not the version that the conditions name.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    """
    found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    before = find_version(found)
    require_version(target, conditions.expected_etag, before, **refusal)
    op = fresh_op()
    stamped = stamp(wanted, found.metadata, op, before, own)
    request = WriteRequest[Mapping[str, Any]](
        target=target,
        send=lambda: send_metadata(target, stamped, conditions, deadline),
        look=lambda patience: _find_outcome(target, op, stamped, patience),
        # Nothing keeps a copy that comes late from undoing what another writes meanwhile.
        resend=False,
    )
    return Replaced(before, stamped, send_until_settled(request, deadline))


def _find_outcome(target: Target, op: str, stamped: Mapping[str, str], patience: Deadline) -> Finding[Any]:
    """Return whether a write is found; that it is not proves nothing, since none depends on a version."""
    try:
        found = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    if op not in Lineage.find(found.metadata):
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.COMMITTED, properties.find_version(found, stamped))
