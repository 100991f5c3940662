"""Which lock to acquire, how, and how long the requests for it may take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from azguard import times
from azguard.accounts.account import Target
from azguard.leases.owner_records import ProcessLeases
from azguard.leases.owners import Owner
from azguard.leases.recorded import LeaseRecords
from azguard.requests.deadline import Deadline

# How long one request may go unanswered: several fit into the shortest term.
ANSWER_SECONDS = 3.0
# Connecting takes milliseconds; a connection that takes longer is better opened anew.
_CONNECT_SECONDS = 2.0
# How much longer than the wait the requests may take: the wait is for other holders, and a service that is far away
# needs some round trips all the same.
_ALLOWANCE_SECONDS = 2.0
# No request is given less.
LEAST_SECONDS = 0.5


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
    now: Callable[[], float] = times.read_boot_clock

    def patience_now(self) -> Deadline:
        return Deadline(self.patience, answer_seconds=ANSWER_SECONDS)


class RequestTime:
    """The time for the requests of one acquisition, which waits for others until ``deadline``."""

    def __init__(self, deadline: Deadline, patience: float) -> None:
        self.deadline = deadline
        self._patience = patience
        self._without_wait = deadline.restart(seconds=patience + _ALLOWANCE_SECONDS)

    @property
    def left(self) -> float:
        """Return how many seconds requests may still take."""
        if not self.deadline.seconds:
            return self._without_wait.remaining
        return max(0.0, self.deadline.seconds + _ALLOWANCE_SECONDS - self.deadline.elapsed)

    def start(self, seconds: float | None = None) -> Deadline:
        """Return how long a step of several requests may take from now on; None is the patience with the service."""
        left = max(LEAST_SECONDS, min(self._patience if seconds is None else seconds, self.left))
        answer_seconds = min(ANSWER_SECONDS, left)
        return replace(self.deadline, seconds=left, answer_seconds=answer_seconds, settle_seconds=left)

    def start_in_any_case(self, seconds: float) -> Deadline:
        """Return a deadline of so many seconds, even if the time for waiting is over."""
        return replace(self.deadline, seconds=seconds, answer_seconds=ANSWER_SECONDS)

    def start_silence(self) -> Deadline:
        return replace(self.deadline, seconds=self._patience, answer_seconds=ANSWER_SECONDS)

    def timeouts(self) -> Mapping[str, Any]:
        """Return the SDK's timeouts for one request that is made now, in seconds."""
        left = max(LEAST_SECONDS, self.left)
        return {"connection_timeout": min(_CONNECT_SECONDS, left), "read_timeout": min(ANSWER_SECONDS, left)}
