"""Notes about runs of a command, which tell the next run on this machine whether an earlier one is over.

A note is a file that all processes of a run keep open and locked. The kernel unlocks it when the last of them has
ended, however it ended. So a note that can be locked is of a run that is over.

A note of another machine, as in a cache that was copied, tells nothing: it is not locked here, and its run may go on.

Not guaranteed: a program that closes the files it was handed, such as sudo, keeps no note locked.
"""

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from azguard.errors import ConfigError
from azguard.folders import make_private
from azguard.processes import locked_file
from azguard.processes.notes import Machine

_ENDING = ".json"
_LONGEST_NOTE = 64 * 1024
# A note is written when the waiting is over; a run that was killed before that leaves an empty file.
_EMPTY_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class RunNote:
    """What a run is about."""

    address: str
    endpoint: str
    #: ``user@host``, as Terraform writes it.
    who: str
    #: When its command began, by this machine's clock, ISO 8601.
    began: str
    #: The id of the lock info that was there before; None if there was none.
    before: str | None
    #: The machine that it runs on, whose kernel keeps the note locked.
    machine: Machine


@dataclass
class RunFile:
    """The file of one note."""

    path: Path
    #: The open file, which keeps the note locked; None if it is closed.
    descriptor: int | None = None
    note: RunNote | None = None

    def write(self, note: RunNote) -> None:
        """Write the note into the open file.

        Raises:
            ConfigError: it cannot be written.
        """
        self.note = note
        if self.descriptor is not None:
            with _explain_unwritable(self.path):
                os.pwrite(self.descriptor, json.dumps(asdict(note)).encode(), 0)

    def close(self) -> None:
        """Close the file. The note stays locked as long as another process of the run lives."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def is_about(self, address: str, endpoint: str) -> bool:
        """Return whether the note is about this resource."""
        return self.note is not None and (self.note.address, self.note.endpoint) == (address, endpoint)

    def is_over(self) -> bool:
        """Return whether all processes of the run have ended; to be asked after ``close``."""
        with locked_file.lock_unused(self.path, if_missing=True) as is_over:
            return is_over

    def remove(self) -> None:
        """Delete the file; one that cannot be deleted stays, and is over."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class RunNotes:
    """The folder of the notes."""

    folder: Path
    machine: Machine = field(default_factory=Machine.find)

    def open(self) -> RunFile:
        """Return a new file, which all processes that are started from now on keep locked.

        Raises:
            ConfigError: it cannot be made.
        """
        file = RunFile(self.folder / f"{uuid.uuid4()}{_ENDING}")
        with _explain_unwritable(self.folder):
            make_private(self.folder)
            if locked_file.IS_SUPPORTED:
                file.descriptor = locked_file.create_locked(file.path, os.O_EXCL)
                os.set_inheritable(file.descriptor, True)  # noqa: FBT003  # it takes no keyword
        return file

    def find_over(self, address: str, endpoint: str) -> Iterator[RunFile]:
        """Yield the notes about a resource whose runs on this machine are over."""
        for path in sorted(self.folder.glob(f"*{_ENDING}")):
            file = RunFile(path)
            try:
                content = path.read_bytes()[:_LONGEST_NOTE]
                is_forgotten = not content and time.time() - path.stat().st_mtime > _EMPTY_SECONDS
            except OSError:
                continue
            file.note = _parse(content)
            if is_forgotten and file.is_over():
                file.remove()
            elif file.is_about(address, endpoint) and self._is_of_here(file) and file.is_over():
                yield file

    def _is_of_here(self, file: RunFile) -> bool:
        return file.note is not None and self.machine.runs(file.note.machine)


@contextmanager
def _explain_unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", reason="run_not_recorded") from error


def _parse(content: bytes) -> RunNote | None:
    try:
        found = json.loads(content)
        return RunNote(**{**found, "machine": Machine(**found["machine"])})
    except (ValueError, TypeError, KeyError):
        return None
