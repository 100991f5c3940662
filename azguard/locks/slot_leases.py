"""Ask for the leases of a lock's slots, and write the holder's record under the one that is granted."""

import uuid
from collections import Counter
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Locked, NotFound, OutcomeUnknown, Unauthenticated, Unavailable
from azguard.leases import actions, recorded
from azguard.leases.kinds import kind_of
from azguard.leases.owner_records import Version
from azguard.leases.owners import SLOTS, read_number
from azguard.locks import lock_blobs, own_lease
from azguard.locks.renewal import HeldLock
from azguard.locks.request_time import RequestTime
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.requests.calls import CallOutcome, describe, send_once
from azguard.requests.service_errors import is_lease_problem, status, translate

if TYPE_CHECKING:
    from azguard.address import Address
    from azguard.leases.process_leases import ProcessLease
    from azguard.requests.deadline import Deadline

# The record and the fence are written before the first renewal is due.
_PART_OF_TERM = 1 / 3
# Bounded: a lease that is not released expires on its own.
_RELEASE_SECONDS = 2.0
# How often a waiter looks for leases that came late for its scope: each ends by itself within a minute.
_LATE_SECONDS = 5.0


class SlotLeases:
    """The leases that one acquisition asks for, one for each slot at most."""

    def __init__(self, request: LockRequest, settings: AcquireSettings, time: RequestTime) -> None:
        self._request = request
        self._settings = settings
        self._time = time
        self.slots = lock_blobs.list_slots(request.target, request.slots)
        # One id for each slot until it is released, so that asking again after a lost answer is the same lease.
        self._ids = {slot.address: str(uuid.uuid4()) for slot in self.slots}
        self._asked: dict[Address, Target] = {}
        #: The notes of those that have no term.
        self._notes: dict[Address, ProcessLease] = {}
        #: Those of the slots asked for whose lease may be ours, as far as is known.
        self._doubtful: set[Address] = set()
        #: How many requests for each of them got no answer, and may come late.
        self._unanswered: Counter[Address] = Counter()
        #: Those of them that were granted by an answer, and those whose record was written then.
        self._granted: set[Address] = set()
        self._recorded: set[Address] = set()
        #: When it was last looked for leases that came late for this scope, by the clock of the settings.
        self._looked_at: float | None = None
        #: Those of them whose record was sent under that lease and may come late.
        self._late: set[Address] = set()
        #: Whether the lock is known to have the number of slots that was asked for.
        self._agreed = request.slots == 1
        #: Whether the service ever answered.
        self.is_answered = False

    @property
    def is_perhaps_held(self) -> bool:
        """Return whether a lease may be ours that has not led to a lock that is held, because answers were lost."""
        return bool(self._doubtful)

    def ask_for_each(self, known: Version | None = None, *, is_missing: bool = False) -> HeldLock | None:
        """Ask for each slot once and return the one that is granted.

        ``known`` is the version of the lock's own blob, if that is known; ``is_missing`` says that there is none.

        Raises:
            NotFound: there is no lock blob, and none may be made.
            UsageError: its other holders use it with another number of slots.
            Changed: a run with a higher sequence number has held it.
            Unavailable, OutcomeUnknown: the service does not answer, or so slowly that the lease would end.
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
        for slot in [each for each in self._asked.values() if each != keep]:
            lease_id = self._ids[slot.address]
            is_free = slot.address not in self._doubtful
            if is_free or (not time.passed and self._give_back(slot, time)):
                self._forget_lease(slot)
                self._close_note(slot)
            elif self._unanswered[slot.address]:
                seconds = self._settings.seconds if kind_of(slot).finite else None
                self._settings.records.give_up(slot, lease_id, seconds)
                self._close_note(slot)
            self._choose_new_id(slot)

    def _give_back(self, slot: Target, time: "Deadline") -> bool:
        """Release a lease that may be ours; return whether it is known not to be held."""
        lease_id = self._ids[slot.address]
        if slot.address in self._recorded:
            return own_lease.give_back(slot, lease_id, self._settings.records, time)
        # That it is refused proves nothing while a request for it may come.
        is_answered = slot.address in self._granted or not self._unanswered[slot.address]
        return actions.give_back(slot, lease_id, time, time.remaining, was_acquired=is_answered)

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
        lease_id = self._ids[slot.address]
        seconds = self._settings.seconds
        timeouts = self._time.timeouts()
        if slot.address not in self._asked:
            self._note(slot, lease_id)
            self._asked[slot.address] = slot
        was_doubtful = slot.address in self._doubtful
        self._doubtful.add(slot.address)
        sent_at = self._settings.now()
        try:
            sent = send_once(lambda: actions.acquire_once(slot, lease_id, seconds, timeouts))
        except BaseException:
            self._note_late(slot)  # Interrupted, it may be under way still, and come after the release.
            raise
        self.is_answered = self.is_answered or sent.outcome in (CallOutcome.COMMITTED, CallOutcome.REFUSED)
        if sent.outcome in (CallOutcome.REFUSED, CallOutcome.NOT_SENT) and not was_doubtful:
            self._doubtful.remove(slot.address)
        if sent.outcome is CallOutcome.IN_DOUBT:
            self._note_late(slot)
        error: Any = sent.error
        if error is None:
            self._granted.add(slot.address)
            self._settings.records.confirm(slot, lease_id)
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
        """Write the owner's record and the fence, before the first renewal is due."""
        settings = self._settings
        lease_id = self._ids[slot.address]
        patience = self._time.start(settings.seconds * _PART_OF_TERM)
        try:
            owner = settings.owner.tie_to_lease(lease_id, settings.seconds if kind_of(slot).finite else None)
            record = lock_blobs.write_owner_and_fence(self._request, slot, lease_id, owner, known, patience)
            # What this scope has read of the blob guards a write inside: the content is the same.
            settings.records.record_move(slot, record.moved)
        except (Locked, NotFound):
            # The lease was broken, or the blob deleted, meanwhile. The next attempt asks for another lease.
            self._forget_lease(slot)
            self._close_note(slot)
            self._choose_new_id(slot)
            return None
        except OutcomeUnknown:
            self._late.add(slot.address)
            raise
        self._recorded.add(slot.address)
        if record.moved.attempts > 1:
            self._late.add(slot.address)
        if slot.kind is not Kind.BLOB and slot.address in self._late:
            return self._ask_for_another(slot)
        self.release(keep=slot)
        self._check_time(slot, sent_at)
        return HeldLock(
            target=slot,
            lease_id=lease_id,
            seconds=settings.seconds,
            fence=record.fence,
            ends=sent_at + settings.seconds,
            record=record,
            note=self._notes.pop(slot.address, None),
            may_come_late=self._may_come_late(slot),
        )

    def _check_time(self, slot: Target, sent_at: float) -> None:
        """Refuse a lease that may have ended meanwhile. A new attempt gets a whole term and a new fence."""
        seconds = self._settings.seconds
        if self._settings.now() > sent_at + seconds * _PART_OF_TERM:
            raise Unavailable(
                f"the answers of {slot.endpoint} take too long for a lease of {seconds} s",
                address=str(slot.address),
                reason="lock_term_too_short",
            )

    def _ask_for_another(self, slot: Target) -> HeldLock | None:
        """Ask for the lock under another lease, where the service compares no version.

        A record that comes late could undo what is written next under the lease. Under another one it is refused.

        Raises:
            Unavailable: the lease could not be given back. The next attempt asks for it again.
        """
        time = self._time.start_in_any_case(_RELEASE_SECONDS)
        if not self._give_back(slot, time):
            raise Unavailable(f"no lease on {slot} could be had in time", str(slot.address))
        self._forget_lease(slot)
        self._close_note(slot)
        self._choose_new_id(slot)
        return self._ask_for(slot, None)

    def forget(self, held: HeldLock) -> None:
        """Count a lock as lost: the next attempt asks for another lease."""
        self._forget_lease(held.target)
        self._choose_new_id(held.target)

    def _note(self, slot: Target, lease_id: str) -> None:
        """Note a lease before it is asked for; one without a term is noted as this process's."""
        if kind_of(slot).finite:
            self._settings.records.add(slot, lease_id, self._settings.seconds)
            return
        if self._settings.processes is not None:
            self._notes[slot.address] = self._settings.processes.open(slot, lease_id)
        self._settings.records.add(slot, lease_id, None)

    def _end_abandoned(self, slot: Target) -> None:
        """Release the lease without a term of a process on this machine that has ended."""
        if self._settings.processes is None or kind_of(slot).finite:
            return
        for _ in self._settings.processes.release_abandoned(slot, self._time.start()):
            self._settings.say(f"{slot}: its holder on this machine has ended, and its lease was released")

    def _forget_lease(self, slot: Target) -> None:
        """Forget a lease that is not held any more, unless another request for it may come late."""
        lease_id = self._ids[slot.address]
        if self._may_come_late(slot):
            self._settings.records.give_up(slot, lease_id, self._settings.seconds)
        else:
            self._settings.records.remove(slot, lease_id)

    def _may_come_late(self, slot: Target) -> bool:
        """Return whether a request for a lease that is not held any more may come late.

        A lease that was released, and that no answer had granted, was granted to one of those without an answer.
        """
        came = 0 if slot.address in self._granted else 1
        return self._unanswered[slot.address] > came and kind_of(slot).finite

    def _note_late(self, slot: Target) -> None:
        self._unanswered[slot.address] += 1
        if slot.address in self._notes:
            self._notes[slot.address].may_come_late()

    def _close_note(self, slot: Target) -> None:
        note = self._notes.pop(slot.address, None)
        if note is not None:
            note.close(is_released=True)

    def _choose_new_id(self, slot: Target) -> None:
        """Ask for another lease the next time: an id that was released is worth nothing."""
        del self._asked[slot.address]
        self._doubtful.discard(slot.address)
        self._late.discard(slot.address)
        self._granted.discard(slot.address)
        self._recorded.discard(slot.address)
        del self._unanswered[slot.address]
        self._ids[slot.address] = str(uuid.uuid4())


def explain_not_acquired(error: AzguardError) -> AzguardError:
    """Return the error for a lock that was not acquired; nothing that was asked for is in doubt."""
    if isinstance(error, (Unavailable, Unauthenticated)):
        return error
    return Unavailable(error.message, error.address, detail=error.detail, reason="lock_not_acquired")
