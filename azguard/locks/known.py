"""The locks that this job holds, as its environment and the records of this machine say; and their release."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from azguard import ci_jobs, columns
from azguard.accounts.target import Target
from azguard.address import parse
from azguard.errors import AzguardError, Locked, LockLost, NotFound
from azguard.leases import owners
from azguard.leases import state as lease_state
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import LeaseState
from azguard.locks import environment, log, log_lines, own_lease, queue, readers
from azguard.locks.holds import Hold, Holds, HoldState, JobScope
from azguard.locks.log_lines import LogLine
from azguard.locks.settings import LockRequest
from azguard.processes.identity import KnownProcess
from azguard.requests.deadline import Deadline
from azguard.times import iso

# The process releases the lock itself, which takes it no longer.
_ENDING_SECONDS = 10.0
_KILLED_SECONDS = 5.0
_POLL_SECONDS = 0.02
# How long the service is asked before the process is ended: where it does not answer, the lease shall end soon.
_LOOK_SECONDS = 2.0


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


def find(target: Target, environ: Mapping[str, str], holds: Holds, own: JobScope) -> KnownLock:
    """Return the lock of a name that this job holds, or held: as its environment says, else its own record.

    Raises:
        NotFound: neither does. It says who holds it, if that is recorded here.
    """
    around = list(_find_around(target, environ, holds))
    # A shell may still have the variables of a lock that is over, and was taken again since.
    open_ = [each for each in around if not _is_over(each)]
    recorded = list(_find_recorded(target, holds, own))
    if recorded and _is_over(recorded[0]):
        # A scope may hold two slots of a lock, or read under it twice.
        recorded.sort(key=lambda each: not _is_in_state(each, HoldState.HELD))
    found = [*open_, *recorded, *around]
    if found:
        return found[0]
    lock = str(target.address)
    others = [each for each in holds.list_of_others(own) if each.endpoint == target.endpoint]
    raise _build_not_held([each for each in others if lock in (each.lock, each.address)], own, target)


def list_addresses(environ: Mapping[str, str], holds: Holds, own: JobScope) -> list[str]:
    """Return the addresses of the locks that this job holds, or lost, as its environment and the records say.

    Where it holds none, they are those that it took last, if it has released them.

    Raises:
        NotFound: it held none, or was told that it has lost them.
    """
    lines = [line for line in environment.read_lines(environ) if line.lock]
    around = [line.lock for line in lines if not ((hold := holds.find(line.lease_id)) and hold.is_settled)]
    newest: dict[str, Hold] = {}
    for hold in holds.list_own(own):
        newest.setdefault(hold.address, hold)
    open_ = sorted(hold.address for hold in newest.values() if not hold.is_over)
    last = next((hold.since for hold in newest.values()), None)
    released = [hold.address for hold in newest.values() if (hold.since, hold.state) == (last, HoldState.RELEASED)]
    found = list(dict.fromkeys([*around, *open_])) or sorted(released)
    if not found:
        raise _build_not_held([each for each in holds.list_of_others(own) if each.scope == own.scope], own)
    return found


def find_held_around(target: Target, environ: Mapping[str, str], holds: Holds) -> KnownLock | None:
    """Return the lock of a name that the environment says this job holds, unless it is known to be over."""
    return next((each for each in _find_around(target, environ, holds) if not _is_over(each)), None)


def refuse_own(request: LockRequest, wait: float, holds: Holds, own: JobScope, deadline: Deadline) -> None:
    """Refuse a lock that this job holds already: to wait for it would be to wait for this job's own release.

    Nothing is refused that ends by itself within ``wait`` seconds. The records only tell which lease to ask for, and
    the service whether it is held. Where it does not answer, nothing is refused.

    Raises:
        Locked: this job holds it.
    """
    if request.slots > 1:
        return
    lock = request.target
    for each in _find_recorded(lock, holds, own):
        is_reader = queue.is_reader_of(str(each.target.address), lock)
        is_in_the_way = not request.is_shared if is_reader else each.target.address == lock.address
        if each.hold is None or not each.hold.may_be_held or not is_in_the_way:
            continue
        found = _look_before(each, deadline)
        if found is None or found.state != "leased" or _ends_within(wait, each.hold, found):
            continue
        refusal = Locked(
            f"this scope {'reads under' if is_reader else 'holds'} {lock} already, and would wait for itself; "
            "nothing was done",
            str(lock.address),
            reason="lock_read_by_this_scope" if is_reader else "lock_held_by_this_scope",
            values={"file": each.hold.env_file},
        )
        raise lease_state.name_holder(refusal, found)


def of_lease(target: Target, lease_id: str, fence: int | None, holds: Holds) -> KnownLock:
    """Return the lock, or the slot of it, with a lease; a record of another lock is left out."""
    hold = holds.find(lease_id)
    if hold is not None and hold.endpoint == target.endpoint and str(target.address) in (hold.lock, hold.address):
        return of_hold(target, hold)
    return KnownLock(target, lease_id, fence, None)


def of_hold(target: Target, hold: Hold) -> KnownLock:
    """Return the lock of a record; ``target`` is in its account."""
    return KnownLock(Target(target.account, parse(hold.address).address), hold.lease_id, hold.fence, hold)


def release(
    known: KnownLock, holds: Holds, records: LeaseRecords, deadline: Deadline, say: Callable[[str], None]
) -> LockReleased:
    """Release a lock, after ending the process that renews it; that it was released before is no error.

    The service decides. What is held when it is asked first was not lost before the release, whoever releases it then:
    this run, the process that it ends, or another release at the same time. ``say`` is told of a
    line that the history lacks.

    Raises:
        LockLost: it was lost before. Nothing was released.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
    """
    before = _look_before(known, deadline)
    if known.hold is not None and known.hold.process is not None:
        _end(known.hold.process)
    patience = deadline.fresh()
    with nullcontext() if known.hold is None else holds.lock(known.lease_id, patience.remaining / 2):
        # Its process, or another release, may have written down how it ended.
        ended = of_lease(known.target, known.lease_id, known.fence, holds).hold
        try:
            outcome = _release(known, before, ended, records, patience, say)
        except LockLost as error:
            if ended is not None:
                holds.close(ended, HoldState.LOST, "; ".join(error.detail), is_settled=True)
            records.remove(known.target, known.lease_id)
            raise
        if ended is not None and ended.state is not HoldState.RELEASED:
            holds.close(ended, HoldState.RELEASED)
    records.remove(known.target, known.lease_id)
    address = str(known.target.address)
    return LockReleased(address=address, lease_id=known.lease_id, fence=known.fence, outcome=outcome)


def _look_before(known: KnownLock, deadline: Deadline) -> LeaseState | None:
    """Return the state of the lock if its lease is held; None if it is not, or the service does not say."""
    try:
        patience = deadline.restart(seconds=min(_LOOK_SECONDS, deadline.seconds))
        return lease_state.look(known.target, patience, known.lease_id)
    except AzguardError:
        return None  # It is asked again, once the process that renews the lease has ended.


def _release(
    known: KnownLock,
    before: LeaseState | None,
    ended: Hold | None,
    records: LeaseRecords,
    deadline: Deadline,
    say: Callable[[str], None],
) -> str:
    """Release what is held still, and return the outcome.

    ``before`` is the state in which it was held before its process was ended, ``ended`` its record since.

    Raises:
        LockLost: it was lost before.
    """
    if _was_released_by_its_process(known, ended):
        return "released"
    try:
        found = own_lease.release(known.target, known.lease_id, records, deadline)
    except (Locked, NotFound) as error:
        if before is None:
            return _explain_end(known, ended, error, deadline)
        found = before
    else:
        _clean_up(known, found, say)
    lost = own_lease.find_loss(before or found)
    if lost is not None:
        raise build_lost(known.target, lost).but(reason="lock_lost_before_release")
    return "released"


def _explain_end(known: KnownLock, ended: Hold | None, error: AzguardError, deadline: Deadline) -> str:
    """Return the outcome for a lock that is not held any more, as an error of the service says.

    Raises:
        LockLost: it was lost, or nothing proves that it was released.
    """
    # What was left was to end, and its lease has ended by itself since.
    if ended is not None and ended.state in (HoldState.RELEASED, HoldState.LEFT):
        return "already_released"
    why = ended.why if ended is not None and ended.state is HoldState.LOST else None
    version = None if ended is None else ended.version
    if why is None and _was_released(known, version, deadline):
        return "already_released"
    raise build_lost(known.target, why or error.message).but(reason="lock_lost_before_release") from error


def _was_released_by_its_process(known: KnownLock, ended: Hold | None) -> bool:
    """Return whether the process that was ended here has released the lock: it has said so since, and looked before."""
    was_renewed = known.hold is not None and known.hold.process is not None and _is_in_state(known, HoldState.HELD)
    return was_renewed and ended is not None and ended.state is HoldState.RELEASED


def _was_released(known: KnownLock, version: str | None, deadline: Deadline) -> bool:
    """Return whether a lock that is not held any more was released by its id, as the service shows it now."""
    try:
        return own_lease.was_released(lease_state.look(known.target, deadline), known.fence, version)
    except NotFound:
        return False


def _clean_up(known: KnownLock, found: LeaseState, say: Callable[[str], None]) -> None:
    """Do what the process that renews a lease does after its release, unless it has."""
    if owners.is_reader(found.metadata):
        readers.delete(known.target)
    is_logged = _is_in_state(known, HoldState.LOST)
    if known.hold is not None and known.hold.keeps_history and not is_logged:
        _write_log(known, found, own_lease.find_loss(found), say)


def _find_around(target: Target, environ: Mapping[str, str], holds: Holds) -> Iterator[KnownLock]:
    """Yield what the environment says of a lock, of a slot of it, or of a reader's blob."""
    for text in dict.fromkeys(environ.get(environment.LOCK, "").split("\n")):
        if not _is_slot(text, str(target.address)) and not queue.is_reader_of(text, target):
            continue
        slot = Target(target.account, parse(text).address)
        around = environment.find_outer_lock(slot, environ)
        if around is not None:
            yield of_lease(slot, around.lease_id, around.fence, holds)


