"""Leases around an update: our own, which guards one write, and another holder's, which blocks it."""

from typing import Any

from azguard.errors import Locked, NotFound, Unavailable
from azguard.requests.calls import CallOutcome, CallResult, describe, send_once
from azguard.requests.service_errors import translate
from azguard.updates.resource import CurrentVersion
from azguard.updates.run import UpdateRun
from azguard.wire.connections import PACE_BYTES_PER_SECOND

# The shortest term of the service: it covers one write, and a writer that dies blocks others no longer.
_SHORTEST_SECONDS = 15
# The longest term of the service, for slow work. If the lease ends all the same, the new content is still in memory, so
# that only the write is sent again.
_LONGEST_SECONDS = 60
# A lease that proves whose a write was outlives the latest possible answers to three requests: to the acquire, to the
# write, and to the read that follows.
GUARD_SECONDS = 30
GUARD_ANSWER_SECONDS = GUARD_SECONDS / 3
# After how many conflicts slow work acquires a lease. The lease costs two more round trips, and all other writers wait.
# Acquired before the work begins, it protects the work: with 8 writers on hosts of their own and 300 ms of work the
# slowest update took 6.5 s, not 9.6 s.
_ESCALATE_SLOW = 4
# After how many conflicts any writer acquires a lease. It cannot protect quick work, since acquiring it is refused
# whenever the write would be: with 32 writers on hosts of their own, 2.4 requests per commit were about leases when
# writers asked for one after 8 conflicts, and 0.2 at 16.
_ESCALATE_ANY = 16
# Another writer that escalates holds its lease for a few round trips and its work, which is as slow as ours. A lease
# that lasts longer is a lock.
SHORT_LEASE_SECONDS = 3.0
_SHORT_LEASE_WORKS = 3.0
# How often to ask whether a lock is free.
_POLL_SECONDS = 0.5
# How often, at most, to ask whether an escalated write is over: that takes a round trip or two.
_POLL_SOON_SECONDS = 0.05
# Bounded: if the release fails, the lease expires on its own.
_RELEASE_SECONDS = 1.0
_RELEASE_TRIES = 2


class UpdateLease:
    """A lease of our own, held from the version read to the version written.

    One proposed id serves the whole update, so that acquiring again after a lost answer is the same lease.
    """

    def __init__(self, run: UpdateRun) -> None:
        self._run = run
        self._id: str | None = None
        #: The version on which it was acquired.
        self._over: str | None = None
        #: When it ends at the latest, by the run's clock.
        self._ends = 0.0
        self.held = False

    @property
    def in_use(self) -> str | None:
        """Return the id to write under: our own if we hold it, else the caller's."""
        return self._id if self.held else self._run.plan.lease_id

    def is_wanted(self, state: CurrentVersion) -> bool:
        """Return whether the next write needs a lease that we do not have yet."""
        return (self._run.plan.guard_by_lease and self._is_missing(state)) or self.is_due(state)

    def is_due(self, state: CurrentVersion) -> bool:
        """Return whether to acquire a lease before the work begins, so that no conflict wastes the work again."""
        run = self._run
        if not self._is_missing(state):
            return False
        if self._id is not None:
            return True  # It was asked for before and may be ours already: a write without its id would be refused.
        slow = run.work_time > 2 * run.round_trip
        return run.conflicts >= (_ESCALATE_SLOW if slow else _ESCALATE_ANY)

    def _is_missing(self, state: CurrentVersion) -> bool:
        """Return whether neither we nor the caller hold a lease, although the resource exists and can be leased."""
        run = self._run
        return (
            not self.held and run.plan.lease_id is None and state.etag is not None and run.resource.leases is not None
        )

    def note(self, step: str, **facts: Any) -> None:
        """Note a step in the trace, unless the resource notes it where the request is sent."""
        if self._run.leases.takes_proposed_id:
            self._run.note(step, **facts)

    def acquire(self, state: CurrentVersion) -> CallResult[None]:
        """Ask once for a lease on the very version that was read."""
        run = self._run
        # Stored before the request is sent, so that the lease is released after any interruption.
        lease_id = self._id = self._id or run.tools.new_lease_id()
        shortest = GUARD_SECONDS if run.plan.guard_by_lease else _SHORTEST_SECONDS
        sending = 0.0 if run.work is None else len(run.work.content) / PACE_BYTES_PER_SECOND
        seconds = min(_LONGEST_SECONDS, max(shortest, round(2 * run.work_time)) + round(sending))
        run.tell(f"lease: acquiring it on {state.label} for {seconds} s")
        self._ends = run.deadline.clock() + seconds
        self.note("asking", action="acquire", lease=lease_id, seconds=seconds)
        sent = send_once(lambda: run.leases.acquire(state, lease_id, seconds, run.deadline))
        self.held, self._over = sent.outcome is CallOutcome.COMMITTED, state.etag
        self.note("acquired" if self.held else "not acquired", lease=lease_id, code=sent.error)
        run.tell("lease: ours" if self.held else f"lease: {describe(sent)}")
        return sent

    def new_etag(self, state: CurrentVersion) -> str | None:
        """Return the ETag of our write over ``state`` if the lease proves it: only we could write while it is held.

        None says that the lineage must tell. A lease that was acquired on another version proves nothing of this one.
        """
        if not self.held or self._id is None or state.etag != self._over:
            return None
        run = self._run
        try:
            etag = run.leases.read_etag_under_lease(
                self._id, run.deadline.restart(seconds=max(1.0, run.deadline.remaining))
            )
        except (Locked, NotFound, Unavailable):
            self.held = False
            return None
        # A copy of the acquire that came late may have begun it anew, after others wrote.
        if run.deadline.clock() >= self._ends:
            self.held = False
            return None
        return None if etag == state.etag else etag

    def release(self) -> None:
        """Release the lease if it was ever asked for. A refusal proves that it is not ours any more."""
        run = self._run
        lease_id = self._id
        if lease_id is None:
            return
        self._id = None
        self.held = False
        patience = run.deadline.afterwards(_RELEASE_SECONDS)
        self.note("asking", action="release", lease=lease_id)
        try:
            for _ in range(_RELEASE_TRIES):
                sent = send_once(lambda: run.leases.release(lease_id, patience))
                if sent.outcome in (CallOutcome.COMMITTED, CallOutcome.REFUSED):
                    self.note("released", lease=lease_id, code=sent.error)
                    run.tell("lease: released" if sent.outcome is CallOutcome.COMMITTED else "lease: not ours any more")
                    return
        except KeyboardInterrupt:
            pass  # The end of the update must still be reported; the lease expires on its own.


