"""The access policies of a table, by which shared access signatures can be withdrawn.

They have no ETag, so azguard makes one of their content: the same policies have the same one. It can be compared
before a write, and nothing keeps others from writing in between.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.documents import policies as rules
from azguard.documents.policies import Policies, PolicyRules
from azguard.errors import Changed, OutcomeUnknown
from azguard.requests.calls import read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.requests.verdicts import Verdict
from azguard.requests.written import WriteResult
from azguard.tables.tables import to_write_result

_RULES = PolicyRules("a table", re.compile(r"r?a?u?d?"), "of r (read), a (add), u (update), d (delete)")


@dataclass(frozen=True)
class TableAcl:
    """A table's access policies by their id; the ETag is azguard's own, of their content."""

    address: str
    etag: str
    last_modified: None
    policies: Policies


def get(target: Target, deadline: Deadline) -> TableAcl:
    """Read the access policies of a table.

    Raises:
        NotFound: there is no such table.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-table-acl
    """
    client = target.account.table(target.address)
    answers: list[str] = []

    def keep(response: Any) -> None:
        answers.append(response.http_response.text())

    def once(timeouts: Mapping[str, Any]) -> None:
        try:
            client.get_table_access_policy(raw_response_hook=keep, **timeouts)
        except ValueError:
            pass  # a time that the SDK cannot parse; the text of the answer is read instead

    read(once, target, deadline)
    policies = rules.parse_xml(answers[-1])
    return TableAcl(
        address=str(target.address),
        etag=compute_etag(policies),
        last_modified=None,
        policies=policies,
    )


def replace(target: Target, policies: Policies, conditions: Conditions, deadline: Deadline) -> WriteResult:
    """Replace all access policies of a table.

    Raises:
        Changed: they are no longer those the ETag is of.
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-table-acl
    """
    if conditions.expected_etag is not None:
        current = get(target, deadline)
        if current.etag != conditions.expected_etag:
            raise Changed(
                f"the access policies of {target} changed since you read them",
                address=str(target.address),
                expected_etag=conditions.expected_etag,
                current_etag=current.etag,
                reason="acl_changed",
            )
    request = WriteRequest(
        target=target,
        send=lambda: _set(target, policies, deadline),
        look=lambda _: Finding(Verdict.UNKNOWN),
    )
    try:
        settled = send_until_settled(request, deadline)
    except OutcomeUnknown as error:
        raise error.but(reason="acl_outcome_unknown") from error
    return to_write_result(target, conditions.guard, settled.attempts, compute_etag(policies))


def compute_etag(policies: Policies) -> str:
    """Return the ETag that azguard makes of access policies."""
    canonical = [
        [name, *(rules.canonicalize_time(policies[name].get(field)) for field in rules.FIELDS)]
        for name in sorted(policies)
    ]
    text = json.dumps(canonical)
    return f'"acl-{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


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
