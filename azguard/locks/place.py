"""Our place in the queue of a lock: what we last saw of it, how often we look, and whether we may ask for the lock."""

from azguard.leases.owner_records import Version
from azguard.locks import queue
from azguard.locks.queue import QueueLook, Ticket
from azguard.locks.request_time import RequestTime
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.locks.ticket import OwnTicket
from azguard.requests.service_clock import ServiceClock

# The first waiter asks for the lock blindly in between: a listing costs more than a request for a lease.
_LOOK_SECONDS = 5.0
# The pauses of the first waiter if it is alone.
_FIRST_SECONDS = (0.3, 1.2)
# It asks more often the more waiters there are, because the others ask less often. All together they make no more
# requests than the same number of waiters without a queue would.
_FASTER_PER_WAITER = 0.53
_FASTEST = 4.2
# The second waiter is the first one soon; the others have time.
_SECOND_SECONDS = (0.45, 1.2)
_LATER_SECONDS = (1.5, 3.0)
# A free lock is left so long to the waiter ahead. One that lives asks for it every 1.2 s, so that three of its requests
# may be lost. One that has died is passed over then, before it counts as silent.
_LEFT_SECONDS = 8.0
# It is left so much longer for each further waiter ahead: those behind the first one come in their order too.
_LEFT_SECONDS_EACH = 3.0


class QueuePlace:
    """Our place in the queue of one lock."""

    def __init__(self, request: LockRequest, settings: AcquireSettings, time: RequestTime, clock: ServiceClock) -> None:
        self._target = request.target
        self._settings = settings
        self._time = time
        self._clock = clock
        self._ticket = OwnTicket(request, settings, time, clock)
        self._is_shared = request.is_shared
        #: What was seen last; None before the first look.
        self.seen: QueueLook | None = None
        self._seen_at = 0.0
        #: Since when the lock has been seen free, in one and the same version, and no waiter ahead has gone; None if it
        #: is held.
        self._free_since: float | None = None

    @property
    def number(self) -> int | None:
        """Return our place in the queue, from 1 on; None while we have none."""
        return None if self._ticket.number is None else self._count_ahead() + 1

    @property
    def waiting(self) -> int:
        """Return how many others wait, as was seen last."""
        return 0 if self.seen is None else sum(not self._ticket.is_own(each) for each in self.seen.waiters)

    @property
    def is_first(self) -> bool:
        """Return whether no waiter is ahead of us; for a reader, no writer."""
        return self.seen is not None and self._count_ahead(besides_readers=self._is_shared) == 0

    @property
    def may_ask(self) -> bool:
        """Return whether it is our turn, or those ahead leave a free lock alone."""
        return self.is_first or self._is_left_alone

    @property
    def is_lock_missing(self) -> bool:
        """Return whether there was no lock blob yet."""
        return self.seen is not None and self.seen.lock is None

    @property
    def is_lock_free(self) -> bool:
        """Return whether the lock could be acquired when it was seen last."""
        return self.seen is None or self.seen.lock is None or self.seen.lock.free

    @property
    def known(self) -> Version | None:
        """Return the version of the lock that was seen last; None where it must be read."""
        lock = None if self.seen is None else self.seen.lock
        return None if lock is None or not lock.metadata else Version(lock.etag, lock.metadata, lock.answered_at)

    @property
    def pauses(self) -> tuple[float, float]:
        """Return the shortest and the longest pause until we ask or look again, in seconds."""
        if not self.is_first or self.seen is None:
            is_soon = self._count_ahead() == 1 or self._free_since is not None
            return _SECOND_SECONDS if is_soon or self._ticket.is_overdue else _LATER_SECONDS
        faster = min(_FASTEST, max(1.0, _FASTER_PER_WAITER * (self.waiting + 1)))
        return _FIRST_SECONDS[0] / faster, _FIRST_SECONDS[1] / faster

    def look_if_due(self) -> bool:
        """Look at the lock and its queue, if that is due; return whether it was.

        Raises:
            Forbidden, Unauthenticated: the caller may not list the container.
            Unavailable: the service does not answer.
        """
        now = self._settings.now()
        is_asking = self.is_first and self._ticket.is_known and not self._is_shared
        if is_asking and now - self._seen_at < _LOOK_SECONDS:
            return False
        before, ahead_before = self.known, self._list_ahead()
        seen = queue.look(self._target, self._time.start())
        self._ticket.adopt(seen)
        self._learn_time(seen)
        # Up to when it was asked for: a sign that was given since is not in it.
        self.seen = seen.seen_at(self._clock.read(now))
        self._seen_at = now
        if not self.is_lock_free or self.known is None:
            self._free_since = None
        elif before is None or before.etag != self.known.etag or self._is_gone(ahead_before):
            # Where one ahead has gone, it may be the turn of another one only now.
            self._free_since = None
        if self._free_since is None and self.is_lock_free and self.known is not None:
            # A look can take seconds: it was free when the answer came, and perhaps not when it was asked for.
            self._free_since = self._settings.now()
        if self.is_first:
            self._ticket.delete_dead(self.seen)
        return True

    def take(self) -> None:
        """Take the place behind all others, unless we have one; see ``OwnTicket.take``."""
        if self._ticket.number is None and self.seen is not None:
            self._ticket.take(self.seen)
            self._ticket.keep()

    def keep(self) -> None:
        """Renew our ticket if that is due."""
        self._ticket.keep()

    def leave(self) -> None:
        """Delete our ticket, if we have one."""
        self._ticket.leave()

    def _learn_time(self, seen: QueueLook) -> None:
        """Ask for the service's time where it matters before we have a ticket: those ahead of a free lock may be dead.

        Raises:
            Unavailable: the service does not answer.
        """
        is_free = seen.lock is None or seen.lock.free
        if is_free and any(not self._ticket.is_own(each) for each in seen.waiters):
            self._clock.learn(self._target.account, self._target.kind, self._time.start())

    @property
    def _is_left_alone(self) -> bool:
        if self._ticket.number is None or self._free_since is None:
            return False
        patience = _LEFT_SECONDS + _LEFT_SECONDS_EACH * (self._count_ahead() - 1)
        return self._seen_at - self._free_since >= patience

    def _is_gone(self, ahead_before: list[Ticket]) -> bool:
        """Return whether one of those who were ahead of us is not any more."""
        return not {each.waiter for each in ahead_before} <= {each.waiter for each in self._list_ahead()}

    def _count_ahead(self, *, besides_readers: bool = False) -> int:
        return sum(not (each.is_shared and besides_readers) for each in self._list_ahead())

    def _list_ahead(self) -> list[Ticket]:
        if self.seen is None:
            return []
        return [each for each in self.seen.ahead_of(self._ticket.number) if not self._ticket.is_own(each)]
