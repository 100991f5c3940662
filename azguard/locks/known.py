"""The locks that this job holds, as its environment and the records of this machine say; and their release."""

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import ClassVar

from azguard import columns
from azguard.accounts import trace
from azguard.accounts.target import Target
from azguard.address import parse
from azguard.errors import AzguardError, Locked, LockLost, NotFound, UsageError
from azguard.leases import owners
from azguard.leases import state as lease_state
from azguard.leases.kept import LeaseRecords
from azguard.leases.state import LeaseState
from azguard.locks import environment, log, own_lease, queue, readers
from azguard.locks.holds import Hold, Holds, HoldState
from azguard.locks.log import LogLine
from azguard.processes.identity import KnownProcess
from azguard.requests.deadline import Deadline
from azguard.times import iso

# The process releases the lock itself, which takes it no longer.
_ENDING_SECONDS = 10.0
_KILLED_SECONDS = 5.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class KnownLock:
    """A lock that this job holds, or held: its blob and its lease."""

    target: Target
    lease_id: str
    fence: int | None
    #: The record of this machine, if there is one.
    hold: Hold | None

    @property
    def is_sticky(self) -> bool:
        """Return whether it is held without a process."""
        return self.hold is not None and self.hold.pid is None


@dataclass(frozen=True)
class LockReleased:
    """What ``lock release`` did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.STATE, columns.FENCE, columns.LEASE_ID)

    address: str
    state: str = field(init=False, default="free")
    lease_id: str
    fence: int | None
    #: ``released`` or ``already_released``.
    outcome: str


def find(target: Target, environ: Mapping[str, str], holds: Holds, scope: str) -> KnownLock:
    """Return the lock of a name that this job holds, or held: as its environment says, else this scope's record.

    Raises:
        UsageError: neither does.
    """
    around = list(_find_around(target, environ, holds))
    # A shell may still have the variables of a lock that was released, and taken again since.
    unreleased = [each for each in around if each.hold is None or each.hold.state is not HoldState.RELEASED]
    recorded = list(_find_recorded(target, holds, scope))
    if recorded and _is_in_state(recorded[0], HoldState.RELEASED):
        # A scope may hold two slots of a lock, or read under it twice.
        recorded.sort(key=lambda each: not _is_in_state(each, HoldState.HELD))
    found = [*unreleased, *recorded, *around]
    if found:
        return found[0]
    others = holds.list_scopes(target.endpoint, str(target.address))
    raise UsageError(
        f"nothing here says that this job holds {target}",
        address=str(target.address),
        values={"scope": others[0] if others else scope},
        reason="hold_of_another_scope" if others else "hold_unknown",
    )


def list_addresses(environ: Mapping[str, str], holds: Holds, scope: str) -> list[str]:
    """Return the addresses of the locks that this job holds, or lost: as its environment says, else the records.

    Where it holds none, they are those of the locks that it has released.
    """
    named = [text for text in environ.get(environment.LOCK, "").split("\n") if text]
    newest: dict[str, Hold] = {}
    for hold in holds.list_scope(scope):
        newest.setdefault(hold.address, hold)
    unreleased = sorted(hold.address for hold in newest.values() if hold.state is not HoldState.RELEASED)
    return named or unreleased or sorted(newest)


def find_held_around(target: Target, environ: Mapping[str, str], holds: Holds) -> KnownLock | None:
    """Return the lock of a name that the environment says this job holds, unless it is known to be released."""
    for each in _find_around(target, environ, holds):
        if each.hold is None or each.hold.state is not HoldState.RELEASED:
            return each
    return None


def of_lease(target: Target, lease_id: str, fence: int | None, holds: Holds) -> KnownLock:
    """Return the lock, or the slot of it, with a lease; a record of another lock is left out."""
    hold = holds.find(lease_id)
    if hold is not None and hold.endpoint == target.endpoint and str(target.address) in (hold.lock, hold.address):
        return of_hold(target, hold)
    return KnownLock(target, lease_id, fence, None)


def of_hold(target: Target, hold: Hold) -> KnownLock:
    """Return the lock of a record; ``target`` is in its account."""
    return KnownLock(Target(target.account, parse(hold.address).address), hold.lease_id, hold.fence, hold)


def release(known: KnownLock, holds: Holds, records: LeaseRecords, deadline: Deadline) -> LockReleased:
    """Release a lock, after ending the process that renews it; that it was released before is no error.

    Raises:
        LockLost: it was lost before. Nothing was released.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
    """
    if known.hold is not None and known.hold.process is not None:
        _end(known.hold.process)
    with nullcontext() if known.hold is None else holds.lock(known.lease_id, deadline.remaining / 2):
        outcome = _release_unless_released(known, holds, records, deadline)
    records.remove(known.target, known.lease_id)
    address = str(known.target.address)
    return LockReleased(address=address, lease_id=known.lease_id, fence=known.fence, outcome=outcome)


def _release_unless_released(known: KnownLock, holds: Holds, records: LeaseRecords, deadline: Deadline) -> str:
    """Release a lock, unless its process or another release at the same time has; return the outcome."""
    hold = of_lease(known.target, known.lease_id, known.fence, holds).hold
    if hold is not None and hold.state is HoldState.LOST:
        why = _end_broken(known, records, deadline) or hold.why or ""
        raise build_lost(known.target, why).but(reason="lock_lost_before_release")
    if hold is not None and hold.state is HoldState.RELEASED:
        was_known = known.is_sticky or _is_in_state(known, HoldState.RELEASED)
        return "already_released" if was_known else "released"
    try:
        outcome = _release(known, records, deadline)
    except LockLost as error:
        if hold is not None:
            holds.close(hold, HoldState.LOST, "; ".join(error.detail))
        raise
    if hold is not None:
        holds.close(hold, HoldState.RELEASED)
    return outcome


def _find_around(target: Target, environ: Mapping[str, str], holds: Holds) -> Iterator[KnownLock]:
    """Yield what the environment says of a lock, of a slot of it, or of a reader's blob."""
    for text in dict.fromkeys(environ.get(environment.LOCK, "").split("\n")):
        if not _is_slot(text, str(target.address)) and not queue.is_reader_of(text, target):
            continue
        slot = Target(target.account, parse(text).address)
        around = environment.find_outer_lock(slot, environ)
        if around is not None:
            yield of_lease(slot, around.lease_id, around.fence, holds)


