"""Lease, compare, write: how a write of a share or a file is guarded, which the service itself does not do.

The lease keeps out all writers that use REST, and programs that want to open the file for writing over SMB. An ETag
that is unchanged does not prove that none of those has the file open: only the lease does, which is not granted then.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, BadRequest, Changed
from azguard.files import abandoned, holders, owner_notes, writes
from azguard.files.abandoned import EndedLeases
from azguard.files.writes import FileWrite, Held
from azguard.leases import guard
from azguard.leases.owners import Owner
from azguard.leases.process_leases import ProcessLeases
from azguard.leases.recorded import LeaseRecords
from azguard.processes.notes import ProcessNotes
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import Answers


@dataclass(frozen=True)
class Guarding:
    """What the lease of a guarded write needs: where it is recorded, and who takes it."""

    records: LeaseRecords
    #: Left in the metadata of a file, whose lease has no end; None leaves none.
    owner: Owner | None
    #: The notes of leases, by which the next azguard ends them if this process is killed.
    processes: ProcessLeases | None = None
    #: The notes of temporary files.
    temporary: ProcessNotes | None = None


def perform(write: FileWrite, guarding: Guarding, deadline: Deadline, *, drops_owner: bool = False) -> WriteResult:
    """Write under the guard that the conditions name.

    ``drops_owner`` says that the write itself takes the record of the lease's holder away, as other metadata do.

    Raises:
        Changed: it is not the version that the conditions name.
        Locked: another holds the lease, or has the file open for writing.
        OutcomeUnknown: the answer was lost, and whether it was applied cannot be known.
    """
    write = replace(write, conditions=take_over(write.target, write.conditions, guarding, deadline))
    if write.conditions.expected_etag is None:
        return writes.send(write, None, deadline)
    with hold(write.target, write.conditions, guarding, deadline) as held:
        done = writes.send(write, held, held.lease.patience)
        if write.is_delete:
            held.lease.is_gone = True
        elif held.has_note and not drops_owner:
            done = _remove_note(write.target, held, done, deadline)
        return done


@contextmanager
def hold(target: Target, conditions: Conditions, guarding: Guarding, deadline: Deadline) -> Iterator[Held]:
    """Hold a lease on the very version that the conditions name; our own lease of a file tells who holds it.

    Raises:
        Changed: it is another version.
        Locked: another holds it, or has the file open for writing.
    """
    conditions = take_over(target, conditions, guarding, deadline)
    with (
        holders.tell(target, deadline),
        guard.hold(target, conditions.lease_id, guarding.records, deadline, processes=guarding.processes) as lease,
    ):
        answers = Answers()
        found = writes.fetch(target, lease.lease_id, deadline, answers)
        held = Held(lease, found, answered_at=answers.date)
        if conditions.expected_etag not in (None, held.etag):
            raise to_changed(target, conditions.expected_etag, held.etag)
        owner = _choose_note(target, held, guarding)
        if owner is None:
            yield held
            return
        before, is_noted = held.etag, True
        try:
            held = _leave_note(target, held, owner, guarding, deadline)
            is_noted = held.has_note
            yield held
        except BaseException:
            is_over = lease.is_gone or not is_noted
            moved = None if is_over else owner_notes.withdraw(target, held, before, deadline)
            if moved is not None:
                guarding.records.record_move(target, moved)
            raise


def exclude_late(target: Target, held: Held, guarding: Guarding, deadline: Deadline, before: str | None = None) -> Held:
    """Return the version under another id of our lease, so that a request that was sent under the old one is refused.

    ``before`` is the version to which the record of the lease's holder was added, if that is all that was sent.
    """
    guard.change_id(held.lease, target, guarding.records, deadline, guarding.processes, before)
    # What came before the change is there, and nothing can come any more.
    return replace(held, found=writes.fetch(target, held.lease.lease_id, deadline), may_move=False)


def _leave_note(target: Target, held: Held, owner: Owner, guarding: Guarding, deadline: Deadline) -> Held:
    """Write on the file who holds its lease, and return that version; the one that was, if there is no room for it."""
    note, before = held.lease.note, held.etag
    if note is not None:
        note.begin_record(before)
    try:
        held = owner_notes.leave(target, held, owner, deadline)
    except BadRequest as error:
        if error.service_code != owner_notes.NO_ROOM:
            raise
        return held
    if held.may_move:
        held = exclude_late(target, held, guarding, deadline, before)
        note = held.lease.note
    if note is not None:
        note.add_record(before, held.etag)
    return held


def _remove_note(target: Target, held: Held, done: WriteResult, deadline: Deadline) -> WriteResult:
    """Take the record of the lease's holder away, and return the write with the version that is there then."""
    try:
        last = owner_notes.remove(target, held, deadline.fresh())
    except AzguardError:
        # The write is done; only its version is not known.
        return replace(done, etag=None, last_modified=None)
    return replace(last, attempts=done.attempts)


def take_over(target: Target, conditions: Conditions, guarding: Guarding, deadline: Deadline) -> Conditions:
    """End what a killed process on this machine left, and return the conditions for the version that is there then.

    It is another one than they name, if only the record of who held the lease was added and removed.
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
    if guarding.processes is None:
        return EndedLeases()
    return abandoned.end(target, guarding.processes, guarding.records, deadline)


def _choose_note(target: Target, held: Held, guarding: Guarding) -> Owner | None:
    """Return what is to tell who holds the lease; that of a share need not, because it ends by itself."""
    is_ours = held.lease.is_own and target.kind is Kind.FILE
    # The service refuses new metadata for a file that is read-only.
    return guarding.owner if is_ours and "ReadOnly" not in (held.found.file_attributes or "") else None


def to_changed(target: Target, expected_etag: str | None, current_etag: str | None) -> Changed:
    """Return the error for a resource that is no longer the version that a write is for."""
    return Changed(
        f"{target} changed since you read it",
        address=str(target.address),
        expected_etag=expected_etag,
        current_etag=current_etag,
        reason="share_or_file_changed",
    )
