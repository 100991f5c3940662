"""The metadata of a blob or a container: reading them, and replacing all of them.

azguard's own keys stay: the lineage, to which each write adds its op, and what a lock keeps on its blob.

Of a container the service compares no version, and a lease keeps no writer of its metadata out. So azguard can only
compare and then write, and another writer can come in between. The lineage tells whose a write was.
"""

from collections.abc import Mapping
from typing import Any

from azguard.accounts.account import Target
from azguard.blobs import containers, headers, properties
from azguard.blobs.headers import Rewritten
from azguard.documents import metadata as rules
from azguard.errors import NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag, require_version
from azguard.leases.owners import OF_LOCK
from azguard.leases.recorded import LeaseRecords
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op, verdict_from_lineage, with_lineage
from azguard.requests.results import MetadataShown
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources.properties import ContentHeaders


def get(target: Target, conditions: Conditions, deadline: Deadline) -> tuple[MetadataShown, str | None]:
    """Return the metadata of a blob, a snapshot or a version, and its lineage.

    Raises:
        NotModified: a conditional read found nothing newer.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-properties
    """
    with properties.explain_stale_read(target, conditions, deadline):
        return describe(target, properties.fetch(target, conditions, deadline))


def describe(target: Target, found: Any) -> tuple[MetadataShown, str | None]:
    """Return the metadata among the properties, and the lineage."""
    stamped = found.metadata or {}
    read = MetadataShown(
        address=str(target.address),
        etag=quote_etag(found.etag),
        last_modified=found.last_modified,
        metadata=drop_lineage(stamped),
    )
    return read, stamped.get(KEY)


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
        stamped = _add_own_keys(metadata, found.metadata or {}, op, found.etag)
        request = WriteRequest[Mapping[str, Any]](
            target=target,
            send=lambda: properties.set_metadata(target, stamped, under, deadline),
            look=lambda patience: _find_outcome(target, op, found, stamped, patience),
            expected_etag=under.expected_etag,
            op=op,
            resend=headers.excludes_copies(conditions, under),
        )
        settled = send_until_settled(request, deadline)
        return Settled({**settled.answer, "lineage": stamped[KEY]}, settled.attempts, settled.doubts)

    return headers.rewrite(target, conditions, records, deadline, attempt)


def _add_own_keys(metadata: Mapping[str, str], before: Mapping[str, str], op: str, etag: str) -> Mapping[str, str]:
    """Return metadata with azguard's own keys of the version that they replace, and with the op in the lineage."""
    given = {key.lower() for key in metadata}
    kept = {key: value for key, value in before.items() if key.lower() in OF_LOCK and key.lower() not in given}
    lineage = Lineage.parse(before.get(KEY)).after(op, etag)
    stamped = with_lineage({**kept, **metadata}, lineage)
    rules.check_size(stamped, own=(*kept, KEY))
    return stamped


def _find_outcome(target: Target, op: str, before: Any, stamped: Mapping[str, str], patience: Deadline) -> Finding[Any]:
    try:
        found = properties.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.find(found.metadata)
    verdict = verdict_from_lineage(history, op, before.etag, found.etag)
    # Another tool may have written content, headers or metadata since, and have kept the lineage.
    is_same = (found.size, ContentHeaders.of(found)) == (before.size, ContentHeaders.of(before))
    is_ours = is_same and properties.has_metadata(found, stamped)
    answer = {"etag": found.etag, "last_modified": found.last_modified} if is_ours else {"etag": None}
    return Finding(verdict, answer if verdict is Verdict.COMMITTED else None, seen=found)


def read_container_metadata(
    target: Target, conditions: Conditions, deadline: Deadline
) -> tuple[MetadataShown, str | None]:
    """Return the metadata of a container, and its lineage.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-container-properties
    """
    return describe(target, containers.fetch(target, Conditions(lease_id=conditions.lease_id), deadline))


def replace_container_metadata(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, deadline: Deadline
) -> Rewritten:
    """Replace the metadata of a container.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-container-metadata
    """
    found = containers.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    is_compared = conditions.expected_etag is not None
    require_version(target, conditions.expected_etag, quote_etag(found.etag), reason="container_changed")
    op = fresh_op()
    stamped = _add_own_keys(wanted, found.metadata or {}, op, found.etag)
    request = WriteRequest[Mapping[str, Any]](
        target=target,
        send=lambda: properties.set_metadata(target, stamped, conditions, deadline),
        look=lambda patience: find_outcome(target, op, stamped, patience),
        # Nothing keeps a copy that comes late from undoing what another writes meanwhile.
        resend=False,
    )
    settled = send_until_settled(request, deadline)
    return Rewritten.of(target, conditions.guard, settled, found.etag if is_compared else None, stamped[KEY])


def find_outcome(target: Target, op: str, stamped: Mapping[str, str], patience: Deadline) -> Finding[Any]:
    """Return whether a write of the metadata is found; that it is not proves nothing, since none depends on a version.

    The emulator and the service tell the lineage of a container in its metadata.
    """
    try:
        found = containers.fetch(target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.find(found.metadata)
    if op not in history:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.COMMITTED, containers.find_version(found, stamped))
