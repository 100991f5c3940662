"""The access policies of a table, by which shared access signatures can be withdrawn.

They have no ETag, so azguard makes one of their content: the same policies have the same one. It can be compared
before a write, and nothing keeps others from writing in between.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, OutcomeUnknown, UsageError
from azguard.requests.calls import read, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.requests.verdicts import Verdict
from azguard.requests.written import WriteResult
from azguard.tables.tables import to_write_result

# The service keeps no more: https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
MOST = 5
_LONGEST_ID = 64
_FIELDS = {"start": "Start", "expiry": "Expiry", "permission": "Permission"}
# Read, add, update, delete: the service takes them in this order only.
_PERMISSIONS = re.compile(r"r?a?u?d?")
_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?Z)?")
Policies = Mapping[str, Mapping[str, str | None]]


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
    policies = _parse_xml(answers[-1])
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
        [name, *(_canonicalize_time(policies[name].get(field)) for field in _FIELDS)] for name in sorted(policies)
    ]
    text = json.dumps(canonical)
    return f'"acl-{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def parse_policies(value: Any) -> Policies:
    """Return the access policies of a JSON value: as ``table acl get`` or ``az storage table policy list`` prints them.

    Raises:
        UsageError: they are not, or the service would refuse them; names the policy.
    """
    found = value.get("policies") if isinstance(value, dict) and isinstance(value.get("policies"), dict) else value
    if not isinstance(found, dict) or any(not isinstance(each, dict | None) for each in found.values()):
        raise UsageError(
            "the access policies are not a JSON object of objects",
            reason="acl_not_object",
        )
    if len(found) > MOST:
        raise UsageError(f"there are {len(found)} access policies, and a table has at most {MOST}")
    return {name: _parse_policy(name, policy or {}) for name, policy in found.items()}


def _parse_policy(name: str, policy: Mapping[str, Any]) -> Mapping[str, str | None]:
    if not name.strip() or len(name) > _LONGEST_ID:
        raise UsageError(f"the id of an access policy has 1 to {_LONGEST_ID} characters, and not {len(name)}")
    unknown = next((field for field in policy if field not in _FIELDS), None)
    if unknown is not None:
        raise UsageError(
            f"access policy {name}: {unknown!r} is not known",
            reason="acl_field_unknown",
            values={"known": " ".join(_FIELDS)},
        )
    values = {field: policy.get(field) or None for field in _FIELDS}
    for field in ("start", "expiry"):
        if values[field] is not None and not _is_time(values[field]):
            raise UsageError(
                f"access policy {name}: {field} {values[field]!r} is not a time", reason="acl_time_malformed"
            )
    if not _PERMISSIONS.fullmatch(str(values["permission"] or "")):
        raise UsageError(
            f"access policy {name}: {values['permission']!r} is no permission of a table",
            reason="acl_permission_malformed",
        )
    return values


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        return bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _canonicalize_time(value: str | None) -> str | None:
    """Return a time as the service writes it, to 100 ns, however it was given; anything else as it is."""
    if value is None or not (found := _TIME.fullmatch(value)):
        return value or None
    day, time, seconds, fraction = found.groups()
    return f"{day}T{time or '00:00'}:{seconds or '00'}.{(fraction or '').ljust(7, '0')}Z"


def _parse_xml(text: str) -> Policies:
    from xml.etree import ElementTree as ET

    found: dict[str, Mapping[str, str | None]] = {}
    # No external entity is resolved, and the expansion of internal ones is limited.
    root = ET.fromstring(text.encode())  # noqa: S314  # the text comes from the service
    for each in root.iter("SignedIdentifier"):
        policy = {field: each.findtext(f"AccessPolicy/{tag}") or None for field, tag in _FIELDS.items()}
        found[each.findtext("Id") or ""] = policy
    return found


def _set(target: Target, policies: Policies, deadline: Deadline) -> None:
    from azure.data.tables import TableAccessPolicy

    made = {name: TableAccessPolicy(**policy) if any(policy.values()) else None for name, policy in policies.items()}
    target.account.table(target.address).set_table_access_policy(made, **write_timeouts(deadline))
