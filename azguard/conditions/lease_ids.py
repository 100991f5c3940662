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
                "--lease-id @held: this scope holds no lease on it",
                hint="name the id itself: --lease-id ID; azguard lease list --held --all-scopes shows what is held",
            )
        return held
    return parse_guid(asked, "--lease-id", "write it as it was printed when acquired")


def parse_guid(text: str, option: str, hint: str) -> str:
    """Return the text if the service takes it for a lease id.

    Raises:
        UsageError: it is empty or no GUID.
    """
    if not text.strip():
        raise UsageError(f"{option} is empty", hint="an unset shell variable looks like this; leave the option out")
    if not _GUID.fullmatch(text):
        raise UsageError(f"{option}: {text!r} is not a GUID", hint=hint)
    return text
