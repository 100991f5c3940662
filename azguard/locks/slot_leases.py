"""Ask for the leases of a lock's slots, and write the holder's record under the one that is granted."""

import uuid
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Changed, Locked, NotFound, OutcomeUnknown, Unauthenticated, Unavailable
from azguard.leases import actions, recorded
from azguard.leases.owners import SLOTS, read_number
from azguard.leases.state import Version, kind_of
from azguard.locks import held_lock, lock_blobs
from azguard.locks.held_lock import HeldLock
from azguard.locks.lock_blobs import AcquireSettings, LockRequest, RequestTime
from azguard.requests.calls import CallOutcome, describe, send_once
from azguard.requests.service_codes import is_lease_problem, status
from azguard.requests.service_errors import translate

if TYPE_CHECKING:
    from azguard.leases.process_leases import ProcessLease
    from azguard.requests.deadline import Deadline

# The record and the fence are written before the first renewal is due.
_PART_OF_TERM = 1 / 3
# Bounded: a lease that is not released expires on its own.
_RELEASE_SECONDS = 2.0
# How often a waiter looks for leases that came late for its scope: each ends by itself within a minute.
_LATE_SECONDS = 5.0


@dataclass
class _SlotLease:
    """The lease that is asked for on one slot. Until it is released, asking again after a lost answer is the same."""

    lease_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    is_asked: bool = False
    #: Whether it may be ours, as far as is known.
    is_doubtful: bool = False
    #: How many requests for it got no answer, and may come late.
    unanswered: int = 0
    #: Whether an answer granted it, and whether the record was written then.
    is_granted: bool = False
    is_recorded: bool = False
    #: Whether the record was sent under it and may come late.
    is_record_late: bool = False
    #: The note of a lease that has no term; None once it is closed or taken.
    note: "ProcessLease | None" = None

    def note_late(self) -> None:
        """Count a request that may come late."""
        self.unanswered += 1
        if self.note is not None:
            self.note.may_come_late()

    def take_note(self) -> "ProcessLease | None":
        """Hand over the note, which is not closed here then."""
        note, self.note = self.note, None
        return note

    def close_note(self) -> None:
        note = self.take_note()
        if note is not None:
            note.close(is_released=True)


