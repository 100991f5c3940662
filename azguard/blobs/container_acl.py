"""Who may read a container: its access policies, and whether others may read it without one.

The service keeps both together: what is not sent is removed. It compares no version, and a lease keeps no writer out.
So azguard compares, and sends If-Unmodified-Since along, which sees whole seconds only.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import Changed, NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import build_changed, require_version
from azguard.requests.commits import Verdict, look_under
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, Finding
from azguard.resources import access_policies
from azguard.resources.access_policies import Policies, VersionedPolicies, canonicalize
from azguard.resources.parts import Rewritten
from azguard.times import http_date
from azguard.wire.rows import Condition

#: Who may read without a signature: none, those who know the name of a blob, or all.
ACCESS = ("off", "blob", "container")


@dataclass(frozen=True, kw_only=True)
class ContainerAcl(VersionedPolicies):
    """The access policies of a container."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    #: ``off``, ``blob`` or ``container``.
    public_access: str


def get(target: Target, conditions: Conditions, deadline: Deadline) -> ContainerAcl:
    """Read the access policies of a container.

    Raises:
        NotFound: there is no such container.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-container-acl
    """
    found, answer = access_policies.fetch(target, conditions, deadline)
    return ContainerAcl(**vars(found), public_access=answer.public_access or ACCESS[0])


def replace(
    target: Target, policies: Policies | None, access: str | None, conditions: Conditions, deadline: Deadline
) -> Rewritten:
    """Replace the access policies of a container, and who may read it without one; None leaves what is there.

    Raises:
        Changed: it is not the version that the conditions name.
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-container-acl
    """
    found = get(target, Conditions(lease_id=conditions.lease_id), deadline)
    is_compared = conditions.expected_etag is not None
    what = f"the access policies of {target}, or its metadata,"
    require_version(target, conditions.expected_etag, found.etag, reason="acl_changed", what=what)
    since = {Condition.IF_UNMODIFIED_SINCE.header: http_date(found.last_modified)} if is_compared else {}
    headers = {**conditions.request_headers, **since}
    wanted = found.policies if policies is None else policies
    allowed = access or found.public_access
    try:
        settled = access_policies.send(
            target,
            wanted,
            headers,
            deadline,
            lambda patience: _find_outcome(target, wanted, allowed, conditions, patience),
            public_access=None if allowed == ACCESS[0] else allowed,
        )
    except Changed as error:
        if not is_compared:
            raise
        raise build_changed(target, conditions.expected_etag, None, reason="acl_changed", what=what) from error
    return Rewritten.of(target, conditions.guard, settled, found.etag if is_compared else None, None)


def _find_outcome(
    target: Target, policies: Policies, access: str, conditions: Conditions, patience: Deadline
) -> Finding[Any]:
    try:
        found, _ = look_under(
            conditions.lease_id, lambda lease_id: get(target, Conditions(lease_id=lease_id), patience)
        )
    except NotFound:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    same = (canonicalize(found.policies), found.public_access) == (canonicalize(policies), access)
    return Finding(Verdict.UNKNOWN, may_be_ours=same)
