"""Acquire a lock: a lease on its blob, which is made if need be, and then the owner's record and the fence on it.

Waiters are served in the order in which they came, by the tickets of ``queue``. Where the caller may not list the
container, or does not want to be served in order, the lock is simply asked for again and again.
"""

import math
from collections.abc import Callable

from azguard.accounts.account import Target
from azguard.errors import (
    AzguardError,
    Forbidden,
    GaveUp,
    LoginFailed,
    NotFound,
    OutcomeUnknown,
    Unauthenticated,
    Unavailable,
)
from azguard.leases import state as lease_state
from azguard.leases.state import LeaseState
from azguard.locks import lock_blobs, log, queue
from azguard.locks.held_lock import HeldLock, OverdueLock
from azguard.locks.lock_blobs import LEAST_SECONDS, AcquireSettings, LockRequest, RequestTime
from azguard.locks.readers import Draining, ReaderLease
from azguard.locks.slot_leases import SlotLeases, explain_not_acquired
from azguard.locks.waiter import QueuePlace
from azguard.requests import trace
from azguard.requests.calls import ServiceClock
from azguard.requests.deadline import Deadline
from azguard.times import say_count, span
from azguard.wire import client

# A long wait is reported again after this time.
_REMINDER_SECONDS = 60.0
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
# The shortest and the longest pause between two attempts on a busy lock without a queue: a release is noticed within a
# second, mostly within half a second.
_UNQUEUED_POLL_SECONDS = (0.25, 1.0)


