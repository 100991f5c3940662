"""Acquire a lock: a lease on its blob, which is made if need be, and then the owner's record and the fence on it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from azguard.accounts.target import Target
from azguard.errors import AzguardError, GaveUp, Locked, NotFound, OutcomeUnknown, Unauthenticated, Unavailable
from azguard.leases import actions
from azguard.leases import state as lease_state
from azguard.leases.kept import LeaseRecords
from azguard.leases.owner_records import Version
from azguard.leases.owners import Owner
from azguard.locks import lock_blobs
from azguard.locks.renewal import HeldLock
from azguard.processes import clock
from azguard.requests.calls import CallOutcome, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import is_lease_problem, status, translate

if TYPE_CHECKING:
    from azguard.address import Address

# How often a busy lock is asked for: a release is noticed within a second, mostly within half a second.
_POLL_SECONDS = (0.25, 1.0)
# Who waits long is told again whom for.
_REMINDER_SECONDS = 60.0
_CONNECT_SECONDS = 2.0
# How long one request may go unanswered: several fit into the shortest term.
ANSWER_SECONDS = 3.0
# The record and the fence are written before the first renewal is due.
_PART_OF_TERM = 1 / 3
# How much longer than the wait the requests of an acquisition may take: a short wait is for other holders, and a
# service that is far away needs some round trips all the same.
_ALLOWANCE_SECONDS = 2.0
# No request is given less.
_LEAST_SECONDS = 0.5
# Bounded: a lease that is not released ends by itself.
_PUT_BACK_SECONDS = 2.0


@dataclass(frozen=True)
class LockRequest:
    """A lock to acquire. ``slots`` is how many may hold it at the same time."""

    target: Target
    slots: int = 1


@dataclass(frozen=True)
class AcquireSettings:
    """How to acquire.

    ``seconds`` is the lease's term, and ``patience`` how many seconds the service may fail or be silent.
    """

    owner: Owner
    seconds: int
    create: bool
    patience: float
    records: LeaseRecords
    say: Callable[[str], None]
    tell: Callable[[str], None]
    uniform: Callable[[float, float], float]
    now: Callable[[], float] = clock.now

    def patience_now(self) -> Deadline:
        """Return how long the service may be silent from now on."""
        return Deadline(self.patience, answer_seconds=ANSWER_SECONDS)


class LockAcquisition:
    """The attempt to acquire one lock, until it is held or the time for waiting is over.

    Raises, from ``run``:
        GaveUp: it is busy, and the time for waiting is over.
        NotFound: there is no lock blob, and none may be made.
        UsageError: its other holders take it for one of another number of slots.
        Unavailable: the service does not answer, or so slowly that the lease would end.
    """

    def __init__(self, wanted: LockRequest, settings: AcquireSettings, deadline: Deadline) -> None:
        self._wanted, self._settings, self._deadline = wanted, settings, deadline
        self._slots = lock_blobs.list_slots(wanted.target, wanted.slots)
        # One id for each slot until it is released, so that asking again after a lost answer is the same lease.
        self._ids = {slot.address: str(uuid.uuid4()) for slot in self._slots}
        self._asked: dict[Address, Target] = {}
        self._doubtful: set[Address] = set()  # what of it may be ours, as far as is known
        self._agreed = wanted.slots == 1
        self._answered = False  # whether the service ever did
        self._silence: Deadline | None = None
        self._holders = WaitReporter(wanted, self._slots, settings)
        self._without_wait = Deadline(settings.patience + _ALLOWANCE_SECONDS)

    def run(self) -> HeldLock:
        """Return the lock, held."""
        try:
            while (held := self._attempt()) is None:
                self._wait()
            return held
        except BaseException:
            self._put_back()
            raise

    def _attempt(self) -> HeldLock | None:
        """Ask for each slot once. Silence is borne: as long as we would wait anyhow, if the service ever answered."""
        before, silence, self._silence = self._silence, self._silence or self._settings.patience_now(), None
        try:
            return self._round()
        except (Unavailable, OutcomeUnknown) as error:
            self._silence = silence
            # One lost answer is no silence yet, however long it was waited for, unless the time is over.
            is_silent = before is not None and silence.passed and (self._deadline.passed or not self._answered)
            if is_silent or self._left() <= _LEAST_SECONDS:
                raise _explain_not_acquired(error) from error
            return None

    def _left(self) -> float:
        """Return how many seconds requests may still take."""
        if not self._deadline.seconds:
            return self._without_wait.remaining
        return max(0.0, self._deadline.seconds + _ALLOWANCE_SECONDS - self._deadline.elapsed)

    def _patience(self, seconds: float) -> Deadline:
        """Return how long a step of several requests may take from now on."""
        left = max(_LEAST_SECONDS, min(seconds, self._left()))
        return Deadline(left, answer_seconds=min(ANSWER_SECONDS, left), settle_seconds=left)

    def _round(self) -> HeldLock | None:
        if not self._agreed:
            try:
                patience = self._patience(self._settings.patience)
                lock_blobs.agree_on_slots(
                    self._wanted.target, self._wanted.slots, patience, create=self._settings.create
                )
            except Locked:
                return None  # by a holder who has not written the number of slots yet, or never does
            self._agreed = True
        # In an order of one's own, so that those who wait do not all ask for the same slot.
        order = sorted(self._slots, key=lambda slot: self._settings.uniform(0, 1))
        return next((held for slot in order if (held := self._ask(slot)) is not None), None)

    def _ask(self, slot: Target, known: Version | None = None) -> HeldLock | None:
        lease_id, seconds = self._ids[slot.address], self._settings.seconds
        left = max(_LEAST_SECONDS, self._left())
        timeouts = {
            "connection_timeout": min(_CONNECT_SECONDS, left),
            "read_timeout": min(ANSWER_SECONDS, left),
        }
        if slot.address not in self._asked:
            self._settings.records.hold(slot, lease_id, seconds)
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
            return self._granted(slot, sent_at, known)
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
        for _ in range(2):  # the first time may only have made its container
            if (made := lock_blobs.create_lock_blob(slot, self._patience(self._settings.patience))) is not None:
                break
        return self._ask(slot, made) if made is not None else None

    def _granted(self, slot: Target, sent_at: float, known: Version | None) -> HeldLock | None:
        """Write the owner's record and the fence, before the first renewal is due."""
        settings, lease_id = self._settings, self._ids[slot.address]
        patience = self._patience(settings.seconds * _PART_OF_TERM)
        try:
            fence = lock_blobs.write_owner_and_fence(
                slot, lease_id, settings.owner, self._wanted.slots, known, patience
            )
        except (Locked, NotFound):
            # Broken or deleted while we were at it. Another attempt is another lease.
            settings.records.drop(slot, lease_id)
            self._forget(slot)
            return None
        self._put_back(slot)
        if settings.now() > sent_at + settings.seconds * _PART_OF_TERM:
            # Whether the lease outlived this is not known; asked for again, it is whole, and the fence is a new one.
            raise Unavailable(
                f"the answers of {slot.endpoint} take too long for a lease of {settings.seconds} s",
                address=str(slot.address),
                reason="lock_term_too_short",
            )
        return HeldLock(slot, lease_id, settings.seconds, fence, sent_at + settings.seconds)

    def _wait(self) -> None:
        if self._silence is None:
            is_news = self._holders.ask(lambda: self._patience(self._settings.patience))
            if self._deadline.passed:
                raise self._holders.gave_up(self._deadline.seconds)
            if is_news:
                self._holders.tell()
        pause = self._settings.uniform(*_POLL_SECONDS)
        limit = self._deadline if self._silence is None or self._silence.passed else self._silence
        limit.pause(min(pause, self._left()))

    def _put_back(self, but: Target | None = None) -> None:
        """Release whatever was asked for and may be ours, but for one; a refusal says that it is not."""
        time = Deadline(_PUT_BACK_SECONDS, answer_seconds=ANSWER_SECONDS)
        for slot in [each for each in self._asked.values() if each != but]:
            lease_id = self._ids[slot.address]
            is_free = slot.address not in self._doubtful
            if is_free or (not time.passed and actions.give_back(slot, lease_id, time, time.remaining)):
                self._settings.records.drop(slot, lease_id)
            self._forget(slot)

    def _forget(self, slot: Target) -> None:
        """See that asking again is asking for another lease: an id that was released is worth nothing."""
        del self._asked[slot.address]
        self._doubtful.discard(slot.address)
        self._ids[slot.address] = str(uuid.uuid4())


