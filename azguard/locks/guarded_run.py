"""A command under locks of any kind: acquire them, run it under the guardian, end it if one is lost, release them.

Its heartbeat is a file that is there, and fresh, as long as the locks are held: for its own checks, and for monitoring.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from azguard import times
from azguard.atomic_files import write_atomically
from azguard.errors import CommandNotFound, ConfigError, GaveUp, LockLost, NotExecutable
from azguard.frozen import frozen
from azguard.processes.guardian import Ended, Guardian
from azguard.processes.signals import Stops, ignore_ending, pass_on_all, raise_at_end
from azguard.times import iso

# The exit status of a command that a signal ended is at least this, as a shell tells it too.
_SIGNALLED = 128
_SILENT = "the process that guards the command was stopped, so that the command had to be ended"


@frozen
class GuardedCommand:
    """What to run, and how it ends."""

    words: Sequence[str]
    environ: Mapping[str, str]
    #: How many seconds the command has to end before it is killed.
    grace: float
    #: What to do with the command when a lock is lost: term, kill or continue.
    on_lost: str
    #: Called with each line that people must see.
    say: Callable[[str], None]
    #: The one lock it runs under; None if there are several.
    address: str | None = None
    #: The file that says until when the locks are held; None is no file.
    heartbeat: Path | None = None
    #: Whether it runs under a lock around us, which ends us when that is lost.
    is_nested: bool = False
    #: The exit status for a lock that others hold; with 0 the command is left to its holder.
    busy_status: int = GaveUp.exit_code
    #: The exit status for a lock that is lost.
    lost_status: int = LockLost.exit_code
    #: Whether its locks have fences, with which what it wrote can be told from what the next holder wrote.
    is_fenced: bool = True


class Locks(Protocol):
    """The locks of one run, as it acquires, keeps and releases them."""

    def acquire(self, watch: "GuardedRun") -> None:
        """Acquire all, and keep them; ``watch`` is told what happens to them.

        Raises:
            GaveUp: one is busy, and the time for waiting is over.
        """

    def export(self) -> Mapping[str, str]:
        """Return the variables that tell the command its locks."""

    def confirm(self) -> None:
        """Find out whether they are held still, before a command that was stopped goes on."""

    def explain_late(self) -> tuple[str, ...]:
        """Return why they were not confirmed in time, for people: a line each."""

    def release(self) -> tuple[str, ...]:
        """Release what this run has acquired; return why a lock was found lost by then, a line each."""

    def finish(self, lost: tuple[str, ...], ended: Ended) -> None:
        """Write down how the run and its command ended, now that the locks are free."""


def run(command: GuardedCommand, locks: Locks, *, conclude: Callable[[bool], None] | None = None) -> int:
    """Run a command under locks and return its exit status, 128 + N if signal N ended it.

    ``conclude`` is called at the end in any case, and told whether the command died. Call it on the main thread, before
    any other thread is started.

    Raises:
        AzguardError: see ``GuardedRun.run``.
    """
    died = True
    guardian = Guardian.fork()
    try:
        ended = GuardedRun(command, locks, guardian).run()
        died = ended.status >= _SIGNALLED or (guardian.was_told_to_end and ended.status != 0)
    except GaveUp as error:
        if not command.busy_status:  # Another holder does the work: that counts as success.
            command.say("\n  ".join((error.message, *error.detail)))
            return 0
        raise error.but(exit_status=command.busy_status) from error
    except LockLost as error:
        raise error.but(exit_status=command.lost_status) from error
    finally:
        guardian.close()
        if conclude is not None:
            with ignore_ending():
                conclude(died)
    if left := guardian.find_left_running():
        command.say(f"warning: the lock is released, but processes of the command run on: {', '.join(left)}")
    if ended.typed and ended.signal == signal.SIGINT:
        # Ctrl-C reached the command alone, which had the terminal. The script that we are a line of gets it now.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.killpg(os.getpgrp(), signal.SIGINT)
    return ended.status


class GuardedRun:
    """One run: the locks held, and the guardian that runs the command."""

    def __init__(
        self,
        command: GuardedCommand,
        locks: Locks,
        guardian: Guardian,
        now: Callable[[], float] = times.read_boot_clock,
    ) -> None:
        self._command = command
        self._locks = locks
        self._guardian = guardian
        self._now = now
        self._ends: dict[str, float] = {}
        #: The first reason why a lock counts as lost, a line each; empty while none does.
        self._lost: tuple[str, ...] = ()
        self._heartbeat = Heartbeat(command.heartbeat, command.say)

    def run(self) -> Ended:
        """Return how the command ended, once the locks are released.

        Raises:
            GaveUp: a lock is busy, and the time for waiting is over. The command was not run.
            LockLost: a lock was lost while the command ran.
            CommandNotFound, NotExecutable: the command could not be started.
        """
        try:
            with raise_at_end():
                self._locks.acquire(self)
            with pass_on_all(self._guardian.pass_on) as stops:
                ended = self._supervise(stops)
                self._release()
                self._locks.finish(self._lost, ended)
        except BaseException as error:
            with ignore_ending():
                self._guardian.close()
                self._release()
                if isinstance(error, (CommandNotFound, NotExecutable)):
                    self._locks.finish(self._lost, Ended(error.exit_code))
            raise
        if self._lost:
            raise self._build_lock_lost(ended)
        return ended

    def note_held(self, name: str, ends: float) -> None:
        """Note that a lock is held until then at least, on ``times.read_boot_clock``."""
        self._ends[name] = ends
        until = min(self._ends.values())
        self._guardian.extend(until)
        self._heartbeat.beat(until - self._now())

    def note_loss(self, why: str) -> None:
        self._lost = self._lost or (why,)
        # First: a disk that hangs must not keep the command running.
        self._guardian.lost()
        self._heartbeat.stop()
        if self._command.on_lost == "continue":
            self._command.say(f"warning: the lock is lost, and the command goes on: {why}")

    def keep_open(self, descriptor: int) -> None:
        """Keep a file open until the command has ended, even if this process is killed."""
        self._guardian.keep_open(descriptor)

    def check_held(self) -> None:
        """See that no lock is lost, while another is waited for."""
        if self._lost:
            raise LockLost("a lock was lost before the command was started", detail=self._lost)

    def _supervise(self, stops: Stops) -> Ended:
        self.check_held()
        self._guardian.start(
            self._command.words,
            {**self._command.environ, **self._locks.export()},
            ends=min(self._ends.values(), default=float("inf")),
            grace=self._command.grace,
            on_lost=self._command.on_lost,
            nested=self._command.is_nested,
        )

        def handle(message: dict[str, Any]) -> None:
            if message["is"] == "killed":
                self._command.say("warning: the process that guards the command was killed, so the command is ended")
            elif message["is"] in ("late", "silent"):
                why = self._locks.explain_late() if message["is"] == "late" else (_SILENT,)
                self._lost = self._lost or why
                self._heartbeat.stop()
            elif (message["terminal"] or stops.asked) and stops.stop():
                # A stopped command goes on only after the locks have been confirmed.
                self._locks.confirm()
                self._guardian.continue_()

        return self._guardian.wait(handle)

    def _release(self) -> None:
        self._heartbeat.stop()
        found_lost = self._locks.release()
        self._lost = self._lost or found_lost

    def _build_lock_lost(self, ended: Ended) -> LockLost:
        left = [f"this could not be ended, and runs on: {each}" for each in ended.left]
        return LockLost(
            "the lock was lost while the command ran",
            address=self._command.address,
            detail=(*self._lost, f"the command's own exit status: {ended.status}", *left),
            reason="lock_lost" if self._command.is_fenced else "lock_lost_unfenced",
            facts={"command_status": ended.status},
        )


class Heartbeat:
    """Writes the file at each renewal, and removes it when the lock is lost or released. None is no file."""

    def __init__(self, path: Path | None, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        #: What was written last; empty before the first time.
        self._written = ""
        self._stopped = False
        self._writing = threading.Lock()

    def beat(self, seconds: float) -> None:
        """Say that the lock is held, for so many seconds unless it is renewed."""
        if self._path is None:
            return
        now = datetime.now(UTC)
        record = {"renewed": iso(now), "held_until": iso(now + timedelta(seconds=seconds)), "pid": os.getpid()}
        with self._writing:
            if not self._stopped:
                self._write(self._path, json.dumps(record) + "\n")

    def stop(self) -> None:
        """Delete the file, unless another has written it; write it no more. One that cannot be deleted is only said."""
        with self._writing:
            is_there = self._written and not self._stopped
            self._stopped = True
            if self._path is not None and is_there:
                self._delete(self._path)

    def _delete(self, path: Path) -> None:
        try:
            # A lock that was broken may be held anew, by a run with the same file, before that is noticed here.
            if path.read_text() == self._written:
                path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            self._say(f"warning: {path} cannot be deleted: {error.strerror}; the lock is not held any more")

    def _write(self, path: Path, text: str) -> None:
        try:
            # Not durable: a slow disk must not hold up the renewal, and after a crash the lock is lost anyway.
            write_atomically(path, text.encode(), durable=False)
            self._written = text
        except OSError as error:
            words = f"{path} cannot be written: {error.strerror}"
            if not self._written:
                raise ConfigError(words) from error
            self._say(f"warning: {words}")
