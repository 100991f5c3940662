"""Leases around an update: our own as a guard for one write, and somebody else's in the way."""

from azguard.errors import Locked, NotFound, Unavailable
from azguard.service_errors import translate
from azguard.transmission import Fate, Sent, send
from azguard.update_run import Run
from azguard.versioned import State

# The shortest that the service gives: it covers one write, and a writer that dies holds up others no longer.
GUARD_SECONDS = 15
# A lease costs two more round trips: only for a slow transform after four conflicts, or for whoever starves.
_ESCALATE_SLOW, _ESCALATE_ANY = 4, 8
# Another writer's escalation holds its lease for a few round trips; a lease that lasts longer is somebody's lock.
SHORT_LEASE_SECONDS = 3.0
# How often a lock is asked after; an escalation is over within a round trip or two.
_POLL_SECONDS, _POLL_SOON_SECONDS = 0.5, 0.05
# Nobody waits long for a release: the lease ends by itself.
_RELEASE_SECONDS, _RELEASE_TRIES = 1.0, 2


class GuardLease:
    """A lease of our own, held from the version read to the version written.

    One proposed id serves the whole update, so that acquiring again after a lost answer is the same lease.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._id: str | None = None
        self.held = False

    @property
    def in_use(self) -> str | None:
        """Return the id to write under: our own if we hold it, else the caller's."""
        return self._id if self.held else self._run.plan.lease_id

    def is_wanted(self, state: State) -> bool:
        """Return whether the next write needs a lease that we do not have yet; what is not there cannot be leased."""
        run = self._run
        if self.held or run.plan.lease_id is not None or state.etag is None:
            return False
        if self._id is not None:
            return True  # Once asked for, it may be ours already, and in the way of a write without it.
        slow = run.transform_time > 2 * run.round_trip
        starving = run.conflicts >= (_ESCALATE_SLOW if slow else _ESCALATE_ANY)
        return run.plan.guard_by_lease or starving

    def acquire(self, state: State) -> Sent[None]:
        """Ask once for a lease on the very version that was read."""
        run = self._run
        # Known before it is sent: whatever interrupts us, it is released.
        lease_id = self._id = self._id or run.tools.new_lease_id()
        sent = send(lambda: run.resource.acquire(state, lease_id, GUARD_SECONDS, run.deadline))
        self.held = sent.fate is Fate.COMMITTED
        if self.held:
            run.tell("acquired a lease for the write")
        return sent

    def new_etag(self, state: State) -> str | None:
        """Return the ETag of our write in doubt if the lease proves it: only we could write while it is held.

        None says that the lineage must tell.
        """
        if not self.held or self._id is None:
            return None
        run = self._run
        try:
            etag = run.resource.etag_under_lease(self._id, run.patience(max(1.0, run.deadline.remaining)))
        except (Locked, NotFound, Unavailable):
            self.held = False
            return None
        return None if etag == state.etag else etag

    def release(self) -> None:
        """Release what was ever asked for; a refusal says that it is not ours any more."""
        run, lease_id = self._run, self._id
        if lease_id is None:
            return
        self._id, self.held = None, False
        patience = run.patience(_RELEASE_SECONDS)
        try:
            for _ in range(_RELEASE_TRIES):
                if send(lambda: run.resource.release(lease_id, patience)).fate in (Fate.COMMITTED, Fate.REFUSED):
                    return
        except KeyboardInterrupt:
            pass  # How the update ended matters more; the lease ends by itself.


class OthersLease:
    """Patience with somebody else's lease: as long as asked for, or as long as an escalated write may take."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._met: tuple[str | None, float] | None = None

    def wait(self, state: State, error: BaseException) -> None:
        """Wait a moment, then try again.

        Raises:
            Locked: it is a lock, and nobody said to wait for it; or the caller's own lease is not held any more.
        """
        run = self._run
        found = translate(error, run.resource.target)
        if run.plan.lease_id is not None:
            raise found
        run.leased = True
        if self._met is None or self._met[0] != state.etag:
            # A version that moves is one that writers take turns at: each turn is a new lease.
            self._met = state.etag, run.deadline.clock()
        lasts = run.deadline.clock() - self._met[1] > SHORT_LEASE_SECONDS or state.lease_duration == "infinite"
        if lasts and not run.plan.wait_lease:
            found.hint = "wait for its holder with --wait-lease, or work inside that lease with --lease-id"
            raise found
        run.tell("leased by somebody else: waiting")
        if not lasts:
            self._pause(max(_POLL_SOON_SECONDS, run.round_trip))
            return
        while not run.deadline.passed:
            self._pause(_POLL_SECONDS)
            if not run.resource.is_leased(run.deadline):
                return

    def _pause(self, seconds: float) -> None:
        self._run.deadline.pause(self._run.tools.chance.uniform(0.5, 1.5) * seconds)
