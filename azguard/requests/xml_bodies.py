"""The XML that is sent to the services.

The SDK would cut the fractions of a second off the times of access policies, and leave carriage returns to be lost on
the way, as every reader of XML takes them for line ends.
"""

from collections.abc import Callable
from typing import Any

from azguard.documents import policies as rules
from azguard.documents.policies import Policies

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}


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
