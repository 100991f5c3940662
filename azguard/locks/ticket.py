"""Our own ticket in the queue of a lock: make it, give signs of life, delete it.

None of this decides who holds the lock. A ticket that is lost costs the place in the queue, and one that is left behind
holds up the others for some seconds.
"""

import uuid
from datetime import datetime
from http import HTTPStatus

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError
from azguard.leases import state
from azguard.leases.owners import OWNER, SHARED, TICKET, find_value
from azguard.locks import lock_blobs, queue
from azguard.locks.queue import QueueLook
from azguard.locks.request_time import RequestTime
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, CallResult, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_clock import ServiceClock
from azguard.requests.service_errors import status

# One that is lost is followed by another before the waiter counts as silent.
_SIGN_SECONDS = 4.0
# Until the next one after one that failed.
_AGAIN_SECONDS = 0.5
# Bounded: a ticket that is not deleted ends by itself.
_DELETE_SECONDS = 5.0
_DELETE_ATTEMPTS = 3
# No more are deleted at once: the waiter that does it must give signs of life meanwhile.
_MOST_DELETED = 10


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
        """Take note of a sign of life that was given."""
        now = self._settings.now()
        self._etag = etag
        self._due = now + _SIGN_SECONDS
        if moment is not None:
            self._clock.set(moment)

    def _sign(self, target: Target, etag: str) -> CallResult[tuple[str, datetime]]:
        from azure.storage.blob import ContentSettings

        content = ContentSettings(content_type="application/octet-stream")
        headers = Conditions({"If-Match": etag}).request_headers

        def send() -> tuple[str, datetime]:
            client = target.account.blob(target.address)
            answer = client.set_http_headers(content, headers=headers, **self._time.timeouts())
            return answer["etag"], answer["last_modified"]

        return send_once(send)

    def _say_left(self, target: Target, etag: str) -> None:
        """Write on a ticket that its waiter has left, so that it counts as dead at once."""
        headers = Conditions({"If-Match": etag}).request_headers
        client, left = target.account.blob(target.address), {TICKET: queue.LEFT}
        send_once(lambda: client.set_blob_metadata(left, headers=headers, **self._time.timeouts()))

    def _find_etag(self, target: Target, deadline: Deadline) -> str | None:
        """Return the version of a ticket that we do not know; None if it is not ours."""
        try:
            found = state.look(target, deadline)
        except AzguardError:
            return None
        return found.etag if find_value(found.metadata, TICKET) == self._waiter else None

    def _delete(self, target: Target, etag: str) -> bool:
        """Delete this very version of a ticket; return whether it is certainly gone."""
        headers = Conditions({"If-Match": etag}).request_headers
        client = target.account.blob(target.address)
        sent = send_once(lambda: client.delete_blob(headers=headers, **self._time.timeouts()))
        if sent.error is None or status(sent.error) == HTTPStatus.NOT_FOUND:
            return True
        self._settings.tell(f"lock: ticket {target} not deleted: {describe(sent)}")
        self._may_not_delete = status(sent.error) == HTTPStatus.FORBIDDEN
        return False
