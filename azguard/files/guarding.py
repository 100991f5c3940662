"""Lease, compare, write: how a write of a share or a file is guarded, which the service itself does not do.

The lease keeps out all writers that use REST, and programs that want to open the file for writing over SMB. An ETag
that is unchanged does not prove that none of those has the file open: only the lease does, which is not granted then.

The lease of a file has no end. If its holder is killed, the next azguard on that machine ends it; an operator on
another machine can judge by the record in the metadata whether to break it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, BadRequest, Locked, NotFound, OutcomeUnknown
from azguard.files import handles, temporary
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.resolve import Conditions
from azguard.leases import guard, owner_records, state
from azguard.leases.guard import WRITE_TERM, GuardLease, Term
from azguard.leases.owner_records import Moved
from azguard.leases.owners import OWNER, Owner
from azguard.leases.process_leases import ProcessLease, ProcessLeases
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import Version
from azguard.processes.locked_file import ProcessNotes
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.resources import properties
from azguard.wire.answers import Answer

# Bounded: a record that stays behind says that the lease is held, which anyone can see is not so.
_REMOVE_SECONDS = 3.0
#: The service's code where the metadata have no room for the record: the lease guards without it, too.
NO_ROOM = "MetadataTooLarge"

_Done = TypeVar("_Done", bound=Any)


@frozen
class Guarding:
    """What the lease of a guarded write needs: where it is recorded, and who takes it."""

    records: LeaseRecords
    #: Left in the metadata of a file, whose lease has no end; None leaves none.
    owner: Owner | None
    #: The notes of leases, by which the next azguard ends them if this process is killed.
    processes: ProcessLeases | None = None
    #: The notes of temporary files.
    temporary: ProcessNotes | None = None


@dataclass
class EndedLeases:
    """What was found and ended."""

    #: How the version of the target moved, whose content is the same.
    moves: list[Moved] = field(default_factory=list)
    leases: int = 0


@frozen
class Held:
    """The version that is there while a lease is held on it."""

    lease: GuardLease
    found: Answer
    #: Whether the metadata tell who holds the lease.
    has_note: bool = False
    #: The service's clock when the properties were read; None if its answer did not say.
    answered_at: datetime | None = None
    #: Whether a copy of an earlier request under the lease may come late. It could undo what is written next, and
    #: another version would not prove that ours was written: see ``exclude_late``.
    may_move: bool = False


def find(target: Target, patience: Deadline) -> Answer | None:
    """Return the properties of a path; None if nothing is there, the other type, or a file in delete pending."""
    try:
        return properties.fetch(target, Conditions(), patience)
    except (NotFound, BadRequest, Locked):
        return None


def require_version(target: Target, conditions: Conditions, deadline: Deadline) -> Any | None:
    """Compare the version with the one that the conditions name, and return its properties; None if they name none.

    Not guaranteed: another writer can come between this and the write.
    """
    if conditions.expected_etag is None:
        return None
    found = properties.fetch(target, Conditions(), deadline)
    versions.require_version(target, conditions.expected_etag, found.etag, reason="share_or_file_changed")
    return found


@contextmanager
def hold(
    target: Target, conditions: Conditions, guarding: Guarding, deadline: Deadline, term: Term = WRITE_TERM
) -> Iterator[Held]:
    """Hold a lease on the very version that the conditions name; our own lease of a file tells who holds it."""
    lease_id, records = conditions.lease_id, guarding.records
    with (
        handles.tell_holders(target, deadline),
        guard.hold(target, lease_id, records, deadline, processes=guarding.processes, term=term) as lease,
    ):
        found = properties.fetch(target, Conditions(lease_id=lease.lease_id), deadline)
        held = Held(lease, found, answered_at=found.date)
        versions.require_version(target, conditions.expected_etag, held.found.etag, reason="share_or_file_changed")
        owner = _choose_note(target, held, guarding)
        if owner is None:
            yield held
            return
        before, is_noted = held.found.etag, True
        try:
            held = _leave_note(target, held, owner, deadline)
            is_noted = held.has_note
            yield held
        except BaseException as error:
            if is_noted:
                withdraw(target, held, before, guarding, deadline, error)
            raise


def exclude_late(held: Held, deadline: Deadline) -> Held:
    """Return the version under another id of our lease, so that a late request under the old one is refused."""
    held.lease.change_id(deadline)
    # What came before the change is there, and nothing can come any more.
    found = properties.fetch(held.lease.target, Conditions(lease_id=held.lease.lease_id), deadline)
    return replace(held, found=found, may_move=False)


def _leave_note(target: Target, held: Held, owner: Owner, deadline: Deadline) -> Held:
    """Write on the file who holds its lease, and return that version; the one that was, if there is no room for it."""
    note, before = held.lease.note, held.found.etag
    if note is not None:
        note.begin_record(before)
    try:
        held = _add_record(target, held, owner, deadline)
    except BadRequest as error:
        if error.service_code != NO_ROOM:
            raise
        held.lease.end_record()
        return held
    if held.may_move:
        held = exclude_late(held, deadline)
        note = held.lease.note
    if note is not None:
        note.add_record(before, held.found.etag)
    return held


def finish(target: Target, held: Held | None, done: _Done, deadline: Deadline) -> _Done:
    """Take the record of the lease's holder off what was written, and return the write with the version there then."""
    if held is None or not held.has_note:
        return done
    # The write is done; only its version may not be known.
    unknown = replace(done, etag=None, last_modified=None)
    try:
        with commits.suppress():
            moved = owner_records.remove(target, held.lease.lease_id, deadline.fresh())
        held.lease.end_record()
        if moved is None:
            return unknown
        if max(done.attempts, moved.attempts) > 1 and not held.lease.is_gone:
            # A copy of either could make another version before the release.
            found = exclude_late(held, deadline.fresh()).found
            return replace(done, etag=found.etag, last_modified=found.last_modified)
    except AzguardError:
        return unknown
    return replace(done, etag=moved.after, last_modified=moved.last_modified)


