"""A temporary file beside the one that is to be written: created under a name of its own, filled, and removed.

Its name is random, so that no other writer has it. A request whose answer was lost is settled by a look. None is sent
again that could undo a later one if it came late: instead of a second create there is another name. The network may
send one again by itself: so after each create and resize the file gets another name before anything is written to it.

It is noted before it is created, and the note is deleted when the file has its own name, or is deleted: by it, the next
azguard on this machine deletes the file of a killed process.

The requests with which any file is filled, resized and renamed are here, too.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, NotFound, OutcomeUnknown, Unavailable
from azguard.guards.resolve import Conditions
from azguard.processes.locked_file import ProcessNote, ProcessNotes
from azguard.requests import commits
from azguard.requests.calls import CallOutcome, CallResult, send_once, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import is_lease_problem, service_code, status
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import copies, properties
from azguard.resources.sources import read_up_to
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.operations.shares import (
    DIRECTORY_RENAME,
    FILE_ABORT_COPY,
    FILE_CREATE,
    FILE_DELETE,
    FILE_PUT_RANGE,
    FILE_RENAME,
    FILE_SET_PROPERTIES,
)
from azguard.wire.rows import Settlement

# While the service copies into it, it cannot be deleted.
_IS_PENDING = "PendingCopyOperation"
#: How the names of temporary files begin; a crash can leave one behind.
PREFIX = ".azguard-"
# The same bytes at the same place, in a file that no one else writes.
_FILL = FILE_PUT_RANGE._replace(settle=Settlement.REPEATED)
# Bounded: a file that stays behind is garbage, and harms nothing.
_DELETE_SECONDS = 3.0
#: The most that one request writes.
PIECE_BYTES = 4 * 1024 * 1024
# A stream of unknown length gets a file that is larger by this factor whenever it is full.
_GROWTH = 2
# Before another name is tried: a gateway that cannot reach the service answers in a millisecond.
_PAUSE_SECONDS = 0.2


def rename_once(
    source: Target, target: Target, deadline: Deadline, *, overwrite: bool = False, **settings: Any
) -> Answer:
    """Send one rename of a file or a directory inside its share, and return the version that its answer tells."""
    operation = DIRECTORY_RENAME if source.kind is Kind.DIR else FILE_RENAME
    replaces = "true" if overwrite else "false"
    timeouts, from_url = write_timeouts(deadline), copies.to_url(source)
    return call(operation, target, timeouts, rename_source=from_url, replace_if_exists=replaces, **settings)


def describe_range(start: int, length: int, content: bytes | None) -> Mapping[str, Any]:
    """Return the arguments of ``FILE_PUT_RANGE`` that write content over a range; None clears the range."""
    is_clear = content is None
    return {
        "body": content,
        "range": f"bytes={start}-{start + length - 1}",
        "write": "clear" if is_clear else "update",
        "body_type": None if is_clear else "application/octet-stream",
    }


def describe_size(size: int) -> Mapping[str, Any]:
    """Return the arguments of ``FILE_SET_PROPERTIES`` that set the length of a file."""
    return {"size": size, "permission": "preserve"}


def _open_note(notes: ProcessNotes | None, target: Target, name: str) -> ProcessNote | None:
    if notes is None:
        return None
    address = target.address
    facts = {"endpoint": target.endpoint, "container": address.container, "path": address.path}
    return notes.open(name, facts)


def _find_place(note: ProcessNote, target: Target) -> Target | None:
    """Return the temporary file of a note, if it is in the directory of ``target``."""
    facts, address = note.facts, target.address
    path = facts.get("path", "")
    there = (facts.get("endpoint"), facts.get("container"), path.rpartition("/")[0])
    if there != (target.endpoint, address.container, address.path.rpartition("/")[0]):
        return None
    return Target(target.account, Address(Kind.FILE, (address.container, path)))


def sweep(notes: ProcessNotes | None, target: Target, deadline: Deadline) -> None:
    """Delete the temporary files of killed processes of this machine in the directory of a file; raise no error."""
    for note in [] if notes is None else notes.find_abandoned():
        place = _find_place(note, target)
        if place is not None:
            is_gone = delete_temporary(place, note.facts.get("lease_id"), deadline)
            note.close(is_done=is_gone and not note.may_come)


def delete_temporary(target: Target, lease_id: str | None, deadline: Deadline) -> bool:
    """Delete a temporary file, if that can be done soon; return whether it is known not to be there."""
    patience = deadline.afterwards(_DELETE_SECONDS)
    sent = _send_delete(target, lease_id, patience)
    if sent.error is not None and service_code(sent.error) == _IS_PENDING:
        stop_copy(target, lease_id, patience)
        sent = _send_delete(target, lease_id, patience)
    is_missing = sent.error is not None and status(sent.error) == HTTPStatus.NOT_FOUND
    return is_missing or sent.outcome is CallOutcome.COMMITTED


def _send_delete(target: Target, lease_id: str | None, deadline: Deadline) -> CallResult[Any]:
    """Delete a temporary file once, with its lease if it has got that: it is noted before it is asked for."""

    def send(lease: str | None) -> CallResult[Any]:
        headers = Conditions(lease_id=lease).request_headers
        return send_once(lambda: call(FILE_DELETE, target, write_timeouts(deadline, 1.0), headers=headers))

    sent = send(lease_id)
    is_without = lease_id is not None and sent.error is not None and is_lease_problem(sent.error)
    return send(None) if is_without else sent


def stop_copy(target: Target, lease_id: str | None, deadline: Deadline) -> None:
    """Stop what the service copies into a temporary file, if anything; raise no error."""
    headers = Conditions(lease_id=lease_id).request_headers
    found = send_once(lambda: properties.fetch(target, Conditions(lease_id=lease_id), deadline)).answer
    if found is not None and found.copy.status == copies.PENDING:
        timeouts = write_timeouts(deadline, 1.0)
        send_once(lambda: call(FILE_ABORT_COPY, target, timeouts, headers=headers, copyid=found.copy.id))


@dataclass
class TemporaryFile:
    """A temporary file, and what was written to it."""

    target: Target
    #: What it is created with, besides its size: the arguments of ``FILE_CREATE``.
    settings: Mapping[str, Any]
    patience: Callable[[], Deadline]
    #: Its size in the service.
    size: int = 0
    #: How many bytes were written.
    length: int = 0
    etag: str | None = None
    #: The lease that it is to have under its new name, once it has it.
    lease_id: str | None = None
    #: By which the next azguard deletes it if this process is killed.
    note: ProcessNote | None = None
    #: Where it is noted.
    notes: ProcessNotes | None = None
    #: Whether a request that makes it may still come, so that it is looked for again when this process has ended.
    is_doubtful: bool = False
    sha256: Any = field(default_factory=hashlib.sha256)
    md5: Any = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))
    #: That of the request that was sent last; None before the first.
    step: Deadline | None = None

    def fill(self, first: bytes, source: BinaryIO, progress: Callable[[int], None]) -> None:
        """Write all of a source, of which ``first`` was read already, piece by piece.

        Raises:
            Unavailable: it cannot be filled; nothing but the temporary file was written.
        """
        piece = first
        while piece:
            if self.length + len(piece) > self.size:
                self._resize(max(self.size * _GROWTH, self.length + len(piece)))
            self._write(piece)
            self.sha256.update(piece)
            self.md5.update(piece)
            self.length += len(piece)
            progress(self.length)
            piece = read_up_to(source, PIECE_BYTES)
        if self.size != self.length:
            self._resize(self.length)

    def check(self) -> None:
        """Make sure that nothing else was written to it, such as by a copy of the service that began late.

        Raises:
            Unavailable: something was.
        """
        found = properties.fetch(self.target, Conditions(), self._begin_step())
        if (found.etag, found.size) != (self.etag, self.length):
            raise self.build_failed("it is not what was written to it")

    def rename_away(self) -> None:
        """Give it a name that stood in no request before, so that none that comes late, or twice, can change it."""
        other = choose(self.target, self.settings, self.patience, 0, self.notes)
        patience = other.step = self._begin_step()
        request = WriteRequest[Any](
            operation=FILE_RENAME,
            target=self.target,
            send=lambda: rename_once(self.target, other.target, patience),
            look=lambda left: self._find_renamed(other, left),
        )
        try:
            self._settle(request, patience)
        except BaseException:
            other.is_doubtful = True
            other.remove()
            raise
        self.forget()
        other.note_there()
        self.target, self.note = other.target, other.note

    def _find_renamed(self, other: "TemporaryFile", patience: Deadline) -> Finding[Any]:
        found = properties.find(other.target, patience)
        if found is None:
            properties.fetch(self.target, Conditions(), patience)
            # A second transmission renames what the first one left, or nothing.
            return Finding(Verdict.NOT_YET)
        return Finding(Verdict.COMMITTED, {"etag": found.etag})

    def take_lease(self, lease_id: str) -> None:
        """Note the lease that it is to have; it is acquired after that."""
        self.lease_id = lease_id
        if self.note is not None:
            self.note.add(lease_id=lease_id)

    def remove(self) -> None:
        """Delete it, if that can be done; raise no error."""
        is_gone = delete_temporary(self.target, self.lease_id, self.step or self.patience())
        self.forget(is_gone=is_gone and not self.is_doubtful)

    def _begin_step(self) -> Deadline:
        self.step = self.patience()
        return self.step

    def note_there(self) -> None:
        """Note that it is there, so that no request that makes it can come later."""
        if self.note is not None:
            self.note.note_there()

    def forget(self, *, is_gone: bool = True) -> None:
        """Let go of its note: it has its own name now, or is deleted."""
        if self.note is not None:
            self.note.close(is_done=is_gone)

    def _write(self, piece: bytes) -> None:
        patience = self._begin_step()
        request = WriteRequest[Any](
            operation=_FILL,
            target=self.target,
            given=describe_range(self.length, len(piece), piece),
        )
        self._settle(request, patience)

    def _resize(self, size: int) -> None:
        patience = self._begin_step()
        request = WriteRequest[Any](
            operation=FILE_SET_PROPERTIES,
            target=self.target,
            given=describe_size(size),
            look=lambda left: self._find_size(size, left),
            # One that came late would undo a later one.
            resend=False,
        )
        self._settle(request, patience)
        self.size = size
        self.rename_away()

    def _find_size(self, size: int, patience: Deadline) -> Finding[Any]:
        found = properties.fetch(self.target, Conditions(), patience)
        if found.size != size:
            return Finding(Verdict.UNKNOWN)
        return Finding(Verdict.COMMITTED, {"etag": found.etag})

    def _settle(self, request: WriteRequest[Any], patience: Deadline) -> None:
        try:
            with commits.step():
                answer = send_until_settled(request, patience).answer
        except (OutcomeUnknown, NotFound) as error:
            commits.raise_interruption(error)
            raise self.build_failed(error.message) from error
        self.etag = answer["etag"]

    def build_failed(self, why: str) -> Unavailable:
        """Return the error for a file that could not be filled; nothing but the temporary file was written."""
        return Unavailable(
            f"the temporary file {self.target} could not be written",
            str(self.target.address),
            detail=(why,),
            reason="temporary_file_failed",
        )


def create(
    target: Target,
    size: int,
    settings: Mapping[str, Any],
    patience: Callable[[], Deadline],
    notes: ProcessNotes | None,
) -> TemporaryFile:
    """Create a temporary file in the directory of a file, and delete those that a killed process left there."""
    deadline = patience()
    sweep(notes, target, deadline)
    while True:
        made = choose(target, settings, patience, size, notes)
        made.step = deadline
        request = WriteRequest[Any](
            operation=FILE_CREATE,
            target=made.target,
            given={"size": size, **settings},
            look=partial(_find_created, made),
            # One that came late would empty the file again.
            resend=False,
        )
        try:
            with commits.step():
                made.etag = send_until_settled(request, deadline).answer["etag"]
        except OutcomeUnknown as error:
            made.is_doubtful = True
            made.remove()
            commits.raise_interruption(error)
            if deadline.passed:
                raise made.build_failed(error.message) from error
            deadline.pause(_PAUSE_SECONDS)
        except BaseException:
            made.remove()
            raise
        else:
            made.note_there()
            return made


def _find_created(made: TemporaryFile, patience: Deadline) -> Finding[Any]:
    try:
        found = properties.fetch(made.target, Conditions(), patience)
    except AzguardError:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.COMMITTED, {"etag": found.etag})


def choose(
    target: Target,
    settings: Mapping[str, Any],
    patience: Callable[[], Deadline],
    size: int,
    notes: ProcessNotes | None,
) -> TemporaryFile:
    """Return a temporary file that is noted, and does not exist yet."""
    token = secrets.token_hex(8)
    place = _beside(target, f"{token}.tmp")
    note = _open_note(notes, place, token)
    return TemporaryFile(place, settings, patience, size, note=note, notes=notes)


def _beside(target: Target, name: str) -> Target:
    share, path = target.address.parts
    folder, slash, _ = path.rpartition("/")
    return Target(target.account, Address(Kind.FILE, (share, f"{folder}{slash}{PREFIX}{name}")))
