"""The metadata of a resource, and its stored access policies: read and replaced alike, whatever service keeps them.

Of the metadata azguard's own keys stay: the lineage, to which each write adds its op, and what a lock keeps. By its
access policies shared access signatures can be withdrawn.

The metadata of a queue, and the policies of a table and of a queue, have no version in the service. azguard makes an
ETag of their content, and compares it before a write. Nothing keeps others from writing in between.

Source: https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.documents import metadata as rules
from azguard.errors import OutcomeUnknown, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write, find_metadata_etag, require_version
from azguard.requests.calls import read, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, drop_lineage, fresh_op, with_lineage
from azguard.requests.results import MetadataShown, Shown, Written, without_time
from azguard.requests.service_errors import build_unreadable
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.wire import xml
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Operation

# The service keeps no more policies.
_MOST = 5
_LONGEST_ID = 64
_FIELDS = {"start": "Start", "expiry": "Expiry", "permission": "Permission"}
_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?Z)?")
Policies = Mapping[str, Mapping[str, str | None]]


@frozen
class Rewritten:
    """A write that left the content as it was."""

    written: Written
    #: The ETag of the version that it replaced; None if that is not known.
    before: str | None
    lineage: str | None

    @classmethod
    def of(
        cls, target: Target, guarded_by: str, settled: Settled[Any], before: str | None, lineage: str | None
    ) -> Self:
        """Describe a write by the answer to it."""
        return cls(Written(**describe_write(target, guarded_by, settled)), before, lineage)


def get_metadata(
    target: Target,
    conditions: Conditions,
    deadline: Deadline,
    drop_own: Callable[[Mapping[str, str]], dict[str, str]] = drop_lineage,
) -> tuple[MetadataShown, str | None]:
    """Return the metadata of a resource, and its lineage; ``drop_own`` takes azguard's keys away.

    Raises:
        NotFound: it is not there.
        NotModified: a conditional read found nothing newer.
    """
    found = properties.fetch(target, conditions, deadline)
    shown = MetadataShown(
        address=str(target.address),
        etag=find_metadata_etag(found, found.metadata),
        last_modified=found.get("last_modified"),
        metadata=drop_own(found.metadata),
    )
    return shown, found.metadata.get(KEY)


def stamp(
    wanted: Mapping[str, str], before: Mapping[str, str], op: str, etag: str, own: Collection[str]
) -> dict[str, str]:
    """Return metadata with the keys ``own`` of the version that they replace, and with the op in the lineage.

    Raises:
        UsageError: they are too large together.
    """
    given = {key.lower() for key in wanted}
    kept = {key: value for key, value in before.items() if key.lower() in own and key.lower() not in given}
    stamped = with_lineage({**kept, **wanted}, Lineage.find(before).after(op, etag))
    rules.check_size(stamped, own=(*kept, KEY))
    return stamped


def find_setter(target: Target) -> Operation:
    """Return the operation that replaces the metadata of a resource."""
    return ALL[f"{target.kind.noun}.set_metadata"]


def send_metadata(target: Target, stamped: Mapping[str, str], under: Conditions, deadline: Deadline) -> Answer:
    """Replace the metadata of a resource by one request, and return its answer."""
    headers = under.request_headers
    return call(find_setter(target), target, write_timeouts(deadline), headers=headers, metadata=stamped)


def replace_metadata(
    target: Target, wanted: Mapping[str, str], conditions: Conditions, deadline: Deadline, own: Collection[str] = ()
) -> Rewritten:
    """Replace the metadata of a container or a queue, of which neither the service nor a lease keeps a version.

    azguard compares, then writes, and another writer can come in between. The keys ``own`` stay.

    Raises:
        Changed: it is not the version that the conditions name.
        UsageError: they are too large together with azguard's own.
        OutcomeUnknown: the answer was lost, and the write is not found. It may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-container-metadata and …/set-queue-metadata
    """
    found = properties.fetch(target, Conditions(lease_id=conditions.lease_id), deadline)
    before = find_metadata_etag(found, found.metadata)
    if before is None:
        raise build_unreadable(target, "it has no ETag")
    what = "" if "etag" in found else f"the metadata of {target}"
    require_version(target, conditions.expected_etag, before, reason="metadata_changed", what=what)
    op = fresh_op()
    stamped = stamp(wanted, found.metadata, op, before, own)
    request = WriteRequest[Mapping[str, Any]](
        operation=find_setter(target),
        target=target,
        given={"headers": conditions.request_headers, "metadata": stamped},
        look=lambda patience: _find_outcome(target, op, patience),
        # Nothing keeps a copy that comes late from undoing what another writes meanwhile.
        resend=False,
    )
    settled = send_until_settled(request, deadline)
    known = None if conditions.expected_etag is None else before
    done = Rewritten.of(target, conditions.guard, settled, known, stamped[KEY])
    if "etag" in found:
        return done
    return replace(done, written=replace(done.written, etag=find_metadata_etag({}, stamped)))


def _find_outcome(target: Target, op: str, patience: Deadline) -> Finding[Any]:
    """Return whether a write is found. Its absence proves nothing: it depends on no version, and may come late."""
    found = properties.find(target, patience)
    if found is None:
        return Finding(Verdict.UNKNOWN, seen=NOTHING_THERE)
    # Another program may have changed it since, and have kept the lineage.
    return Finding(Verdict.COMMITTED if op in Lineage.find(found.metadata) else Verdict.UNKNOWN, {"etag": None})


@frozen
class PolicyRules:
    """What one kind of resource allows in its policies."""

    #: Such as ``a table``.
    owner: str
    #: The letters of the permissions; the service takes them in this order only.
    permissions: re.Pattern[str]
    #: What they mean.
    letters: str


#: By the kind of resource.
POLICY_RULES = {
    Kind.CONTAINER: PolicyRules(
        "a container",
        re.compile(r"r?a?c?w?d?x?y?l?t?f?m?e?o?p?i?"),
        "of r (read), a (add), c (create), w (write), d (delete), x (delete versions), y (delete for good), l (list), "
        "t (tags), f (find), m (move), e (execute), o (owner), p (permissions), i (immutability)",
    ),
    Kind.SHARE: PolicyRules(
        "a share", re.compile(r"r?c?w?d?l?"), "of r (read), c (create), w (write), d (delete), l (list)"
    ),
    Kind.QUEUE: PolicyRules("a queue", re.compile(r"r?a?u?p?"), "of r (read), a (add), u (update), p (process)"),
    Kind.TABLE: PolicyRules("a table", re.compile(r"r?a?u?d?"), "of r (read), a (add), u (update), d (delete)"),
}


@frozen(kw_only=True)
class AccessPolicies(Shown):
    """Access policies by their id, and the version that they are of: without one in the service, azguard's own."""

    policies: Policies


