"""``file lock run``: a file is open, and so locked, while a command runs; the command is ended if the handle is lost.

Not guaranteed: what the server frees, because the connection or the handle is gone, another may lock at once, while the
command is still being ended. SIGSTOP does not free it.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from azguard import times
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, BadRequest, Forbidden, GaveUp, LockLost, NotFound, Unavailable
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.locks import guarded_run
from azguard.locks.guarded_run import GuardedCommand, GuardedRun
from azguard.locks.held_lock import Confirmer
from azguard.processes.guardian import Ended
from azguard.requests.deadline import Deadline
from azguard.smb import file_lock
from azguard.smb.file_lock import FileLock, FileLockSettings
from azguard.smb.session import TRANSIENT, ShareSession, SmbCut, SmbRefused, SmbSilent, name_of_status

# The longest pause between two attempts at first, and later: each attempt is a request, which Azure may charge for.
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
# A server that takes an oplock back from another client waits this long for it.
_OPLOCK_SECONDS = 40.0
# How long a connection that ended may be made anew without an attempt in between that the server answered.
_MOST_CUTS = 2
# A long wait is reported again after this time.
_REMINDER_SECONDS = 60.0
# How long a command that was stopped waits for an answer before it goes on.
_RESUME_SECONDS = 5.0
# An operator who closes the handle lets the next one in at once, and only a request shows it.
_LOOK_SECONDS = 1.0
# A small request: one that takes longer is better sent anew.
_ANSWER_SECONDS = 3.0
_NOT_ANSWERED = "the server did not answer in time"
# The share may be missing from SMB for other reasons, which the error names already.
_PATIENCE_SECONDS = 4.0


@frozen
class FileLockPlan:
    """What to run while which file is locked."""

    lock: FileLock
    command: GuardedCommand
    settings: FileLockSettings
    #: Is called when the file is locked, before the command starts.
    on_held: Callable[[], None] = lambda: None


def run_locked(plan: FileLockPlan) -> int:
    """Run a command while its file is locked and return its exit status; see ``guarded_run.run``."""
    session = ShareSession(plan.lock.place, plan.settings.patience)
    locks = FileLocks(plan.lock, plan.settings, plan.command.environ, session, plan.on_held)
    return guarded_run.run(plan.command, locks)


class FileLocks:
    """One file, locked by one run; see ``guarded_run.Locks``."""

    def __init__(
        self,
        lock: FileLock,
        settings: FileLockSettings,
        environ: Mapping[str, str],
        session: ShareSession,
        on_held: Callable[[], None] = lambda: None,
        now: Callable[[], float] = times.read_boot_clock,
    ) -> None:
        self._lock = lock
        self._settings = settings
        self._environ = environ
        self._on_held = on_held
        self._now = now
        self._session = session
        self._is_connected = False
        self._watcher: Watcher | None = None
        #: Whether we have it open, so that it is to be closed.
        self._is_open = False
        #: Whether a run around us holds it.
        self._is_inherited = False
        #: When the file was asked for last.
        self._sent_at = 0.0
        self._told_at: float | None = None

    def acquire(self, watch: GuardedRun) -> None:
        """Open the file so that others are kept out, and wait for that.

        Raises:
            GaveUp: others have it open, and the time for waiting is over.
            NotFound: there is no such share, or no such file and none may be made.
            Unavailable: the server does not answer.
            AzguardError: see ``ShareSession.connect``.
        """
        self._is_inherited = file_lock.find_outer_lock(self._lock, self._environ) is not None
        if self._is_inherited:
            self._confirm_outer()
            return
        sent_at = self._wait_for_file()
        self._is_open = True
        # If azguard is killed, the server frees the file only when the guardian ends too, after the command.
        watch.keep_open(self._session.descriptor)
        watch.note_held(self._lock.name, sent_at + self._settings.lost_after)
        self._settings.tell(f"lock: {self._lock} is held")
        self._watcher = Watcher(
            self._session,
            on_held=lambda sent: watch.note_held(self._lock.name, sent + self._settings.lost_after),
            on_loss=lambda why: watch.note_loss(f"{self._lock.name}: {why}"),
            tell=self._settings.tell,
            now=self._now,
        )
        self._watcher.start()
        self._on_held()

    def export(self) -> Mapping[str, str]:
        return {} if self._is_inherited else file_lock.export_lock(self._lock, self._environ)

    def confirm(self) -> None:
        if self._watcher is not None:
            self._watcher.confirm_now(_RESUME_SECONDS)

    def explain_late(self) -> tuple[str, ...]:
        return () if self._watcher is None else self._watcher.explain_late()

    def release(self) -> tuple[str, ...]:
        """Close the file, and end the connection; return why the lock was found lost by then."""
        lost: tuple[str, ...] = ()
        if self._watcher is not None:
            self._watcher.stop()
        try:
            if self._is_open and (self._watcher is None or self._watcher.loss is None):
                self._session.close()
        except (SmbRefused, SmbCut) as error:
            why = error.why if isinstance(error, SmbCut) else f"status {error.status:#x}"
            lost = (f"{self._lock.name}: the handle was gone when it was to be closed: {why}",)
        except SmbSilent:
            self._settings.say(f"warning: {self._lock.name} could not be closed in time; its connection is ended")
        finally:
            self._is_open = False
            self._session.disconnect()
        return lost

    def finish(self, lost: tuple[str, ...], ended: Ended) -> None:
        """Do nothing: a file has no history of its locks."""

    def _wait_for_file(self) -> float:
        """Return when the request was sent that opened the file, on ``times.read_boot_clock``."""
        deadline = Deadline(self._settings.wait)
        longest = _FIRST_PAUSE_SECONDS
        while True:
            if self._attempt(deadline):
                return self._sent_at
            if deadline.passed:
                raise self._build_gave_up()
            self._tell_waiting()
            deadline.pause(self._settings.uniform(longest / 2, longest))
            longest = min(longest * 2, _LONGEST_PAUSE_SECONDS)

    def _attempt(self, deadline: Deadline) -> bool:
        """Try to open the file once; connect if need be."""
        settings = self._settings
        patience = max(settings.patience, min(deadline.remaining, _OPLOCK_SECONDS))
        for _ in range(_MOST_CUTS):
            self._connect()
            self._sent_at = self._now()
            try:
                return self._session.open(self._lock, create=settings.create, patience=patience)
            except SmbSilent as silent:
                # What is granted late must not be held: it ends with the connection.
                self._disconnect()
                if silent.is_pending:
                    return False
                raise Unavailable(
                    f"{self._lock.place} did not answer in {patience:g} s", self._lock.name, reason="smb_no_answer"
                ) from silent
            except SmbCut as cut:
                self._disconnect()
                settings.tell(f"lock: the connection ended ({cut.why}); connecting again")
        raise Unavailable(
            f"{self._lock.place} ends every connection when asked for {self._lock.name}",
            self._lock.name,
            reason="smb_no_answer",
        )

    def _connect(self) -> None:
        if not self._is_connected:
            try:
                self._session.connect(self._lock)
            except (Forbidden, NotFound) as error:
                raise _explain_missing_share(error, self._lock) from error
            self._is_connected = True

    def _disconnect(self) -> None:
        self._session.disconnect()
        self._is_connected = False

    def _confirm_outer(self) -> None:
        """Ask the server whether the file that a run around us has locked is still in use."""
        lost = "it is not open any more"
        try:
            self._connect()
            is_free = self._session.open(self._lock, create=False, patience=self._settings.patience)
            self._settings.tell(f"lock: {self._lock} is held by the file lock run around this one")
        except NotFound as error:
            is_free = True
            lost = error.message
        except (SmbSilent, SmbCut) as error:
            raise Unavailable(
                f"{self._lock.place} does not say whether {self._lock.name} is still locked",
                self._lock.name,
                reason="smb_no_answer",
            ) from error
        finally:
            self._disconnect()
        if is_free:
            raise LockLost(
                f"the lock around this command is lost: {lost}",
                address=self._lock.name,
                reason="outer_file_lock_lost",
            )

    def _tell_waiting(self) -> None:
        now = self._now()
        if self._told_at is None or now - self._told_at >= _REMINDER_SECONDS:
            self._told_at = now
            self._settings.say(f"waiting for {self._lock}: another has it open")

    def _build_gave_up(self) -> GaveUp:
        waited = f" after {self._settings.wait:g} s" if self._settings.wait else ""
        return GaveUp(
            f"{self._lock} is in use by others{waited}; the command was not run",
            address=self._lock.name,
            reason="file_in_use",
            values={"share": self._lock.target.address.container},
        )


class Touched(Protocol):
    """What is asked about: an open file."""

    def touch(self, seconds: float) -> None:
        """Ask about it; see ``session.ShareSession.touch``."""


class Watcher(Confirmer):
    """Asks about an open file.

    ``on_held`` is called with the time at which a question was sent that the server answered, from the thread. The lock
    counts as lost when the server says so, or the connection has ended.
    """

    longest_seconds = _ANSWER_SECONDS + 1

    def __init__(
        self,
        file: Touched,
        *,
        on_held: Callable[[float], None],
        on_loss: Callable[[str], None],
        tell: Callable[[str], None],
        now: Callable[[], float] = times.read_boot_clock,
    ) -> None:
        self._file = file
        self._on_held = on_held
        #: Why the latest question has no answer; None if it has one.
        self.failure: str | None = None
        super().__init__(on_loss, tell, now, float("-inf"))

    def explain_late(self) -> tuple[str, ...]:
        """Return why it is not known that the file is open, for people: a line each."""
        return (_NOT_ANSWERED,) if self.failure in (None, _NOT_ANSWERED) else (_NOT_ANSWERED, str(self.failure))

    def _ask(self) -> float:
        self._look()
        return self._now() + _LOOK_SECONDS

    def _look(self) -> None:
        sent_at = self._now()
        try:
            self._file.touch(_ANSWER_SECONDS)
        except SmbSilent:
            self._note_failure(_NOT_ANSWERED)
        except SmbRefused as refused:
            if refused.status in TRANSIENT:
                self._note_failure(f"the server has no room: {name_of_status(refused.status)}")
            else:
                self._note_loss(f"the server says {name_of_status(refused.status)}")
        except SmbCut as cut:
            self._note_loss(f"the handle is gone: {cut.why}")
        else:
            self.failure = None
            if not self._is_stopped:
                self._on_held(sent_at)

    def _note_failure(self, why: str) -> None:
        self.failure = why
        self._tell(f"lock: {why}; asking again")


def _explain_missing_share(error: AzguardError, lock: FileLock) -> AzguardError:
    """Return the error for a share that the SMB server does not let in, with its cause if REST knows it."""
    from azguard.resources import properties

    share = Target(lock.target.account, Address(Kind.SHARE, (lock.target.address.container,)))
    try:
        found = properties.fetch(share, Conditions(), Deadline(_PATIENCE_SECONDS))
    except AzguardError:
        return error
    if "NFS" not in (found.protocols or ()):
        return error
    return BadRequest(
        f"{share.address} is a share of the protocol NFS, which has no SMB", lock.name, reason="smb_share_is_nfs"
    )
