"""Lease ids as people give them: a GUID, or ``@held``, the lease that this scope holds."""

import re

from azguard.errors import UsageError

HELD = "@held"
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def resolve_lease_id(asked: str | None, held: str | None) -> str | None:
    """Return the lease id to send; ``@held`` is ``held``, the one this scope holds.

    Raises:
        UsageError: it is empty or no GUID, or nothing is held.
    """
    if asked is None:
        return None
    if asked == HELD:
        if held is None:
            raise UsageError(
                "@held: this scope holds no such lease",
                argument="lease_id",
                reason="lease_not_held_here",
            )
        return held
    return parse_guid(asked, "lease_id")


def is_guid(text: str) -> bool:
    """Return whether the service takes a text for a lease id."""
    return _GUID.fullmatch(text) is not None


def parse_guid(text: str, argument: str) -> str:
    """Return the text if the service takes it for a lease id.

    Raises:
        UsageError: it is empty or no GUID.
    """
    if not text.strip():
        raise UsageError(f"{argument} is empty", argument=argument, reason="lease_id_empty")
    if not is_guid(text):
        raise UsageError(f"{text!r} is not a GUID", argument=argument, reason="lease_id_malformed")
    return text
