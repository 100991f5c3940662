"""Our place in the queue of a lock: how often we look, whether we may ask for the lock, and the ticket that keeps it.

None of this decides who holds the lock. A ticket that is lost costs the place in the queue, and one that is left behind
holds up the others for some seconds.
"""

import uuid
from datetime import datetime
from http import HTTPStatus
from typing import Any

from azguard.accounts.account import Target
from azguard.errors import AzguardError
from azguard.leases import state
from azguard.leases.owners import OWNER, SHARED, TICKET, find_value
from azguard.leases.state import Version
from azguard.locks import lock_blobs, queue
from azguard.locks.lock_blobs import AcquireSettings, LockRequest, RequestTime
from azguard.locks.queue import QueueLook, Ticket
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, CallResult, ServiceClock, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import status
from azguard.wire.call import call
from azguard.wire.operations.blobs import BLOB_DELETE, BLOB_SET_METADATA, BLOB_SET_PROPERTIES

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
# One that is lost is followed by another before the waiter counts as silent.
_SIGN_SECONDS = 4.0
# Until the next one after one that failed.
_AGAIN_SECONDS = 0.5
# Bounded: a ticket that is not deleted ends by itself.
_DELETE_SECONDS = 5.0
_DELETE_ATTEMPTS = 3
# No more are deleted at once: the waiter that does it must give signs of life meanwhile.
_MOST_DELETED = 10


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
    def is_lock_free(self) -> bool:
        """Return whether the lock could be acquired when it was seen last."""
        return self.seen is None or self.seen.lock is None or self.seen.lock.free

    @property
    def known(self) -> Version | None:
        """Return the version of the lock that was seen last; None where it must be read."""
        lock = None if self.seen is None else self.seen.lock
        return None if lock is None or not lock.metadata else lock.version

    @property
    def pauses(self) -> tuple[float, float]:
        """Return the shortest and the longest pause until we ask or look again, in seconds."""
        if not self.is_first or self.seen is None:
            is_soon = self._count_ahead() == 1 or self._free_since is not None
            return _SECOND_SECONDS if is_soon or self._ticket.is_overdue else _LATER_SECONDS
        faster = min(_FASTEST, max(1.0, _FASTER_PER_WAITER * (self.waiting + 1)))
        return _FIRST_SECONDS[0] / faster, _FIRST_SECONDS[1] / faster

    def look_if_due(self) -> bool:
        """Look at the lock and its queue, if that is due; return whether it was."""
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
        self._ticket.keep()

    def leave(self) -> None:
        self._ticket.leave()

    def _learn_time(self, seen: QueueLook) -> None:
        """Ask for the service's time if those ahead of a free lock may be dead, before we have a ticket."""
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
        return not {each.waiter for each in ahead_before} <= {each.waiter for each in self._list_ahead()}

    def _count_ahead(self, *, besides_readers: bool = False) -> int:
        return sum(not (each.is_shared and besides_readers) for each in self._list_ahead())

    def _list_ahead(self) -> list[Ticket]:
        if self.seen is None:
            return []
        return [each for each in self.seen.ahead_of(self._ticket.number) if not self._ticket.is_own(each)]


