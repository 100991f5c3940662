"""Stored access policies, by which shared access signatures can be withdrawn: their JSON, their XML, their rules.

Source: https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from azguard.errors import UsageError

# The service keeps no more.
MOST = 5
_LONGEST_ID = 64
FIELDS = {"start": "Start", "expiry": "Expiry", "permission": "Permission"}
_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?Z)?")
Policies = Mapping[str, Mapping[str, str | None]]


@dataclass(frozen=True)
class PolicyRules:
    """What one kind of resource allows in its policies."""

    #: Such as ``a table``.
    owner: str
    #: The letters of the permissions; the service takes them in this order only.
    permissions: re.Pattern[str]
    #: What they mean.
    letters: str


def parse(value: Any, rules: PolicyRules) -> Policies:
    """Return the access policies of a JSON value: as ``acl get`` or the ``policy list`` of az prints them.

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
        raise UsageError(f"there are {len(found)} access policies, and {rules.owner} has at most {MOST}")
    return {name: _parse_policy(name, policy or {}, rules) for name, policy in found.items()}


def _parse_policy(name: str, policy: Mapping[str, Any], rules: PolicyRules) -> Mapping[str, str | None]:
    if not name.strip() or len(name) > _LONGEST_ID:
        raise UsageError(f"the id of an access policy has 1 to {_LONGEST_ID} characters, and not {len(name)}")
    unknown = next((field for field in policy if field not in FIELDS), None)
    if unknown is not None:
        raise UsageError(
            f"access policy {name}: {unknown!r} is not known",
            reason="acl_field_unknown",
            values={"known": " ".join(FIELDS)},
        )
    values = {field: policy.get(field) or None for field in FIELDS}
    for field in ("start", "expiry"):
        if values[field] is not None and not _is_time(values[field]):
            raise UsageError(
                f"access policy {name}: {field} {values[field]!r} is not a time", reason="acl_time_malformed"
            )
    if not rules.permissions.fullmatch(str(values["permission"] or "")):
        raise UsageError(
            f"access policy {name}: {values['permission']!r} is no permission of {rules.owner}",
            reason="acl_permission_malformed",
            values={"letters": rules.letters},
        )
    return values


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        return bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def compute_etag(policies: Policies) -> str:
    """Return the ETag that azguard makes of access policies which have none: the same policies have the same one."""
    canonical = [
        [name, *(canonicalize_time(policies[name].get(field)) for field in FIELDS)] for name in sorted(policies)
    ]
    return f'"acl-{hashlib.sha256(json.dumps(canonical).encode()).hexdigest()[:32]}"'


def canonicalize_time(value: str | None) -> str | None:
    """Return a time as the service writes it, to 100 ns, however it was given; anything else as it is."""
    if value is None or not (found := _TIME.fullmatch(value)):
        return value or None
    day, time, seconds, fraction = found.groups()
    return f"{day}T{time or '00:00'}:{seconds or '00'}.{(fraction or '').ljust(7, '0')}Z"


def parse_xml(text: str) -> Policies:
    """Return the access policies in an answer of the service.

    Raises:
        ValueError: it is no such answer.
    """
    from xml.etree import ElementTree as ET

    found: dict[str, Mapping[str, str | None]] = {}
    # No external entity is resolved, and the expansion of internal ones is limited.
    try:
        root = ET.fromstring(text.encode())  # noqa: S314  # the text comes from the service
    except ET.ParseError as error:
        raise ValueError(str(error)) from error
    if root.tag != "SignedIdentifiers":
        raise ValueError(f"it holds {root.tag}, not SignedIdentifiers")
    for each in root.iter("SignedIdentifier"):
        policy = {field: each.findtext(f"AccessPolicy/{tag}") or None for field, tag in FIELDS.items()}
        found[each.findtext("Id") or ""] = policy
    return found
