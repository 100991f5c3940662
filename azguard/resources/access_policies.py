"""Access policies: read, compared and replaced.

Those of a table and of a queue have no version in the service. azguard makes an ETag of their content, and compares it
before a write. Nothing keeps others from writing in between.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from azguard.accounts.account import Target
from azguard.documents import policies as rules
from azguard.documents.policies import Policies, PolicyRules
from azguard.errors import OutcomeUnknown
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag, require_version
from azguard.requests.calls import read, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Shown, Written, without_time
from azguard.requests.service_errors import build_unreadable
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.wire import xml
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.rows import Operation


@dataclass(frozen=True, kw_only=True)
class AccessPolicies(Shown):
    """Access policies by their id, and the version that they are of: without one in the service, azguard's own."""

    policies: Policies


@dataclass(frozen=True, kw_only=True)
class VersionedPolicies(AccessPolicies):
    """Access policies, and the version of the container or share that they are of."""

    last_modified: datetime


@dataclass(frozen=True)
class UnversionedPolicies:
    """How the access policies of one kind of resource are read and written, where the service gives them no version."""

    reads: Operation
    writes: Operation
    rules: PolicyRules

    def get(self, target: Target, deadline: Deadline) -> AccessPolicies:
        """Read the access policies.

        Raises:
            NotFound: there is no such resource.
        """
        policies = _parse(target, _fetch(target, self.reads, {}, deadline))
        return AccessPolicies(
            address=str(target.address), etag=rules.compute_etag(policies), last_modified=None, policies=policies
        )

    def replace(self, target: Target, policies: Policies, conditions: Conditions, deadline: Deadline) -> Written:
        """Replace all access policies.

        Raises:
            Changed: they are no longer those the ETag is of.
            OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
        """
        if conditions.expected_etag is not None:
            current = self.get(target, deadline).etag
            what = f"the access policies of {target}"
            require_version(target, conditions.expected_etag, current, reason="acl_changed", what=what)
        request = WriteRequest(
            target=target,
            send=lambda: send(self.writes, target, policies, {}, deadline),
            look=lambda _: Finding[object](Verdict.UNKNOWN),
        )
        try:
            settled = send_until_settled(request, deadline)
        except OutcomeUnknown as error:
            raise error.but(reason="acl_outcome_unknown") from error
        return without_time(target, conditions.guard, settled.attempts, rules.compute_etag(policies))


def get_versioned(
    target: Target, operation: Operation, headers: Mapping[str, str], deadline: Deadline
) -> tuple[VersionedPolicies, Answer]:
    """Read access policies whose version the service tells, and return the service's answer too.

    Raises:
        NotFound: there is no such resource.
        Unavailable: something on the way has removed the ETag or the time, or it is no such answer.
    """
    answer = _fetch(target, operation, headers, deadline)
    if not answer.etag or not answer.last_modified:
        raise build_unreadable(target, "it has no ETag, or no Last-Modified")
    found = VersionedPolicies(
        address=str(target.address),
        etag=quote_etag(answer.etag),
        last_modified=answer.last_modified,
        policies=_parse(target, answer),
    )
    return found, answer


def _fetch(target: Target, operation: Operation, headers: Mapping[str, str], deadline: Deadline) -> Answer:
    return read(lambda timeouts: call(operation, target, timeouts, headers=headers), target, deadline)


def _parse(target: Target, answer: Answer) -> Policies:
    try:
        return rules.parse_xml(answer.content.decode("utf-8-sig"))
    except ValueError as error:
        raise build_unreadable(target, str(error)) from error


def send(
    operation: Operation,
    target: Target,
    policies: Policies,
    headers: Mapping[str, str],
    deadline: Deadline,
    **given: Any,
) -> Answer:
    """Set all access policies of a resource, once."""
    body = xml.build_document(build_policies(policies))
    return call(operation, target, write_timeouts(deadline), headers=headers, body=body, **given)


def build_policies(policies: Policies) -> str:
    """Return the body that sets access policies."""
    return f"<SignedIdentifiers>{''.join(_build_policy(name, policies[name]) for name in policies)}</SignedIdentifiers>"


def _build_policy(name: str, policy: Any) -> str:
    given = {tag: rules.canonicalize_time(policy.get(field)) for field, tag in rules.FIELDS.items()}
    fields = "".join(f"<{tag}>{xml.escape(value)}</{tag}>" for tag, value in given.items() if value)
    access = f"<AccessPolicy>{fields}</AccessPolicy>" if fields else ""
    return f"<SignedIdentifier><Id>{xml.escape(name)}</Id>{access}</SignedIdentifier>"
