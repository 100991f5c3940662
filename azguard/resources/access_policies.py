"""Access policies: read, compared and replaced.

Those of a table and of a queue have no version in the service. azguard makes an ETag of their content, and compares it
before a write. Nothing keeps others from writing in between.
The SDK's XML is not sent: it would cut the fractions of a second off the times, and lose carriage returns on the way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from azguard.accounts.account import Target
from azguard.documents import policies as rules
from azguard.documents.policies import Policies, PolicyRules
from azguard.errors import OutcomeUnknown
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag, require_version
from azguard.requests.calls import read
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Shown, Written, without_time
from azguard.requests.service_errors import build_unreadable
from azguard.requests.settle import Finding, WriteRequest, send_until_settled

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}


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

    #: The method of the SDK's that reads them.
    reader: Callable[[Target], Callable[..., object]]
    send: Callable[[Target, Policies, Deadline], object]
    rules: PolicyRules

    def get(self, target: Target, deadline: Deadline) -> AccessPolicies:
        """Read the access policies.

        Raises:
            NotFound: there is no such resource.
        """
        policies = _parse(target, _fetch(target, self.reader(target), deadline))
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
            send=lambda: self.send(target, policies, deadline),
            look=lambda _: Finding[object](Verdict.UNKNOWN),
        )
        try:
            settled = send_until_settled(request, deadline)
        except OutcomeUnknown as error:
            raise error.but(reason="acl_outcome_unknown") from error
        return without_time(target, conditions.guard, settled.attempts, rules.compute_etag(policies))


def get_versioned(target: Target, ask: Callable[..., object], deadline: Deadline) -> tuple[VersionedPolicies, Any]:
    """Read access policies whose version the service tells, and return the service's answer too.

    Raises:
        NotFound: there is no such resource.
        Unavailable: something on the way has removed the ETag or the time, or it is no such answer.
    """
    answer = _fetch(target, ask, deadline)
    etag, modified = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    if not etag or not modified:
        raise build_unreadable(target, "it has no ETag, or no Last-Modified")
    found = VersionedPolicies(
        address=str(target.address),
        etag=quote_etag(etag),
        last_modified=parsedate_to_datetime(modified),
        policies=_parse(target, answer),
    )
    return found, answer


def _fetch(target: Target, ask: Callable[..., object], deadline: Deadline) -> Any:
    answers: list[Any] = []

    def once(timeouts: Mapping[str, Any]) -> None:
        try:
            ask(raw_response_hook=lambda response: answers.append(response.http_response), **timeouts)
        except ValueError:
            pass  # a time that the SDK cannot parse; the text of the answer is read instead

    read(once, target, deadline)
    return answers[-1]


def _parse(target: Target, answer: Any) -> Policies:
    try:
        return rules.parse_xml(answer.text())
    except ValueError as error:
        raise build_unreadable(target, str(error)) from error


def replace_body(xml: str) -> Callable[[Any], None]:
    """Return the hook by which a request of the SDK's is sent with this body."""

    def hook(request: Any) -> None:
        request.http_request.headers["Content-Type"] = "application/xml"
        request.http_request.set_bytes_body(f'<?xml version="1.0" encoding="utf-8"?>{xml}'.encode())

    return hook


def build_policies(policies: Policies) -> str:
    """Return the body that sets access policies."""
    return f"<SignedIdentifiers>{''.join(_build_policy(name, policies[name]) for name in policies)}</SignedIdentifiers>"


def _build_policy(name: str, policy: Any) -> str:
    given = {tag: rules.canonicalize_time(policy.get(field)) for field, tag in rules.FIELDS.items()}
    fields = "".join(f"<{tag}>{escape(value)}</{tag}>" for tag, value in given.items() if value)
    access = f"<AccessPolicy>{fields}</AccessPolicy>" if fields else ""
    return f"<SignedIdentifier><Id>{escape(name)}</Id>{access}</SignedIdentifier>"


def escape(text: str) -> str:
    """Return a text as it stands in XML, its carriage returns included."""
    return "".join(_ESCAPES.get(character, character) for character in text)