def _find_recorded(target: Target, holds: Holds, own: JobScope) -> Iterator[KnownLock]:
    for hold in holds.list_own(own):
        if hold.endpoint == target.endpoint and str(target.address) in (hold.lock, hold.address):
            yield of_hold(target, hold)


def _ends_within(seconds: float, hold: Hold, found: LeaseState) -> bool:
    """Return whether a lock is released by then without being told to be."""
    try:
        until = datetime.fromisoformat(hold.until or "")
        return found.answered_at is not None and until <= found.answered_at + timedelta(seconds=seconds)
    except (TypeError, ValueError, OverflowError):
        return False  # No end is recorded, or none that can be read.


def _is_in_state(known: KnownLock, state: HoldState) -> bool:
    return known.hold is not None and known.hold.state is state


def _is_over(known: KnownLock) -> bool:
    return known.hold is not None and known.hold.is_over


def _is_slot(text: str, lock: str) -> bool:
    return text == lock or re.fullmatch(rf"{re.escape(lock)}\.slot[0-9]+", text) is not None


def _write_log(known: KnownLock, found: LeaseState, lost: str | None, say: Callable[[str], None]) -> None:
    """Add a holder without a process to the history of its lock."""
    owner = owners.read_owner(found.metadata)
    if owner is None or known.hold is None:
        return
    address = str(known.target.address)
    holding = log_lines.describe_holding(address, owner, known.fence, lost=lost, ended=iso(found.answered_at))
    lock = Target(known.target.account, parse(known.hold.lock).address)
    log.append(lock, LogLine(holding, None), say)


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


def _build_not_held(others: Sequence[Hold], own: JobScope, target: Target | None = None) -> NotFound:
    """Return the error of a job that holds no lock, or not the one that is meant, with who does."""
    words = "this job holds no lock" if target is None else f"this job does not hold {target}"
    error = NotFound(words, None if target is None else str(target.address))
    name = None if target is None else "it"
    first, *rest = [_describe_holder(each, name) for each in others if each.scope == own.scope] or [""]
    if first:
        return error.but(message=f"{words}: {first}", detail=tuple(rest), reason="held_by_another_job")
    if target is None:
        return error.but(reason="hold_none")
    if others:
        return error.but(values={"scope": others[0].scope}, reason="hold_of_another_scope")
    return error.but(reason="hold_unknown")


def _describe_holder(hold: Hold, name: str | None) -> str:
    lock = name or parse(hold.lock).address.short
    return f"{lock} was taken by {ci_jobs.describe(hold.job)}, at {hold.since}"
