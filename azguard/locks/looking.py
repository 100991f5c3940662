"""Locks as operators see them: who holds them, since when, with which fence."""

from collections.abc import Iterator

from azguard import lease_facts, lease_state, leased_blobs, owners
from azguard.account import Target
from azguard.deadline import Deadline
from azguard.errors import NotFound
from azguard.lease_facts import LeaseFacts
from azguard.lease_state import LeaseState
from azguard.locks import lock_blobs
from azguard.owners import FENCE, SLOTS


def show(target: Target, deadline: Deadline) -> list[LeaseFacts]:
    """Return a lock, or each slot of it that was ever taken.

    Raises:
        NotFound: there is no such lock.
    """
    first = lease_state.look(target, deadline)
    found = [lease_facts.facts(first)]
    for slot in lock_blobs.slots(target, owners.number(first.metadata, SLOTS) or 1)[1:]:
        try:
            found.append(lease_facts.facts(lease_state.look(slot, deadline)))
        except NotFound:
            continue
    return found


def listed(container: Target, deadline: Deadline, prefix: str | None) -> Iterator[LeaseFacts]:
    """Yield the locks in a container, in order of name, page by page.

    Those are the blobs that were ever locked, and what is leased now, by Terraform or any other program.
    """
    return map(lease_facts.facts, filter(_is_lock, leased_blobs.states(container, deadline, prefix)))


def _is_lock(state: LeaseState) -> bool:
    return not state.free or bool({FENCE, SLOTS} & {key.lower() for key in state.metadata})
