"""``lock run``: acquire, run, renew, and end the command if the lock is lost.

Not guaranteed: a lease stops writers that respect it. It cannot stop a process that was paused, or cut off, from
finishing a write to somewhere that does not check the fence.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azguard.accounts.target import Target
from azguard.errors import AzguardError, GaveUp, Locked, LockLost, NotFound
from azguard.locks import environment, log, own_lease, readers
from azguard.locks.acquire import LockAcquisition
from azguard.locks.heartbeat import Heartbeat
from azguard.locks.renewal import HeldLock, Renewer, describe_late
from azguard.locks.settings import ANSWER_SECONDS, AcquireSettings, LockRequest
from azguard.processes import clock
from azguard.processes.guardian import Ended, Guardian
from azguard.processes.signals import Stops, ignore_ending, pass_on_all, raise_at_end
from azguard.requests.deadline import Deadline

if TYPE_CHECKING:
    from azguard.locks.terraform import StateGuard

# Bounded: if the release fails, the lease expires on its own.
_RELEASE_SECONDS = 5.0
# The exit status of a command that a signal ended is at least this, as a shell tells it too.
_SIGNALLED = 128
_SILENT = "the process that guards the command was stopped, so that the command had to be ended"
# How long a command that was stopped waits for a renewal before it goes on.
_RESUME_SECONDS = 5.0


@dataclass(frozen=True)
class LockPlan:
    """What to run under which locks."""

    locks: Sequence[LockRequest]
    command: Sequence[str]
    environ: Mapping[str, str]
    settings: AcquireSettings
    #: How many seconds to wait for other holders.
    wait: float
    #: How many seconds the command has to end before it is killed.
    grace: float
    #: What to do with the command when a lock is lost: term, kill or continue.
    on_lost: str
    #: The file that says until when the locks are held; None is no file.
    heartbeat: Path | None = None
    #: Whether to add this run to the history of each lock.
    keeps_log: bool = True
    #: Is told each lock that is held, before the command starts.
    on_held: Callable[[HeldLock], None] = lambda held: None
    #: The Terraform state that the command locks itself; None is none.
    state: "StateGuard | None" = None


def run(plan: LockPlan, busy: int) -> int:
    """Run a command under its locks and return its exit status, 128 + N if signal N ended it.

    ``busy`` is the exit status of the error for a lock that others hold. Call it on the main thread, before any other
    thread is started.

    Raises:
        AzguardError: see ``LockRun.run``.
    """
    died = True
    if plan.state is not None:
        plan.state.open()
    guardian = Guardian.fork()
    try:
        ended = LockRun(plan, guardian).run()
        died = ended.status >= _SIGNALLED or (guardian.was_told_to_end and ended.status != 0)
    except GaveUp as error:
        if not busy:  # Another holder does the work: that counts as success.
            plan.settings.say("\n  ".join((error.message, *error.detail)))
            return 0
        raise error.but(exit_status=busy) from error
    finally:
        guardian.close()
        if plan.state is not None:
            with ignore_ending():
                plan.state.finish(died=died)
    if left := guardian.find_left_running():
        plan.settings.say(f"warning: the lock is released, and what the command started runs on: {', '.join(left)}")
    if ended.typed and ended.signal == signal.SIGINT:
        # Ctrl-C reached the command alone, which had the terminal. The script that we are a line of gets it now.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.killpg(os.getpgrp(), signal.SIGINT)
    return ended.status


class LockRun:
    """One run: the locks held, who renews them, and the guardian that runs the command."""

    def __init__(self, plan: LockPlan, guardian: Guardian, now: Callable[[], float] = clock.now) -> None:
        self._plan = plan
        self._guardian = guardian
        self._now = now
        self._held: list[HeldLock] = []
        self._renewers: list[Renewer] = []
        self._ends: dict[str, float] = {}
        #: The first reason why a lock counts as lost, a line each; empty while none does.
        self._lost: tuple[str, ...] = ()
        #: The locks that this run acquired, each with the slot of it that is held.
        self._acquired: list[tuple[Target, HeldLock]] = []
        #: Whether the service did not answer at the end.
        self._is_cut_off = False
        self._heartbeat = Heartbeat(plan.heartbeat, plan.settings.say)

    def run(self) -> Ended:
        """Return how the command ended, once the locks are released.

        Raises:
            GaveUp: a lock is busy, and the time for waiting is over. The command was not run.
            LockLost: a lock was lost while the command ran.
            CommandNotFound, NotExecutable: the command could not be started.
        """
        try:
            with raise_at_end():
                self._acquire()
            with pass_on_all(self._guardian) as stops:
                ended = self._supervise(stops)
                self._release()
                self._write_log()
        except BaseException:
            with ignore_ending():
                self._guardian.close()
                self._release()
            raise
        if self._lost:
            raise self._build_lock_lost(ended)
        return ended

    def _acquire(self) -> None:
        deadline = Deadline(self._plan.wait, answer_seconds=ANSWER_SECONDS)
        order = {str(each.target.address): each for each in self._plan.locks}
        for name in sorted(order):
            request = order[name]
            around = environment.find_outer_lock(request.target, self._plan.environ)
            reading = readers.find_around(request.target, self._plan.environ)
            if around is not None:
                self._inherit(request.target, around)
            elif reading is not None:
                readers.check_reads(request)
                self._inherit(*reading)
            else:
                self._hold(LockAcquisition(request, self._plan.settings, deadline).run())
                self._acquired.append((request.target, self._held[-1]))
            self._plan.on_held(self._held[-1])
        if self._plan.state is not None:
            self._plan.state.wait()

    def _inherit(self, target: Target, around: environment.OuterLock) -> None:
        """Count a lock as held that is held around us."""
        if around.seconds is None:
            self._held.append(self._confirm_outer_lock(target, around))
        else:
            self._hold(self._renew_outer_lock(target, around, around.seconds))

    def _confirm_outer_lock(self, target: Target, around: environment.OuterLock) -> HeldLock:
        """Return a lock that the lock run around us holds, as the service confirms."""
        settings = self._plan.settings
        environment.confirm(target, around, settings.patience_now(), tell=settings.tell, reason="outer_lock_lost")
        return HeldLock(
            target=target,
            lease_id=around.lease_id,
            seconds=settings.seconds,
            fence=around.fence,
            ends=self._now(),
            inherited=True,
        )

    def _renew_outer_lock(self, target: Target, around: environment.OuterLock, seconds: int) -> HeldLock:
        """Return a lock that a process in the background holds, which would not end our command when it is lost."""
        sent_at = self._now()
        environment.renew(target, around, self._plan.settings.patience_now())
        return HeldLock(
            target=target,
            lease_id=around.lease_id,
            seconds=seconds,
            fence=around.fence,
            ends=sent_at + seconds,
            inherited=True,
        )

    def _hold(self, held: HeldLock) -> None:
        name = str(held.target.address)
        self._held.append(held)
        self._plan.settings.tell(f"lock: {name} is held, fence {held.fence}")
        self._note_renewal(name, held.ends)
        renewer = Renewer(
            held,
            on_renewal=lambda ends: self._note_renewal(name, ends),
            on_loss=lambda why: self._note_loss(f"{name}: {why}"),
            tell=self._plan.settings.tell,
            now=self._now,
        )
        self._renewers.append(renewer)
        renewer.start()

    def _note_renewal(self, name: str, ends: float) -> None:
        self._ends[name] = ends
        until = min(self._ends.values())
        self._guardian.extend(until)
        self._heartbeat.beat(until - self._now())

    def _note_loss(self, why: str) -> None:
        self._lost = self._lost or (why,)
        self._heartbeat.stop()
        self._guardian.lost()
        if self._plan.on_lost == "continue":
            self._plan.settings.say(f"warning: the lock is lost, and the command goes on: {why}")

    def _supervise(self, stops: Stops) -> Ended:
        plan = self._plan
        if self._lost:
            raise LockLost("a lock was lost before the command was started", detail=self._lost)
        self._guardian.start(
            plan.command,
            {
                **plan.environ,
                **environment.export_locks([(each.target, each.lease_id, each.fence) for each in self._held]),
            },
            ends=min(self._ends.values(), default=float("inf")),
            grace=plan.grace,
            on_lost=plan.on_lost,
            nested=environment.LOCK in plan.environ,
        )

        def handle(message: dict[str, Any]) -> None:
            if message["is"] == "killed":
                plan.settings.say("warning: the process that guards the command was killed, so the command is ended")
            elif message["is"] in ("late", "silent"):
                why = describe_late(self._renewers) if message["is"] == "late" else (_SILENT,)
                self._lost = self._lost or why
                self._heartbeat.stop()
            elif (message["terminal"] or stops.asked) and stops.stop():
                self._resume()

        return self._guardian.wait(handle)

    def _resume(self) -> None:
        """Let a stopped command go on, after the locks have been renewed."""
        for renewer in self._renewers:
            renewer.renew_now(_RESUME_SECONDS)
        self._guardian.continue_()

    def _release(self) -> None:
        self._heartbeat.stop()
        for renewer in self._renewers:
            renewer.stop()
        while self._held:
            held = self._held.pop()
            if not held.inherited:
                self._release_one(held)

    def _release_one(self, held: HeldLock) -> None:
        """Release a lock. If it is not ours any more, it was lost before the command ended."""
        patience = Deadline(_RELEASE_SECONDS, answer_seconds=ANSWER_SECONDS)
        try:
            own_lease.release(held.target, held.lease_id, patience)
            if held.is_shared:
                readers.delete(held.target)
        except (Locked, NotFound) as error:
            self._lost = self._lost or (f"{held.target.address}: {error.message}",)
        except AzguardError as error:
            self._is_cut_off = True
            left = round(self._ends[str(held.target.address)] - self._now())
            self._plan.settings.say(f"warning: {held.target} could not be released: {error.message}")
            if left > 0:
                self._plan.settings.say(f"it ends by itself within {left} s")
            else:
                self._lost = self._lost or describe_late(self._renewers)
            return
        self._plan.settings.records.remove(held.target, held.lease_id)

    def _write_log(self) -> None:
        """Add this run to the history of its locks, now that they are free."""
        if not self._plan.keeps_log or self._is_cut_off:
            return
        lost = "; ".join(self._lost) or None
        for lock, held in self._acquired:
            if held.record is not None:
                seconds = self._now() - (held.ends - held.seconds)
                log.append(lock, log.build_line(held.target, held.record, seconds, lost), self._plan.settings.tell)

    def _build_lock_lost(self, ended: Ended) -> LockLost:
        left = [f"this could not be ended, and runs on: {each}" for each in ended.left]
        return LockLost(
            "the lock was lost while the command ran",
            address=str(self._plan.locks[0].target.address) if len(self._plan.locks) == 1 else None,
            detail=(*self._lost, f"the command's own exit status: {ended.status}", *left),
            reason="lock_lost",
            facts={"command_status": ended.status},
        )
