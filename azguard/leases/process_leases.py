"""Leases without a term that end with a process: a note of each on this machine, which outlives a kill.

A note is a file that its process keeps open and locked. The kernel unlocks it when the process has ended, however it
ended: whose note can be locked holds its lease no longer, and the next azguard on this machine releases that by its id.

Not guaranteed: a lease of a process on another machine, or with another cache folder. There an operator breaks it.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from azguard.accounts.target import Target
from azguard.leases import actions
from azguard.processes import locked_file
from azguard.requests.deadline import Deadline

_ENDING = ".json"
_LONGEST_NOTE = 64 * 1024


@dataclass
class ProcessLease:
    """The note of one lease."""

    path: Path
    address: str
    endpoint: str
    lease_id: str
    #: The open file, which keeps the note locked; None if it is closed.
    descriptor: int | None = None

    def close(self, *, is_released: bool) -> None:
        """Let go of the note: delete it, or leave it for the next azguard because the lease may be held still."""
        if is_released:
            self.path.unlink(missing_ok=True)
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


@dataclass(frozen=True)
class ProcessLeases:
    """The folder of the notes."""

    folder: Path

    def open(self, target: Target, lease_id: str) -> ProcessLease:
        """Note a lease before it is asked for. Where the folder cannot be written, it is not noted."""
        note = ProcessLease(self._path(lease_id), str(target.address), target.endpoint, lease_id)
        if not locked_file.IS_SUPPORTED:
            return note
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            note.descriptor = os.open(note.path, os.O_CREAT | os.O_RDWR, 0o600)
            locked_file.lock(note.descriptor)
            text = json.dumps({"address": note.address, "endpoint": note.endpoint, "lease_id": lease_id})
            os.pwrite(note.descriptor, text.encode(), 0)
        return note

    def find_abandoned(self, target: Target) -> Iterator[ProcessLease]:
        """Yield the leases on a resource whose processes have ended without releasing them."""
        for path in sorted(self.folder.glob(f"*{_ENDING}")):
            note = _read(path)
            is_it = note is not None and (note.address, note.endpoint) == (str(target.address), target.endpoint)
            if note is not None and is_it and _is_unlocked(path):
                yield note

    def release_abandoned(
        self, target: Target, deadline: Deadline, clean: Callable[[str], None] = lambda lease_id: None
    ) -> list[str]:
        """Release what processes that have ended left on a resource; return the ids.

        ``clean`` removes what else one has left. It is called before the note is deleted.
        """
        released = []
        for note in self.find_abandoned(target):
            if actions.give_back(target, note.lease_id, deadline):
                clean(note.lease_id)
                note.close(is_released=True)
                released.append(note.lease_id)
        return released

    def _path(self, lease_id: str) -> Path:
        return self.folder / f"{lease_id}{_ENDING}"


def _read(path: Path) -> ProcessLease | None:
    try:
        found = json.loads(path.read_bytes()[:_LONGEST_NOTE])
        return ProcessLease(path, str(found["address"]), str(found["endpoint"]), str(found["lease_id"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None  # It was deleted meanwhile, or is being written.


def _is_unlocked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return locked_file.try_lock(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)
