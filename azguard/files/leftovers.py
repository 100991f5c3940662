"""Temporary files that a crash left in a directory, listed and deleted.

Another machine may still be writing one. So only those of a killed process of this machine are deleted, and those that
were not written for as long as the operator says, by the service's own time. Each is deleted as the version that was
judged, under a lease.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import Changed, Locked, NotFound
from azguard.files import entries, files, temporary
from azguard.files.guarding import Guarding
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.requests.calls import ServiceClock
from azguard.requests.deadline import Deadline
from azguard.resources import properties
from azguard.resources.copies import PENDING

# A number, by which it is noted.
_NAME = re.compile(rf"{re.escape(temporary.PREFIX)}([0-9a-f]{{16}})\.tmp")
_ENDED, _OLD = "process_ended", "old"


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
            _delete(target, found, named, pruning)
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


def _delete(target: Target, found: Any, named: re.Match[str], pruning: Pruning) -> None:
    """Delete one version, under the lease that its process put on it, or under our own."""
    notes = pruning.guarding.temporary
    note = None if notes is None else notes.find(named[1])
    # It is noted before it is asked for, so that the file may not have it.
    has_lease = note is not None and found.lease.state == "leased"
    lease_id = note.facts.get("lease_id") if note is not None and has_lease else None
    conditions = Conditions(guard="lease", expected_etag=quote_etag(found.etag), lease_id=lease_id)
    files.delete(target, conditions, pruning.guarding, pruning.deadline)
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