def get_policies(target: Target, conditions: Conditions, deadline: Deadline) -> AccessPolicies:
    """Read the access policies of a container, a share, a queue or a table; see ``fetch_policies``."""
    return fetch_policies(target, conditions, deadline)[0]


def fetch_policies(target: Target, conditions: Conditions, deadline: Deadline) -> tuple[AccessPolicies, Answer]:
    """Read access policies, and return the service's answer too.

    Raises:
        NotFound: there is no such resource.
        Unavailable: something on the way has removed the ETag or the time, or it is no such answer.
    Source: the pages Get Container ACL, Get Share ACL, Get Queue ACL and Get Table ACL of
        https://learn.microsoft.com/rest/api/storageservices/
    """
    operation, headers = ALL[f"{target.kind.noun}.get_acl"], conditions.request_headers
    answer = read(lambda timeouts: call(operation, target, timeouts, headers=headers), target, deadline)
    policies = _read_policies(target, answer)
    if "etag" in answer and not (answer.etag and answer.last_modified):
        raise build_unreadable(target, "it has no ETag, or no Last-Modified")
    found = AccessPolicies(
        address=str(target.address),
        etag=answer.get("etag") or compute_policies_etag(policies),
        last_modified=answer.get("last_modified"),
        policies=policies,
    )
    return found, answer


