"""Our own ticket in the queue of a lock: make it, keep it alive, delete it.

None of this decides who holds the lock. A ticket that is lost costs the place in the queue, and one that is left behind
holds up the others until its lease ends.
"""

import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError
from azguard.leases import actions, state
from azguard.leases.owners import OWNER, SHARED, TICKET, find_value
from azguard.locks import lock_blobs, queue
from azguard.locks.queue import QueueLook
from azguard.locks.request_time import RequestTime
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import is_lease_problem, status

# The longest time between two renewals: two of them may be lost before the lease ends.
_RENEW_SECONDS = 5.0
# Bounded: a ticket that is not deleted ends by itself.
_DELETE_SECONDS = 5.0
# No more are deleted at once: the waiter that does it must keep its own ticket alive meanwhile.
_MOST_DELETED = 10


class OwnTicket:
    """The ticket of one acquisition. It is lost if its lease ended and another waiter deleted it."""

    def __init__(self, request: LockRequest, settings: AcquireSettings, time: RequestTime) -> None:
        self._request = request
        self._settings = settings
        self._time = time
        #: By which we know our own, however often we have to make one.
        self._waiter = uuid.uuid4().hex
        self._lease_id = str(uuid.uuid4())
        #: The blob asked for last; None if none may be there.
        self._target: Target | None = None
        #: Its version; None if the answer that told it was lost.
        self._etag: str | None = None
        self._is_leased = False
        self._due = 0.0
        #: Whether the service has refused to delete a ticket for want of a permission.
        self._may_not_delete = False
        #: Its number; None while we have none.
        self.number: int | None = None

    def is_own(self, ticket: queue.Ticket) -> bool:
        """Return whether a ticket is ours."""
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
        self._hold(number, made.etag)

    def adopt(self, seen: QueueLook) -> None:
        """Learn from a look what is ours: a ticket whose answer was lost, or that there is none any more."""
        own = [each for each in seen.tickets if self.is_own(each)]
        if self.number is None and own:
            self._target = own[0].target
            self._hold(own[0].number, own[0].etag)
        elif self.number is not None and self.number not in [each.number for each in own]:
            self._settings.tell(f"lock: the ticket {self.number} is gone")
            self._forget()
        for each in own:
            if each.number != self.number:
                self._delete(each.target, each.etag, None)  # One that was made late, by a lost request.

    def keep(self) -> None:
        """Acquire the lease on the ticket, or renew it, if that is due."""
        now = self._settings.now()
        target = self._target
        if self.number is None or target is None or now < self._due:
            return
        ask = actions.renew_once if self._is_leased else self._acquire_once
        sent = send_once(lambda: ask(target, self._lease_id, self._time.timeouts()))
        if sent.error is None:
            self._is_leased = True
            self._due = now + _RENEW_SECONDS
            return
        self._settings.tell(f"lock: ticket {self.number}: {describe(sent)}")
        if is_lease_problem(sent.error) or status(sent.error) == HTTPStatus.NOT_FOUND:
            self._forget()

    def leave(self) -> None:
        """Delete the ticket, so that the next waiter finds none ahead of its own. Raise nothing; it ends by itself."""
        target = self._target
        if target is None:
            return
        deadline = self._time.start_in_any_case(_DELETE_SECONDS)
        if self._etag is None:
            self._etag = self._find_etag(target, deadline)
        # Whether it is leased, or deleted already, is not known after a lost answer, so that all is tried.
        leased, free = self._lease_id, None
        for lease_id in (leased, free, leased) if self._is_leased else (free, leased, free):
            if deadline.passed or self._etag is None or self._delete(target, self._etag, lease_id):
                break
        if self._may_not_delete and self._is_leased:
            # With a broken lease it counts as dead at once.
            send_once(lambda: state.client(target, None).break_lease(0, **self._time.timeouts()))
        self._forget()

    def delete_dead(self, seen: QueueLook) -> None:
        """Delete the tickets whose waiters died, unless one of them has come back to life."""
        for each in [each for each in seen.tickets if not each.is_alive][:_MOST_DELETED]:
            self._delete(each.target, each.etag, None)

    def _hold(self, number: int, etag: str) -> None:
        self.number = number
        self._etag = etag
        self._is_leased = False
        self._due = 0.0

    def _forget(self) -> None:
        self.number = self._target = self._etag = None
        # An id is worth nothing once its lease may have been released.
        self._lease_id = str(uuid.uuid4())
        self._is_leased = False

    def _acquire_once(self, target: Target, lease_id: str, timeouts: Mapping[str, Any]) -> None:
        actions.acquire_once(target, lease_id, queue.TICKET_SECONDS, timeouts)

    def _find_etag(self, target: Target, deadline: Deadline) -> str | None:
        """Return the version of a ticket whose making was interrupted; None if it is not ours."""
        try:
            found = state.look(target, deadline)
        except AzguardError:
            return None
        return found.etag if find_value(found.metadata, TICKET) == self._waiter else None

    def _delete(self, target: Target, etag: str, lease_id: str | None) -> bool:
        """Delete this very version of a ticket; return whether it is certainly gone, or must stay."""
        conditions = Conditions({"If-Match": etag}, lease_id=lease_id)
        client = target.account.blob(target.address)
        sent = send_once(lambda: client.delete_blob(headers=conditions.request_headers, **self._time.timeouts()))
        if sent.error is None:
            return True
        self._settings.tell(f"lock: ticket {target} not deleted: {describe(sent)}")
        self._may_not_delete = status(sent.error) == HTTPStatus.FORBIDDEN
        return sent.outcome is CallOutcome.REFUSED and not is_lease_problem(sent.error)
