"""Access policies that have no version in the service: those of a table and of a queue.

azguard makes an ETag of their content, and compares it before a write. Nothing keeps others from writing in between.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from azguard.accounts.target import Target
from azguard.documents import policies as rules
from azguard.documents.policies import Policies
from azguard.errors import Changed, OutcomeUnknown
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import build_unreadable
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.requests.verdicts import Verdict
from azguard.requests.written import WriteResult


@dataclass(frozen=True)
class AccessPolicies:
    """Access policies by their id; the ETag is azguard's own, of their content."""

    address: str
    etag: str
    last_modified: None
    policies: Policies


def fetch(target: Target, ask: Callable[..., object], deadline: Deadline) -> AccessPolicies:
    """Read access policies by ``ask``, a method of the SDK's.

    Raises:
        NotFound: there is no such resource.
    """
    answers: list[str] = []

    def keep(response: Any) -> None:
        answers.append(response.http_response.text())

    def once(timeouts: Mapping[str, Any]) -> None:
        try:
            ask(raw_response_hook=keep, **timeouts)
        except ValueError:
            pass  # a time that the SDK cannot parse; the text of the answer is read instead

    read(once, target, deadline)
    policies = parse_answer(target, answers[-1])
    return AccessPolicies(
        address=str(target.address),
        etag=rules.compute_etag(policies),
        last_modified=None,
        policies=policies,
    )


def parse_version(target: Target, headers: Mapping[str, str]) -> tuple[str, datetime]:
    """Return the ETag as it was sent, and the time of the last change, that the service tells beside access policies.

    Raises:
        Unavailable: something on the way has removed one of them.
    """
    etag, modified = headers.get("ETag"), headers.get("Last-Modified")
    if not etag or not modified:
        raise build_unreadable(target, "it has no ETag, or no Last-Modified")
    return etag, parsedate_to_datetime(modified)


def parse_answer(target: Target, text: str) -> Policies:
    """Return the access policies in an answer of the service.

    Raises:
        Unavailable: it is no such answer.
    """
    try:
        return rules.parse_xml(text)
    except ValueError as error:
        raise build_unreadable(target, str(error)) from error


def require_version(expected_etag: str | None, current: AccessPolicies) -> None:
    """Make sure that access policies are those that an ETag is of; None is any.

    Raises:
        Changed: they are others.
    """
    if expected_etag in (None, current.etag):
        return
    raise Changed(
        f"the access policies of {current.address.partition(':')[2]} changed since you read them",
        address=current.address,
        expected_etag=expected_etag,
        current_etag=current.etag,
        reason="acl_changed",
    )


def replace(
    target: Target, policies: Policies, guard: str, send: Callable[[], object], deadline: Deadline
) -> WriteResult:
    """Replace all access policies by ``send``; ``guard`` is the name of what guarded that.

    Raises:
        OutcomeUnknown: the answer was lost. Even the same policies there now do not tell whose they are.
    """
    request = WriteRequest(target=target, send=send, look=lambda _: Finding[object](Verdict.UNKNOWN))
    try:
        settled = send_until_settled(request, deadline)
    except OutcomeUnknown as error:
        raise error.but(reason="acl_outcome_unknown") from error
    return WriteResult(
        address=str(target.address),
        etag=rules.compute_etag(policies),
        last_modified=None,
        guard=guard,
        attempts=settled.attempts,
    )
