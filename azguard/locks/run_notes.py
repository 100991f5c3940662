"""Notes about runs of a command, which tell the next run on this machine whether an earlier one is over.

The file of a note is kept open and locked by all processes of a run: it is over when the last of them has ended. For
what a note of another machine tells, as in a cache that was copied, see ``processes.notes``.

Not guaranteed: a program that closes the files it was handed, such as sudo, keeps no note locked.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from azguard.errors import ConfigError
from azguard.processes import locked_file
from azguard.processes.notes import ProcessNote, ProcessNotes


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
    before: str | None = None


@dataclass
class RunFile:
    """The file of one note."""

    file: ProcessNote
    #: None until the waiting is over and the command begins.
    note: RunNote | None = None

    def write(self, note: RunNote) -> None:
        """Write the note into the open file.

        Raises:
            ConfigError: it cannot be written.
        """
        self.note = note
        with _explain_unwritable(self.file.path):
            self.file.write(**{name: value for name, value in asdict(note).items() if value is not None})

    def close(self) -> None:
        """Close the file. The note stays locked as long as another process of the run lives."""
        self.file.close(is_done=False)

    def is_over(self) -> bool:
        """Return whether all processes of the run have ended; to be asked after ``close``."""
        with locked_file.lock_unused(self.file.path, if_missing=True) as is_over:
            return is_over

    def remove(self) -> None:
        """Delete the file; one that cannot be deleted stays, and is over."""
        self.file.close(is_done=True)


@dataclass(frozen=True)
class RunNotes:
    """The folder of the notes."""

    folder: Path

    def open(self) -> RunFile:
        """Return a new file, which all processes that are started from now on keep locked.

        Raises:
            ConfigError: it cannot be made.
        """
        notes = ProcessNotes(self.folder)
        with _explain_unwritable(self.folder):
            file = notes.make(str(uuid.uuid4()))
            if file.descriptor is not None:
                os.set_inheritable(file.descriptor, True)  # noqa: FBT003  # it takes no keyword
            file.write(**notes.machine.facts)
        return RunFile(file)

    def find_over(self, address: str, endpoint: str) -> Iterator[RunFile]:
        """Yield the notes about a resource whose runs on this machine are over."""
        for found in ProcessNotes(self.folder).find_abandoned():
            file = RunFile(found, _parse(found))
            if file.note is None:
                # The run was killed before its command began.
                file.remove()
            elif (file.note.address, file.note.endpoint) == (address, endpoint):
                yield file


@contextmanager
def _explain_unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", reason="run_not_recorded") from error


def _parse(found: ProcessNote) -> RunNote | None:
    facts = {each.name: found.facts[each.name] for each in fields(RunNote) if each.name in found.facts}
    try:
        return RunNote(**facts)
    except TypeError:
        return None
