"""Acquire a lock: a lease on its blob, which is made if need be, and then the owner's record and the fence on it."""

import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from azguard.accounts.target import Target
from azguard.errors import AzguardError, Locked, NotFound, OutcomeUnknown, Unauthenticated, Unavailable
from azguard.leases import actions
from azguard.leases.owner_records import Version
from azguard.locks import lock_blobs
from azguard.locks.renewal import HeldLock
from azguard.locks.settings import ANSWER_SECONDS, AcquireSettings, LockRequest
from azguard.locks.waiting import WaitReporter
from azguard.requests.calls import CallOutcome, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import is_lease_problem, status, translate

if TYPE_CHECKING:
    from azguard.address import Address

# The shortest and the longest pause between two attempts on a busy lock: a release is noticed within a second, mostly
# within half a second.
_POLL_SECONDS = (0.25, 1.0)
# Connecting takes milliseconds; a connection that takes longer is better opened anew.
_CONNECT_SECONDS = 2.0
# The record and the fence are written before the first renewal is due.
_PART_OF_TERM = 1 / 3
# How much longer than the wait the requests may take: the wait is for other holders, and a service that is far away
# needs some round trips all the same.
_ALLOWANCE_SECONDS = 2.0
# No request is given less.
_LEAST_SECONDS = 0.5
# Bounded: a lease that is not released expires on its own.
_RELEASE_SECONDS = 2.0


