"""Renew a lease until told to stop, and say so when it is lost.

A lease without a term is looked at instead: its holder counts it as lost once it could not do so for as long as a term.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from azguard.accounts.target import Target
from azguard.leases import actions
from azguard.processes import clock
from azguard.requests.calls import describe, send_once
from azguard.requests.service_errors import is_lease_problem, status, translate

if TYPE_CHECKING:
    from azguard.errors import AzguardError
    from azguard.leases.process_leases import ProcessLease
    from azguard.locks.lock_blobs import LockRecord

LATE = "it could not be renewed in time"
# A renewal at a third of the term leaves time for many more before the end.
_PART_OF_TERM = 1 / 3
# The longest time between two renewals. A lease that was broken at once, or whose blob was deleted, lets the next
# holder in, and only a request shows it. A renewal shows as much as a read, and costs as much.
_LOOK_SECONDS = 5.0
# A failed renewal is repeated soon, while the term still runs.
_RETRY_SECONDS = 0.5
# A renewal is a small request; one that takes longer is better sent anew. The SDK's own retries would send the next
# renewal of a 15 s lease after 22 s, past its end.
_CONNECT_SECONDS = 2.0
_ANSWER_SECONDS = 3.0
# Short, because an event waits on a clock that stops while the machine is suspended.
_TICK_SECONDS = 1.0


@dataclass(frozen=True)
class HeldLock:
    """A lock that is held: the blob, the lease, and the fence."""

    target: Target
    lease_id: str
    #: The term of the lease; of one without a term, how long it counts as held after each look.
    seconds: int
    fence: int
    #: When the lease ends, on ``clock.now``.
    ends: float
    #: Whether a ``lock run`` around us holds and renews it.
    inherited: bool = False
    #: Whether it is held by a reader: then the target is a blob of the reader's own.
    is_shared: bool = False
    #: When it was acquired, ISO 8601 by the service's clock, if no record says that.
    since: str | None = None
    #: What the acquisition wrote on the lock; None if another run acquired it.
    record: "LockRecord | None" = None
    #: The note of a lease that has no term; None if this one has.
    note: "ProcessLease | None" = None
    #: Whether another request for its lease was sent, got no answer, and may come after the release.
    may_come_late: bool = False


class Renewer:
    """Renews one lease in a thread of its own.

    ``on_renewal`` is called with the new end of the lease, ``on_loss`` once with the reason, both from that thread.
    The lease counts as lost only when the service says so. A request that fails is sent again; until it succeeds,
    the end told last to ``on_renewal`` stands.
    """

    def __init__(
        self,
        held: HeldLock,
        *,
        on_renewal: Callable[[float], None],
        on_loss: Callable[[str], None],
        tell: Callable[[str], None],
        now: Callable[[], float] = clock.now,
    ) -> None:
        self._held = held
        self._on_renewal = on_renewal
        self._on_loss = on_loss
        self._tell = tell
        self._now = now
        self._period = min(held.seconds * _PART_OF_TERM, _LOOK_SECONDS)
        self._due = held.ends - held.seconds + self._period
        self._wake = threading.Event()
        self._stopped = False
        self._answered = threading.Condition()
        #: How many renewals have been answered, or have failed.
        self._answers = 0
        self._is_lost = False
        #: Why the latest renewal failed; None if it did not.
        self.failure: AzguardError | None = None
        self._thread = threading.Thread(target=self._renew_until_stopped, daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing. Wait until a renewal that is under way is answered, but no longer than its timeouts."""
        self._stopped = True
        self._wake.set()
        self._thread.join(_CONNECT_SECONDS + _ANSWER_SECONDS + 1)

    def renew_now(self, seconds: float) -> None:
        """Renew at once, and wait at most so many seconds for the outcome."""
        with self._answered:
            before = self._answers
            self._due = self._now()
            self._wake.set()
            self._answered.wait_for(lambda: self._answers > before or self._is_lost, seconds)

    def _renew_until_stopped(self) -> None:
        while self._wait_until_due():
            sent_at = self._now()
            sent = send_once(self._renew)
            if self._stopped:
                return
            if sent.error is None:
                self.failure = None
                self._due = sent_at + self._period
                self._on_renewal(sent_at + self._held.seconds)
            elif is_definite(sent.error):
                self._is_lost = True
                self._on_loss(translate(sent.error, self._held.target).message)
                self._count_answer()
                return
            else:
                self.failure = translate(sent.error, self._held.target)
                self._tell(f"lease: not renewed, {describe(sent)}; trying again")
                self._due = self._now() + _RETRY_SECONDS
            self._count_answer()

    def _wait_until_due(self) -> bool:
        while not self._stopped and (left := self._due - self._now()) > 0:
            self._wake.wait(min(left, _TICK_SECONDS))
            self._wake.clear()
        return not self._stopped

    def _renew(self) -> None:
        timeouts = {"connection_timeout": _CONNECT_SECONDS, "read_timeout": _ANSWER_SECONDS}
        actions.renew_once(self._held.target, self._held.lease_id, timeouts)

    def _count_answer(self) -> None:
        with self._answered:
            self._answers += 1
            self._answered.notify_all()


def describe_late(renewers: Iterable[Renewer]) -> tuple[str, ...]:
    """Return why leases were not renewed in time, for people: a line each."""
    failures = [renewer.failure for renewer in renewers if renewer.failure is not None]
    lines = [f"the last renewal failed: {'; '.join((each.message, *each.detail))}" for each in failures]
    return (LATE, *dict.fromkeys(lines))


def is_definite(error: Any) -> bool:
    """Return whether the service said that the lease is not held: broken, gone to another, or the blob deleted."""
    return is_lease_problem(error) or status(error) == HTTPStatus.NOT_FOUND
