"""Warn at the start of credentials that end before the work may."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from azguard.account import Auth, Target
from azguard.times import iso, span

if TYPE_CHECKING:
    from azguard.cli.context import Environment


def warn(env: "Environment", target: Target, seconds: float) -> None:
    """Warn once in a run if what proves who is asking ends within so many seconds.

    Of a login that is known only when it is asked for its first token, so the warning comes then. This machine's clock
    may be wrong, so the work begins all the same; of what has ended already the service itself says so.
    """
    until = time.time() + seconds
    if target.account.auth is Auth.SAS:
        from azguard import sas

        ends = sas.read(target.account.secret or "").ends
        if ends is not None:
            _warn(env, "the SAS", ends.timestamp(), until, "make one that is valid for longer")
    elif target.account.auth is Auth.LOGIN:
        target.account.watch_login(lambda ends, way_out: _warn(env, "the login's token", ends, until, way_out))


def _warn(env: "Environment", what: str, ends: float, until: float, way_out: str) -> None:
    left = ends - time.time()
    if left > 0 and ends <= until and not env.warned:
        env.warned.add(what)
        env.out.warn(f"{what} ends at {_shown(ends)}, in {span(left)}; this may last until {_shown(until)}; {way_out}")


def _shown(moment: float) -> str | None:
    return iso(datetime.fromtimestamp(int(moment), UTC))
