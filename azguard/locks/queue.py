"""The queue of a lock: the tickets of its waiters, which are blobs beside it, and what one listing shows of them.

A ticket is a blob ``NAME!0000000007`` beside the lock ``NAME``. Its number is one more than the highest that its waiter
saw, and the service creates it only if there is none: so a waiter that begins to look once another has its ticket comes
after that one. (That is the order of Lamport's bakery.)

Every few seconds a waiter writes to its ticket, and the service notes the time. That is its sign of life. A look shows
which waiters gave none for a while. They have died, however many they are: they are passed over, and the first of the
living deletes their tickets. What time it is, its own ticket tells it, and not the Date of an answer. A lease on the
ticket would tell less: its term is 15 s at least, and how much of it is left cannot be seen. A waiter that leaves a
free lock alone for some seconds is passed over too, and keeps its ticket.

The queue gives the order and nothing else. Who holds the lock is decided by the lease on the lock alone.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import islice

from azguard.accounts.account import Auth, Target, read_sas
from azguard.address import Address, Kind
from azguard.errors import NotFound
from azguard.frozen import frozen
from azguard.leases import owners
from azguard.leases import state as lease_state
from azguard.leases.owners import READER, SHARED, TICKET, Owner
from azguard.leases.state import LeaseState, list_states
from azguard.requests.deadline import Deadline

# Between the lock's name and the rest: mostly it is listed before any letter, digit, dot or dash, so that the lock and
# all its tickets stand on the first page.
_MARK = "!"
_DIGITS = 10
_TICKET = re.compile(rf"[0-9]{{{_DIGITS}}}")
_READER = "reader-"
# A waiter that gave no sign of life for so long is passed over. The service tells times in whole seconds, and the next
# look comes 1.2 s later at most: so it holds up others for less than 15 s, also where answers take half a second.
SILENT_SECONDS = 11.0
# Only after so long its ticket is deleted, so that a waiter that was silent for less keeps its place.
DEAD_SECONDS = 15.0
# Instead of the id of its waiter, where the waiter has left and could not delete it.
LEFT = "left"
# A listing of the prefix shows other locks too. Few waiters need one page.
_PAGE = 50
# What a SAS must allow: read, write, list, delete.
_PERMISSIONS = "rwld"
# The longest name of a blob.
_LONGEST_NAME = 1024


@frozen
class Ticket:
    """The place of a waiter in the queue."""

    target: Target
    number: int
    #: Who waits: an id of its own for each acquisition.
    waiter: str
    is_shared: bool
    etag: str
    owner: Owner | None
    #: When it was made, and when its waiter gave the last sign of life; both by the service's clock.
    since: datetime
    signed_at: datetime
    #: For how long its waiter has given no sign of life; 0 until the time is known.
    silent_seconds: float = 0.0

    @property
    def is_alive(self) -> bool:
        """Return whether its waiter is there, as far as its signs of life tell."""
        return self.waiter != LEFT and self.silent_seconds < SILENT_SECONDS

    @property
    def is_dead(self) -> bool:
        """Return whether its waiter has been silent for so long that the ticket may be deleted."""
        return self.waiter == LEFT or self.silent_seconds >= DEAD_SECONDS


@frozen
class Reader:
    """A holder that reads under a lock, or that has read and left its blob behind."""

    state: LeaseState
    target: Target

    @property
    def is_inside(self) -> bool:
        return not self.state.free


@frozen
class QueueLook:
    """What one listing shows: the lock, who reads under it, and who waits."""

    #: The lock's own blob; None if there is none.
    lock: LeaseState | None
    #: In the order of their numbers.
    tickets: tuple[Ticket, ...]
    readers: tuple[Reader, ...]
    #: The Date of the answer; None if it has none that may be right.
    answered_at: datetime | None

    @property
    def waiters(self) -> list[Ticket]:
        """Return the tickets of the waiters that are there, in order."""
        return [each for each in self.tickets if each.is_alive]

    @property
    def next_number(self) -> int:
        """Return the number of the next ticket: it comes after all that are there, dead ones too."""
        return max((each.number for each in self.tickets), default=0) + 1

    def seen_at(self, moment: datetime | None) -> "QueueLook":
        """Return the same look, with the silence of each waiter counted up to this moment by the service's clock.

        Where the moment is not known, each waiter counts as alive.
        """
        if moment is None:
            return self
        silent = ((each, (moment - each.signed_at).total_seconds()) for each in self.tickets)
        return replace(self, tickets=tuple(replace(each, silent_seconds=seconds) for each, seconds in silent))

    def ahead_of(self, number: int | None) -> list[Ticket]:
        """Return the waiters before a ticket of this number; all of them for None, which is no ticket yet."""
        return [each for each in self.waiters if number is None or each.number < number]


def find_obstacle(lock: Target) -> str | None:
    """Return why no ticket can be kept beside a lock, as far as that is known without a request; None if one can."""
    if lock.kind is not Kind.BLOB:
        return f"beside a {lock.kind} there is no place for one"
    if len(lock.address.name) + len(_MARK) + len(_READER) + 32 > _LONGEST_NAME:
        return "its name is too long"
    if lock.account.auth is not Auth.SAS:
        return None
    known = read_sas(lock.account.secret or "")
    if known.resource == "b":
        return "the SAS is for this blob alone"
    allowed = known.permissions
    missing = "" if allowed is None else "".join(each for each in _PERMISSIONS if each not in allowed)
    return f"the SAS lacks the permissions {missing}" if missing else None


def name_ticket(lock: Target, number: int) -> Target:
    """Return the blob that is the ticket of this number."""
    return _beside(lock, f"{number:0{_DIGITS}d}")


def name_reader(lock: Target, reader: str) -> Target:
    """Return the blob whose lease says that a reader is under a lock."""
    return _beside(lock, _READER + reader)


def is_reader_of(address: str, lock: Target) -> bool:
    """Return whether an address is that of a reader under this lock."""
    return address.startswith(str(name_reader(lock, "").address))


def look(lock: Target, deadline: Deadline) -> QueueLook:
    """Return the state of a lock and its queue, by one listing."""
    own: LeaseState | None = None
    tickets: list[Ticket] = []
    readers: list[Reader] = []
    answered_at: datetime | None = None
    try:
        for suffix, state in _list(lock, deadline):
            answered_at = state.answered_at
            metadata = {key.lower() for key in state.metadata}
            if not suffix:
                own = state
            elif TICKET in metadata and _TICKET.fullmatch(suffix):
                tickets.append(_read_ticket(lock, int(suffix), state))
            elif READER in metadata and suffix.startswith(_READER):
                readers.append(Reader(state, _beside(lock, suffix)))
    except NotFound:
        pass  # There is no container yet: the lock is made with it.
    return QueueLook(own, tuple(sorted(tickets, key=lambda each: each.number)), tuple(readers), answered_at)


def _list(lock: Target, deadline: Deadline) -> Iterable[tuple[str, LeaseState]]:
    """Yield the lock, and what is named after it without the lock's name and the mark.

    The order of a listing proves nothing: an account with a hierarchical namespace has another one. Where a page is
    full, only what is named after the lock is listed to its end.
    """
    container = Target(lock.account, Address(Kind.CONTAINER, (lock.address.container,)))
    start = len(str(Address(Kind.BLOB, (lock.address.container, lock.address.name))))
    page = list(islice(list_states(container, deadline, lock.address.name, _PAGE), _PAGE))
    own = [state for state in page if not state.address[start:]]
    named = [state for state in page if state.address[start:].startswith(_MARK)]
    if len(page) == _PAGE:
        own = own or _look_alone(lock, deadline)
        named = list(list_states(container, deadline, lock.address.name + _MARK))
    yield from (("", state) for state in own)
    yield from ((state.address[start + len(_MARK) :], state) for state in named)


def _look_alone(lock: Target, deadline: Deadline) -> list[LeaseState]:
    """Return the state of a lock; nothing if there is none."""
    try:
        return [lease_state.look(lock, deadline)]
    except NotFound:
        return []


def _read_ticket(lock: Target, number: int, state: LeaseState) -> Ticket:
    return Ticket(
        target=name_ticket(lock, number),
        number=number,
        waiter=owners.find_value(state.metadata, TICKET),
        is_shared=bool(owners.find_value(state.metadata, SHARED)),
        etag=state.etag,
        owner=owners.read_owner(state.metadata),
        since=state.created_at or state.last_modified,
        signed_at=state.last_modified,
    )


def _beside(lock: Target, suffix: str) -> Target:
    return Target(lock.account, Address(Kind.BLOB, (lock.address.container, f"{lock.address.name}{_MARK}{suffix}")))
