"""``lock run --terraform``: wait for the lock of a Terraform state, and release what a run that died left of it.

Terraform locks its state by an infinite lease, whose id is the id in its lock info. A run that is killed leaves it, and
blocks all others. Here the lease is released, never broken, and only if all of this is true:

- the run died: a signal ended it, or azguard itself was killed;
- no process of the run lives any more, and no other Terraform runs on this machine;
- the lock info names this user on this machine, is younger than the run, and is not the one that was there before;
- the service confirms that the lease has the id of the lock info.

Whether a run lives tells its note: a file that all processes of the run keep open and locked. It is over when the last
of them has ended. For what a note of another machine tells, as in a cache that was copied: ``processes.locked_file``.

Not guaranteed: two machines, or containers, of the same name and user cannot be told apart by their lock info. A run
that is killed between its lease and its lock info leaves a lease whose id is not known. A program that closes the files
it was handed, such as sudo, keeps no note locked.

Source: hashicorp/terraform, internal/backend/remote-state/azure/client.go and internal/states/statemgr/locker.go
"""

import getpass
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from azguard.accounts.account import Target
from azguard.errors import AzguardError, GaveUp, Locked, NotFound
from azguard.folders import explain_unwritable
from azguard.guards.resolve import Conditions
from azguard.leases import actions, owners, shown
from azguard.leases import state as lease_state
from azguard.leases.owners import TerraformLock
from azguard.leases.state import LeaseState
from azguard.processes import locked_file, tree
from azguard.processes.locked_file import ProcessNote, ProcessNotes
from azguard.requests.deadline import Deadline
from azguard.times import find_moment

# Bounded: what is left can be released later, by the next run or by hand.
_RELEASE_SECONDS = 10.0
# Both times are of this machine's clock, which can be set back a little meanwhile.
_SLACK = timedelta(seconds=2)
# OpenTofu's backend is Terraform's.
_PROGRAMS = ("terraform", "tofu")


def open_note(notes: ProcessNotes) -> ProcessNote:
    """Return a new note, which all processes that are started from now on keep locked.

    Raises:
        ConfigError: it cannot be made.
    """
    with explain_unwritable(notes.folder, reason="run_not_recorded"):
        note = notes.make(str(uuid.uuid4()))
        if note.descriptor is not None:
            os.set_inheritable(note.descriptor, True)  # noqa: FBT003  # it takes no keyword
        note.write(**notes.machine.facts)
    return note


def begin_run(note: ProcessNote, target: Target, before: TerraformLock | None) -> None:
    """Note which run it is, now that its command begins; ``before`` is the lock info that was there before.

    Raises:
        ConfigError: it cannot be written.
    """
    facts = {
        "address": str(target.address),
        "endpoint": target.endpoint,
        # As Terraform writes it.
        "who": f"{getpass.getuser()}@{socket.gethostname()}",
        # By this machine's clock.
        "began": datetime.now(UTC).isoformat(),
    }
    if before is not None:
        facts["before"] = before.id
    with explain_unwritable(note.path, reason="run_not_recorded"):
        note.write(**facts)


def find_over(notes: ProcessNotes, target: Target) -> Iterator[ProcessNote]:
    """Yield the notes about a resource whose runs on this machine are over."""
    for note in notes.find_abandoned():
        if not _has_begun(note):
            note.close(is_done=True)  # The run was killed before its command began.
        elif (note.facts.get("address"), note.facts.get("endpoint")) == (str(target.address), target.endpoint):
            yield note


def _has_begun(note: ProcessNote) -> bool:
    return "began" in note.facts