class LockAcquisition:
    """The acquisition of one lock: asks until the lock is held or the time for waiting is over.

    Raises, from ``run``:
        GaveUp: it is busy, and the time for waiting is over.
        NotFound: there is no lock blob, and none may be made.
        UsageError: its other holders use it with another number of slots.
        Unavailable: the service does not answer, or so slowly that the lease would end.
    """

    def __init__(self, request: LockRequest, settings: AcquireSettings, deadline: Deadline) -> None:
        self._request = request
        self._settings = settings
        self._deadline = deadline
        self._slots = lock_blobs.list_slots(request.target, request.slots)
        # One id for each slot until it is released, so that asking again after a lost answer is the same lease.
        self._ids = {slot.address: str(uuid.uuid4()) for slot in self._slots}
        self._asked: dict[Address, Target] = {}
        #: Those of the slots asked for whose lease may be ours, as far as is known.
        self._doubtful: set[Address] = set()
        #: Whether the lock is known to have the number of slots that was asked for.
        self._agreed = request.slots == 1
        #: Whether the service ever answered.
        self._answered = False
        #: How long the service may still be silent; None while it answers.
        self._silence: Deadline | None = None
        self._reporter = WaitReporter(request, self._slots, settings)
        self._without_wait = Deadline(settings.patience + _ALLOWANCE_SECONDS)

    def run(self) -> HeldLock:
        """Return the lock, held."""
        try:
            while (held := self._attempt()) is None:
                self._wait()
            return held
        except BaseException:
            self._release()
            raise

    def _attempt(self) -> HeldLock | None:
        """Ask for each slot once.

        Once the service has answered, it may be silent as long as other holders would be waited for.
        """
        before = self._silence
        silence = before or self._settings.patience_now()
        self._silence = None
        try:
            return self._try_each_slot()
        except (Unavailable, OutcomeUnknown) as error:
            self._silence = silence
            # One lost answer is no silence yet, however long it was waited for, unless the time is over.
            is_silent = before is not None and silence.passed and (self._deadline.passed or not self._answered)
            if is_silent or self._seconds_left <= _LEAST_SECONDS:
                raise _explain_not_acquired(error) from error
            return None

    @property
    def _seconds_left(self) -> float:
        """Return how many seconds requests may still take."""
        if not self._deadline.seconds:
            return self._without_wait.remaining
        return max(0.0, self._deadline.seconds + _ALLOWANCE_SECONDS - self._deadline.elapsed)

    def _start_deadline(self, seconds: float) -> Deadline:
        """Return how long a step of several requests may take from now on."""
        left = max(_LEAST_SECONDS, min(seconds, self._seconds_left))
        return Deadline(left, answer_seconds=min(ANSWER_SECONDS, left), settle_seconds=left)

    def _try_each_slot(self) -> HeldLock | None:
        if not self._agreed:
            try:
                patience = self._start_deadline(self._settings.patience)
                lock_blobs.agree_on_slots(
                    self._request.target, self._request.slots, patience, create=self._settings.create
                )
            except Locked:
                return None  # Its holder has not written the number of slots yet, or never does.
            self._agreed = True
        # In random order, so that the waiters do not all ask for the same slot.
        order = sorted(self._slots, key=lambda slot: self._settings.uniform(0, 1))
        return next((held for slot in order if (held := self._ask_for(slot)) is not None), None)

    def _ask_for(self, slot: Target, known: Version | None = None) -> HeldLock | None:
        lease_id = self._ids[slot.address]
        seconds = self._settings.seconds
        left = max(_LEAST_SECONDS, self._seconds_left)
        timeouts = {
            "connection_timeout": min(_CONNECT_SECONDS, left),
            "read_timeout": min(ANSWER_SECONDS, left),
        }
        if slot.address not in self._asked:
            self._settings.records.add(slot, lease_id, seconds)
            self._asked[slot.address] = slot
        was_doubtful = slot.address in self._doubtful
        self._doubtful.add(slot.address)
        sent_at = self._settings.now()
        sent = send_once(lambda: actions.acquire_once(slot, lease_id, seconds, timeouts))
        self._answered = self._answered or sent.outcome in (CallOutcome.COMMITTED, CallOutcome.REFUSED)
        if sent.outcome in (CallOutcome.REFUSED, CallOutcome.NOT_SENT) and not was_doubtful:
            self._doubtful.remove(slot.address)
        error: Any = sent.error
        if error is None:
            self._settings.records.confirm(slot, lease_id)
            return self._write_record(slot, sent_at, known)
        self._settings.tell(f"lock: {slot}: {describe(sent)}")
        if status(error) == HTTPStatus.NOT_FOUND and known is None:
            return self._ask_for_new(slot, error)
        if sent.outcome is CallOutcome.REFUSED and is_lease_problem(error):
            return None
        found = translate(error, slot)
        raise (found if sent.outcome is CallOutcome.REFUSED else _explain_not_acquired(found)) from error

    def _ask_for_new(self, slot: Target, error: BaseException) -> HeldLock | None:
        """Make the lock blob and ask again."""
        if not self._settings.create:
            raise translate(error, slot).but(reason="lock_blob_missing") from error
        for _ in range(2):  # The first call may only have created the container.
            if (made := lock_blobs.create_lock_blob(slot, self._start_deadline(self._settings.patience))) is not None:
                break
        return self._ask_for(slot, made) if made is not None else None

    def _write_record(self, slot: Target, sent_at: float, known: Version | None) -> HeldLock | None:
        """Write the owner's record and the fence, before the first renewal is due."""
        settings = self._settings
        lease_id = self._ids[slot.address]
        patience = self._start_deadline(settings.seconds * _PART_OF_TERM)
        try:
            fence = lock_blobs.write_owner_and_fence(
                slot, lease_id, settings.owner, self._request.slots, known, patience
            )
        except (Locked, NotFound):
            # The lease was broken, or the blob deleted, meanwhile. The next attempt asks for another lease.
            settings.records.remove(slot, lease_id)
            self._choose_new_id(slot)
            return None
        self._release(keep=slot)
        if settings.now() > sent_at + settings.seconds * _PART_OF_TERM:
            # The lease may have ended meanwhile. A new attempt gets a whole term and a new fence.
            raise Unavailable(
                f"the answers of {slot.endpoint} take too long for a lease of {settings.seconds} s",
                address=str(slot.address),
                reason="lock_term_too_short",
            )
        return HeldLock(
            target=slot,
            lease_id=lease_id,
            seconds=settings.seconds,
            fence=fence,
            ends=sent_at + settings.seconds,
        )

    def _wait(self) -> None:
        if self._silence is None:
            is_news = self._reporter.ask(lambda: self._start_deadline(self._settings.patience))
            if self._deadline.passed:
                raise self._reporter.build_gave_up(self._deadline.seconds)
            if is_news:
                self._reporter.tell()
        pause = self._settings.uniform(*_POLL_SECONDS)
        limit = self._deadline if self._silence is None or self._silence.passed else self._silence
        limit.pause(min(pause, self._seconds_left))

    def _release(self, keep: Target | None = None) -> None:
        """Release every lease that was asked for and may be ours, except that of one slot.

        A refusal proves that a lease is not ours.
        """
        time = Deadline(_RELEASE_SECONDS, answer_seconds=ANSWER_SECONDS)
        for slot in [each for each in self._asked.values() if each != keep]:
            lease_id = self._ids[slot.address]
            is_free = slot.address not in self._doubtful
            if is_free or (not time.passed and actions.give_back(slot, lease_id, time, time.remaining)):
                self._settings.records.remove(slot, lease_id)
            self._choose_new_id(slot)

    def _choose_new_id(self, slot: Target) -> None:
        """Ask for another lease the next time: an id that was released is worth nothing."""
        del self._asked[slot.address]
        self._doubtful.discard(slot.address)
        self._ids[slot.address] = str(uuid.uuid4())


def _explain_not_acquired(error: AzguardError) -> AzguardError:
    """Return the error for a lock that was not acquired; nothing that was asked for is in doubt."""
    if isinstance(error, (Unavailable, Unauthenticated)):
        return error
    return Unavailable(error.message, error.address, detail=error.detail, reason="lock_not_acquired")
