"""Tell people who holds the lock that is waited for, and at which place in the queue."""

import math
from collections.abc import Callable

from azguard.accounts.target import Target
from azguard.errors import AzguardError, GaveUp
from azguard.leases import state as lease_state
from azguard.leases.state import LeaseState
from azguard.locks.place import QueuePlace
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.requests.deadline import Deadline
from azguard.times import span

# A long wait is reported again after this time.
_REMINDER_SECONDS = 60.0
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


class WaitReporter:
    """Tells people who holds the lock that is waited for."""

    def __init__(
        self, request: LockRequest, slots: list[Target], settings: AcquireSettings, deadline: Deadline
    ) -> None:
        self._deadline = deadline
        self._request = request
        self._slots = slots
        self._settings = settings
        self._place: QueuePlace | None = None
        #: The lock as it was looked at last, apart from the queue; None if it has several slots.
        self.seen: LeaseState | None = None
        self._told: list[str] = []
        self._told_at: float | None = None
        self._told_place: int | None = None

    def see(self, place: QueuePlace | None) -> None:
        """Take note of our place in the queue; None where there is none."""
        self._place = place

    def ask(self, patience: Callable[[], Deadline]) -> bool:
        """Find out who holds the lock, unless that is known and our place is the same; return whether it was done.

        What is known is good for a minute.
        """
        now = self._settings.now()
        number = None if self._place is None else self._place.number
        is_recent = self._told_at is not None and now - self._told_at < _REMINDER_SECONDS
        if is_recent and number == self._told_place:
            return False
        self._told = self._describe_holders(patience)
        self._told_at = now
        self._told_place = number
        return True

    def note_readers(self, count: int) -> None:
        """Take note that so many readers are still under the lock, which is held already."""
        words = "one reader is" if count == 1 else f"{count} readers are"
        line = f"{words} under {self._request.target}, and no new one comes in"
        if self._told != [line]:
            self._told = [line]
            self._told_at = self._settings.now()
            self._told_place = None
            self.tell()

    def tell(self) -> None:
        """Say who holds the lock, and our place in the queue."""
        place = "" if self._told_place is None else f"{format_place(self._told_place)} in the queue; "
        for line in self._told:
            left = f"; {span(math.ceil(self._deadline.remaining))} left to wait"
            self._settings.say(f"waiting for {self._request.target.address}: {place}{line}{left}")

    def build_gave_up(self, seconds: float) -> GaveUp:
        """Return the error for a lock that was still held after so many seconds."""
        waited = f" after {seconds:g} s" if seconds else ""
        return GaveUp(
            f"{self._request.target.address} is held by others{waited}; the command was not run",
            address=str(self._request.target.address),
            detail=tuple(self._told),
            reason="lock_busy",
        )

    def _describe_holders(self, patience: Callable[[], Deadline]) -> list[str]:
        seen = None if self._place is None else self._place.seen
        if seen is None or seen.lock is None or len(self._slots) > 1:
            limit = patience()
            return [self._look_for_holder(slot, limit) for slot in self._slots]
        line = _describe_holder(self._request.target, seen.lock)
        waiting = 0 if self._place is None else self._place.waiting
        if seen.lock.free and waiting:
            line = f"{self._request.target} is free, and {waiting} {'waits' if waiting == 1 else 'wait'} for it already"
        return [line]

    def _look_for_holder(self, slot: Target, patience: Deadline) -> str:
        try:
            state = lease_state.look(slot, patience)
        except AzguardError as error:
            return error.message
        self.seen = state if len(self._slots) == 1 else None
        return _describe_holder(slot, state)


def format_place(number: int) -> str:
    """Return a place in words: 1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def _describe_holder(slot: Target, state: LeaseState) -> str:
    if state.free:
        return f"{slot} is free now"
    holder = state.describe_holder()
    return f"{slot} is leased, and no record says to whom" if holder is None else f"{slot} is held by {holder}"
