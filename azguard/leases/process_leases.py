"""Leases that end with a process: a note of each on this machine, by which the next azguard releases what a kill left.

Not guaranteed: a lease of a process on another machine, or with another cache folder. There an operator breaks it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from azguard.accounts.account import Target
from azguard.address import Address
from azguard.leases import actions
from azguard.processes.notes import ProcessNote, ProcessNotes
from azguard.requests.deadline import Deadline


@dataclass(frozen=True)
class ProcessLease:
    """The note of one lease."""

    lease_id: str
    note: ProcessNote

    def add_place(self, target: Target) -> None:
        """Note that what is leased may be at another address soon, because it is renamed."""
        self.note.add(next_path=target.address.path)

    def begin_record(self, before: str) -> None:
        """Note that the record of the holder is about to be added to this version, and nothing else is sent before."""
        self.note.add(before=before)

    def add_record(self, before: str, after: str) -> None:
        """Note that the version ``after`` differs from ``before`` in the record of the holder alone."""
        self.note.add(before=before, after=after)

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
        """Let go of the note: delete it, or leave it for the next azguard because the lease may be held still."""
        self.note.close(is_done=is_released)

    def find_places(self, target: Target) -> list[Target]:
        """Return where it may be held; nowhere, if it is not the lease of ``target``."""
        facts, address = self.note.facts, target.address
        if (facts.get("kind"), facts.get("container")) != (address.kind, address.container):
            return []
        paths = [facts.get("path", ""), facts.get("next_path")]
        if facts.get("endpoint") != target.endpoint or address.path not in paths:
            return []
        return [_locate(target, path) for path in paths if path is not None]


@dataclass(frozen=True)
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
        self, target: Target, deadline: Deadline, before: Callable[[Target, ProcessLease], None] = lambda _, __: None
    ) -> Iterator[ProcessLease]:
        """Release what processes that have ended left on a resource, and yield each before its note is deleted.

        ``before`` is called while one may be held still, for each place where it may be, and must raise no error.
        """
        for lease in self.find_abandoned(target):
            places = lease.find_places(target)
            for place in places:
                before(place, lease)
            left = [place for place in places if not actions.give_back(place, lease.lease_id, deadline)]
            if not left:
                yield lease
                lease.close(is_released=True)


def _locate(target: Target, path: str) -> Target:
    container = target.address.container
    return Target(target.account, Address(target.kind, (container, path) if path else (container,)))