class SlotLeases:
    """The leases that one acquisition asks for, one for each slot at most."""

    def __init__(self, request: LockRequest, settings: AcquireSettings, time: RequestTime) -> None:
        self._request = request
        self._settings = settings
        self._time = time
        self.slots = lock_blobs.list_slots(request.target, request.slots)
        self._leases = {slot.address: _SlotLease() for slot in self.slots}
        #: When it was last looked for leases that came late for this scope, by the clock of the settings.
        self._looked_at: float | None = None
        #: Whether the lock is known to have the number of slots that was asked for.
        self._agreed = request.slots == 1
        #: Whether the service ever answered.
        self.is_answered = False

    @property
    def is_perhaps_held(self) -> bool:
        """Return whether a lease may be ours that has not led to a lock that is held, because answers were lost."""
        return any(each.is_doubtful for each in self._leases.values())

    def ask_for_each(self, known: Version | None = None, *, is_missing: bool = False) -> HeldLock | None:
        """Ask for each slot once and return the one that is granted.

        ``known`` is the version of the lock's own blob, if that is known; ``is_missing`` says that there is none.
        """
        if is_missing and self._agreed and self._settings.create:
            return self._make_and_ask(self._request.target)
        if not self._agreed and known is not None and read_number(known.metadata, SLOTS) is not None:
            lock_blobs.check_slots(self._request.target, known.metadata, self._request.slots)
            self._agreed = True
        if not self._agreed:
            try:
                moved = lock_blobs.agree_on_slots(
                    self._request.target, self._request.slots, self._time.start(), create=self._settings.create
                )
                if moved is not None:
                    self._settings.records.record_move(self._request.target, moved)
            except Locked:
                return None  # Its holder has not written the number of slots yet, or never does.
            self._agreed = True
            known = None
        # In random order, so that the waiters do not all ask for the same slot.
        order = sorted(self.slots, key=lambda slot: self._settings.uniform(0, 1))
        first = self._request.target
        asked = (self._ask_for(slot, known if slot == first else None) for slot in order)
        return next((held for held in asked if held is not None), None)

    def release(self, keep: Target | None = None) -> None:
        """Release every lease that was asked for and may be ours, except that of one slot.

        A refusal proves that a lease is not ours.
        """
        time = self._time.start_in_any_case(_RELEASE_SECONDS)
        for slot in self.slots:
            lease = self._leases[slot.address]
            if slot == keep or not lease.is_asked:
                continue
            if not lease.is_doubtful or (not time.passed and self._give_back(slot, time)):
                self._forget_lease(slot)
                lease.close_note()
            elif lease.unanswered:
                seconds = self._settings.seconds if kind_of(slot).finite else None
                self._settings.records.give_up(slot, lease.lease_id, seconds)
                lease.close_note()
            self._leases[slot.address] = _SlotLease()

    def _give_back(self, slot: Target, time: "Deadline") -> bool:
        """Release a lease that may be ours; return whether it is known not to be held."""
        lease = self._leases[slot.address]
        if lease.is_recorded:
            return held_lock.give_back(slot, lease.lease_id, self._settings.records, time)
        # That it is refused proves nothing while a request for it may come.
        is_answered = lease.is_granted or not lease.unanswered
        return actions.give_back(slot, lease.lease_id, time, time.remaining, was_acquired=is_answered)

    def end_given_up(self) -> bool:
        """Release a lease that a request of this scope acquired late; return whether there was one.

        It is looked for every few seconds.
        """
        now = self._settings.now()
        if self._looked_at is not None and now < self._looked_at + _LATE_SECONDS:
            return False
        self._looked_at = now
        records, limit = self._settings.records, self._time.start(_RELEASE_SECONDS)
        found = [slot for slot in self.slots if recorded.release_given_up(slot, records, limit)]
        for slot in found:
            self._settings.say(f"{slot} was leased by an earlier request of this scope that came late: released")
        return bool(found)

    def _ask_for(self, slot: Target, known: Version | None, *, is_new: bool = False) -> HeldLock | None:
        lease = self._leases[slot.address]
        seconds = self._settings.seconds
        timeouts = self._time.timeouts()
        if not lease.is_asked:
            self._note(slot, lease)
        was_doubtful = lease.is_doubtful
        lease.is_doubtful = True
        sent_at = self._settings.now()
        try:
            sent = send_once(lambda: actions.acquire_once(slot, lease.lease_id, seconds, timeouts))
        except BaseException:
            lease.note_late()  # Interrupted, it may be under way still, and come after the release.
            raise
        self.is_answered = self.is_answered or sent.outcome in (CallOutcome.COMMITTED, CallOutcome.REFUSED)
        if sent.outcome in (CallOutcome.REFUSED, CallOutcome.NOT_SENT) and not was_doubtful:
            lease.is_doubtful = False
        if sent.outcome is CallOutcome.IN_DOUBT:
            lease.note_late()
        error: Any = sent.error
        if error is None:
            lease.is_granted = True
            if lease.note is not None:
                lease.note.note_attempts(lease.unanswered + 1)
            self._settings.records.confirm(slot, lease.lease_id)
            if known is not None:
                known = replace(known, answered_at=sent.answer or known.answered_at)
            return self._write_record(slot, sent_at, known)
        self._settings.tell(f"lock: {slot}: {describe(sent)}")
        if status(error) == HTTPStatus.NOT_FOUND and not is_new:
            return self._ask_for_new(slot, error)
        if sent.outcome is CallOutcome.REFUSED and is_lease_problem(error):
            self._end_abandoned(slot)
            return None
        found = translate(error, slot)
        raise (found if sent.outcome is CallOutcome.REFUSED else explain_not_acquired(found)) from error

    def _ask_for_new(self, slot: Target, error: BaseException) -> HeldLock | None:
        """Make the lock blob, if that is wanted, and ask again."""
        if slot.kind is not Kind.BLOB:
            raise translate(error, slot) from error
        if not self._settings.create:
            raise translate(error, slot).but(reason="lock_blob_missing") from error
        return self._make_and_ask(slot)

    def _make_and_ask(self, slot: Target) -> HeldLock | None:
        for _ in range(2):  # The first call may only have created the container.
            if (made := lock_blobs.create_lock_blob(slot, self._time.start())) is not None:
                break
        if made is None:
            return None
        self._settings.records.record_creation(slot, made)
        return self._ask_for(slot, made, is_new=True)

    def _write_record(self, slot: Target, sent_at: float, known: Version | None) -> HeldLock | None:
        settings = self._settings
        lease = self._leases[slot.address]
        patience = self._time.start(settings.seconds * _PART_OF_TERM)
        try:
            owner = settings.owner.tie_to_lease(lease.lease_id, settings.seconds if kind_of(slot).finite else None)
            record = lock_blobs.write_owner_and_fence(self._request, slot, lease.lease_id, owner, known, patience)
            # What this scope has read of the blob guards a write inside: the content is the same.
            settings.records.record_move(slot, record.moved)
        except (Locked, NotFound):
            # The lease was broken, or the blob deleted, meanwhile. The next attempt asks for another lease.
            self.drop(slot)
            return None
        except Changed as error:
            if error.reason == "superseded":
                raise
            # Others wrote between, and there was no time left to write again.
            raise self._build_too_slow(slot) from error
        except OutcomeUnknown:
            lease.is_record_late = True
            raise
        lease.is_recorded = True
        if record.moved.attempts > 1:
            lease.is_record_late = True
        if slot.kind is not Kind.BLOB and lease.is_record_late:
            return self._ask_for_another(slot)
        self.release(keep=slot)
        # A new attempt gets a whole term and a new fence.
        if settings.now() > sent_at + settings.seconds * _PART_OF_TERM:
            raise self._build_too_slow(slot)
        return HeldLock(
            target=slot,
            lease_id=lease.lease_id,
            seconds=settings.seconds,
            fence=record.fence,
            ends=sent_at + settings.seconds,
            record=record,
            note=lease.take_note(),
            may_come_late=self._may_come_late(slot),
        )

    def _build_too_slow(self, slot: Target) -> Unavailable:
        return Unavailable(
            f"the answers of {slot.endpoint} take too long for a lease of {self._settings.seconds} s",
            address=str(slot.address),
            reason="lock_term_too_short",
        )

    def _ask_for_another(self, slot: Target) -> HeldLock | None:
        """Ask for the lock under another lease, where the service compares no version.

        A record that comes late could undo what is written next under the lease. Under another one it is refused.
        """
        time = self._time.start_in_any_case(_RELEASE_SECONDS)
        if not self._give_back(slot, time):
            raise Unavailable(f"no lease on {slot} could be had in time", str(slot.address))
        self.drop(slot)
        return self._ask_for(slot, None)

    def drop(self, slot: Target) -> None:
        """Ask for another lease the next time: an id that was released is worth nothing."""
        self._forget_lease(slot)
        self._leases[slot.address].close_note()
        self._leases[slot.address] = _SlotLease()

    def _note(self, slot: Target, lease: "_SlotLease") -> None:
        """Note a lease before it is asked for; one without a term is noted as this process's."""
        is_finite = kind_of(slot).finite
        if not is_finite and self._settings.processes is not None:
            lease.note = self._settings.processes.open(slot, lease.lease_id)
        self._settings.records.add(slot, lease.lease_id, self._settings.seconds if is_finite else None)
        lease.is_asked = True

    def _end_abandoned(self, slot: Target) -> None:
        """Release the lease without a term of a process on this machine that has ended."""
        if self._settings.processes is None or kind_of(slot).finite:
            return
        for _ in self._settings.processes.release_abandoned(slot, self._time.start()):
            self._settings.say(f"{slot}: its holder on this machine has ended, and its lease was released")

    def _forget_lease(self, slot: Target) -> None:
        """Forget a lease that is not held any more, unless another request for it may come late."""
        lease_id = self._leases[slot.address].lease_id
        if self._may_come_late(slot):
            self._settings.records.give_up(slot, lease_id, self._settings.seconds)
        else:
            self._settings.records.remove(slot, lease_id)

    def _may_come_late(self, slot: Target) -> bool:
        """Return whether a request for a lease that is not held any more may come late.

        A lease that was released, and that no answer had granted, was granted to one of those without an answer.
        """
        lease = self._leases[slot.address]
        came = 0 if lease.is_granted else 1
        return lease.unanswered > came and kind_of(slot).finite


def explain_not_acquired(error: AzguardError) -> AzguardError:
    """Return the error for a lock that was not acquired; nothing that was asked for is in doubt."""
    if isinstance(error, (Unavailable, Unauthenticated)):
        return error
    return Unavailable(error.message, error.address, detail=error.detail, reason="lock_not_acquired")
