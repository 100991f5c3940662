"""The notes on this machine of leases that end with a process, by which the next azguard releases what a kill left.

A note also tells of the record of the holder, from before that is written until it is known to be gone: see
``owner_records``. Not guaranteed: a lease of a process on another machine, or with another cache folder. There an
operator breaks it.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from azguard.accounts.account import Target
from azguard.address import Address
from azguard.frozen import frozen
from azguard.leases import actions, owners
from azguard.processes.locked_file import ProcessNote, ProcessNotes
from azguard.requests.deadline import Deadline

# What a note says of the record of the holder.
_OF_RECORD = ("before", "after", "record")


@frozen
class ProcessLease:
    """The note of one lease."""

    lease_id: str
    note: ProcessNote

    def add_place(self, target: Target) -> None:
        """Note that what is leased may be at another address soon, because it is renamed."""
        self.note.add(next_path=target.address.path)

    def begin_record(self, before: str) -> None:
        """Note that the record of the holder is about to be added to this version, and nothing else is sent before."""
        self.note.add(before=before, record=self.lease_id)

    def add_record(self, before: str, after: str) -> None:
        """Note that the version ``after`` differs from ``before`` in the record of the holder alone."""
        self.note.add(before=before, after=after)

    def carry_on(self, old: "ProcessLease") -> None:
        """Note of the record what was noted for the lease while it had its old id."""
        self.note.add(**{name: fact for name, fact in old.note.facts.items() if name in _OF_RECORD})

    def leave_to(self, old: "ProcessLease") -> None:
        """Note that the lease did not get this id: the note of the old one tells of the record.

        If a request for the old one comes late, the one that changes the id can come after it.
        """
        self.note.is_left = old.note.is_left
        self.end_record()

    def end_record(self) -> None:
        """Note that the record of the holder is not there, and cannot come any more."""
        if self.may_have_record:
            self.note.add(record="")

    @property
    def may_have_record(self) -> bool:
        """Return whether the record of the holder may be there, and speaks for no lease once this one is over."""
        return bool(self.note.facts.get("record"))

    def has_left(self, metadata: Mapping[str, str]) -> bool:
        """Return whether the record in these metadata is the one that was noted."""
        owner = owners.read_owner(metadata)
        return owner is not None and owner.lease == owners.make_digest(self.note.facts.get("record", ""))

    def note_attempts(self, count: int) -> None:
        """Note that the lease was acquired, and how often that was sent."""
        if count == 1:
            self.note.note_there()
        else:
            self.may_come_late()

    def may_come_late(self) -> None:
        """Note that a request for the lease may come after its release: the note is left, and the next one ends it."""
        self.note.is_left = True

    @property
    def record(self) -> tuple[str, str] | None:
        """Return the two versions that differ in the record of the holder alone, if such a record was left."""
        facts = self.note.facts
        return (facts["before"], facts["after"]) if "after" in facts else None

    @property
    def begun_on(self) -> str | None:
        """Return the version to which the record was about to be added, if that is all that can have been sent."""
        facts = self.note.facts
        return facts.get("before") if "after" not in facts else None

    @property
    def descriptor(self) -> int | None:
        """Return the open file, which keeps the note locked; None if it is closed."""
        return self.note.descriptor

    def close(self, *, is_released: bool) -> None:
        """Let go of the note: delete it, or leave it for the next azguard because something may be left."""
        self.note.close(is_done=is_released and not self.may_have_record)

    def find_places(self, target: Target) -> list[Target]:
        """Return where the lease may be held; nowhere, if it is not that of ``target``."""
        facts, address = self.note.facts, target.address
        if (facts.get("kind"), facts.get("container")) != (address.kind, address.container):
            return []
        paths = [facts.get("path", ""), facts.get("next_path")]
        if facts.get("endpoint") != target.endpoint or address.path not in paths:
            return []
        return [_locate_path(target, path) for path in paths if path is not None]


@frozen
class ProcessLeases:
    """The folder of the notes."""

    folder: Path

    def open(self, target: Target, lease_id: str) -> ProcessLease:
        """Note a lease before it is asked for. Where the folder cannot be written, it is not noted."""
        address = target.address
        facts = {"endpoint": target.endpoint, "kind": str(address.kind), "container": address.container}
        facts |= {"path": address.path, "lease_id": lease_id}
        return ProcessLease(lease_id, ProcessNotes(self.folder).open(lease_id, facts))

    def find_abandoned(self, target: Target) -> Iterator[ProcessLease]:
        """Yield the leases on a resource whose processes on this machine have ended without releasing them."""
        for note in ProcessNotes(self.folder).find_abandoned():
            lease = ProcessLease(note.facts.get("lease_id", ""), note)
            if lease.find_places(target):
                yield lease

    def release_abandoned(
        self,
        target: Target,
        deadline: Deadline,
        end: Callable[[list[Target], ProcessLease], list[Target]] = lambda _, __: [],
    ) -> Iterator[ProcessLease]:
        """Release what processes that have ended left on a resource, and yield each.

        ``end`` is called with the places where one may be held still, and returns those where it has ended it; it must
        raise no error. While a request for a lease may come late, its note is kept, and the lease is yielded only if it
        was held. One whose record is left is not yielded.
        """
        for lease in self.find_abandoned(target):
            is_known = not lease.note.may_come
            lease.note.is_left = not is_known
            places = lease.find_places(target)
            over = end(places, lease)
            ended = [
                each in over or actions.give_back(each, lease.lease_id, deadline, was_acquired=is_known)
                for each in places
            ]
            if (all(ended) if is_known else any(ended)) and not lease.may_have_record:
                yield lease
            lease.close(is_released=all(ended))


def _locate_path(target: Target, path: str) -> Target:
    container = target.address.container
    return Target(target.account, Address(target.kind, (container, path) if path else (container,)))
