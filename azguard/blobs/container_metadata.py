"""The metadata of a container: reading them, and replacing all of them.

The service compares no version, and a lease on a container keeps no writer of its metadata out. So azguard can only
compare and then write, and another writer can come in between. The lineage tells whose a write was.
"""

from collections.abc import Mapping
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import containers, metadata
from azguard.blobs.metadata import MetadataRead
from azguard.blobs.rewrites import Rewritten
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import NotFound
from azguard.requests.calls import read, write_timeouts
from azguard.requests.commits import Verdict, WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled


def get(target: Target, conditions: Conditions, deadline: Deadline) -> tuple[MetadataRead, str | None]:
    """Return the metadata of a container, and its lineage.

    Source: https://learn.microsoft.com/rest/api/storageservices/get-container-properties
    """
    return metadata.describe(target, _fetch(target, conditions.lease_id, deadline))


def replace_all(target: Target, wanted: Mapping[str, str], conditions: Conditions, deadline: Deadline) -> Rewritten:
    """Replace the metadata of a container.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-container-metadata
    """
    found = _fetch(target, conditions.lease_id, deadline)
    is_compared = conditions.expected_etag is not None
    if conditions.expected_etag not in (None, quote(found.etag)):
        raise containers.to_changed(target, conditions.expected_etag, quote(found.etag))
    op = fresh_op()
    stamped = metadata.add_own(wanted, found.metadata or {}, op, found.etag)
    client = target.account.container(target.address)
    request = WriteRequest(
        target=target,
        send=lambda: client.set_container_metadata(
            dict(stamped), headers=conditions.request_headers, **write_timeouts(deadline)
        ),
        look=lambda patience: find_outcome(target, op, stamped, patience),
        # Nothing keeps a copy that comes late from undoing what another writes meanwhile.
        resend=False,
    )
    settled: Settled[Any] = send_until_settled(request, deadline)
    written = WriteResult(
        address=str(target.address),
        etag=settled.answer.get("etag"),
        last_modified=settled.answer.get("last_modified"),
        guard=conditions.guard,
        attempts=settled.attempts,
    )
    return Rewritten(written, found.etag if is_compared else None, stamped[KEY])


def find_outcome(target: Target, op: str, stamped: Mapping[str, str], patience: Deadline) -> Finding[Any]:
    """Return whether a write of the metadata is found; that it is not proves nothing, since none depends on a version.

    The emulator and the service tell the lineage of a container in its metadata.
    """
    try:
        found = containers.fetch(target, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.parse((found.metadata or {}).get(KEY))
    if op not in history:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.COMMITTED, containers.find_version(found, stamped))


def _fetch(target: Target, lease_id: str | None, deadline: Deadline) -> Any:
    client = target.account.container(target.address)
    headers = Conditions(lease_id=lease_id).request_headers
    return read(lambda timeouts: client.get_container_properties(headers=headers, **timeouts), target, deadline)