def withdraw(
    target: Target,
    held: Held,
    before: str,
    guarding: Guarding,
    deadline: Deadline,
    error: BaseException | None = None,
) -> Moved | None:
    """Remove the record after a write that failed; return how that moved the version, None if that is not known.

    ``before`` is the ETag before the record was written, ``error`` how the write failed. If the record cannot be
    removed, its note is left.
    """
    lease, moved, patience = held.lease, None, deadline.afterwards(_REMOVE_SECONDS)
    with suppress(AzguardError):
        if not lease.is_gone:
            # What was sent under the lease could come between the look and the removal, and one would undo the other.
            lease.change_id(patience)
            with commits.suppress():
                moved = owner_records.remove(target, lease.lease_id, patience)
            lease.end_record()
    if lease.is_gone and lease.note is not None and lease.note.may_have_record:
        left = _remove_left(target, lease.note, guarding, patience)
        moved = next((each for place, each in left if place.address == target.address), None)
        lease.note.close(is_released=True)
    if moved is None:
        return None
    # The record alone was sent before that was there.
    is_in_doubt = held.has_note and isinstance(error, OutcomeUnknown)
    if is_in_doubt and moved.before != held.found.etag:
        return None
    moved = replace(moved, before=before)
    guarding.records.record_move(target, moved)
    return moved


def take_over(target: Target, conditions: Conditions, guarding: Guarding, deadline: Deadline) -> Conditions:
    """End the leases of killed processes on this machine; return the conditions for the version that is there then.

    That is another version than they name, if only the record of who held the lease was added and removed.
    """
    if conditions.lease_id is not None:
        return conditions
    known = conditions.expected_etag
    for moved in end_abandoned(target, guarding, deadline).moves:
        if known is not None and known == moved.before and moved.after is not None:
            known = moved.after
    return replace(conditions, expected_etag=known)


