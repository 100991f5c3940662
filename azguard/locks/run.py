"""``lock run``: leases around a command, renewed while it runs; it is ended if one of them is lost.

Around work in this process, ``hold_lock`` does the same: that work asks itself whether the lock is held.

Not guaranteed: a lease stops writers that respect it. It cannot stop a process that was paused, or cut off, from
finishing a write to somewhere that does not check the fence.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from azguard import times
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, GaveUp, Locked, LockLost, NotFound, Unavailable
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import actions
from azguard.leases import state as lease_state
from azguard.locks import environment, guarded_run, held_lock, lock_blobs, log, readers
from azguard.locks.acquire import LockAcquisition
from azguard.locks.environment import OuterLock
from azguard.locks.guarded_run import GuardedCommand, GuardedRun
from azguard.locks.held_lock import HeldLock, Renewer, describe_late
from azguard.locks.lock_blobs import ANSWER_SECONDS, AcquireSettings, LockRequest
from azguard.locks.metrics import LockMetrics
from azguard.processes.guardian import Ended
from azguard.processes.signals import ignore_ending, raise_at_end
from azguard.requests import commits
from azguard.requests.deadline import Deadline

if TYPE_CHECKING:
    from azguard.locks.terraform import StateGuard
# Bounded: if the release fails, the lease expires on its own.
_RELEASE_SECONDS = 5.0
# How long a command that was stopped waits for a renewal before it goes on.
_RESUME_SECONDS = 5.0


@frozen
class LockPlan:
    """What to run under which locks."""

    locks: Sequence[LockRequest]
    command: GuardedCommand
    settings: AcquireSettings
    #: How many seconds to wait for other holders.
    wait: float
    #: Is told each lock that is held, before the command starts.
    on_held: Callable[[HeldLock], None] = lambda held: None
    #: The Terraform state that the command locks itself; None is none.
    state: "StateGuard | None" = None
    #: The file for a scraper; None is no file.
    metrics: Path | None = None


def run(plan: LockPlan) -> int:
    """Run a command under its locks and return its exit status; see ``guarded_run.run``."""
    state = plan.state
    if state is None:
        return guarded_run.run(plan.command, LeaseLocks(plan))
    state.open()
    return guarded_run.run(plan.command, LeaseLocks(plan), conclude=lambda died: state.finish(died=died))


class LeaseLocks:
    """The locks of one run, and who renews them."""

    def __init__(self, plan: LockPlan, now: Callable[[], float] = times.read_boot_clock) -> None:
        self._plan = plan
        self._now = now
        self._held: list[HeldLock] = []
        #: Those of the leases that we renew, by their ids.
        self._renewers: dict[str, Renewer] = {}
        #: The locks that this run acquired, each with the slot of it that is held.
        self._acquired: list[tuple[Target, HeldLock]] = []
        #: Whether the service did not answer at the end.
        self._is_cut_off = False
        #: The locks as they were asked for, by the ids of their leases.
        self._names: dict[str, str] = {}
        names = [str(each.target.address) for each in plan.locks]
        self._metrics = LockMetrics(plan.metrics, names, plan.settings.say, now)

    def acquire(self, watch: GuardedRun) -> None:
        plan = self._plan
        environ = plan.command.environ
        deadline = Deadline(plan.wait, answer_seconds=ANSWER_SECONDS)
        self._metrics.begin()
        for request in plan.locks:
            # It would wait for what this job holds without telling us so.
            if readers.find_around(request.target, environ) is None:
                plan.settings.refuse_own(request, plan.wait)
        for request in list_in_order(plan.locks):
            around = readers.find_around(request.target, environ)
            if around is None:
                self._hold(request, LockAcquisition(request, plan.settings, deadline, watch.check_held).run(), watch)
                self._acquired.append((request.target, self._held[-1]))
            else:
                self._inherit(request, *around, watch)
            plan.on_held(self._held[-1])
        if plan.state is not None:
            plan.state.wait()

    def export(self) -> Mapping[str, str]:
        return environment.export_locks([(each.target, each.lease_id, each.fence) for each in self._held])

    def confirm(self) -> None:
        for renewer in self._renewers.values():
            renewer.confirm_now(_RESUME_SECONDS)

    def explain_late(self) -> tuple[str, ...]:
        # The command is ended a little before the first of the leases ends.
        if self._renewers:
            first = min(self._renewers, key=lambda lease_id: self._renewers[lease_id].ends)
            self._metrics.note_loss(self._names[first])
        return describe_late(self._renewers.values())

    def release(self) -> tuple[str, ...]:
        lost: tuple[str, ...] = ()
        for renewer in self._renewers.values():
            renewer.stop()
        while self._held:
            held = self._held.pop()
            if not held.inherited:
                # Each is released, even if another's release failed.
                found = self._release_one(held)
                note = self._metrics.note_loss if found else self._metrics.note_release
                note(self._names[held.lease_id])
                lost += found
        return lost

    def finish(self, lost: tuple[str, ...], ended: Ended) -> None:
        if not self._plan.settings.keeps_log:
            return
        for lock, held in self._acquired:
            if held.record is None or lock.kind is not Kind.BLOB:
                continue
            if self._is_cut_off:
                log.warn(lock, "the service did not answer", self._plan.settings.say)
            else:
                seconds = self._now() - (held.ends - held.seconds)
                line = log.build_line(held.target, held.record, seconds, "; ".join(lost) or None, ended)
                log.append(lock, line, self._plan.settings.say)

    def _inherit(self, request: LockRequest, target: Target, around: OuterLock, watch: GuardedRun) -> None:
        settings = self._plan.settings
        if target == request.target:
            with _tell_loss_around(target, reason="outer_lock_lost"):
                lock_blobs.leave_sequence(request, target, around.lease_id, settings)
        else:
            readers.check_reads(request)
        sent_at = self._now()
        if around.seconds is None:
            # The lock run around us holds it, and ends us when it is lost.
            _confirm_around(target, around, settings, reason="outer_lock_lost")
        else:
            # A process in the background holds it, and would not end our command when it is lost.
            with _tell_loss_around(target, reason="outer_lock_lost"):
                actions.renew(target, Conditions(lease_id=around.lease_id), settings.patience_now())
        held = HeldLock(
            target=target,
            lease_id=around.lease_id,
            seconds=settings.seconds if around.seconds is None else around.seconds,
            fence=around.fence,
            ends=sent_at + (around.seconds or 0),
            inherited=True,
        )
        if around.seconds is None:
            self._held.append(held)
            self._metrics.note_held(str(request.target.address), held.ends, held.fence)
        else:
            self._hold(request, held, watch)

    def _hold(self, request: LockRequest, held: HeldLock, watch: GuardedRun) -> None:
        name, asked = str(held.target.address), str(request.target.address)
        self._held.append(held)
        self._names[held.lease_id] = asked
        self._metrics.note_held(asked, held.ends, held.fence)
        self._plan.settings.tell(f"lock: {name} is held, fence {held.fence}")

        # By the id: locks of two accounts can have the same name.
        watch.note_held(held.lease_id, held.ends)
        if held.note is not None and held.note.descriptor is not None:
            watch.keep_open(held.note.descriptor)

        def note_renewal(ends: float) -> None:
            watch.note_held(held.lease_id, ends)
            self._metrics.note_renewal(asked, ends)

        def note_loss(why: str) -> None:
            watch.note_loss(f"{name}: {why}")
            self._metrics.note_loss(asked)

        renewer = Renewer(
            held,
            on_renewal=note_renewal,
            on_loss=note_loss,
            tell=self._plan.settings.tell,
            now=self._now,
        )
        self._renewers[held.lease_id] = renewer
        renewer.start()

    def _release_one(self, held: HeldLock) -> tuple[str, ...]:
        """Release a lock. If it is not ours any more, it was lost before the command ended; return why."""
        patience = Deadline(_RELEASE_SECONDS, answer_seconds=ANSWER_SECONDS)
        lost: tuple[str, ...] = ()
        try:
            held_lock.release(held.target, held.lease_id, self._plan.settings.records, patience)
            if held.is_shared:
                readers.delete(held.target)
        except (Locked, NotFound) as error:
            lost = (f"{held.target.address}: {error.message}",)
        except AzguardError as error:
            self._is_cut_off = True
            left = round(self._renewers[held.lease_id].ends - self._now())
            self._plan.settings.say(f"warning: {held.target} could not be released: {error.message}")
            if held.note is not None:
                held.note.close(is_released=False)
                self._plan.settings.say("it stays leased; the next lock run of it on this machine releases it")
                return ()
            if left > 0:
                self._plan.settings.say(f"it ends by itself within {left} s")
                return ()
            return describe_late(self._renewers.values())
        held_lock.forget(held, self._plan.settings.records)
        if held.note is not None:
            held.note.close(is_released=True)
        return lost


@contextmanager
def _tell_loss_around(target: Target, *, reason: str) -> Iterator[None]:
    """Tell of the loss of a lock that was held around us, as the service says in the block."""
    try:
        yield
    except (Locked, NotFound) as error:
        message = f"the lock around this command is lost: {error.message}"
        raise LockLost(message, address=str(target.address), reason=reason) from error


def _confirm_around(target: Target, outer: OuterLock, settings: AcquireSettings, *, reason: str) -> None:
    """Ask the service whether the ``lock run`` around us still holds a resource."""
    with _tell_loss_around(target, reason=reason):
        lease_state.look(target, settings.patience_now(), outer.lease_id)
    settings.tell(f"lock: {target.address} is held by the lock run around this one")


class CriticalSection:
    """A lock that is held and renewed, until the service says that it is lost."""

    def __init__(self, held: HeldLock, settings: AcquireSettings) -> None:
        self._held = held
        self._settings = settings
        self._renewer = Renewer(held, tell=settings.tell, now=settings.now)

    @classmethod
    def acquire(cls, lock: Target, settings: AcquireSettings, wait: float) -> "CriticalSection":
        """Acquire a lock, waiting at most so many seconds for it, and begin to renew it."""
        held: HeldLock | None = None
        try:
            # The write of the record is not the command's. A signal that came during it is raised once it is settled.
            with commits.suppress(), raise_at_end():
                held = LockAcquisition(LockRequest(lock), settings, Deadline(wait)).run()
        except KeyboardInterrupt:
            with ignore_ending():
                limit = Deadline(_RELEASE_SECONDS)
                if held is not None and held_lock.give_back(lock, held.lease_id, settings.records, limit):
                    held_lock.forget(held, settings.records)
            raise
        new = cls(held, settings)
        settings.tell(f"lock: {lock.address} is held, fence {held.fence}")
        new._renewer.start()
        return new

    def check(self) -> None:
        """Check that the lock is still held, before something is done under it.

        Raises:
            LockLost: it is not.
        """
        lost: tuple[str, ...] = () if self._renewer.loss is None else (self._renewer.loss,)
        if not lost and self._settings.now() >= self._renewer.ends:
            lost = describe_late([self._renewer])
        if lost:
            raise LockLost(
                f"the lock {self._held.target.address} was lost before anything was written",
                address=str(self._held.target.address),
                detail=lost,
                reason="lock_lost_before_write",
            )

    def release(self) -> None:
        """Stop renewing and release the lock.

        The work under the lock is done by now, so that a loss is only reported, not raised.
        """
        target = self._held.target
        settings = self._settings
        self._renewer.stop()
        lost = self._renewer.loss
        try:
            found = held_lock.release(target, self._held.lease_id, settings.records, Deadline(_RELEASE_SECONDS))
            lost = lost or held_lock.find_loss(found)
        except (Locked, NotFound) as error:
            lost = lost or error.message
        except AzguardError as error:
            settings.say(f"warning: {target} could not be released, and ends by itself: {error.message}")
            return
        if lost is not None:
            settings.say(f"warning: the lock {target} was lost meanwhile: {lost}")
        held_lock.forget(self._held, settings.records)


@contextmanager
def hold_lock(
    lock: Target, settings: AcquireSettings, wait: float, environ: Mapping[str, str]
) -> Iterator["CriticalSection | None"]:
    """Hold a lock for the length of a ``with`` block; None where a ``lock run`` around us holds it already.

    ``wait`` is how many seconds to wait for it.

    Raises:
        GaveUp: others hold it, and the time for waiting is over.
        Locked: this job holds it, and its environment does not say so.
        LockLost: the ``lock run`` around us does not hold it any more.
        Unavailable: the service does not answer.
    """
    outer = environment.find_outer_lock(lock, environ)
    if outer is not None:
        _confirm_around(lock, outer, settings, reason="outer_lock_lost_before_write")
        yield None
        return
    settings.refuse_own(LockRequest(lock), wait)
    try:
        held = CriticalSection.acquire(lock, settings, wait)
    except GaveUp as error:
        raise error.but(message=f"{lock.address} is held by others; nothing was written") from error
    except Unavailable as error:
        raise error.but(reason="table_lock_unavailable") from error
    try:
        yield held
    finally:
        held.release()


def list_in_order(locks: Sequence[LockRequest]) -> list[LockRequest]:
    """Return each lock once, in the order in which every run acquires them, so that no two wait for each other."""
    found = {(str(each.target.address), each.target.endpoint): each for each in locks}
    return [found[key] for key in sorted(found)]
