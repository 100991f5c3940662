"""Containers: requests in, frozen values out.

The service ignores an ETag condition on a container, so a lease guards a delete of one version: acquire, compare,
delete under the lease and If-Unmodified-Since, which has a resolution of one second.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag, require_version
from azguard.leases import guard
from azguard.leases.cache_records import LeaseRecords
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import Shown, Written, without_time
from azguard.requests.service_errors import build_unreadable
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import existence, lifecycles
from azguard.resources.properties import LeaseShown, describe_lease
from azguard.times import http_date
from azguard.wire.call import call
from azguard.wire.operations.containers import (
    CONTAINER_DELETE,
)


@dataclass(frozen=True, kw_only=True)
class ContainerShown(LeaseShown):
    """A container's properties."""

    COLUMNS: ClassVar = (columns.NAME, columns.ADDRESS, columns.LAST_MODIFIED, columns.ETAG, columns.LEASE_STATE)
    FIRST: ClassVar = (*Shown.FIRST, "public_access")

    name: str
    public_access: str | None
    has_immutability_policy: bool | None
    has_legal_hold: bool | None


def show(target: Target, conditions: Conditions, deadline: Deadline) -> ContainerShown:
    """Return a container's properties and metadata."""
    return _describe(target.address, lifecycles.fetch(target, conditions, deadline))


def list_containers(
    account: Account, deadline: Deadline, prefix: str | None, limit: int | None
) -> Iterator[ContainerShown]:
    """Yield the account's containers in order of name, with their metadata, page by page.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-containers2
    """
    return (_describe(*each) for each in lifecycles.list_all(account, Kind.CONTAINER, deadline, prefix, limit))


def delete(target: Target, conditions: Conditions, records: LeaseRecords, deadline: Deadline) -> Written:
    """Delete a container and everything in it.

    Raises:
        Changed: it is no longer the version the guard names.
        Locked: it is leased, and the lease id is missing or wrong.
        NotFound: there is none.
        OutcomeUnknown: the answer was lost, or the request was refused, and the container that was there before is
            gone: by us or by another.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-container
    """
    if conditions.guard == "lease" and conditions.expected_etag is not None:
        return _delete_guarded(target, conditions, records, deadline)
    # Asked before the delete, since a deleted container tells nothing; an infinite lease cannot have expired meanwhile.
    before = existence.look_before(lambda: show(target, Conditions(lease_id=conditions.lease_id), deadline))
    if conditions.lease_id is None:
        return _delete(target, conditions.request_headers, conditions.guard, deadline, before, None)
    alone = before is not None and before.lease_duration == "infinite"
    return _delete(target, conditions.request_headers, conditions.guard, deadline, before, lambda: alone)


def _delete_guarded(target: Target, conditions: Conditions, records: LeaseRecords, deadline: Deadline) -> Written:
    with guard.hold(target, conditions.lease_id, records, deadline) as held:
        current = show(target, Conditions(lease_id=held.lease_id), deadline)
        require_version(target, conditions.expected_etag, current.etag, reason="container_changed")
        if current.last_modified is None:
            raise build_unreadable(target, "it has no Last-Modified")
        headers = {
            **conditions.request_headers,
            "x-ms-lease-id": held.lease_id,
            "If-Unmodified-Since": http_date(current.last_modified),
        }
        for_ever = current.lease_duration == "infinite"
        deleted = _delete(target, headers, "lease", held.patience, current, lambda: for_ever or held.is_running)
        held.is_gone = True
        return deleted


def _delete(
    target: Target,
    headers: Mapping[str, str],
    name: str,
    deadline: Deadline,
    before: ContainerShown | None,
    alone: Callable[[], bool] | None,
) -> Written:
    """Delete under a lease or without one; ``alone`` says whether our lease kept all others from deleting it."""
    request = WriteRequest[object](
        target=target,
        send=lambda: call(CONTAINER_DELETE, target, write_timeouts(deadline), headers=headers),
        look=lambda patience: _find_delete_outcome(target, patience, before, alone),
        # The lease ends with the container, so a late delete under it finds nothing that it could delete.
        resend=alone is not None,
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, name, settled.attempts)


def _find_delete_outcome(
    target: Target, patience: Deadline, before: ContainerShown | None, alone: Callable[[], bool] | None
) -> Finding[object]:
    """Return who deleted it: only the holder of a lease could have, if we held one."""
    found = existence.look_after(lambda: lifecycles.fetch(target, Conditions(), patience))
    if found is None:
        verdict = Verdict.COMMITTED if alone is not None and alone() else Verdict.UNKNOWN
        return Finding(verdict, seen=NOTHING_THERE, may_be_ours=before is not None)
    # Another one of its name may have taken its place.
    is_other = before is not None and quote_etag(found.etag) != before.etag
    return Finding(Verdict.UNKNOWN, may_be_ours=is_other) if alone is None else Finding(Verdict.NOT_YET)


def _describe(address: Address, found: Any) -> ContainerShown:
    return ContainerShown(
        address=str(address),
        name=address.container,
        etag=quote_etag(found.etag),
        last_modified=found.last_modified,
        public_access=found.public_access,
        **describe_lease(found),
        has_immutability_policy=found.has_immutability_policy,
        has_legal_hold=found.has_legal_hold,
        metadata=drop_lineage(found.metadata),
    )
