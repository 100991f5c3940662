"""The access policies of a table, by which shared access signatures can be withdrawn.

They have no ETag, so azguard makes one of their content: see ``access_policies``.
"""

import re
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.documents import policies as rules
from azguard.documents.policies import Policies, PolicyRules
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.resources import access_policies
from azguard.resources.access_policies import AccessPolicies

_RULES = PolicyRules("a table", re.compile(r"r?a?u?d?"), "of r (read), a (add), u (update), d (delete)")


def get(target: Target, deadline: Deadline) -> AccessPolicies:
    """Read the access policies of a table.

    Raises:
        NotFound: there is no such table.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-table-acl
    """
    client = target.account.table(target.address)
    return access_policies.fetch(target, client.get_table_access_policy, deadline)


def replace(target: Target, policies: Policies, conditions: Conditions, deadline: Deadline) -> WriteResult:
    """Replace all access policies of a table.

    Raises:
        Changed: they are no longer those the ETag is of.
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-table-acl
    """
    if conditions.expected_etag is not None:
        access_policies.require_version(conditions.expected_etag, get(target, deadline))
    return access_policies.replace(
        target, policies, conditions.guard, lambda: _set(target, policies, deadline), deadline
    )


def parse_policies(value: Any) -> Policies:
    """Return the access policies of a JSON value: as ``table acl get`` or ``az storage table policy list`` prints them.

    Raises:
        UsageError: they are not, or the service would refuse them; names the policy.
    """
    return rules.parse(value, _RULES)


def _set(target: Target, policies: Policies, deadline: Deadline) -> None:
    from azure.data.tables import TableAccessPolicy

    made = {name: TableAccessPolicy(**policy) if any(policy.values()) else None for name, policy in policies.items()}
    target.account.table(target.address).set_table_access_policy(made, **write_timeouts(deadline))
