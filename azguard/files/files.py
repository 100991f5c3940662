"""Files: deleted, and renamed inside their share with both ends guarded; temporary ones that a crash left.

A rename that replaces nothing is atomic: of several writers, one has the new name. To replace the version that was
read, azguard holds a lease on it. The file that is renamed is leased too, and keeps its lease: ours is given back at
the new address.

Another machine may still be writing a temporary file. So only those of a killed process of this machine are deleted,
and those that were not written for as long as the operator says, by the service's own time. Each is deleted as the
version that was judged, under a lease.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Changed, Gone, Locked, NotFound, OutcomeUnknown, UsageError
from azguard.files import directories, entries, guarding, handles, temporary, writes
from azguard.files.guarding import Guarding, Held
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import describe_write
from azguard.leases import actions
from azguard.requests.calls import ServiceClock
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.resources.copies import PENDING
from azguard.wire.operations.shares import FILE_DELETE, FILE_RENAME

# Of a temporary file: the number is that by which it is noted.
_NAME = re.compile(rf"{re.escape(temporary.PREFIX)}([0-9a-f]{{16}})\.tmp")
_ENDED, _OLD = "process_ended", "old"


def delete(target: Target, conditions: Conditions, guarding_by: Guarding, deadline: Deadline) -> Written:
    """Delete a file.

    Raises:
        Changed: it is no longer the version that the guard names.
        Locked: it is leased, and the lease id is missing or wrong, or another program has it open.
        OutcomeUnknown: the answer was lost, and the file is gone: by us or by another.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-file2
    """
    return writes.perform(FILE_DELETE, target, conditions, guarding_by, deadline)


@frozen(kw_only=True)
class FileRenamed(Written):
    """What a rename of a file did; ``address`` is the new one."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.ETAG)

    previous_address: str


@frozen(kw_only=True)
class FileRename:
    """A rename of a file that is not sent yet."""

    source: Target
    target: Target
    #: Those on what is at the new address.
    conditions: Conditions
    #: The version of the file that is renamed, if it is known, and the caller's lease on it.
    on_source: Conditions
    guarding: Guarding
    deadline: Deadline

    @property
    def is_unconditional(self) -> bool:
        """Return whether the rename takes both ends as they are."""
        return self.conditions.expected_etag is None and self.conditions.guard != "if-none-match"


def preview_rename(given: FileRename) -> FileRenamed:
    """Return the result of a rename without sending it.

    Raises:
        Changed, Exists, NotFound, UsageError: as the rename would.
    """
    expected = given.on_source.expected_etag
    planned = directories.preview_rename(given.source, given.target, expected, given.conditions, given.deadline)
    return FileRenamed(**vars(planned), previous_address=str(given.source.address))


def rename_file(given: FileRename) -> FileRenamed:
    """Rename a file; what is at the new address is replaced only if the conditions allow that.

    Raises:
        Changed: one of the two is no longer the version that was read.
        Exists: there is something at the new address.
        Locked: one of the two is leased, or another program has it open.
        NotFound: there is no such file.
        UsageError: the new address is in another share, or the same.
        OutcomeUnknown: the answer was lost, and whether it was applied cannot be known.
    Source: https://learn.microsoft.com/rest/api/storageservices/rename-file
    """
    source, target = given.source, given.target
    directories.check_same_share(source, target)
    if source.address == target.address:
        raise UsageError("the two addresses are the same", address=str(target.address))
    with _take_record_along(given):
        return _rename(given)


def _rename(given: FileRename) -> FileRenamed:
    source, target, deadline = given.source, given.target, given.deadline
    given = replace(
        given,
        on_source=guarding.take_over(source, given.on_source, given.guarding, deadline),
        conditions=guarding.take_over(target, given.conditions, given.guarding, deadline),
    )
    with ExitStack() as until:
        replaced = None
        if given.conditions.expected_etag is not None:
            replaced = until.enter_context(_hold_replaced(given))
        held = None
        if given.is_unconditional:
            known = properties.fetch(source, Conditions(lease_id=given.on_source.lease_id), deadline).file_id
        else:
            late = until.enter_context(_release_late(given))
            held = until.enter_context(guarding.hold(source, given.on_source, given.guarding, deadline))
            known = held.found.file_id
            until.enter_context(_release_at_target(given, held))
            late += [held.lease.lease_id] if held.lease.is_own else []
        done = _send_rename(given, replaced, held, known)
        if replaced is not None:
            replaced.lease.end_with_resource()
        if held is None:
            return done
        # The record of the lease's holder is at the new address.
        held.lease.is_gone = held.lease.is_own
        return guarding.finish(target, held, done, deadline)


