"""Release a lease that is ours, and no other's."""

from contextlib import suppress

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Locked, NotFound
from azguard.leases import actions, owner_records, owners, state
from azguard.leases.owner_records import Version
from azguard.leases.owners import FENCE
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import LeaseState
from azguard.locks.renewal import HeldLock
from azguard.requests import commits
from azguard.requests.deadline import Deadline

# Bounded: most of the time is for the release.
_RECORD_SECONDS = 2.0
BROKEN = "it was broken, and released before its end"


def release(target: Target, lease_id: str, records: LeaseRecords, patience: Deadline) -> LeaseState:
    """Release a lease, if it is still held, and return the state in which it was found before.

    The record of its holder speaks for no lease from then on: the next holder may be a program that leaves none.

    To be called when what ran under it has ended: what is refused after the look was not lost before that end. The
    network may have sent the release twice, and another may hold the lock by now.

    Raises:
        Locked, NotFound: it was not held any more when it was looked at: it was lost.
        OutcomeUnknown, Unavailable: it may be held still, and ends by itself.
    """
    # Looked at first: the service releases a broken lease without an error.
    found = state.look(target, patience, lease_id)
    if find_loss(found) is None:
        _end_record(target, lease_id, found, records, patience)
    with suppress(Locked, NotFound):
        actions.release(target, Conditions(lease_id=lease_id), patience)
    return found


def give_back(target: Target, lease_id: str, records: LeaseRecords, patience: Deadline) -> bool:
    """Release a lock that is not to be held after all, without an error; return whether it is known not to be held."""
    with suppress(AzguardError):
        within = patience.restart(seconds=patience.remaining / 3)
        _end_record(target, lease_id, state.look(target, within, lease_id), records, patience)
    return actions.give_back(target, lease_id, patience, patience.remaining)


def forget(held: HeldLock, records: LeaseRecords) -> None:
    """Forget the lease of a lock that is not held any more, unless a request for it may come late."""
    if held.may_come_late:
        records.give_up(held.target, held.lease_id, held.seconds, is_told=False)
    else:
        records.remove(held.target, held.lease_id)


def _end_record(target: Target, lease_id: str, found: LeaseState, records: LeaseRecords, patience: Deadline) -> None:
    """Let the record speak for no lease any more; it is not worth the release if that fails."""
    if not owner_records.can_carry(target) or owners.is_reader(found.metadata):
        return  # The blob of a reader is deleted.
    within = patience.restart(seconds=min(_RECORD_SECONDS, patience.remaining / 2))
    known = Version(found.etag, found.metadata, found.answered_at)
    with suppress(AzguardError), commits.suppress():
        moved = owner_records.end(target, lease_id, within, known)
        if moved is not None:
            records.record_move(target, moved)


def was_released(found: LeaseState, fence: int | None, version: str | None = None) -> bool:
    """Return whether a lock that is not held any more was released by its id, and not lost.

    A lease that was released leaves this state, and the next holder raises the fence. A write to what is not leased any
    more leaves this state, too: ``version`` is the one with the holder's record, where that is known. Only a release of
    azguard's lets that record speak for no lease.

    Not guaranteed: where it is not known, a lock is called released that was lost, and then written without a lock.
    """
    if found.state != "available" or fence is None or owners.read_number(found.metadata, FENCE) != fence:
        return False
    owner = owners.read_owner(found.metadata)
    is_ended = owner is not None and owner.lease == ""
    return version is None or found.etag == version or is_ended


def find_loss(found: LeaseState) -> str | None:
    """Return why a lock is lost whose lease was found so; None if it was not."""
    return BROKEN if found.state == "breaking" else None
