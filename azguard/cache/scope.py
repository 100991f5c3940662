"""Whose reads guard whose writes: two scripts never guard with each other's reads."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from azguard.errors import UsageError

VARIABLE = "AZGUARD_SCOPE"
DEFAULT = "default"
# Enough to tell apart the few boots that the cache of one machine lives through.
_BOOT_CHARACTERS = 8


def find_scope(
    option: str | None,
    environ: Mapping[str, str],
    *,
    session: Callable[[], int | None] | None = None,
    proc: Path = Path("/proc"),
) -> str:
    """Return the scope: the option, else ``AZGUARD_SCOPE``, else the POSIX session, else ``default``.

    A session is named by its leader's pid, start time and boot (``session-4711-98765-1f3a9c02``), so that
    neither a pid nor a reboot makes two sessions one.

    When the leader has exited (a script left behind by a closed terminal), its start time cannot be learnt
    any more. The kernel keeps its number from being given away while the session has members, so every
    process of the session still gets the same name, ``session-4711-leaderless-1f3a9c02``. That differs from
    the name while the leader lived: what was read before it exited no longer guards, and a write is refused
    as never read, which is the safe side. Not guaranteed: two leaderless sessions of one number, one after
    the other within one boot, share a scope. A script that outlives its terminal sets ``AZGUARD_SCOPE``.

    ``session`` tells the session's number, ``proc`` is where the kernel tells about processes.

    Raises:
        UsageError: the option or the variable is given and empty, or has characters that cannot be shown.
    """
    named = find_named(option, environ)
    if named is not None:
        return named
    number = (session or _find_session)()
    if not number:
        # This system has no sessions; or the leader is outside this container (0), where numbers are not unique.
        return DEFAULT
    from azguard.processes import identity

    start = identity.find_start(number, proc) or "leaderless"
    boot = (identity.find_boot(proc) or "")[:_BOOT_CHARACTERS]
    return "-".join(filter(None, ("session", str(number), start, boot)))


def find_named(option: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the scope that the option names, else ``AZGUARD_SCOPE``; None if neither is given.

    Raises:
        UsageError: the one that counts is empty, or has characters that cannot be shown.
    """
    if option is not None:
        return _check(option, "the scope", argument="scope")
    if VARIABLE in environ:
        return _check(environ[VARIABLE], VARIABLE)
    return None


def _check(text: str, where: str, argument: str | None = None) -> str:
    if not text.strip():
        raise UsageError(f"{where} is empty", argument=argument, reason="scope_empty")
    if not text.isprintable():
        raise UsageError(
            f"{where}: {text!r} has characters that cannot be shown",
            argument=argument,
            reason="scope_malformed",
        )
    return text


def _find_session() -> int | None:
    return os.getsid(0) if sys.platform != "win32" else None