def _read_policies(target: Target, answer: Answer) -> Policies:
    try:
        return parse_xml(answer.content.decode("utf-8-sig"))
    except ValueError as error:
        raise build_unreadable(target, str(error)) from error


def replace_policies(target: Target, policies: Policies, conditions: Conditions, deadline: Deadline) -> Written:
    """Replace all access policies of a queue or a table.

    Raises:
        Changed: they are no longer those the ETag is of.
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    """
    if conditions.expected_etag is not None:
        current = get_policies(target, Conditions(), deadline).etag
        what = f"the access policies of {target}"
        require_version(target, conditions.expected_etag, current, reason="acl_changed", what=what)
    settled = send_policies(target, policies, {}, deadline, lambda _: Finding(Verdict.UNKNOWN))
    return without_time(target, conditions.guard, settled.attempts, compute_policies_etag(policies))


def send_policies(
    target: Target,
    policies: Policies,
    headers: Mapping[str, str],
    deadline: Deadline,
    look: Callable[[Deadline], Finding[Any]],
    **given: Any,
) -> Settled[Any]:
    """Set all access policies of a resource of which neither the service nor a lease keeps a version.

    Raises:
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    """
    request = WriteRequest[Any](
        operation=ALL[f"{target.kind.noun}.set_acl"],
        target=target,
        given={"headers": headers, "body": build_policies_body(policies), **given},
        look=look,
        # Nothing keeps a copy that comes late from undoing what another writes meanwhile.
        resend=False,
    )
    try:
        return send_until_settled(request, deadline)
    except OutcomeUnknown as error:
        raise error.but(reason="acl_outcome_unknown") from error


def build_policies_body(policies: Policies) -> bytes:
    """Return the body that sets access policies."""
    listed = "".join(_build_policy(name, policies[name]) for name in policies)
    return xml.build_document(f"<SignedIdentifiers>{listed}</SignedIdentifiers>")


def _build_policy(name: str, policy: Any) -> str:
    given = {tag: _canonicalize_time(policy.get(field)) for field, tag in _FIELDS.items()}
    fields = "".join(f"<{tag}>{xml.escape(value)}</{tag}>" for tag, value in given.items() if value)
    access = f"<AccessPolicy>{fields}</AccessPolicy>" if fields else ""
    return f"<SignedIdentifier><Id>{xml.escape(name)}</Id>{access}</SignedIdentifier>"


def parse_policies(value: Any, rules: PolicyRules) -> Policies:
    """Return the access policies of a JSON value: as ``acl get`` or the ``policy list`` of az prints them.

    Raises:
        UsageError: they are not, or the service would refuse them; names the policy.
    """
    found = value.get("policies") if isinstance(value, dict) and isinstance(value.get("policies"), dict) else value
    if not isinstance(found, dict) or any(not isinstance(each, dict | None) for each in found.values()):
        raise UsageError("the access policies are not a JSON object of objects", reason="acl_not_object")
    if len(found) > _MOST:
        raise UsageError(f"there are {len(found)} access policies, and {rules.owner} has at most {_MOST}")
    return {name: _parse_policy(name, policy or {}, rules) for name, policy in found.items()}


def _parse_policy(name: str, policy: Mapping[str, Any], rules: PolicyRules) -> Mapping[str, str | None]:
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


def compute_policies_etag(policies: Policies) -> str:
    """Return the ETag that azguard makes of access policies which have none: the same policies have the same one."""
    canonical = [[name, *values] for name, values in sorted(canonicalize(policies).items())]
    return f'"acl-{hashlib.sha256(json.dumps(canonical).encode()).hexdigest()[:32]}"'


def canonicalize(policies: Policies) -> dict[str, tuple[str | None, ...]]:
    """Return access policies with their times as the service writes them: equal ones are the same policies."""
    return {
        name: tuple(_canonicalize_time(policy.get(field)) for field in _FIELDS) for name, policy in policies.items()
    }


def _canonicalize_time(value: str | None) -> str | None:
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
        policy = {field: each.findtext(f"AccessPolicy/{tag}") or None for field, tag in _FIELDS.items()}
        found[each.findtext("Id") or ""] = policy
    return found
