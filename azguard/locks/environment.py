"""The locks that a ``lock run`` around us holds: what it puts into its command's environment, and reads there."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from azguard.accounts.target import Target
from azguard.errors import Locked, LockLost, NotFound
from azguard.requests.deadline import Deadline

LOCK = "AZGUARD_LOCK"
LEASE_ID = "AZGUARD_LEASE_ID"
FENCE = "AZGUARD_FENCE"
ENDPOINT = "AZGUARD_LOCK_ENDPOINT"


class OuterLock(NamedTuple):
    """A lock that is held around us."""

    lease_id: str
    fence: int


def export_locks(held: Sequence[tuple[Target, str, int]]) -> dict[str, str]:
    """Return the variables that tell a command its locks: target, lease id and fence of each, a line each."""
    return {
        LOCK: "\n".join(str(target.address) for target, _, _ in held),
        LEASE_ID: "\n".join(lease for _, lease, _ in held),
        FENCE: "\n".join(str(fence) for _, _, fence in held),
        ENDPOINT: "\n".join(target.endpoint for target, _, _ in held),
    }


def find_outer_lock(target: Target, environ: Mapping[str, str]) -> OuterLock | None:
    """Return the lock that a ``lock run`` around us says it holds on a resource."""
    if LOCK not in environ:
        return None
    columns = [environ.get(name, "").split("\n") for name in (LOCK, ENDPOINT, LEASE_ID, FENCE)]
    if len({len(column) for column in columns}) != 1:
        return None
    for address, endpoint, lease, fence in zip(*columns, strict=True):
        if (address, endpoint) == (str(target.address), target.endpoint) and lease and fence.isdecimal():
            return OuterLock(lease, int(fence))
    return None


def confirm(target: Target, outer: OuterLock, patience: Deadline, *, tell: Callable[[str], None], reason: str) -> None:
    """Ask the service whether the ``lock run`` around us still holds a resource.

    Raises:
        LockLost: it does not; ``reason`` says what was not done therefore.
    """
    from azguard.leases import state  # which most runs under a lock do not need

    try:
        state.look(target, patience, outer.lease_id)
    except (Locked, NotFound) as error:
        raise LockLost(
            f"the lock around this command is lost: {error.message}",
            address=str(target.address),
            reason=reason,
        ) from error
    tell(f"lock: {target.address} is held by the lock run around this one")


def find_lease_id(target: Target, environ: Mapping[str, str]) -> str | None:
    """Return the id of the lease that a ``lock run`` around us says it holds on a resource."""
    found = find_outer_lock(target, environ)
    return None if found is None else found.lease_id
