"""Locks as operators see them: who holds them, since when, with which fence."""

from collections.abc import Iterator

from azguard.accounts.target import Target
from azguard.errors import NotFound
from azguard.leases import facts, listing, owners
from azguard.leases import state as lease_state
from azguard.leases.facts import LeaseFacts
from azguard.leases.owners import FENCE, SLOTS
from azguard.leases.state import LeaseState
from azguard.locks import lock_blobs
from azguard.requests.deadline import Deadline


def show(target: Target, deadline: Deadline) -> list[LeaseFacts]:
    """Return a lock, or each slot of it that was ever taken.

    Raises:
        NotFound: there is no such lock.
    """
    first = lease_state.look(target, deadline)
    found = [facts.summarize(first)]
    for slot in lock_blobs.list_slots(target, owners.read_number(first.metadata, SLOTS) or 1)[1:]:
        try:
            found.append(facts.summarize(lease_state.look(slot, deadline)))
        except NotFound:
            continue
    return found


def list_locks(container: Target, deadline: Deadline, prefix: str | None) -> Iterator[LeaseFacts]:
    """Yield the locks in a container, in order of name, page by page.

    Those are the blobs that were ever locked, and what is leased now, by Terraform or any other program.
    """
    return map(facts.summarize, filter(_is_lock, listing.list_states(container, deadline, prefix)))


def _is_lock(state: LeaseState) -> bool:
    return not state.free or bool({FENCE, SLOTS} & {key.lower() for key in state.metadata})
