"""What ``lease list --held`` shows: the leases this machine remembers, and what is known of them now."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from azguard.accounts.account import Account
from azguard.cache.records import HeldLease
from azguard.cli.context import Environment
from azguard.errors import AzguardError
from azguard.leases import held
from azguard.leases.held import CheckedLease, Standing
from azguard.times import iso

# The list is of what is remembered; the service is asked for no longer than this.
_ASK_SECONDS = 2.0
# A term counts from before the request was sent, and after its end the service may take up to a minute.
_MARGIN = timedelta(seconds=60)
_WHY = {
    Standing.GONE: "what it was on is gone",
    Standing.OVER: "it was released or broken, or another holds it",
}


@dataclass(frozen=True)
class HeldShown:
    """A lease this scope asked for and has not released."""

    address: str
    #: ``held`` or ``expired``, says the service. Where it could not be asked: ``ended`` if the term is over by this
    #: machine's clock, else ``unknown``.
    state: str
    lease_id: str
    #: False where the service's answer was not seen, so that it may or may not be held.
    confirmed: bool
    #: In seconds, or ``infinite``.
    duration: int | str
    since: str
    #: When a finite one ends at the latest if it was not renewed elsewhere.
    until: str | None
    action: str
    scope: str
    account: str


def listed(env: Environment, *, all_scopes: bool) -> Iterator[HeldShown]:
    """Yield the leases that this scope holds, newest first; what is certainly not held any more is forgotten."""
    remembered = list(env.cache.all_held(None if all_scopes else env.scope))
    account = _account(env) if remembered else None
    patience = env.deadline.restarted(seconds=min(_ASK_SECONDS, env.deadline.seconds))
    for known in held.ask(remembered, account, lambda: patience):
        if known.ended:
            env.cache.strike(known.lease)
            env.out.info(f"{known.lease.address}: its lease is forgotten, because {_WHY[known.standing]}")
        else:
            yield _shown(known)


def _account(env: Environment) -> Account | None:
    """Return the account to ask; without one, the list is of what is remembered."""
    try:
        return env.account
    except AzguardError:
        return None


def _shown(known: CheckedLease[HeldLease]) -> HeldShown:
    lease = known.lease
    since = datetime.fromisoformat(lease.time)
    until = None if lease.duration is None else since + timedelta(seconds=lease.duration)
    over = until is not None and until + _MARGIN < datetime.now(UTC)
    return HeldShown(
        address=lease.address,
        state="ended" if over and known.standing is Standing.UNKNOWN else known.standing.value,
        lease_id=lease.lease_id,
        confirmed=lease.confirmed,
        duration=lease.duration or "infinite",
        since=lease.time,
        until=iso(until),
        action=lease.action,
        scope=lease.scope,
        account=lease.account,
    )