@contextmanager
def _take_record_along(given: FileRename) -> Iterator[None]:
    """Keep the record of the caller's lease on the file, if this scope has one, where the file is."""
    records, lease_id = given.guarding.records, given.on_source.lease_id
    held = records.find_held(given.source)
    if lease_id is None or held is None or held.lease_id != lease_id:
        yield
        return
    # Recorded first, so that it is found there if we are killed in between.
    records.add(given.target, lease_id, None)
    try:
        yield
    except OutcomeUnknown:
        raise  # It may be at either place.
    except AzguardError:
        records.remove(given.target, lease_id)
        raise
    records.confirm(given.target, lease_id)
    records.remove(given.source, lease_id)


@contextmanager
def _hold_replaced(given: FileRename) -> Iterator[Held]:
    with ExitStack() as until:
        try:
            held = until.enter_context(guarding.hold(given.target, given.conditions, given.guarding, given.deadline))
        except NotFound as error:
            raise error.as_kind(
                Gone,
                message=f"{given.target} was deleted since you read it",
                expected_etag=given.conditions.expected_etag,
                reason="share_or_file_changed",
            ) from error
        yield held


@contextmanager
def _release_late(given: FileRename) -> Iterator[list[str]]:
    """Give our lease, which is put into the list, back at the new address once more if the rename is in doubt.

    Until it was released at the old address, the rename could still come.
    """
    leases: list[str] = []
    try:
        yield leases
    except OutcomeUnknown:
        for lease_id in leases:
            actions.give_back(given.target, lease_id, given.deadline)
        raise


@contextmanager
def _release_at_target(given: FileRename, held: Held) -> Iterator[None]:
    """Give our own lease back where it is when the file has its new address."""
    if not held.lease.is_own:
        yield
        return
    records, lease_id, note = given.guarding.records, held.lease.lease_id, held.lease.note
    # Recorded first, so that it is found there if we are killed in between.
    if note is not None:
        note.add_place(given.target)
    records.add(given.target, lease_id, None)
    try:
        yield
    finally:
        if actions.give_back(given.target, lease_id, given.deadline):
            records.remove(given.target, lease_id)
        else:
            records.note_left(given.target)
            if note is not None:
                # The next azguard has to release it.
                note.close(is_released=False)
                held.lease.note = None


def _send_rename(given: FileRename, replaced: Held | None, held: Held | None, known: str | None) -> FileRenamed:
    request = WriteRequest[Mapping[str, Any]](
        operation=FILE_RENAME,
        target=given.target,
        send=lambda: _send_once(given, replaced, held),
        look=lambda patience: _find_rename_outcome(given, held, known, patience),
        expected_etag=given.conditions.expected_etag,
        # Under our own lease, a copy that comes late is refused once the lease is given back.
        resend=held is not None and held.lease.is_own,
    )
    creates_only = given.conditions.guard == "if-none-match"
    lease_id = given.on_source.lease_id if held is None else held.lease.lease_id
    with (
        handles.tell_holders_at_rename(given.source, given.target, given.deadline, creates_only=creates_only),
        directories.tell_of_source(given.source, lease_id, given.deadline),
    ):
        settled = send_until_settled(request, given.deadline)
    return FileRenamed(
        **describe_write(given.target, given.conditions.guard, settled),
        previous_address=str(given.source.address),
    )


def _send_once(given: FileRename, replaced: Held | None, held: Held | None) -> Mapping[str, Any]:
    return temporary.rename_once(
        given.source,
        given.target,
        given.deadline,
        overwrite=given.conditions.guard != "if-none-match",
        source_lease_id=given.on_source.lease_id if held is None else held.lease.lease_id,
        destination_lease_id=given.conditions.lease_id if replaced is None else replaced.lease.lease_id,
    )


def _find_rename_outcome(
    given: FileRename, held: Held | None, known: str | None, patience: Deadline
) -> Finding[Mapping[str, Any]]:
    found = directories.find_renamed(given.target, known, patience)
    if found.verdict is Verdict.COMMITTED or held is None or known is None:
        return found
    try:
        still = properties.fetch(given.source, Conditions(lease_id=held.lease.lease_id), patience).file_id == known
    except AzguardError:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.NOT_YET if still else Verdict.UNKNOWN)


