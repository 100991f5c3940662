"""The access policies of a queue, by which shared access signatures can be withdrawn.

They have no ETag, so azguard makes one of their content: see ``access_policies``.
"""

import re

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.documents.policies import Policies, PolicyRules
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.resources import access_policies
from azguard.resources.access_policies import AccessPolicies

RULES = PolicyRules("a queue", re.compile(r"r?a?u?p?"), "of r (read), a (add), u (update), p (process)")


def get(target: Target, deadline: Deadline) -> AccessPolicies:
    """Read the access policies of a queue.

    Raises:
        NotFound: there is no such queue.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-queue-acl
    """
    client = target.account.queue(target.address)
    return access_policies.fetch(target, client.get_queue_access_policy, deadline)


def replace(target: Target, policies: Policies, conditions: Conditions, deadline: Deadline) -> WriteResult:
    """Replace all access policies of a queue.

    Raises:
        Changed: they are no longer those the ETag is of.
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-queue-acl
    """
    if conditions.expected_etag is not None:
        access_policies.require_version(conditions.expected_etag, get(target, deadline))
    return access_policies.replace(
        target, policies, conditions.guard, lambda: _set(target, policies, deadline), deadline
    )


def _set(target: Target, policies: Policies, deadline: Deadline) -> None:
    client = target.account.queue(target.address)
    body = access_policies.replace_body(access_policies.build_policies(policies))
    client.set_queue_access_policy({}, raw_request_hook=body, **write_timeouts(deadline))
