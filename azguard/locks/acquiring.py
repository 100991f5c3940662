"""Acquire a lock: a lease on its blob, which is made if need be, and then the owner's record and the fence on it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from azguard import lease_state, leases, owners
from azguard.account import Target
from azguard.address import Address
from azguard.deadline import Deadline
from azguard.errors import AzguardError, GaveUp, Locked, NotFound
from azguard.locks import clock, lock_blobs
from azguard.locks.keeper import Held
from azguard.owners import Owner
from azguard.service_errors import is_lease_problem, status, translate
from azguard.transmission import Fate, described, send

# How often a busy lock is asked for: a release is noticed within a second, mostly within half a second.
_POLL_SECONDS = (0.25, 1.0)
# Who waits long is told again whom for.
_REMINDER_SECONDS = 60.0
_CONNECT_SECONDS, _ANSWER_SECONDS = 2.0, 5.0
# The record and the fence are written before the first renewal is due.
_PART_OF_TERM = 1 / 3


class Books(Protocol):
    """Where leases are written down, so that one left behind by a crash can be found."""

    def hold(self, target: Target, lease_id: str, seconds: int) -> None:
        """Write down a lease before it is asked for."""

    def confirm(self, target: Target, lease_id: str) -> None:
        """Write down that it was granted."""

    def drop(self, target: Target, lease_id: str) -> None:
        """Strike out a lease that is not held any more."""


@dataclass(frozen=True)
class Wanted:
    """A lock to acquire. ``slots`` is how many may hold it at the same time."""

    target: Target
    slots: int = 1


@dataclass(frozen=True)
class Manner:
    """How to acquire: ``seconds`` is the lease's term, ``patience`` how long silence of the service is put up with."""

    owner: Owner
    seconds: int
    create: bool
    patience: float
    books: Books
    say: Callable[[str], None]
    tell: Callable[[str], None]
    uniform: Callable[[float, float], float]
    now: Callable[[], float] = clock.now


