"""``lock hold``: a lock that outlives the command that took it, renewed by a process in the background.

The process is forked before anything is sent, and itself waits for the lock, so that its connection and its
credentials are in no other process. It tells the command that the lock is held, and stays only after the command has
said so to the steps that follow. Until then it ends with the command.

Not guaranteed: what works under the lock is not ended when the lock is lost, as the command of ``lock run`` is. Each
step has to ask.
"""

import base64
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from azguard import times
from azguard.errors import AzguardError, ConfigError, Locked, LockLost, NotFound
from azguard.frozen import frozen
from azguard.leases import state as lease_state
from azguard.locks import held_lock, log, readers
from azguard.locks.acquire import LockAcquisition
from azguard.locks.held_lock import HeldLock, Renewer, describe_late
from azguard.locks.hold_records import HoldRecord, HoldRecords, HoldState, JobScope, find_place
from azguard.locks.lock_blobs import ANSWER_SECONDS, AcquireSettings, LockRequest
from azguard.locks.metrics import LockMetrics
from azguard.processes import child, identity
from azguard.processes.child import Channel, Forked
from azguard.processes.identity import KnownProcess
from azguard.processes.signals import ENDING, handle_unless_ignored, ignore_ending, raise_at_end
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.times import iso

#: The name of the process, as ``ps`` shows it.
NAME = "lock-holder"
# Bounded: if the release fails, the lease expires on its own.
_RELEASE_SECONDS = 5.0
# A process that is told to end gives back what it asked for first.
_ENDING_SECONDS = 10.0
# How often to look whether its time is over: a wait of the system stands still while the machine is suspended.
_TICK_SECONDS = 1.0


@frozen
class HoldPlan:
    """Which lock to hold, and how long."""

    request: LockRequest
    settings: AcquireSettings
    #: How many seconds to wait for other holders.
    wait: float
    holds: HoldRecords
    #: Whose hold it is.
    own: JobScope
    #: How many seconds to hold it; None is until it is released.
    lasts: float | None = None
    #: The process with which it ends; None if with none.
    watched: KnownProcess | None = None
    #: The file of a shell for the variables of later steps; None is none.
    env_file: str | None = None
    #: The file for a scraper; None is no file.
    metrics: Path | None = None

    def open_metrics(self) -> LockMetrics:
        """Return the metrics of the hold."""
        return LockMetrics(self.metrics, [self.name], _log)

    @property
    def name(self) -> str:
        """Return the lock, as it was asked for."""
        return str(self.request.target.address)

    def build_record(self, held: HeldLock) -> HoldRecord:
        """Return the record of a lock that was acquired, as of one without a process or an end."""
        return HoldRecord(
            lease_id=held.lease_id,
            lock=self.name,
            address=str(held.target.address),
            endpoint=held.target.endpoint,
            scope=self.own.scope,
            fence=held.fence,
            seconds=None,
            since=held.since if held.record is None else held.record.owner.since,
            until=None,
            pid=None,
            birth=None,
            place=find_place(),
            ends=None,
            log=None,
            keeps_history=self.settings.keeps_log,
            job=self.own.job,
            version=None if held.record is None else held.record.moved.after,
            env_file=self.env_file,
        )


def hold(plan: HoldPlan, publish: Callable[[HoldRecord], None]) -> HoldRecord:
    """Acquire a lock, leave a process that renews it, and return the record of both.

    ``publish`` tells the steps that follow. If it fails, the lock is released. Call it on the main thread, before any
    other thread is started, where ending signals raise KeyboardInterrupt.

    Raises:
        GaveUp: the lock is busy, and the time for waiting is over.
        LockLost: its lease has ended, because this machine was stopped meanwhile.
        AzguardError: see ``LockAcquisition``.
    """
    plan.holds.prune()
    plan.open_metrics().begin()
    begun = child.fork_to_background(NAME, lambda theirs: _Holder(plan, theirs).run())
    try:
        held = _await_held(begun)
        with ignore_ending():
            publish(held)
            begun.channel.send(do="keep")
            commits.announce()
    except BaseException:
        with ignore_ending():
            if not begun.let_go(_ENDING_SECONDS):
                begun.kill()
        raise
    return held


