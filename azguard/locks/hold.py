"""Hold one lock around a piece of work in this process, as ``lock run`` does around a command."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from azguard.accounts.target import Target
from azguard.errors import AzguardError, GaveUp, Locked, LockLost, NotFound, Unavailable
from azguard.locks import environment, own_lease
from azguard.locks.acquire import LockAcquisition
from azguard.locks.renewal import HeldLock, Renewer, describe_late
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.processes.signals import ignore_ending, raise_at_end
from azguard.requests import commits
from azguard.requests.deadline import Deadline

# Bounded: if the release fails, the lease expires on its own.
_RELEASE_SECONDS = 5.0


class LockHolding:
    """A lock that is held and renewed, until the service says that it is lost."""

    def __init__(self, held: HeldLock, settings: AcquireSettings) -> None:
        self._held = held
        self._settings = settings
        self._ends = held.ends
        #: The first reason why the lock counts as lost; None while it does not.
        self._lost: str | None = None
        self._renewer = Renewer(
            held,
            on_renewal=self._note_renewal,
            on_loss=self._note_loss,
            tell=settings.tell,
            now=settings.now,
        )

    @classmethod
    def acquire(cls, lock: Target, settings: AcquireSettings, wait: float) -> "LockHolding":
        """Acquire a lock, waiting at most so many seconds for it, and begin to renew it."""
        held: HeldLock | None = None
        try:
            # The write of the record is not the command's. A signal that came during it is raised once it is settled.
            with commits.suppress(), raise_at_end():
                held = LockAcquisition(LockRequest(lock), settings, Deadline(wait)).run()
        except KeyboardInterrupt:
            with ignore_ending():
                limit = Deadline(_RELEASE_SECONDS)
                if held is not None and own_lease.give_back(lock, held.lease_id, settings.records, limit):
                    own_lease.forget(held, settings.records)
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
        lost: tuple[str, ...] = () if self._lost is None else (self._lost,)
        if not lost and self._settings.now() >= self._ends:
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
        try:
            found = own_lease.release(target, self._held.lease_id, settings.records, Deadline(_RELEASE_SECONDS))
            if (why := own_lease.find_loss(found)) is not None:
                self._note_loss(why)
        except (Locked, NotFound) as error:
            self._note_loss(error.message)
        except AzguardError as error:
            settings.say(f"warning: {target} could not be released, and ends by itself: {error.message}")
            return
        if self._lost is not None:
            settings.say(f"warning: the lock {target} was lost meanwhile: {self._lost}")
        own_lease.forget(self._held, settings.records)

    def _note_renewal(self, ends: float) -> None:
        self._ends = ends

    def _note_loss(self, why: str) -> None:
        self._lost = self._lost or why


@contextmanager
def hold_lock(
    lock: Target, settings: AcquireSettings, wait: float, environ: Mapping[str, str]
) -> Iterator["LockHolding | None"]:
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
        environment.confirm(
            lock,
            outer,
            settings.patience_now(),
            tell=settings.tell,
            reason="outer_lock_lost_before_write",
        )
        yield None
        return
    settings.refuse_own(LockRequest(lock), wait)
    try:
        held = LockHolding.acquire(lock, settings, wait)
    except GaveUp as error:
        raise error.but(message=f"{lock.address} is held by others; nothing was written") from error
    except Unavailable as error:
        raise error.but(reason="table_lock_unavailable") from error
    try:
        yield held
    finally:
        held.release()