def _find_recorded(target: Target, holds: Holds, scope: str) -> Iterator[KnownLock]:
    for hold in holds.list_scope(scope):
        if hold.endpoint == target.endpoint and str(target.address) in (hold.lock, hold.address):
            yield of_hold(target, hold)


def _is_in_state(known: KnownLock, state: HoldState) -> bool:
    return known.hold is not None and known.hold.state is state


def _is_slot(text: str, lock: str) -> bool:
    return text == lock or re.fullmatch(rf"{re.escape(lock)}\.slot[0-9]+", text) is not None


def _end_broken(known: KnownLock, records: LeaseRecords, deadline: Deadline) -> str | None:
    """Release what is left of a lease whose lock was lost, and return why it was lost, if the lease tells."""
    try:
        return own_lease.find_loss(own_lease.release(known.target, known.lease_id, records, deadline))
    except AzguardError:
        return None  # It ends by itself, if it has not ended.


def _release(known: KnownLock, records: LeaseRecords, deadline: Deadline) -> str:
    try:
        found = own_lease.release(known.target, known.lease_id, records, deadline)
    except NotFound as error:
        raise build_lost(known.target, error.message).but(reason="lock_lost_before_release") from error
    except Locked as error:
        state = lease_state.look(known.target, deadline)
        if known.hold is None and own_lease.was_released(state, known.fence):
            return "already_released"
        raise build_lost(known.target, error.message).but(reason="lock_lost_before_release") from error
    if owners.is_reader(found.metadata):
        readers.delete(known.target)
    lost = own_lease.find_loss(found)
    if known.hold is not None and known.hold.keeps_history:
        _write_log(known, found, lost)
    if lost is not None:
        raise build_lost(known.target, lost).but(reason="lock_lost_before_release")
    return "released"


def _write_log(known: KnownLock, found: LeaseState, lost: str | None) -> None:
    """Add a holder without a process to the history of its lock."""
    owner = owners.read_owner(found.metadata)
    if owner is None or known.hold is None:
        return
    address = str(known.target.address)
    holding = log.describe_holding(address, owner, known.fence, lost=lost, ended=iso(found.answered_at))
    lock = Target(known.target.account, parse(known.hold.lock).address)
    log.append(lock, LogLine(holding, None), trace.tell)


def _end(process: KnownProcess) -> None:
    """End the process that renews a lease; it releases the lease itself."""
    for number, seconds in ((signal.SIGTERM, _ENDING_SECONDS), (signal.SIGKILL, _KILLED_SECONDS)):
        try:
            if process.lives:
                os.kill(process.pid, number)
                os.kill(process.pid, signal.SIGCONT)  # one that is stopped takes a signal only once it goes on
        except (ProcessLookupError, PermissionError):
            return
        until = time.monotonic() + seconds
        while process.lives and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)


def build_lost(target: Target, why: str) -> LockLost:
    """Return the error of a lock that this job holds no more."""
    return LockLost(
        f"the lock {target} is not held by this job any more",
        address=str(target.address),
        detail=(why,) if why else (),
        reason="lock_not_held",
    )
