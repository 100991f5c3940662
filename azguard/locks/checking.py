"""Whether this job still holds a lock: as the service says, and the records of this machine."""

from dataclasses import dataclass
from typing import ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.errors import Locked, LockLost, NotFound
from azguard.leases import owners
from azguard.leases import state as lease_state
from azguard.leases.owners import FENCE
from azguard.leases.state import LeaseState
from azguard.locks import lock_blobs
from azguard.locks.holds import Hold, HoldState
from azguard.locks.known import KnownLock, build_lost
from azguard.locks.settings import AcquireSettings, LockRequest
from azguard.requests.deadline import Deadline


@dataclass(frozen=True)
class LockCheck:
    """What ``lock check`` prints of a lock that is held."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.STATE, columns.FENCE, columns.SECONDS_LEFT, columns.UNTIL)

    address: str
    state: str
    lease_id: str
    fence: int | None
    #: How many seconds the lease lasts unless it is renewed; None if it is infinite, or not known on this machine.
    seconds_left: int | None
    #: When it is released at the latest.
    until: str | None
    #: The process that renews it.
    pid: int | None


def confirm(known: KnownLock, request: LockRequest, settings: AcquireSettings) -> None:
    """See that a lock that was to be held anew is held still, and leave the number of this run on it.

    Raises:
        LockLost: it was lost, and what was done under it may have run beside another holder.
        Changed: a run with a higher sequence number has held it.
    """
    try:
        check(known, settings.patience_now())
        lock_blobs.leave_sequence(request, known.target, known.lease_id, settings)
    except LockLost as error:
        raise error.but(reason="hold_lost_before") from error
    except (Locked, NotFound) as error:
        raise build_lost(known.target, error.message).but(reason="hold_lost_before") from error


def check(known: KnownLock, deadline: Deadline) -> LockCheck:
    """Ask the service whether a lock is held.

    Raises:
        LockLost: it is not, or soon is not: the process that renews it is gone.
        Unavailable: the service cannot be asked.
    """
    hold = known.hold
    state = _look_at_lease(known, deadline)
    if hold is not None:
        _check_renewed(known.target, hold)
    left = None if hold is None else hold.seconds_left
    return LockCheck(
        address=str(known.target.address),
        state="held",
        lease_id=known.lease_id,
        fence=owners.read_number(state.metadata, FENCE) if known.fence is None else known.fence,
        seconds_left=None if left is None else int(left),
        until=None if hold is None else hold.until,
        pid=None if hold is None else hold.pid,
    )


def _check_renewed(target: Target, hold: Hold) -> None:
    """See that something renews a lease that is held.

    Raises:
        LockLost: nothing does, so that it ends soon.
    """
    process = hold.process
    if process is not None and not process.lives:
        raise build_lost(target, f"the process that renews it was killed (pid {process.pid})")
    if hold.pid is not None and hold.state is not HoldState.HELD:
        raise build_lost(target, _tell_end(hold))


def _tell_end(hold: Hold) -> str:
    return f"it was {hold.state}" + (f": {hold.why}" if hold.why else "")


def _look_at_lease(known: KnownLock, deadline: Deadline) -> LeaseState:
    """Look at a lease.

    Raises:
        LockLost: it is not held any more, or is breaking.
        Unavailable: the service cannot be asked.
    """
    try:
        state = lease_state.look(known.target, deadline, known.lease_id)
    except (Locked, NotFound) as error:
        is_released = known.hold is not None and known.hold.state is HoldState.RELEASED
        # The service knows less: only that the lease is not held.
        why = _tell_end(known.hold) if known.hold is not None and is_released else error.message
        raise build_lost(known.target, why) from error
    if state.state != "leased":
        raise build_lost(known.target, f"its lease is {state.state}")
    return state