def _await_held(begun: Forked) -> HoldRecord:
    while (messages := begun.channel.receive()) is not None:
        for message in messages:
            if message["is"] == "failed":
                raise pickle.loads(base64.b64decode(message["error"]))  # noqa: S301  # our own child wrote it
            held = HoldRecord(**{**message["hold"], "state": HoldState(message["hold"]["state"])})
            if held.ends is not None and times.read_boot_clock() >= held.ends:
                # As after a suspend: whether it was renewed since is not known here.
                raise LockLost(f"the lock {held.address} was lost before it was told", held.address)
            return held
    raise AzguardError("the process that was to hold the lock was killed")


class _Holder:
    """The process in the background."""

    def __init__(self, plan: HoldPlan, channel: Channel, now: Callable[[], float] = times.read_boot_clock) -> None:
        self._plan = plan
        self._channel = channel
        self._now = now
        #: Set when it is to end: told so, or the lock is lost.
        self._over = threading.Event()
        #: Whether the command was told that the lock could not be had.
        self._is_told = False
        #: Why the lock counts as lost; None while it does not.
        self._lost: str | None = None
        #: Whether its record could not be written the last time: the log says so once, and not at each renewal.
        self._is_unwritable = False
        self._metrics = plan.open_metrics()

    def run(self) -> None:
        """Acquire the lock, say so, and hold it until its end."""
        threading.Thread(target=self._end_with_command, daemon=True).start()
        plan = self._plan
        settings = replace(plan.settings, owner=replace(plan.settings.owner, pid=os.getpid()))
        held: HeldLock | None = None
        try:
            # A signal that came during a write is raised once that is settled, perhaps with the lock held.
            with commits.suppress(), raise_at_end():
                deadline = Deadline(plan.wait, answer_seconds=ANSWER_SECONDS)
                held = LockAcquisition(plan.request, settings, deadline).run()
        except KeyboardInterrupt:
            if held is not None:
                with ignore_ending():
                    self._give_back(held)
            return
        except Exception as error:  # noqa: BLE001  # the command reports whatever it is
            self._fail(error)
            return
        with handle_unless_ignored(ENDING, lambda number, frame: self._over.set()):
            self._hold(held)

    def _end_with_command(self) -> None:
        """End with the command, unless it says before that the lock is to be kept."""
        while (messages := self._channel.receive()) is not None:
            if any(message["do"] == "keep" for message in messages):
                return
        if not self._is_told:
            # To the main thread, which alone runs handlers: another's signal would not wake it.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def _fail(self, error: BaseException) -> None:
        try:
            text = pickle.dumps(error)
        except Exception:  # noqa: BLE001  # an error of another library may hold what cannot be sent
            text = pickle.dumps(AzguardError(f"{type(error).__name__}: {error}"))
        self._is_told = True
        self._channel.send(**{"is": "failed", "error": base64.b64encode(text).decode()})

    def _hold(self, held: HeldLock) -> None:
        self._began = self._now()
        self._record = self._describe(held)
        renewer = Renewer(held, on_renewal=self._note_renewal, on_loss=self._note_loss, tell=_log, now=self._now)
        try:
            self._plan.holds.save(self._record)
            with self._plan.holds.explain_unwritable():
                child.leave_errors(self._plan.holds.file(held.lease_id, "log"))
        except ConfigError as error:
            self._give_back(held)
            self._fail(error)
            return
        self._metrics.note_held(self._plan.name, held.ends, held.fence)
        renewer.start()
        _log(f"{held.target} is held, fence {held.fence}")
        self._channel.send(**{"is": "held", "hold": asdict(self._record)})
        why = self._wait(renewer)
        _log(why)
        renewer.stop()
        with ignore_ending():
            self._finish(held, None if self._over.is_set() else why)

    def _describe(self, held: HeldLock) -> HoldRecord:
        plan = self._plan
        record = plan.build_record(held)
        until = None
        if record.since is not None and plan.lasts is not None:
            until = iso(datetime.fromisoformat(record.since) + timedelta(seconds=plan.lasts))
        pid = os.getpid()
        log_file = str(plan.holds.file(held.lease_id, "log"))
        return replace(
            record,
            seconds=held.seconds,
            until=until,
            pid=pid,
            birth=identity.find_birth(pid),
            ends=held.ends,
            log=log_file,
        )

    def _wait(self, renewer: Renewer) -> str:
        """Wait until the lock is lost or is to be released, and return which, for the log."""
        plan = self._plan
        while not self._over.wait(_TICK_SECONDS):
            self._save_if_deleted()
            if self._record.ends is not None and self._now() >= self._record.ends:
                self._lost = "; ".join(describe_late([renewer]))
                break
            if plan.lasts is not None and self._now() >= self._began + plan.lasts:
                return "its time is over"
            if plan.watched is not None and not plan.watched.lives:
                return f"process {plan.watched.pid} has ended"
        return "told to end" if self._lost is None else f"the lock is lost: {self._lost}"

    def _note_renewal(self, ends: float) -> None:
        self._record = replace(self._record, ends=ends)
        self._save()
        self._metrics.note_renewal(self._plan.name, ends)

    def _save_if_deleted(self) -> None:
        """Write the record again if the cache was deleted: by it alone the steps that follow find this process."""
        if not self._plan.holds.file(self._record.lease_id, "json").exists():
            self._save()

    def _save(self) -> None:
        try:
            self._plan.holds.save(self._record)
            self._is_unwritable = False
        except ConfigError as error:
            if not self._is_unwritable:
                _log(f"warning: {error.message}")
            self._is_unwritable = True

    def _note_loss(self, why: str) -> None:
        self._lost = self._lost or why
        self._over.set()

    def _finish(self, held: HeldLock, why: str | None) -> None:
        """Release the lock if it is not lost, and write down how it ended, and why if it was not told to end."""
        holds = self._plan.holds
        is_over = self._lost is not None
        if is_over and self._was_released(held):
            self._lost = None
            why = "by its id, from elsewhere"
        if not is_over:
            if (failure := self._release(held)) is not None:
                holds.close(self._record, HoldState.LEFT, failure)
                return
            _log("released" if self._lost is None else f"it was lost before: {self._lost}")
        held_lock.forget(held, self._plan.settings.records)
        if self._lost is None:
            self._metrics.note_release(self._plan.name)
            holds.close(self._record, HoldState.RELEASED, why)
        else:
            self._metrics.note_loss(self._plan.name)
            holds.close(self._record, HoldState.LOST, self._lost)
        if self._plan.settings.keeps_log and held.record is not None:
            seconds = self._now() - (held.ends - held.seconds)
            line = log.build_line(held.target, held.record, seconds, self._lost)
            log.append(self._plan.request.target, line, _log)

    def _was_released(self, held: HeldLock) -> bool:
        """Return whether another released the lock by its id, as ``lock release`` on another machine does."""
        try:
            found = lease_state.look(held.target, Deadline(_RELEASE_SECONDS, answer_seconds=ANSWER_SECONDS))
        except AzguardError:
            return False
        return held_lock.was_released(found, held.fence, None if held.record is None else held.record.moved.after)

    def _give_back(self, held: HeldLock) -> None:
        """Release a lock of which no step was told."""
        if self._release(held) is None:
            held_lock.forget(held, self._plan.settings.records)

    def _release(self, held: HeldLock) -> str | None:
        """Release the lock, and return why that failed; that it was lost before is noted."""
        try:
            patience = Deadline(_RELEASE_SECONDS, answer_seconds=ANSWER_SECONDS)
            self._lost = held_lock.find_loss(
                held_lock.release(held.target, held.lease_id, self._plan.settings.records, patience)
            )
            if held.is_shared:
                readers.delete(held.target)
        except (Locked, NotFound) as error:
            self._lost = error.message
        except AzguardError as error:
            _log(f"it could not be released: {error.message}")
            return error.message
        return None


def _log(text: str) -> None:
    try:
        sys.stderr.write(f"{iso(datetime.now(UTC).replace(microsecond=0))} {text}\n")
        sys.stderr.flush()
    except OSError:
        pass  # A full disk must not cost the lock.