def _explain_not_acquired(error: AzguardError) -> AzguardError:
    """Return what is to be told of a lock that was not acquired: nothing that was asked for is in doubt."""
    if isinstance(error, (Unavailable, Unauthenticated)):
        return error
    return Unavailable(error.message, error.address, detail=error.detail, reason="lock_not_acquired")


class WaitReporter:
    """Who is in the way, for people."""

    def __init__(self, wanted: LockRequest, slots: list[Target], settings: AcquireSettings) -> None:
        self._wanted, self._slots, self._settings = wanted, slots, settings
        self._told: list[str] = []
        self._told_at: float | None = None

    def ask(self, patience: Callable[[], Deadline]) -> bool:
        """Ask who holds the lock, unless that was asked lately; return whether it was asked."""
        now = self._settings.now()
        if self._told_at is not None and now - self._told_at < _REMINDER_SECONDS:
            return False
        limit = patience()
        self._told, self._told_at = [self._described(slot, limit) for slot in self._slots], now
        return True

    def tell(self) -> None:
        """Say who holds the lock."""
        for line in self._told:
            self._settings.say(f"waiting for {self._wanted.target.address}: {line}")

    def gave_up(self, seconds: float) -> GaveUp:
        """Return the error for those who waited in vain."""
        waited = f" after {seconds:g} s" if seconds else ""
        return GaveUp(
            f"{self._wanted.target.address} is held by others{waited}; the command was not run",
            address=str(self._wanted.target.address),
            detail=tuple(self._told),
            reason="lock_busy",
        )

    def _described(self, slot: Target, patience: Deadline) -> str:
        try:
            state = lease_state.look(slot, patience)
        except AzguardError as error:
            return error.message
        if state.free:
            return f"{slot} is free now"
        if state.holder is None:
            return f"{slot} is leased, and no record says to whom"
        return f"{slot} is held by {state.holder}"