def end_abandoned(target: Target, guarding: Guarding, deadline: Deadline) -> EndedLeases:
    """Release what killed processes on this machine left on a share or a file."""
    ended = EndedLeases()

    def tidy(places: list[Target], lease: ProcessLease) -> list[Target]:
        if target.kind is not Kind.FILE:
            return []
        patience = deadline.restart(seconds=min(_REMOVE_SECONDS, deadline.remaining))
        over, removed = list[Target](), list[tuple[Target, Moved]]()
        for place in places:
            moved, is_over = _end_lease(place, lease, guarding, patience)
            removed += [] if moved is None else [(place, moved)]
            over += [place] if is_over else []
        if lease.may_have_record:
            removed += _remove_left(target, lease, guarding, patience)
        for place, each in removed:
            for step in _list_moves(each, lease):
                guarding.records.record_move(place, step)
                ended.moves += [step] if place.address == target.address else []
        return over

    for lease in () if guarding.processes is None else guarding.processes.release_abandoned(target, deadline, tidy):
        ended.leases += 1
        for place in lease.find_places(target):
            guarding.records.remove(place, lease.lease_id)
    if ended.leases and target.kind is Kind.FILE:
        temporary.sweep(guarding.temporary, target, deadline)
    return ended


def _choose_note(target: Target, held: Held, guarding: Guarding) -> Owner | None:
    """Return the owner to record on a file; None on a share, whose lease ends by itself, or on a read-only file."""
    is_ours = held.lease.is_own and target.kind is Kind.FILE
    # The service refuses new metadata for a file that is read-only.
    return guarding.owner if is_ours and "ReadOnly" not in (held.found.attributes or "") else None


def _add_record(target: Target, held: Held, owner: Owner, deadline: Deadline) -> Held:
    """Write the record under the lease, and return the version that carries it."""
    lease_id = held.lease.lease_id
    version = Version(held.found.etag, held.found.metadata or {}, held.answered_at)
    tied = owner_records.set_service_time(owner, version).tie_to_lease(lease_id, None)
    added = {OWNER: tied.as_metadata()}
    with commits.step():
        moved = owner_records.change_metadata(target, version, added, Conditions(lease_id=lease_id), deadline)
        tied, moved = owner_records.correct_time(target, lease_id, tied, moved, deadline)
    record = tied.as_metadata()
    kept = {key: value for key, value in version.metadata.items() if key.lower() not in (OWNER, KEY)}
    after = moved.after or properties.fetch(target, Conditions(lease_id=lease_id), deadline).etag
    found = held.found.but(etag=after, metadata={**kept, OWNER: record, KEY: moved.lineage})
    return Held(held.lease, found, has_note=True, answered_at=held.answered_at, may_move=moved.attempts > 1)


def _end_lease(
    target: Target, lease: ProcessLease, guarding: Guarding, patience: Deadline
) -> tuple[Moved | None, bool]:
    """End the lease of a killed process if it is held, without the record of it; raise no error.

    Return how that moved the version, and whether the lease was ended.
    """
    try:
        state.look(target, patience, lease.lease_id)
    except AzguardError:
        return None, False
    records, processes, moved = guarding.records, guarding.processes, None
    held = GuardLease(target, lease.lease_id, is_own=True, deadline=patience, records=records, processes=processes)
    held.note = lease
    try:
        # What the process has sent could come between the look and the removal, or after it.
        held.change_id(patience)
        with commits.suppress():
            moved = owner_records.remove(target, held.lease_id, patience)
        held.end_record()
    except AzguardError:
        pass
    finally:
        held.give_back()
    return moved, held.is_gone


def _remove_left(
    target: Target, lease: ProcessLease, guarding: Guarding, patience: Deadline
) -> list[tuple[Target, Moved]]:
    """Remove the record that a lease has left which is over, under a lease of our own; raise no error.

    Return where that moved which version.
    """
    removed = list[tuple[Target, Moved]]()
    term = Term(others_seconds=0)
    with suppress(AzguardError):
        for place in lease.find_places(target):
            found = find(place, patience)
            if found is None or not lease.has_left(found.metadata or {}):
                continue
            our_own = guard.hold(place, None, guarding.records, patience, processes=guarding.processes, term=term)
            with our_own as held, commits.suppress():
                moved = owner_records.remove(place, held.lease_id, patience)
            removed += [] if moved is None else [(place, moved)]
        lease.end_record()
    return removed


def _list_moves(moved: Moved, lease: ProcessLease) -> list[Moved]:
    """Return which versions differ from the one without the record of a lease in that record alone."""
    # Killed before the answer came, it has sent nothing but the record.
    first = lease.begun_on
    if lease.record is not None and lease.record[1] == moved.before:
        first = lease.record[0]
    return [moved] if first is None else [replace(moved, before=first), moved]
