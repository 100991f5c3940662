"""The metadata of a blob or a container: read and replaced.

azguard's own keys stay: the lineage, to which each write adds its op, and what a lock keeps on its blob.

Of a container the service compares no version, and a lease keeps no writer of its metadata out. So azguard can only
compare and then write, and another writer can come in between. The lineage tells whose a write was.
"""

from collections.abc import Mapping
from typing import Any

from azguard.accounts.account import Target
from azguard.blobs import headers, refusals
from azguard.errors import NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.leases.cache_records import LeaseRecords
from azguard.leases.owners import OF_LOCK
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op, verdict_from_lineage
from azguard.requests.results import MetadataShown
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import parts, properties
from azguard.resources.parts import Rewritten
from azguard.resources.properties import ContentHeaders, has_metadata


def get(target: Target, conditions: Conditions, deadline: Deadline) -> tuple[MetadataShown, str | None]:
    """Return the metadata of a blob, a snapshot or a version, and its lineage.

    Raises:
        NotModified: a conditional read found nothing newer.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-properties
    """
    with refusals.explain_stale_read(target, conditions, deadline):
        return parts.describe(target, properties.fetch(target, conditions, deadline))


def replace_all(
    target: Target, metadata: Mapping[str, str], conditions: Conditions, records: LeaseRecords, deadline: Deadline
) -> Rewritten:
    """Replace the metadata of a blob.

    Raises:
        Changed: it is not the version that the conditions name, or they do not hold.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and a writer without a lineage came after it.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-metadata
    """

    def attempt(found: Any, under: Conditions) -> Settled[Any]:
        op = fresh_op()
        stamped = parts.stamp(metadata, found.metadata, op, found.etag, OF_LOCK)
        request = WriteRequest[Mapping[str, Any]](
            target=target,
            send=lambda: parts.send_metadata(target, stamped, under, deadline),
            look=lambda patience: _find_outcome(target, op, found, stamped, patience),
            expected_etag=under.expected_etag,
            op=op,
            resend=headers.excludes_copies(conditions, under),
        )
        settled = send_until_settled(request, deadline)
        return Settled({**settled.answer, "lineage": stamped[KEY]}, settled.attempts, settled.doubts)

    return headers.rewrite(target, conditions, records, deadline, attempt)


def _find_outcome(target: Target, op: str, before: Any, stamped: Mapping[str, str], patience: Deadline) -> Finding[Any]:
    try:
        found = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.find(found.metadata)
    verdict = verdict_from_lineage(history, op, before.etag, found.etag)
    # Another tool may have written content, headers or metadata since, and have kept the lineage.
    is_same = (found.size, ContentHeaders.of(found)) == (before.size, ContentHeaders.of(before))
    is_ours = is_same and has_metadata(found, stamped)
    answer = {"etag": found.etag, "last_modified": found.last_modified} if is_ours else {"etag": None}
    return Finding(verdict, answer if verdict is Verdict.COMMITTED else None, seen=found)


def read_container_metadata(
    target: Target, conditions: Conditions, deadline: Deadline
) -> tuple[MetadataShown, str | None]:
    """Return the metadata of a container, and its lineage.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-container-properties
    """
    return parts.describe(target, properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline))


def replace_container_metadata(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, deadline: Deadline
) -> Rewritten:
    """Replace the metadata of a container.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-container-metadata
    """
    before, stamped, settled = parts.replace_compared(
        target, wanted, conditions, deadline, lambda found: quote_etag(found.etag), OF_LOCK, reason="metadata_changed"
    )
    known = None if conditions.expected_etag is None else before
    return Rewritten.of(target, conditions.guard, settled, known, stamped[KEY])