class Acquiring:
    """The attempt to acquire one lock, until it is held or the time for waiting is over.

    Raises, from ``run``:
        GaveUp: it is busy, and the time for waiting is over.
        NotFound: there is no lock blob, and none may be made.
        UsageError: its other holders take it for one of another number of slots.
        Unavailable: the service does not answer.
    """

    def __init__(self, wanted: Wanted, manner: Manner, deadline: Deadline) -> None:
        self._wanted, self._manner, self._deadline = wanted, manner, deadline
        self._slots = lock_blobs.slots(wanted.target, wanted.slots)
        # One id for each slot and for the whole attempt, so that asking again after a lost answer is the same lease.
        self._ids = {slot.address: str(uuid.uuid4()) for slot in self._slots}
        self._asked: dict[Address, Target] = {}  # what may be ours, as far as is known
        self._silence: Deadline | None = None
        self._holders = Holders(wanted, self._slots, manner)

    def run(self) -> Held:
        """Return the lock, held."""
        held = None
        try:
            if self._wanted.slots > 1:
                lock_blobs.agree(self._wanted.target, self._wanted.slots, self._manner.create, self._patience())
            while (held := self._round()) is None:
                self._wait()
            return held
        finally:
            self._put_back(held)

    def _round(self) -> Held | None:
        """Ask for each slot once, in an order of its own, so that those who wait do not all ask for the same."""
        order = sorted(self._slots, key=lambda slot: self._manner.uniform(0, 1))
        return next((held for slot in order if (held := self._ask(slot)) is not None), None)

    def _ask(self, slot: Target, known: lock_blobs.Version | None = None) -> Held | None:
        lease_id, seconds = self._ids[slot.address], self._manner.seconds
        timeouts = {"connection_timeout": _CONNECT_SECONDS, "read_timeout": _ANSWER_SECONDS}
        if slot.address not in self._asked:
            self._manner.books.hold(slot, lease_id, seconds)
            self._asked[slot.address] = slot
        sent_at = self._manner.now()
        sent = send(lambda: leases.acquire_once(slot, lease_id, seconds, timeouts))
        error: Any = sent.error
        if sent.fate in (Fate.COMMITTED, Fate.REFUSED):
            self._silence = None
        if error is None:
            self._manner.books.confirm(slot, lease_id)
            fence = self._stamped(slot, lease_id, known)
            return None if fence is None else Held(slot, lease_id, seconds, fence, sent_at + seconds)
        self._manner.tell(f"lock: {slot}: {described(sent)}")
        if status(error) == 404 and known is None:
            return self._ask_for_new(slot, error)
        if sent.fate is not Fate.REFUSED:
            self._bear(slot, error)
        elif not is_lease_problem(error):
            raise translate(error, slot) from error
        return None

    def _ask_for_new(self, slot: Target, error: BaseException) -> Held | None:
        """Make the lock blob and ask again."""
        if not self._manner.create:
            found = translate(error, slot)
            found.hint = "leave out --no-create, and it is made"
            raise found from error
        for _ in range(2):  # the first time may only have made its container
            if (made := lock_blobs.make(slot, self._patience())) is not None:
                break
        return self._ask(slot, made) if made is not None else None

    def _stamped(self, slot: Target, lease_id: str, known: lock_blobs.Version | None) -> int | None:
        patience = Deadline(self._manner.seconds * _PART_OF_TERM)
        try:
            return lock_blobs.stamp(slot, lease_id, self._manner.owner, self._wanted.slots, known, patience)
        except (Locked, NotFound):
            # Broken or deleted while we were at it. Another attempt is another lease.
            self._manner.books.drop(slot, lease_id)
            del self._asked[slot.address]
            self._ids[slot.address] = str(uuid.uuid4())
            return None

    def _bear(self, slot: Target, error: BaseException) -> None:
        """Put up with silence: as long as we would wait anyhow, if the service ever answered; else for a moment."""
        if self._silence is None:
            self._silence = self._patience()
        if self._silence.passed and (self._holders.met is False or self._deadline.passed):
            raise translate(error, slot) from error

    def _wait(self) -> None:
        if self._silence is None:
            self._holders.tell(self._patience())
            if self._deadline.passed:
                raise self._holders.gave_up(self._deadline.seconds)
        pause = self._manner.uniform(*_POLL_SECONDS)
        limit = self._deadline if self._silence is None else self._silence
        limit.pause(pause)

    def _put_back(self, held: Held | None) -> None:
        """Release whatever was asked for and is not the lock we return; a refusal says that it is not ours."""
        for slot in self._asked.values():
            if held is not None and slot.address == held.target.address:
                continue
            lease_id = self._ids[slot.address]
            if leases.give_back(slot, lease_id, self._deadline):
                self._manner.books.drop(slot, lease_id)

    def _patience(self) -> Deadline:
        return Deadline(self._manner.patience)


class Holders:
    """Who is in the way, for people."""

    def __init__(self, wanted: Wanted, slots: list[Target], manner: Manner) -> None:
        self._wanted, self._slots, self._manner = wanted, slots, manner
        self._told: list[str] = []
        self._told_at = 0.0
        self.met = False

    def tell(self, patience: Deadline) -> None:
        """Say who holds the lock, when that is news or was said long ago."""
        first, self.met = not self.met, True
        now = self._manner.now()
        if not first and now - self._told_at < _REMINDER_SECONDS:
            return
        self._told, self._told_at = [self._described(slot, patience) for slot in self._slots], now
        for line in self._told:
            self._manner.say(f"waiting for {self._wanted.target.address}: {line}")

    def gave_up(self, seconds: float) -> GaveUp:
        """Return the error for those who waited in vain."""
        waited = f" after {seconds:g} s" if seconds else ""
        return GaveUp(
            f"{self._wanted.target.address} is held by others{waited}; the command was not run",
            address=str(self._wanted.target.address),
            detail=tuple(self._told),
            hint="wait longer with --wait 10m, or see azguard lock show --help",
        )

    def _described(self, slot: Target, patience: Deadline) -> str:
        try:
            state = lease_state.look(slot, patience)
        except AzguardError as error:
            return error.message
        owner = owners.owner(state.metadata)
        return f"{slot} is leased, and no record says to whom" if owner is None else f"{slot} is held by {owner}"
