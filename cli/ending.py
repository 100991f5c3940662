"""Warn at the start of credentials that end before the work may."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from azguard.accounts.account import Auth
from azguard.accounts.target import Target
from azguard.times import iso, span


def warn(target: Target, seconds: float, tell: Callable[[str], None]) -> None:
    """Warn by ``tell`` if the credential that proves who is asking ends within so many seconds.

    Of a login that is known only when it is asked for its first token, so the warning comes then. This machine's clock
    may be wrong, so the work begins all the same; of what has ended already the service itself says so.
    """
    until = time.time() + seconds
    if target.account.auth is Auth.SAS:
        from azguard.accounts import credentials

        ends = credentials.read_sas(target.account.secret or "").ends
        if ends is not None:
            _warn(tell, "the SAS", ends.timestamp(), until, "make one that is valid for longer")
    elif target.account.auth is Auth.LOGIN:
        target.account.watch_login(lambda ends, reason: _warn_of_token(tell, ends, until, reason))


def _warn_of_token(tell: Callable[[str], None], ends: float, until: float, reason: str) -> None:
    from azguard.cli.hint_table import HINTS  # hundreds of words, for errors and warnings alone

    _warn(tell, "the login's token", ends, until, str(HINTS[reason]))


def _warn(tell: Callable[[str], None], what: str, ends: float, until: float, way_out: str) -> None:
    left = ends - time.time()
    if left > 0 and ends <= until:
        times = f"ends at {_format_time(ends)}, in {span(left)}"
        tell(f"{what} {times}; this may last until {_format_time(until)}; {way_out}")


def _format_time(moment: float) -> str | None:
    return iso(datetime.fromtimestamp(int(moment), UTC))
