"""Lease, compare, write: how a write of a share or a file is guarded, which the service itself does not do.

The lease keeps out all writers that use REST, and programs that want to open the file for writing over SMB. An ETag
that is unchanged does not prove that none of those has the file open: only the lease does, which is not granted then.

The lease of a file has no end. If its holder is killed, the next azguard on that machine ends it; an operator on
another machine can judge by the record in the metadata whether to break it.

A write is sent once, and settled if its answer is lost. What a lost answer means is told by the lineage in the
metadata, or by our own lease: what changed while only we could write, changed by us.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, BadRequest, Locked, NotFound, Unavailable
from azguard.files import handles, temporary
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write, quote_etag
from azguard.leases import guard, owner_records
from azguard.leases.guard import WRITE_TERM, GuardLease, Term
from azguard.leases.owner_records import Moved, ProcessLease, ProcessLeases, Version
from azguard.leases.owners import OWNER, Owner
from azguard.leases.recorded import LeaseRecords
from azguard.processes.locked_file import ProcessNotes
from azguard.requests import commits
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.results import Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import lifecycles, properties
from azguard.wire.answers import Answer
from azguard.wire.rows import Operation

# Bounded: a record that stays behind says that the lease is held, which anyone can see is not so.
_REMOVE_SECONDS = 3.0
#: The service's code where the metadata have no room for the record: the lease guards without it, too.
NO_ROOM = "MetadataTooLarge"

# A path cannot be looked at for these reasons, with or without our write.
_TELL_NOTHING = ("path_of_other_type", "file_delete_pending")

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

    @property
    def etag(self) -> str:
        """Return the ETag in quotes."""
        return quote_etag(self.found.etag)


@frozen(kw_only=True)
class FileWrite:
    """A write of a share, a directory or a file."""

    target: Target
    conditions: Conditions
    operation: Operation
    #: What it sends, besides the lease id; see ``call``.
    given: Mapping[str, Any] = field(default_factory=dict)
    #: The op in the lineage that it leaves in the metadata, if it leaves one.
    op: str | None = None
    #: Of a delete: the properties of what is there, where they were just read.
    before: Answer | None = None


def perform(write: FileWrite, guarding: Guarding, deadline: Deadline) -> Written:
    """Write under the guard that the conditions name."""
    write = replace(write, conditions=take_over(write.target, write.conditions, guarding, deadline))
    if write.conditions.expected_etag is None:
        return send(write, None, deadline)
    with hold(write.target, write.conditions, guarding, deadline) as held:
        done = send(write, held, held.lease.patience)
        if write.operation.deletes:
            held.lease.is_gone = True
            return done
        return finish(write.target, held, done, deadline)


def send(write: FileWrite, held: Held | None, deadline: Deadline) -> Written:
    """Send a write, under the lease that is held, until its outcome is known."""
    lease_id = write.conditions.lease_id if held is None else held.lease.lease_id
    headers = Conditions(lease_id=lease_id).request_headers
    with handles.tell_holders(write.target, deadline):
        before = _look_before(write, held, deadline) if write.operation.deletes else None
        request = WriteRequest[Any](
            operation=write.operation,
            target=write.target,
            given={"headers": headers, **write.given},
            look=lambda patience: _find_outcome(write, held, before, patience),
            expected_etag=write.conditions.expected_etag,
            # Under our own lease, a copy that comes late is refused once the lease is given back.
            resend=held is not None and held.lease.is_own,
        )
        settled = send_until_settled(request, deadline)
    return Written(**describe_write(write.target, write.conditions.guard, settled))


def _look_before(write: FileWrite, held: Held | None, deadline: Deadline) -> Any | None:
    """Look at the resource before a delete is sent, since a deleted one tells nothing."""
    if held is not None:
        return held.found
    if write.before is not None:
        return write.before
    return lifecycles.look_before(
        lambda: properties.fetch(write.target, Conditions(lease_id=write.conditions.lease_id), deadline)
    )


def _find_outcome(write: FileWrite, held: Held | None, before: Any | None, patience: Deadline) -> Finding[Any]:
    is_alone = held is not None and held.lease.is_running
    try:
        lease_id = None if held is None else held.lease.lease_id
        found, is_held = properties.fetch_whatever_lease(write.target, lease_id, patience)
    except NotFound:
        # Only the holder of the lease could delete it.
        verdict = Verdict.COMMITTED if write.operation.deletes and is_alone else Verdict.UNKNOWN
        return Finding(verdict, seen=NOTHING_THERE, may_be_ours=before is not None)
    except (BadRequest, Locked) as error:
        # A directory is there where a file was meant, or a file that no request may read until a program closes it:
        # that tells nothing of the write, so that its own refusal stands.
        if error.reason not in _TELL_NOTHING:
            raise
        return Finding(Verdict.UNKNOWN)
    version = {"etag": found.etag, "last_modified": found.last_modified}
    if write.op is not None:
        history = Lineage.find(found.metadata)
        if write.op in history:
            # Without our lease another program may have written since, and have kept the lineage.
            is_newest = is_alone and is_held and history.entries[0][0] == write.op
            return Finding(Verdict.COMMITTED, version if is_newest else {"etag": None})
    # If the lease was broken meanwhile, others could write, too.
    if held is None or not is_alone or not is_held:
        return Finding(Verdict.UNKNOWN, may_be_ours=before is not None and before.etag != found.etag)
    if quote_etag(found.etag) == held.etag:
        return Finding(Verdict.NOT_YET)
    is_ours = write.op is None and not write.operation.deletes
    return Finding(Verdict.COMMITTED, version) if is_ours else Finding(Verdict.UNKNOWN)


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
    versions.require_version(target, conditions.expected_etag, quote_etag(found.etag), reason="share_or_file_changed")
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
        if lease.may_come_late:
            # Acquired again by its copy, it would let a request that comes late undo what was written since.
            guard.change_id(lease, target, guarding.records, deadline, guarding.processes)
        found = properties.fetch(target, Conditions(lease_id=lease.lease_id), deadline)
        held = Held(lease, found, answered_at=found.date)
        versions.require_version(target, conditions.expected_etag, held.etag, reason="share_or_file_changed")
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
            if is_noted:
                withdraw(target, held, before, guarding, deadline)
            raise


def exclude_late(target: Target, held: Held, guarding: Guarding, deadline: Deadline) -> Held:
    """Return the version under another id of our lease, so that a late request under the old one is refused."""
    guard.change_id(held.lease, target, guarding.records, deadline, guarding.processes)
    # What came before the change is there, and nothing can come any more.
    return replace(
        held, found=properties.fetch(target, Conditions(lease_id=held.lease.lease_id), deadline), may_move=False
    )


def _leave_note(target: Target, held: Held, owner: Owner, guarding: Guarding, deadline: Deadline) -> Held:
    """Write on the file who holds its lease, and return that version; the one that was, if there is no room for it."""
    note, before = held.lease.note, held.etag
    if note is not None:
        note.begin_record(before)
    try:
        held = _add_record(target, held, owner, deadline)
    except BadRequest as error:
        if error.service_code != NO_ROOM:
            raise
        return held
    if held.may_move:
        held = exclude_late(target, held, guarding, deadline)
        note = held.lease.note
    if note is not None:
        note.add_record(before, held.etag)
    return held


def finish(target: Target, held: Held | None, done: _Done, deadline: Deadline) -> _Done:
    """Take the record of the lease's holder off what was written, and return the write with the version there then."""
    if held is None or not held.has_note:
        return done
    try:
        with commits.suppress():
            moved = owner_records.remove(target, held.lease.lease_id, deadline.fresh())
    except AzguardError:
        # The write is done; only its version is not known.
        moved = None
    if moved is None:
        return replace(done, etag=None, last_modified=None)
    return replace(done, etag=moved.after, last_modified=moved.last_modified)


