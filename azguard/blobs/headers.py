"""The content headers of a blob, and all writes that replace what the service keeps together.

Set Blob Metadata replaces all metadata, Set Blob Properties all content headers. They read first what is to stay, and
the write is guarded by the ETag of that very read. Only one condition can be sent: where the caller has another one, a
lease keeps other writers out between the read and the write.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

from azguard.accounts.target import Target
from azguard.blobs import properties, write_checks
from azguard.blobs.content.upload import ContentHeaders
from azguard.conditions.operations import Condition
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, Gone, NotFound
from azguard.leases import guard
from azguard.leases.recorded import LeaseRecords
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict, WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled

#: Writes over the version that was read, under these conditions.
Attempt = Callable[[Any, Conditions], Settled[Any]]


@dataclass(frozen=True)
class Rewritten:
    """A write that left the content as it was."""

    written: WriteResult
    #: The ETag of the version that it replaced; None if that is not known.
    before: str | None
    lineage: str | None

    @classmethod
    def of(
        cls, target: Target, guarded_by: str, settled: Settled[Any], before: str | None, lineage: str | None
    ) -> Self:
        """Describe a write by the answer to it."""
        answer = settled.answer
        address, attempts = str(target.address), settled.attempts
        written = WriteResult(address, answer.get("etag"), answer.get("last_modified"), guarded_by, attempts)
        return cls(written, before, lineage)


def rewrite(
    target: Target, conditions: Conditions, records: LeaseRecords, deadline: Deadline, attempt: Attempt
) -> Rewritten:
    """Read the properties of a blob and write over the version that was read.

    Raises:
        Changed: it is not the version that the conditions name, or they do not hold.
        GaveUp: they name none, and others wrote between each read and the write until the deadline.
        Locked: it is leased, and the lease id is missing or wrong.
    """
    try:
        if conditions.headers and conditions.expected_etag is None:
            return _rewrite_under_lease(target, conditions, records, deadline, attempt)
        return _rewrite_version(target, conditions, deadline, attempt)
    except Changed as error:
        if isinstance(error, Gone) or error.current_etag is not None:
            raise
        raise properties.describe_conflict(error, target, deadline) from error


def excludes_copies(given: Conditions, under: Conditions) -> bool:
    """Return whether a copy of a request that comes late is refused, by its version or with our own lease.

    Under the caller's lease it could undo what the caller writes next. ``given`` are the caller's conditions.
    """
    return under.expected_etag is not None or given.lease_id is None


def find_outcome(
    found: Any, target: Target, lease_id: str | None, patience: Deadline, equals: Callable[[Any], bool]
) -> Finding[Any]:
    """Return what is known of a write over the version ``found`` that has no place for a lineage.

    ``equals`` says whether a version has what was sent. Only a lease tells whether it was our write that made it.
    """
    try:
        current, is_held = properties.fetch_whatever_lease(target, lease_id, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    if current.etag == found.etag:
        return Finding(Verdict.NOT_YET, seen=current)
    if Lineage.find(current.metadata).successor(found.etag) is not None:
        return Finding(Verdict.NEVER, seen=current)
    if equals(current) and is_held:
        return Finding(Verdict.COMMITTED, {"etag": current.etag, "last_modified": current.last_modified})
    return Finding(Verdict.UNKNOWN, seen=current, same=equals(current))


def _rewrite_version(target: Target, conditions: Conditions, deadline: Deadline, attempt: Attempt) -> Rewritten:
    """Write over the version that is expected; where none is, over that which is there, until none comes between."""
    refused = 0
    while True:
        found = _read(target, conditions, deadline)
        if conditions.expected_etag not in (None, found.etag):
            raise Changed(
                f"{target} changed since you read it",
                address=str(target.address),
                expected_etag=conditions.expected_etag,
                current_etag=found.etag,
            )
        tied = replace(conditions, headers={Condition.IF_MATCH.header: found.etag}, expected_etag=found.etag)
        try:
            settled = attempt(found, tied)
        except Changed as error:
            if conditions.expected_etag is not None:
                raise
            refused += 1
            if deadline.passed:
                raise write_checks.to_gave_up(target, refused) from error
            continue
        return _build_result(target, conditions, found, settled, refused)


def _rewrite_under_lease(
    target: Target, conditions: Conditions, records: LeaseRecords, deadline: Deadline, attempt: Attempt
) -> Rewritten:
    with guard.hold(target, conditions.lease_id, records, deadline) as held:
        found = _read(target, replace(conditions, lease_id=held.lease_id), deadline)
        settled = attempt(found, replace(conditions, lease_id=held.lease_id))
    return _build_result(target, conditions, found, settled, 0)


def _read(target: Target, conditions: Conditions, deadline: Deadline) -> Any:
    with properties.explain_gone(target, conditions.expected_etag):
        return properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)


def _build_result(target: Target, conditions: Conditions, found: Any, settled: Settled[Any], refused: int) -> Rewritten:
    made = Rewritten.of(target, conditions.guard, settled, found.etag, settled.answer.get("lineage"))
    written = replace(made.written, attempts=settled.attempts + refused, conflicts=refused)
    return replace(made, written=written)


def change_headers(
    target: Target,
    headers: ContentHeaders,
    conditions: Conditions,
    records: LeaseRecords,
    deadline: Deadline,
    *,
    clear_others: bool = False,
) -> Rewritten:
    """Change the content headers that are given; the others stay, or are cleared.

    Raises:
        Changed: it is not the version that the conditions name, or they do not hold.
        OutcomeUnknown: the answer was lost. Nothing in these headers tells whose they are; only a lease does.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-properties
    """

    def attempt(found: Any, under: Conditions) -> Settled[Any]:
        wanted = headers if clear_others else ContentHeaders(**{**ContentHeaders.of(found).given, **headers.given})
        client = target.account.blob(target.address)

        def look(patience: Deadline) -> Finding[Any]:
            return find_outcome(
                found, target, under.lease_id, patience, lambda current: ContentHeaders.of(current) == wanted
            )

        request = WriteRequest(
            target=target,
            send=lambda: client.set_http_headers(
                wanted.for_sdk(), headers=under.request_headers, **write_timeouts(deadline)
            ),
            look=look,
            expected_etag=under.expected_etag,
            resend=excludes_copies(conditions, under),
        )
        settled = send_until_settled(request, deadline)
        return Settled({**settled.answer, "lineage": (found.metadata or {}).get(KEY)}, settled.attempts, settled.doubts)

    return rewrite(target, conditions, records, deadline, attempt)
