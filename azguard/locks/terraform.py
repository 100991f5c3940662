"""``lock run --terraform``: wait for the lock of a Terraform state, and release what a run that died left of it.

Terraform locks its state by an infinite lease, whose id is the id in its lock info. A run that is killed leaves it, and
blocks all others. Here the lease is released, never broken, and only if all of this is true:

- the run died: a signal ended it, or azguard itself was killed;
- no process of the run lives any more, and no other Terraform runs on this machine;
- the lock info names this user on this machine, is younger than the run, and is not the one that was there before;
- the service confirms that the lease has the id of the lock info.

Not guaranteed: two machines, or containers, of the same name and user cannot be told apart by their lock info. A run
that is killed between its lease and its lock info leaves a lease whose id is not known.

Source: hashicorp/terraform, internal/backend/remote-state/azure/client.go and internal/states/statemgr/locker.go
"""

import getpass
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, GaveUp, Locked, NotFound
from azguard.leases import actions, owners, shown, waiting
from azguard.leases import state as lease_state
from azguard.leases.owners import TerraformLock
from azguard.leases.state import LeaseState
from azguard.locks.run_notes import RunFile, RunNote, RunNotes
from azguard.processes import tree
from azguard.requests.deadline import Deadline

# Bounded: what is left can be released later, by the next run or by hand.
_RELEASE_SECONDS = 10.0
# Both times are of this machine's clock, which can be set back a little meanwhile.
_SLACK = timedelta(seconds=2)
# OpenTofu's backend is Terraform's.
_PROGRAMS = ("terraform", "tofu")


@dataclass
class StateGuard:
    """The lock of one Terraform state around one run of a command."""

    target: Target
    notes: RunNotes
    #: How many seconds to wait for another run.
    wait_seconds: float
    #: Called with each line that people must see.
    say: Callable[[str], None]
    #: Draws a random number between two others.
    uniform: Callable[[float, float], float]
    #: Returns the processes on this machine that may hold a state, for people.
    find_others: Callable[[], list[str]] = field(default_factory=lambda: find_terraform)
    _file: RunFile | None = None

    def open(self) -> None:
        """Note that a run begins. Call it before the first process of the run is started: all keep the note locked."""
        self._file = self.notes.open()

    def wait(self) -> None:
        """Release what dead runs of this machine left, and wait until no other run holds the state.

        Raises:
            GaveUp: another run still holds it when the time is up. The command is not to be run.
        """
        for file in self.notes.find_over(str(self.target.address), self.target.endpoint):
            if self._release(file):
                file.remove()
        try:
            free = waiting.until_free(self.target, Deadline(self.wait_seconds), self._tell, self.uniform)
            before = owners.read_terraform(free.metadata)
        except NotFound:
            before = None  # Terraform makes it.
        except GaveUp as error:
            raise error.but(
                message=f"{error.message}; the command was not run", reason="terraform_state_busy"
            ) from error
        if self._file is not None:
            self._file.write(
                RunNote(
                    address=str(self.target.address),
                    endpoint=self.target.endpoint,
                    who=f"{getpass.getuser()}@{socket.gethostname()}",
                    began=datetime.now(UTC).isoformat(),
                    before=None if before is None else before.id,
                )
            )

    def finish(self, *, died: bool) -> None:
        """Release the lease that the run left, if the run died; call it when the command has ended."""
        file, self._file = self._file, None
        if file is None:
            return
        file.close()
        is_kept = died and file.note is not None and not self._release_own(file)
        if not is_kept:
            file.remove()
        if file.note is not None and (is_kept or not died):
            self._tell_left(file.note)

    def _release_own(self, file: RunFile) -> bool:
        if file.is_over():
            return self._release(file)
        self.say(f"{self.target} stays as it is: processes of the command run on")
        return False

    def _release(self, file: RunFile) -> bool:
        """Release the lease that a dead run left, and return whether its note is of no more use."""
        patience = Deadline(_RELEASE_SECONDS)
        try:
            state = lease_state.look(self.target, patience)
            lock = None if file.note is None else _find_lock(state, file.note)
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

    def _tell_left(self, note: RunNote) -> None:
        """Say that the state is locked still, if it is by this run."""
        try:
            lock = _find_lock(lease_state.look(self.target, Deadline(_RELEASE_SECONDS)), note)
        except AzguardError:
            return
        if lock is not None:
            self.say(f"warning: {self.target} is still locked by {lock}; its id is {lock.id}")

    def _tell(self, state: LeaseState) -> None:
        self.say(f"waiting for {state.address}: it is {shown.describe(state)}")


def _find_lock(state: LeaseState, note: RunNote) -> TerraformLock | None:
    """Return the lock that a run took, as far as its lock info says so."""
    lock = owners.read_terraform(state.metadata)
    if state.free or state.duration != "infinite" or lock is None or lock.who != note.who or lock.id == note.before:
        return None
    created = _parse_time(lock.created)
    return lock if created is not None and created >= datetime.fromisoformat(note.began) - _SLACK else None


def _parse_time(text: str) -> datetime | None:
    """Return the time of a lock info; Go writes it with nanoseconds."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def find_terraform() -> list[str]:
    """Return the processes of this machine that are Terraform, for people; any may be where that cannot be known."""
    if not tree.IS_KNOWN:
        return ["a process of this machine"]
    return [f"{each.name} (pid {each.pid})" for each in tree.find_named(_PROGRAMS)]