class LockAcquisition:
    """The acquisition of one lock: asks until the lock is held or the time for waiting is over.

    Raises, from ``run``:
        GaveUp: it is busy, and the time for waiting is over.
        Changed: a run with a higher sequence number has held it.
        NotFound: there is no lock blob, and none may be made.
        UsageError: its other holders use it with another number of slots.
        Unavailable: the service does not answer, or so slowly that the lease would end.
    """

    def __init__(
        self,
        request: LockRequest,
        settings: AcquireSettings,
        deadline: Deadline,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._request = request
        #: Raises an error if it is of no more use to wait.
        self._check = check
        self._settings = settings
        self._deadline = deadline
        self._time = RequestTime(deadline, settings.patience.seconds)
        self._leases = SlotLeases(request, settings, self._time)
        self._shared = ReaderLease(request, settings, self._time)
        #: The lock that is held while its readers have not ended; None if none is.
        self._draining: Draining | None = None
        #: Our place in the queue; None where there is no queue for us.
        self._place: QueuePlace | None = None
        #: Why there is no queue for us, until that is said.
        self._obstacle: str | None = queue.find_obstacle(request.target) if settings.is_fair else None
        clock = ServiceClock(settings.now)
        if settings.is_fair and self._obstacle is None:
            self._place = QueuePlace(request, settings, self._time, clock)
        #: How long the service may still be silent; None while it answers.
        self._silence: Deadline | None = None
        self._overdue = OverdueLock(request.target, clock, settings.say)
        self._reporter = WaitReporter(request, self._leases.slots, settings, deadline)

    def run(self) -> HeldLock:
        try:
            while (held := self._attempt()) is None:
                self._check()
                self._wait()
            self._leave_queue()
        except BaseException:
            self._leases.release()
            self._shared.release()
            self._leave_queue()
            self._note_given_up()
            raise
        trace.note("held", held.target, lease=held.lease_id, fence=held.fence, seconds=held.seconds)
        return held

    def _note_given_up(self) -> None:
        """Add to the history that the lock was held only to wait for the readers inside."""
        draining = self._draining
        if draining is None or not draining.readers or draining.held.record is None or not self._settings.keeps_log:
            return
        seconds = self._settings.now() - draining.began_at
        line = log.build_given_up(draining.held.target, draining.held.record, seconds)
        log.append(self._request.target, line, self._settings.say)

    def _attempt(self) -> HeldLock | None:
        """Look or ask once.

        Once the service has answered, it may be silent as long as other holders would be waited for.
        """
        before = self._silence
        silence = before or self._time.start_in_any_case(self._settings.patience.seconds)
        self._silence = None
        try:
            if self._draining is None:
                held = self._ask_plainly() if self._place is None else self._ask_in_order(self._place)
            else:
                held = self._draining.held
            return None if held is None else self._wait_for_readers(held)
        except (Unavailable, OutcomeUnknown) as error:
            self._silence = silence
            # One lost answer is no silence yet, however long it was waited for, unless the time is over.
            is_silent = before is not None and silence.passed and (self._deadline.passed or not self._is_answered)
            if is_silent or self._time.left <= max(LEAST_SECONDS, self._asked_seconds):
                raise explain_not_acquired(error) from error
            return None

    @property
    def _asked_seconds(self) -> float:
        return client.find_pause_seconds(self._request.target.endpoint)

    @property
    def _is_answered(self) -> bool:
        return self._leases.is_answered or (self._place is not None and self._place.seen is not None)

    def _ask_plainly(self) -> HeldLock | None:
        """Ask for the lock, without regard to other waiters."""
        if self._request.is_shared:
            raise Forbidden(
                f"a reader of {self._request.target} needs the right to list the container",
                str(self._request.target.address),
                detail=() if self._obstacle is None else (self._obstacle,),
                reason="lock_shared_without_queue",
            )
        if self._request.sequence is not None:
            self._check_sequence()
        return self._leases.ask_for_each()

    def _check_sequence(self) -> None:
        """Read the lock before it is asked for, so that a run that is superseded never waits."""
        target = self._request.target
        try:
            found = lease_state.look(target, self._time.start())
        except NotFound:
            return
        lock_blobs.check_sequence(target, found.metadata, self._request.sequence)

    def _ask_in_order(self, place: QueuePlace) -> HeldLock | None:
        """Ask for the lock if no waiter is ahead of us, else take a place in the queue and keep it."""
        try:
            is_new = place.look_if_due()
        except LoginFailed:
            raise  # The request for the lease would have no other.
        except (Forbidden, Unauthenticated) as error:
            # What the caller may do at all, the request for the lease shows.
            self._place = None
            self._obstacle = error.message
            return self._ask_plainly()
        place.keep()
        seen = place.seen
        if seen is not None and seen.lock is not None:
            lock_blobs.check_sequence(self._request.target, seen.lock.metadata, self._request.sequence)
        # A listing that was made just now tells as much as a request that is refused.
        may_be_free = not is_new or self._request.slots > 1 or place.is_lock_free
        if self._request.is_shared:
            held = self._shared.ask(seen) if place.may_ask and seen is not None and place.is_lock_free else None
            if held is not None:
                return held
        elif self._leases.is_perhaps_held or (place.may_ask and may_be_free):
            held = self._leases.ask_for_each(place.known, is_missing=is_new and seen is not None and seen.lock is None)
            if held is not None:
                return held
        if not self._deadline.passed:
            self._take(place)
        return None

    def _wait_for_readers(self, held: HeldLock) -> HeldLock | None:
        """Return a lock that was granted, once its readers have left; a lock that never had readers needs no look."""
        if held.is_shared:
            return held
        if self._draining is None:
            self._draining = Draining(held, self._settings, self._time)
        if not self._draining.may_have_readers(self._place):
            return held
        if self._draining.is_done():
            return self._draining.held
        if self._draining.is_lost:
            self._leases.drop(held.target)
            self._draining = None
        return None

    def _take(self, place: QueuePlace) -> None:
        """Take a place in the queue, or do without one."""
        try:
            place.take()
        except (Forbidden, Unauthenticated) as error:
            self._place = None
            self._obstacle = error.message

    def _wait(self) -> None:
        if self._silence is None and self._draining is not None:
            self._reporter.note_readers(self._draining.readers)
            if self._deadline.passed:
                raise self._reporter.build_gave_up(self._deadline.seconds)
        elif self._silence is None:
            is_news = self._reporter.ask(self._place, self._time.start)
            if self._end_overdue() or self._leases.end_given_up():
                return
            if self._deadline.passed:
                raise self._reporter.build_gave_up(self._deadline.seconds)
            if self._obstacle is not None:
                self._settings.say(f"no place in the queue ({self._obstacle}): others may be served first")
                self._obstacle = None
            if is_news:
                self._reporter.tell()
        is_plain = self._place is None or self._draining is not None
        pause = self._settings.uniform(
            *_UNQUEUED_POLL_SECONDS if is_plain or self._place is None else self._place.pauses
        )
        limit = self._deadline if self._silence is None or self._silence.passed else self._silence
        if (asked := self._asked_seconds) > pause:
            pause, limit = asked, self._time.start_in_any_case(asked)
        limit.pause(min(pause, self._time.left))

    def _end_overdue(self) -> bool:
        """End the lease of a holder whose time is over, if it is our turn; return whether that was done."""
        if self._place is None:
            return self._overdue.end(self._reporter.seen, self._time.start())
        seen = self._place.seen
        if seen is None or self._request.slots > 1 or not self._place.is_first:
            return False
        return self._overdue.end(seen.lock, self._time.start())

    def _leave_queue(self) -> None:
        if self._place is not None:
            self._place.leave()


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

    def ask(self, place: QueuePlace | None, patience: Callable[[], Deadline]) -> bool:
        """Find out who holds the lock, unless that is known and our place is the same; return whether it was done.

        What is known is good for a minute.
        """
        self._place = place
        now = self._settings.now()
        number = None if place is None else place.number
        is_recent = self._told_at is not None and now - self._told_at < _REMINDER_SECONDS
        if is_recent and number == self._told_place:
            return False
        self._told = self._describe_holders(patience)
        self._told_at = now
        self._told_place = number
        return True

    def note_readers(self, number: int) -> None:
        """Take note that so many readers are still under the lock, which is held already."""
        words = "one reader is" if number == 1 else say_count(number, "reader", "is")
        line = f"{words} under {self._request.target}, and no new one comes in"
        if self._told != [line]:
            self._told = [line]
            self._told_at = self._settings.now()
            self._told_place = None
            self.tell()

    def tell(self) -> None:
        if (seconds := math.ceil(self._deadline.remaining)) <= 0:
            return
        place = "" if self._told_place is None else f"{_format_place(self._told_place)} in the queue; "
        for line in self._told:
            left = f"; {span(seconds)} left to wait"
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


def _format_place(number: int) -> str:
    """Return a place in words: 1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def _describe_holder(slot: Target, state: LeaseState) -> str:
    if state.free:
        return f"{slot} is free now"
    holder = state.describe_holder()
    return f"{slot} is leased, and no record says to whom" if holder is None else f"{slot} is held by {holder}"