class OthersLease:
    """Waits for another holder's lease: as long as was asked for, or as long as an escalated write may take."""

    def __init__(self, run: UpdateRun) -> None:
        self._run = run
        #: The version on which a lease was met last, and when it was first met there.
        self._met: tuple[str | None, float] | None = None
        #: How many seconds of waiting for locks are left; None where that was not asked for.
        self._left = run.plan.wait_seconds

    def wait(self, state: CurrentVersion, error: BaseException) -> None:
        """Wait a moment, then try again.

        Raises:
            Locked: it is a lock, and waiting for it was not asked for; or the caller's own lease is not held any more.
            GaveUp: it is still held at the deadline.
            Unavailable: the service stopped answering.
        """
        run = self._run
        found = translate(error, run.resource.target)
        if run.plan.lease_id is not None:
            raise found
        run.leased = True
        if self._met is None or self._met[0] != state.etag:
            # Where the version has changed, the lease is a new one, of the next writer that escalates.
            self._met = state.etag, run.deadline.clock()
        short = max(SHORT_LEASE_SECONDS, _SHORT_LEASE_WORKS * run.work_time)
        lasts = run.deadline.clock() - self._met[1] > short or state.lease_duration == "infinite"
        if lasts and self._left is None:
            raise found.but(reason="update_meets_lease")
        run.tell(f"lease: not ours, on {state.label}; waiting until it is free")
        # Asked by HEAD: reading and writing again, only to be refused, would cost twice as much.
        pause = _POLL_SECONDS if lasts else max(_POLL_SOON_SECONDS, run.round_trip)
        while not run.deadline.passed and (self._left is None or self._left > 0):
            asked = run.deadline.clock()
            self._pause(pause if self._left is None else min(pause, self._left))
            is_held = self._is_held()
            if self._left is not None:
                self._left -= run.deadline.clock() - asked
            if not is_held:
                return
            if not lasts and run.deadline.clock() - self._met[1] > short:
                return  # Read again: the version tells whether it is still the same lease.
        raise run.build_gave_up()

    def _is_held(self) -> bool:
        """Return whether the lease is held, or was when that was last answered and the deadline cut the answer off."""
        run = self._run
        asked = run.deadline.clock()
        try:
            return run.leases.is_leased(run.deadline)
        except Unavailable:
            if not run.deadline.passed or run.deadline.clock() - asked > run.deadline.settle_seconds:
                raise
            return True

    def _pause(self, seconds: float) -> None:
        self._run.deadline.pause(self._run.tools.chance.uniform(0.5, 1.5) * seconds)