@dataclass
class StateGuard:
    """The lock of one Terraform state around one run of a command."""

    target: Target
    notes: ProcessNotes
    #: How many seconds to wait for another run.
    wait_seconds: float
    #: Called with each line that people must see.
    say: Callable[[str], None]
    #: Draws a random number between two others.
    uniform: Callable[[float, float], float]
    #: Returns the processes on this machine that may hold a state, for people.
    find_others: Callable[[], list[str]] = field(default_factory=lambda: _find_terraform)
    _note: ProcessNote | None = None

    def open(self) -> None:
        """Note that a run begins. Call it before the first process of the run is started: all keep the note locked."""
        self._note = open_note(self.notes)

    def wait(self) -> None:
        """Release what dead runs of this machine left, and wait until no other run holds the state.

        Raises:
            GaveUp: another run still holds it when the time is up. The command is not to be run.
        """
        for note in find_over(self.notes, self.target):
            if self._release(note):
                note.close(is_done=True)
        try:
            free = shown.wait_until_free(self.target, Deadline(self.wait_seconds), self._tell, self.uniform)
            before = owners.read_terraform(free.metadata)
        except NotFound:
            before = None  # Terraform makes it.
        except GaveUp as error:
            raise error.but(
                message=f"{error.message}; the command was not run", reason="terraform_state_busy"
            ) from error
        if self._note is not None:
            begin_run(self._note, self.target, before)

    def finish(self, *, died: bool) -> None:
        """Release the lease that the run left, if the run died; call it when the command has ended."""
        note, self._note = self._note, None
        if note is None:
            return
        # It stays locked as long as another process of the run lives.
        note.close(is_done=False)
        is_kept = died and _has_begun(note) and not self._release_own(note)
        if not is_kept:
            note.close(is_done=True)
        if _has_begun(note) and (is_kept or not died):
            self._tell_left(note)

    def _release_own(self, note: ProcessNote) -> bool:
        with locked_file.lock_unused(note.path, if_missing=True) as is_over:
            if is_over:
                return self._release(note)
        self.say(f"{self.target} stays as it is: processes of the command run on")
        return False

    def _release(self, note: ProcessNote) -> bool:
        """Release the lease that a dead run left, and return whether its note is of no more use."""
        patience = Deadline(_RELEASE_SECONDS)
        try:
            lock = _find_lock(lease_state.look(self.target, patience), note)
            if lock is None:
                return True
            if others := self.find_others():
                self.say(f"{self.target} stays locked: {', '.join(others)} may hold it")
                return False
            # The service tells whether the lease has this id. Then only that lease can be released.
            lease_state.look(self.target, patience, lock.id)
            actions.release(self.target, Conditions(lease_id=lock.id), patience)
        except (Locked, NotFound):
            return True
        except AzguardError as error:
            self.say(f"warning: {self.target} could not be unlocked: {error.message}")
            return False
        self.say(f"{self.target} is unlocked: the run that held it has died ({lock})")
        return True

    def _tell_left(self, note: ProcessNote) -> None:
        """Say that the state is locked still, if it is by this run."""
        try:
            lock = _find_lock(lease_state.look(self.target, Deadline(_RELEASE_SECONDS)), note)
        except AzguardError:
            return
        if lock is not None:
            self.say(f"warning: {self.target} is still locked by {lock}; its id is {lock.id}")

    def _tell(self, state: LeaseState) -> None:
        self.say(f"waiting for {state.address}: it is {shown.describe(state)}")


def _find_lock(state: LeaseState, note: ProcessNote) -> TerraformLock | None:
    """Return the lock that a run took, as far as its lock info says so."""
    lock, run = owners.read_terraform(state.metadata), note.facts
    if state.free or state.duration != "infinite" or lock is None:
        return None
    if lock.who != run.get("who") or lock.id == run.get("before"):
        return None
    created = find_moment(lock.created)
    return lock if created is not None and created >= datetime.fromisoformat(run["began"]) - _SLACK else None


def _find_terraform() -> list[str]:
    """Return the processes of this machine that are Terraform, for people; any may be where that cannot be known."""
    if not tree.IS_KNOWN:
        return ["a process of this machine"]
    return list(map(str, tree.find_named(_PROGRAMS)))
