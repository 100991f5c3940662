"""What a process on this machine left on a share or a file when it was killed, and how the next azguard ends it.

While the lease is held still, the record of its holder is removed; then the lease is released, and files with a
temporary name are deleted. A request of the killed process that comes later is refused, because its lease is over.
"""

from dataclasses import dataclass, field

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError
from azguard.files import replacing
from azguard.leases import owner_records
from azguard.leases.owner_records import Moved
from azguard.leases.owners import OWNER
from azguard.leases.process_leases import ProcessLease, ProcessLeases
from azguard.leases.recorded import LeaseRecords
from azguard.requests import commits
from azguard.requests.deadline import Deadline

# Bounded: a record that stays behind says that the lease is held, which anyone can see is not so.
_REMOVE_SECONDS = 3.0


@dataclass
class EndedLeases:
    """What was found and ended."""

    #: How the version of the target moved, whose content is the same.
    moves: list[Moved] = field(default_factory=list)
    leases: int = 0


def end(target: Target, processes: ProcessLeases, records: LeaseRecords, deadline: Deadline) -> EndedLeases:
    """Release what processes that have ended left on a share or a file."""
    ended = EndedLeases()

    def tidy(place: Target, lease: ProcessLease) -> None:
        found = _remove_record(place, lease, deadline)
        for moved in found:
            records.record_move(place, moved)
        ended.moves += found if place.address == target.address else []

    for lease in processes.release_abandoned(target, deadline, tidy):
        ended.leases += 1
        for place in lease.find_places(target):
            records.remove(place, lease.lease_id)
        if target.kind is Kind.FILE:
            replacing.clean(target, lease.lease_id, deadline)
    return ended


def _remove_record(target: Target, lease: ProcessLease, deadline: Deadline) -> list[Moved]:
    """Remove the record of who holds the lease, if it is held still and there is one; raise no error."""
    if target.kind is not Kind.FILE:
        return []
    patience = deadline.restart(seconds=min(_REMOVE_SECONDS, deadline.remaining))
    try:
        version = owner_records.read_version(target, patience, lease.lease_id)
        if OWNER not in {key.lower() for key in version.metadata}:
            return []
        with commits.suppress():
            moved = owner_records.change_metadata(
                target, version, {OWNER: None}, Conditions(lease_id=lease.lease_id), patience
            )
    except AzguardError:
        return []
    after = None if moved.after is None else quote(moved.after)
    moved = Moved(quote(version.etag), after, moved.last_modified, moved.lineage)
    # Killed before the answer came, it has sent nothing but the record.
    first = lease.begun_on
    if lease.record is not None and quote(lease.record[1]) == moved.before:
        first = lease.record[0]
    if first is None:
        return [moved]
    return [Moved(quote(first), after, moved.last_modified, moved.lineage), moved]
