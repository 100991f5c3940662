"""Containers and their access policies: requests in, frozen values out.

The service ignores an ETag condition on a container, so a lease guards a delete of one version: acquire, compare,
delete under the lease and If-Unmodified-Since, which has a resolution of one second.

Access policies are kept together with the public access: what is not sent is removed. The service compares no version
of them, and a lease keeps no writer out. So azguard can only compare and then write, and another writer can come in
between. If-Unmodified-Since is sent along.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address
from azguard.errors import Changed, NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import build_changed, require_version
from azguard.leases import guard
from azguard.leases.recorded import LeaseRecords
from azguard.requests.commits import Verdict, look_under
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import Shown, Written, without_time
from azguard.requests.service_errors import build_unreadable
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import lifecycles, parts, properties
from azguard.resources.parts import AccessPolicies, Policies, Rewritten, canonicalize
from azguard.resources.properties import KeptShown, describe_kept
from azguard.times import http_date
from azguard.wire.answers import Answer
from azguard.wire.operations.containers import CONTAINER_DELETE
from azguard.wire.rows import Condition


@frozen(kw_only=True)
class ContainerShown(KeptShown):
    """A container's properties."""

    COLUMNS: ClassVar = (
        columns.NAME,
        columns.ADDRESS,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.LEASE_STATE,
        columns.DELETED_VERSION,
    )
    FIRST: ClassVar = (*Shown.FIRST, "public_access")

    name: str
    public_access: str | None
    has_immutability_policy: bool | None
    has_legal_hold: bool | None


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
    under = Conditions(lease_id=conditions.lease_id)
    before = lifecycles.look_before(lambda: properties.fetch(target, under, deadline))
    is_infinite = before is not None and before.lease.duration == "infinite"
    alone = None if conditions.lease_id is None else lambda: is_infinite
    return _delete(target, conditions.request_headers, conditions.guard, deadline, before, alone)


def _delete_guarded(target: Target, conditions: Conditions, records: LeaseRecords, deadline: Deadline) -> Written:
    with guard.hold(target, conditions.lease_id, records, deadline) as held:
        current = properties.fetch(target, Conditions(lease_id=held.lease_id), deadline)
        require_version(target, conditions.expected_etag, current.etag, reason="container_changed")
        if current.last_modified is None:
            raise build_unreadable(target, "it has no Last-Modified")
        headers = {
            **conditions.request_headers,
            "x-ms-lease-id": held.lease_id,
            "If-Unmodified-Since": http_date(current.last_modified),
        }
        for_ever = current.lease.duration == "infinite"
        deleted = _delete(target, headers, "lease", held.patience, current, lambda: for_ever or held.is_running)
        held.is_gone = True
        return deleted


def _delete(
    target: Target,
    headers: Mapping[str, str],
    name: str,
    deadline: Deadline,
    before: Answer | None,
    alone: Callable[[], bool] | None,
) -> Written:
    """Delete under a lease or without one; ``alone`` says whether our lease kept all others from deleting it."""
    request = WriteRequest[object](
        operation=CONTAINER_DELETE,
        target=target,
        given={"headers": headers},
        look=lambda patience: _find_delete_outcome(target, patience, before, alone),
        # The lease ends with the container, so a late delete under it finds nothing that it could delete.
        resend=alone is not None,
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, name, settled.attempts)


def _find_delete_outcome(
    target: Target, patience: Deadline, before: Answer | None, alone: Callable[[], bool] | None
) -> Finding[object]:
    """Return who deleted it: only the holder of a lease could have, if we held one."""
    found = lifecycles.look_after(lambda: properties.fetch(target, Conditions(), patience))
    if found is None:
        verdict = Verdict.COMMITTED if alone is not None and alone() else Verdict.UNKNOWN
        return Finding(verdict, seen=NOTHING_THERE, may_be_ours=before is not None)
    # Another one of its name may have taken its place.
    is_other = before is not None and found.etag != before.etag
    return Finding(Verdict.UNKNOWN, may_be_ours=is_other) if alone is None else Finding(Verdict.NOT_YET)


def describe(address: Address, found: Any) -> ContainerShown:
    """Return a container as show and list print it, from its properties or from an item of a listing."""
    return ContainerShown(
        **describe_kept(address, found),
        name=address.container,
        metadata=drop_lineage(found.metadata),
        public_access=found.public_access,
        has_immutability_policy=found.has_immutability_policy,
        has_legal_hold=found.has_legal_hold,
    )


#: Who may read without a signature: none, those who know the name of a blob, or all.
ACCESS = ("off", "blob", "container")


@frozen(kw_only=True)
class ContainerAcl(AccessPolicies):
    """The access policies of a container."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    last_modified: datetime
    #: ``off``, ``blob`` or ``container``.
    public_access: str


def read_acl(target: Target, conditions: Conditions, deadline: Deadline) -> ContainerAcl:
    """Read the access policies of a container.

    Raises:
        NotFound: there is no such container.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-container-acl
    """
    found, answer = parts.fetch_policies(target, conditions, deadline)
    return ContainerAcl(**vars(found), public_access=answer.public_access or ACCESS[0])


def replace_acl(
    target: Target, policies: Policies | None, access: str | None, conditions: Conditions, deadline: Deadline
) -> Rewritten:
    """Replace the access policies of a container, and who may read it without one; None leaves what is there.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-container-acl
    """
    found = read_acl(target, Conditions(lease_id=conditions.lease_id), deadline)
    is_compared = conditions.expected_etag is not None
    what = f"the access policies of {target}, or its metadata,"
    require_version(target, conditions.expected_etag, found.etag, reason="acl_changed", what=what)
    since = {Condition.IF_UNMODIFIED_SINCE.header: http_date(found.last_modified)} if is_compared else {}
    headers = {**conditions.request_headers, **since}
    wanted = found.policies if policies is None else policies
    allowed = access or found.public_access
    try:
        settled = parts.send_policies(
            target,
            wanted,
            headers,
            deadline,
            lambda patience: _find_acl_outcome(target, wanted, allowed, conditions, patience),
            public_access=None if allowed == ACCESS[0] else allowed,
        )
    except Changed as error:
        if not is_compared:
            raise
        raise build_changed(target, conditions.expected_etag, None, reason="acl_changed", what=what) from error
    return Rewritten.of(target, conditions.guard, settled, found.etag if is_compared else None, None)


def _find_acl_outcome(
    target: Target, policies: Policies, access: str, conditions: Conditions, patience: Deadline
) -> Finding[Any]:
    try:
        found, _ = look_under(
            conditions.lease_id, lambda lease_id: read_acl(target, Conditions(lease_id=lease_id), patience)
        )
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    same = (canonicalize(found.policies), found.public_access) == (canonicalize(policies), access)
    return Finding(Verdict.UNKNOWN, may_be_ours=same)
