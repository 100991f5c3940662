"""The notes of temporary files, by which the next azguard on this machine deletes those of a killed process.

A note is opened before its file is asked for, and deleted when the file has its own name, or is deleted.
"""

from http import HTTPStatus
from typing import Any

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.resolve import Conditions
from azguard.files import writes
from azguard.processes.notes import ProcessNote, ProcessNotes
from azguard.requests.calls import CallOutcome, CallResult, send_once, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import is_lease_problem, service_code, status
from azguard.resources.copies import PENDING

# While the service copies into it, it cannot be deleted.
_IS_PENDING = "PendingCopyOperation"
#: How the names of temporary files begin; a crash can leave one behind.
PREFIX = ".azguard-"
# Bounded: a file that stays behind is garbage, and harms nothing.
_DELETE_SECONDS = 3.0


def open_note(notes: ProcessNotes | None, target: Target, name: str) -> ProcessNote | None:
    """Note a temporary file under a name, before it is created."""
    if notes is None:
        return None
    address = target.address
    facts = {"endpoint": target.endpoint, "container": address.container, "path": address.path}
    return notes.open(name, facts)


def find_place(note: ProcessNote, target: Target) -> Target | None:
    """Return the temporary file of a note, if it is in the directory of ``target``."""
    facts, address = note.facts, target.address
    path = facts.get("path", "")
    there = (facts.get("endpoint"), facts.get("container"), path.rpartition("/")[0])
    if there != (target.endpoint, address.container, address.path.rpartition("/")[0]):
        return None
    return Target(target.account, Address(Kind.FILE, (address.container, path)))


def sweep(notes: ProcessNotes | None, target: Target, deadline: Deadline) -> None:
    """Delete what killed processes of this machine left in the directory of a file; raise no error."""
    for note in [] if notes is None else notes.find_abandoned():
        place = find_place(note, target)
        if place is not None:
            note.close(is_done=delete(place, note.facts.get("lease_id"), deadline))


def delete(target: Target, lease_id: str | None, deadline: Deadline) -> bool:
    """Delete a temporary file, if that can be done soon; return whether it is known not to be there."""
    patience = deadline.afterwards(_DELETE_SECONDS)
    sent = send_delete(target, lease_id, patience)
    if sent.error is not None and service_code(sent.error) == _IS_PENDING:
        stop_copy(target, lease_id, patience)
        sent = send_delete(target, lease_id, patience)
    is_missing = sent.error is not None and status(sent.error) == HTTPStatus.NOT_FOUND
    return is_missing or sent.outcome is CallOutcome.COMMITTED


def send_delete(target: Target, lease_id: str | None, deadline: Deadline) -> CallResult[Any]:
    """Delete a temporary file once, with its lease if it has got that: it is noted before it is asked for."""
    client = target.account.file(target.address)

    def send(lease: str | None) -> CallResult[Any]:
        headers = dict(Conditions(lease_id=lease).request_headers)
        return send_once(lambda: client.delete_file(headers=headers, **write_timeouts(deadline, 1.0)))

    sent = send(lease_id)
    is_without = lease_id is not None and sent.error is not None and is_lease_problem(sent.error)
    return send(None) if is_without else sent


def stop_copy(target: Target, lease_id: str | None, deadline: Deadline) -> None:
    """Stop what the service copies into a temporary file, if anything; raise no error."""
    client, headers = target.account.file(target.address), Conditions(lease_id=lease_id).request_headers
    found = send_once(lambda: writes.fetch(target, lease_id, deadline)).answer
    if found is not None and found.copy.status == PENDING:
        send_once(lambda: client.abort_copy(found.copy.id, headers=headers, **write_timeouts(deadline, 1.0)))
