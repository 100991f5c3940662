"""Whether this job still holds a lock: as the service says, and the records of this machine."""

from dataclasses import dataclass
from typing import ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.errors import AzguardError, Locked, LockLost, NotFound
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
        LockLost: it is not, or soon is not: the process that renews it is gone, or is late.
        Unavailable: the service cannot be asked.
    """
    hold = known.hold
    if hold is not None:
        try:
            _check_record(known.target, hold)
        except LockLost as error:
            if hold.state is HoldState.RELEASED:
                raise  # The service knows less: only that the lease is not held.
            raise _explain_loss(known, deadline) or error from error
    state = _look_at_lease(known, deadline)
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


def _check_record(target: Target, hold: Hold) -> None:
    """See what this machine knows of a lock.

    Raises:
        LockLost: it was released or lost, or its lease will not be renewed.
    """
    if hold.state is not HoldState.HELD:
        why = f": {hold.why}" if hold.why else ""
        raise build_lost(target, f"it was {hold.state}{why}")
    process = hold.process
    if process is not None and not process.lives:
        raise build_lost(target, f"the process that renews it was killed (pid {process.pid})")
    left = hold.seconds_left
    if left is not None and left <= 0:
        raise build_lost(target, "its lease was not renewed in time")


def _look_at_lease(known: KnownLock, deadline: Deadline) -> LeaseState:
    """Look at a lease.

    Raises:
        LockLost: it is not held any more, or is breaking.
        Unavailable: the service cannot be asked.
    """
    try:
        state = lease_state.look(known.target, deadline, known.lease_id)
    except (Locked, NotFound) as error:
        raise build_lost(known.target, error.message) from error
    if state.state != "leased":
        raise build_lost(known.target, f"its lease is {state.state}")
    return state


def _explain_loss(known: KnownLock, deadline: Deadline) -> LockLost | None:
    """Return how the service tells a loss that this machine knows of; None if it tells of none."""
    try:
        _look_at_lease(known, deadline)
    except LockLost as error:
        return error
    except AzguardError:
        pass  # The loss is known without the service.
    return None