class OwnTicket:
    """The ticket of one acquisition. It is lost if its waiter was silent for long and another waiter deleted it."""

    def __init__(self, request: LockRequest, settings: AcquireSettings, time: RequestTime, clock: ServiceClock) -> None:
        self._request = request
        self._settings = settings
        self._time = time
        #: Is set by each sign of life.
        self._clock = clock
        #: By which we know our own, however often we have to make one.
        self._waiter = uuid.uuid4().hex
        #: The blob asked for last; None if none may be there.
        self._target: Target | None = None
        #: Its version; None if the answer that told it was lost.
        self._etag: str | None = None
        #: When the next sign of life is due.
        self._due = 0.0
        #: Whether the service has refused to delete a ticket for want of a permission.
        self._may_not_delete = False
        #: Its number; None while we have none.
        self.number: int | None = None

    @property
    def is_known(self) -> bool:
        """Return whether we have a ticket, and know its version."""
        return self.number is not None and self._etag is not None

    @property
    def is_overdue(self) -> bool:
        """Return whether a sign of life is due, or failed."""
        return self.number is not None and (self._etag is None or self._settings.now() >= self._due)

    def is_own(self, ticket: queue.Ticket) -> bool:
        return ticket.waiter == self._waiter

    def take(self, seen: QueueLook) -> None:
        """Make a ticket behind all that were seen; if another waiter has just taken the number, we have none yet.

        Raises:
            OutcomeUnknown, Unavailable: the service does not answer, or fails.
        """
        number = seen.next_number
        self._target = queue.name_ticket(self._request.target, number)
        self._etag = None
        shared = {SHARED: "1"} if self._request.is_shared else {}
        metadata = {TICKET: self._waiter, OWNER: self._settings.owner.as_metadata(), **shared}
        with commits.suppress():
            made = lock_blobs.create_lock_blob(self._target, self._time.start(), metadata)
        if made is None:
            self._target = None
            return
        self.number = number
        self._note(made.etag, made.answered_at)

    def adopt(self, seen: QueueLook) -> None:
        """Learn from a look what is ours: a ticket whose answer was lost, or that there is none any more."""
        own = [each for each in seen.tickets if self.is_own(each)]
        if self.number is None and own:
            self.number = own[0].number
            self._target = own[0].target
            self._due = 0.0
        elif self.number is not None and self.number not in [each.number for each in own]:
            self._settings.tell(f"lock: the ticket {self.number} is gone")
            self.number = self._target = None
        for each in own:
            if each.number == self.number:
                self._etag = each.etag
            else:
                self._delete(each.target, each.etag)  # One that was made late, by a lost request.

    def keep(self) -> None:
        """Give a sign of life, if that is due: write to the ticket, as long as it is the version that we know.

        A write of properties makes no version of the blob where the account keeps versions.
        """
        target, etag = self._target, self._etag
        if self.number is None or target is None or etag is None or self._settings.now() < self._due:
            return
        sent = self._sign(target, etag)
        if sent.answer is not None:
            self._note(*sent.answer)
            return
        self._settings.tell(f"lock: ticket {self.number}: {describe(sent)}")
        self._due = self._settings.now() + _AGAIN_SECONDS
        if sent.outcome is not CallOutcome.NOT_SENT:
            self._etag = None  # The next look tells whether it is another one now.

    def leave(self) -> None:
        """Delete the ticket, so that the next waiter finds none ahead of its own. Raise nothing; it ends by itself."""
        target = self._target
        deadline = self._time.start_in_any_case(_DELETE_SECONDS)
        for _ in range(_DELETE_ATTEMPTS):
            if target is None or deadline.passed:
                break
            etag = self._etag or self._find_etag(target, deadline)
            if etag is None or self._delete(target, etag):
                break
            if self._may_not_delete:
                self._say_left(target, etag)
                break
            self._etag = None  # A sign of life may have arrived meanwhile.
        self.number = self._target = self._etag = None

    def delete_dead(self, seen: QueueLook) -> None:
        """Delete the tickets whose waiters died, unless one of them has come back to life."""
        dead = [each for each in seen.tickets if each.is_dead]
        for each in [] if self._may_not_delete else dead[:_MOST_DELETED]:
            self._delete(each.target, each.etag)

    def _note(self, etag: str, moment: datetime | None) -> None:
        now = self._settings.now()
        self._etag = etag
        self._due = now + _SIGN_SECONDS
        if moment is not None:
            self._clock.set(moment)

    def _sign(self, target: Target, etag: str) -> CallResult[tuple[str, datetime]]:
        given: dict[str, Any] = {"headers": {"If-Match": etag}, "content_type": "application/octet-stream"}

        def send() -> tuple[str, datetime]:
            answer = call(BLOB_SET_PROPERTIES, target, self._time.timeouts(), **given)
            return answer.etag, answer.last_modified

        return send_once(send)

    def _say_left(self, target: Target, etag: str) -> None:
        """Write on a ticket that its waiter has left, so that it counts as dead at once."""
        given: dict[str, Any] = {"headers": {"If-Match": etag}, "metadata": {TICKET: queue.LEFT}}
        send_once(lambda: call(BLOB_SET_METADATA, target, self._time.timeouts(), **given))

    def _find_etag(self, target: Target, deadline: Deadline) -> str | None:
        """Return the version of a ticket that we do not know; None if it is not ours."""
        try:
            found = state.look(target, deadline)
        except AzguardError:
            return None
        return found.etag if find_value(found.metadata, TICKET) == self._waiter else None

    def _delete(self, target: Target, etag: str) -> bool:
        """Delete this very version of a ticket; return whether it is certainly gone."""
        sent = send_once(lambda: call(BLOB_DELETE, target, self._time.timeouts(), headers={"If-Match": etag}))
        if sent.error is None or status(sent.error) == HTTPStatus.NOT_FOUND:
            return True
        self._settings.tell(f"lock: ticket {target} not deleted: {describe(sent)}")
        self._may_not_delete = status(sent.error) == HTTPStatus.FORBIDDEN
        return False
