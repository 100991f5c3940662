"""Release a lease that is ours, and no other's."""

from contextlib import suppress

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import Locked, NotFound
from azguard.leases import actions, owners, state
from azguard.leases.owners import FENCE
from azguard.leases.state import LeaseState
from azguard.requests.deadline import Deadline

BROKEN = "it was broken, and released before its end"


def release(target: Target, lease_id: str, patience: Deadline) -> LeaseState:
    """Release a lease, if it is still held, and return the state in which it was found before.

    To be called when what ran under it has ended: what is refused after the look was not lost before that end. The
    network may have sent the release twice, and another may hold the lock by now.

    Raises:
        Locked, NotFound: it was not held any more when it was looked at: it was lost.
        OutcomeUnknown, Unavailable: it may be held still, and ends by itself.
    """
    # Looked at first: the service releases a broken lease without an error.
    found = state.look(target, patience, lease_id)
    with suppress(Locked, NotFound):
        actions.release(target, Conditions(lease_id=lease_id), patience)
    return found


def was_released(found: LeaseState, fence: int | None, version: str | None = None) -> bool:
    """Return whether a lock that is not held any more was released by its id, and not lost.

    A lease that was released leaves this state, and the next holder raises the fence. A write to what is not leased any
    more leaves this state, too: ``version`` is the one with the holder's record, where that is known.

    Not guaranteed: where it is not known, a lock is called released that was lost, and then written without a lock.
    """
    if found.state != "available" or (version is not None and found.etag != version):
        return False
    return fence is not None and owners.read_number(found.metadata, FENCE) == fence


def find_loss(found: LeaseState) -> str | None:
    """Return why a lock is lost whose lease was found so; None if it was not."""
    return BROKEN if found.state == "breaking" else None
