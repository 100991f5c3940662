"""A lock that a writer holds already while the readers under it come to their end."""

from dataclasses import replace
from http import HTTPStatus

from azguard.leases import actions
from azguard.locks import queue, readers
from azguard.locks.place import QueuePlace
from azguard.locks.renewal import HeldLock
from azguard.locks.request_time import RequestTime
from azguard.locks.settings import AcquireSettings
from azguard.requests.calls import describe, send_once
from azguard.requests.service_errors import is_lease_problem, status

_RENEW_SECONDS = 5.0


class Draining:
    """The wait of a writer for the readers inside; its lease lets no new one in, and is renewed meanwhile."""

    def __init__(self, held: HeldLock, settings: AcquireSettings, time: RequestTime) -> None:
        self.held = held
        #: Since when, on the clock by which leases end.
        self.began_at = held.ends - held.seconds
        self._settings = settings
        self._time = time
        #: How many readers were inside when it was looked last.
        self.readers = 0
        #: Whether the service said that the lease is not ours any more.
        self.is_lost = False

    def may_have_readers(self, place: QueuePlace | None) -> bool:
        """Return whether the lock ever had readers, by its mark or by what was seen of it."""
        is_marked = self.held.record is not None and self.held.record.is_shared
        seen = None if place is None else place.seen
        return is_marked or (seen is not None and bool(seen.readers))

    def is_done(self) -> bool:
        """Return whether no reader is inside any more, and the lease is still ours.

        Raises:
            Forbidden, Unauthenticated: the caller may not list the container.
            Unavailable: the service does not answer.
        """
        # After the lease was granted, so that a reader that this does not see will see the lease.
        seen = queue.look(self.held.target, self._time.start())
        self.readers = len(seen.readers)
        is_empty = not readers.has_readers(seen, self._time)
        self._renew()
        return is_empty and not self.is_lost and self._settings.now() < self._renewed_at + self.held.seconds / 3

    @property
    def _renewed_at(self) -> float:
        return self.held.ends - self.held.seconds

    def _renew(self) -> None:
        now = self._settings.now()
        if now - self._renewed_at < min(_RENEW_SECONDS, self.held.seconds / 3):
            return
        held = self.held
        sent = send_once(lambda: actions.renew_once(held.target, held.lease_id, self._time.timeouts()))
        if sent.error is None:
            self.held = replace(held, ends=now + held.seconds)
            return
        self._settings.tell(f"lock: {held.target}: {describe(sent)}")
        self.is_lost = is_lease_problem(sent.error) or status(sent.error) == HTTPStatus.NOT_FOUND
