"""Which lock to acquire, and how."""

from collections.abc import Callable
from dataclasses import dataclass

from azguard.accounts.target import Target
from azguard.leases.owners import Owner
from azguard.leases.process_leases import ProcessLeases
from azguard.leases.recorded import LeaseRecords
from azguard.processes import clock
from azguard.requests.deadline import Deadline

# How long one request may go unanswered: several fit into the shortest term.
ANSWER_SECONDS = 3.0


@dataclass(frozen=True)
class LockRequest:
    """A lock to acquire."""

    target: Target
    #: How many may hold it at the same time.
    slots: int = 1
    #: The number of this run: it is refused once a run with a higher one has held the lock. None is no number.
    sequence: int | None = None
    #: Whether to read beside others under it, where no writer holds it.
    is_shared: bool = False


@dataclass(frozen=True)
class AcquireSettings:
    """How to acquire a lock."""

    #: What to write on the lock about its holder.
    owner: Owner
    #: The term of the lease.
    seconds: int
    #: Whether to create a lock blob that is missing.
    create: bool
    #: How many seconds the service may fail or be silent.
    patience: float
    #: Where the lease is written down before it is asked for.
    records: LeaseRecords
    #: Called with each line that people must see.
    say: Callable[[str], None]
    #: Called with each line for ``--verbose``.
    tell: Callable[[str], None]
    #: Draws a random number between two others.
    uniform: Callable[[float, float], float]
    #: Whether to be served in the order of arrival, and to wait behind those who came before.
    is_fair: bool = True
    #: Whether to add the holder to the history of the lock.
    keeps_log: bool = False
    #: The notes of leases without a term, by which the next azguard ends them if this process is killed.
    processes: ProcessLeases | None = None
    #: Refuses a lock that this job holds already, unless that ends within so many seconds: it would wait for itself.
    refuse_own: Callable[[LockRequest, float], None] = lambda request, wait: None
    #: Returns the time on the clock by which leases end.
    now: Callable[[], float] = clock.now

    def patience_now(self) -> Deadline:
        """Return how long the service may be silent from now on."""
        return Deadline(self.patience, answer_seconds=ANSWER_SECONDS)