@frozen
class Leftover:
    """A temporary file, and what was done about it."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.CONTENT_LENGTH, columns.AGE, columns.OUTCOME, columns.REASON)

    address: str
    content_length: int
    #: How many seconds ago it was written, by the service's clock; None if that did not tell.
    age: int | None
    #: ``deleted``, ``kept`` or ``would delete``.
    outcome: str
    #: ``process_ended``, ``old``; kept: ``process_runs``, ``maybe_written``, ``changed`` or ``locked``.
    reason: str


@frozen
class Pruning:
    """Which temporary files are deleted."""

    guarding: Guarding
    deadline: Deadline
    #: Files of any writer that were not written for this long are deleted, too; None deletes none of them.
    older_than: timedelta | None = None
    only_tells: bool = False


def prune(folder: Target, pruning: Pruning, *, recursive: bool) -> Iterator[Leftover]:
    """Delete the temporary files of a directory or share that no process can be writing, and yield each one found.

    Raises:
        NotFound: there is no such directory.
        OutcomeUnknown: an answer was lost, and whether one was deleted cannot be known.
    """
    folders, clock = [folder.address.path], ServiceClock(pruning.deadline.clock)
    while folders:
        path = folders.pop()
        place = Target(folder.account, Address(Kind.DIR, (folder.address.container, path)))
        prefix = None if recursive else temporary.PREFIX
        for entry in entries.list_entries(place, pruning.deadline, prefix=prefix, limit=None):
            name = f"{path}/{entry.name}" if path else entry.name
            if entry.type == Kind.DIR:
                folders += [name] if recursive else []
                continue
            named = _NAME.fullmatch(entry.name)
            found = named and _prune_one(place, name, named, pruning, clock)
            if found is not None:
                yield found


def _prune_one(
    folder: Target, path: str, named: re.Match[str], pruning: Pruning, clock: ServiceClock
) -> Leftover | None:
    """Judge one file and delete it if it may be deleted; return None if it is gone, or goes when it is closed."""
    target = Target(folder.account, Address(Kind.FILE, (folder.address.container, path)))
    try:
        found = properties.fetch(target, Conditions(), pruning.deadline)
    except (NotFound, Locked):
        return None
    clock.learn(target.account, target.kind, pruning.deadline)
    now = clock.read()
    age = None if now is None or found.last_modified is None else now - found.last_modified
    reason = _judge(named, age, pruning)
    outcome = "would delete" if pruning.only_tells else "deleted"
    if reason not in (_ENDED, _OLD):
        outcome = "kept"
    elif not pruning.only_tells:
        try:
            if reason == _ENDED and found.copy.status == PENDING:
                temporary.stop_copy(target, None, pruning.deadline)
                found = properties.fetch(target, Conditions(), pruning.deadline)
            _delete_judged(target, found, named, pruning)
        except (Changed, Locked) as error:
            outcome, reason = "kept", "changed" if isinstance(error, Changed) else "locked"
        except NotFound:
            return None
    return Leftover(
        address=str(target.address),
        content_length=found.size,
        age=None if age is None else int(age.total_seconds()),
        outcome=outcome,
        reason=reason,
    )


def _delete_judged(target: Target, found: Any, named: re.Match[str], pruning: Pruning) -> None:
    """Delete one version, under the lease that its process put on it, or under our own."""
    notes = pruning.guarding.temporary
    note = None if notes is None else notes.find(named[1])
    # It is noted before it is asked for, so that the file may not have it.
    has_lease = note is not None and found.lease.state == "leased"
    lease_id = note.facts.get("lease_id") if note is not None and has_lease else None
    conditions = Conditions(guard="lease", expected_etag=found.etag, lease_id=lease_id)
    delete(target, conditions, pruning.guarding, pruning.deadline)
    if note is not None:
        note.close(is_done=True)


def _judge(named: re.Match[str], age: timedelta | None, pruning: Pruning) -> str:
    notes = pruning.guarding.temporary
    if notes is not None and notes.is_running(named[1]):
        return "process_runs"
    if notes is not None and notes.find(named[1]) is not None:
        return _ENDED
    is_old = age is not None and pruning.older_than is not None and age >= pruning.older_than
    return _OLD if is_old else "maybe_written"