def withdraw(target: Target, held: Held, before: str, guarding: Guarding, deadline: Deadline) -> Moved | None:
    """Remove the record after a write that was not done; return how that moved the version, None if it did not.

    ``before`` is the ETag before the record was written.
    """
    if held.lease.is_gone:
        return None
    patience = deadline.afterwards(_REMOVE_SECONDS)
    try:
        # What was sent under the lease could come between the look and the removal, and one would undo the other.
        guard.change_id(held.lease, target, guarding.records, patience, guarding.processes)
        with commits.suppress():
            moved = owner_records.remove(target, held.lease.lease_id, patience)
    except AzguardError:
        return None
    if moved is None:
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

    def tidy(place: Target, lease: ProcessLease) -> bool:
        found, is_over = _end_lease(place, lease, guarding, deadline)
        for moved in found:
            guarding.records.record_move(place, moved)
        ended.moves += found if place.address == target.address else []
        return is_over

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


def _end_lease(target: Target, lease: ProcessLease, guarding: Guarding, deadline: Deadline) -> tuple[list[Moved], bool]:
    """End the lease of a killed process if it is held, without the record of it; raise no error.

    Return how that moved the version, and whether the lease was ended.
    """
    if target.kind is not Kind.FILE:
        return [], False
    patience = deadline.restart(seconds=min(_REMOVE_SECONDS, deadline.remaining))
    # The note of it stays, unless its record is known to be gone.
    is_left, lease.note.is_left = lease.note.is_left, True
    try:
        owner_records.read_version(target, patience, lease.lease_id)
    except AzguardError as error:
        lease.note.is_left = is_left or isinstance(error, Unavailable)
        return [], False
    held = GuardLease(lease.lease_id, is_own=True, deadline=patience)
    held.note = lease
    try:
        # What the process has sent could come between the look and the removal, or after it.
        guard.change_id(held, target, guarding.records, patience, guarding.processes)
        with commits.suppress():
            moved = owner_records.remove(target, held.lease_id, patience)
        lease.note.is_left = is_left
    except AzguardError:
        moved = None
    finally:
        guard.give_back(held, target, guarding.records)
    return [] if moved is None else _list_moves(moved, lease), held.is_gone


def _list_moves(moved: Moved, lease: ProcessLease) -> list[Moved]:
    """Return which versions differ from the one without the record of a lease in that record alone."""
    moved = replace(moved, before=quote_etag(moved.before), after=moved.after and quote_etag(moved.after))
    # Killed before the answer came, it has sent nothing but the record.
    first = lease.begun_on
    if lease.record is not None and quote_etag(lease.record[1]) == moved.before:
        first = lease.record[0]
    return [moved] if first is None else [replace(moved, before=quote_etag(first)), moved]
