"""The locks of this job, as its environment and the records of this machine say: find, check and release them."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

from azguard.accounts.account import Target
from azguard.address import parse
from azguard.cache import scope
from azguard.errors import AzguardError, Locked, LockLost, NotFound
from azguard.frozen import frozen
from azguard.leases import owners
from azguard.leases import state as lease_state
from azguard.leases.owners import FENCE
from azguard.leases.recorded import LeaseRecords
from azguard.leases.state import LeaseState
from azguard.locks import environment, held_lock, lock_blobs, log, queue, readers
from azguard.locks.hold_records import HoldRecord, HoldRecords, HoldState, JobScope
from azguard.locks.lock_blobs import AcquireSettings, LockRequest
from azguard.locks.log import LogLine
from azguard.processes import identity
from azguard.requests.deadline import Deadline
from azguard.times import find_moment, iso

if TYPE_CHECKING:
    from azguard.locks.shown import CheckResult, ReleaseResult

# The process releases the lock itself, which takes it no longer.
_ENDING_SECONDS = 10.0
# How long the service is asked before the process is ended: where it does not answer, the lease shall end soon.
_LOOK_SECONDS = 2.0


@frozen
class JobLock:
    """A lock that this job holds, or held: its blob and its lease."""

    target: Target
    lease_id: str
    fence: int | None
    #: The record of this machine, if there is one.
    hold: HoldRecord | None

    @property
    def is_sticky(self) -> bool:
        """Return whether the lock is held without a process."""
        return self.hold is not None and self.hold.pid is None


def find(target: Target, environ: Mapping[str, str], holds: HoldRecords, own: JobScope) -> JobLock:
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


def find_held_around(target: Target, environ: Mapping[str, str], holds: HoldRecords) -> JobLock | None:
    """Return the lock of a name that the environment says this job holds, unless it is known to be over."""
    return next((each for each in _find_around(target, environ, holds) if not _is_over(each)), None)


def list_addresses(environ: Mapping[str, str], holds: HoldRecords, own: JobScope) -> list[str]:
    """Return the addresses of the locks that this job holds, or lost, as its environment and the records say.

    Where it holds none, they are those that it took last, if it has released them.

    Raises:
        NotFound: it held none, or was told that it has lost them.
    """
    lines = [line for line in environment.read_lines(environ) if line.lock]
    around = [line.lock for line in lines if not ((hold := holds.find(line.lease_id)) and hold.is_settled)]
    newest: dict[str, HoldRecord] = {}
    for hold in holds.list_own(own):
        newest.setdefault(hold.address, hold)
    open_ = sorted(hold.address for hold in newest.values() if not hold.is_over)
    last = next((hold.since for hold in newest.values()), None)
    released = [hold.address for hold in newest.values() if (hold.since, hold.state) == (last, HoldState.RELEASED)]
    found = list(dict.fromkeys([*around, *open_])) or sorted(released)
    if not found:
        raise _build_not_held([each for each in holds.list_of_others(own) if each.scope == own.scope], own)
    return found


def of_lease(target: Target, lease_id: str, fence: int | None, holds: HoldRecords) -> JobLock:
    """Return the lock, or the slot of it, with a lease; a record of another lock is left out."""
    hold = holds.find(lease_id)
    if hold is not None and hold.endpoint == target.endpoint and str(target.address) in (hold.lock, hold.address):
        return of_hold(target, hold)
    return JobLock(target, lease_id, fence, None)


def of_hold(target: Target, hold: HoldRecord) -> JobLock:
    """Return the lock of a record; ``target`` is in its account."""
    return JobLock(Target(target.account, parse(hold.address).address), hold.lease_id, hold.fence, hold)


def refuse_own(request: LockRequest, wait: float, holds: HoldRecords, own: JobScope, deadline: Deadline) -> None:
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


def check(known: JobLock, deadline: Deadline) -> "CheckResult":
    """Ask the service whether a lock is held.

    Raises:
        LockLost: it is not, or soon is not: the process that renews it is gone.
        Unavailable: the service cannot be asked.
    """
    from azguard.locks.shown import CheckResult  # which a run under a lock does not need

    hold = known.hold
    state = _look_at_lease(known, deadline)
    if hold is not None:
        _check_renewed(known.target, hold)
    left = None if hold is None else hold.seconds_left
    return CheckResult(
        address=str(known.target.address),
        state="held",
        lease_id=known.lease_id,
        fence=owners.read_number(state.metadata, FENCE) if known.fence is None else known.fence,
        seconds_left=None if left is None else int(left),
        until=None if hold is None else hold.until,
        pid=None if hold is None else hold.pid,
    )


def confirm(known: JobLock, request: LockRequest, settings: AcquireSettings) -> None:
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
        raise _build_lost(known.target, error.message).but(reason="hold_lost_before") from error


def release(
    known: JobLock, holds: HoldRecords, records: LeaseRecords, deadline: Deadline, say: Callable[[str], None]
) -> "ReleaseResult":
    """Release a lock, after ending the process that renews it; that it was released before is no error.

    The service decides. What is held when it is asked first was not lost before the release, which can be by this
    run, the process that it ends, or another release at the same time. ``say`` is told of a line that the history
    lacks.

    Raises:
        LockLost: it was lost before. Nothing was released.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
    """
    from azguard.locks.shown import ReleaseResult  # which a run under a lock does not need

    before = _look_before(known, deadline)
    if known.hold is not None and known.hold.process is not None:
        process = known.hold.process
        identity.end(process.pid, process.birth, _ENDING_SECONDS, send=os.kill)
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
    return ReleaseResult(address=address, lease_id=known.lease_id, fence=known.fence, outcome=outcome)


def _build_lost(target: Target, why: str) -> LockLost:
    return LockLost(
        f"the lock {target} is not held by this job any more",
        address=str(target.address),
        detail=(why,) if why else (),
        reason="lock_not_held",
    )


def _find_around(target: Target, environ: Mapping[str, str], holds: HoldRecords) -> Iterator[JobLock]:
    """Yield the lines of the environment about a lock, a slot of it, or a reader's blob."""
    slot_name = re.compile(rf"{re.escape(str(target.address))}(\.slot[0-9]+)?")
    for text in dict.fromkeys(environ.get(environment.LOCK, "").split("\n")):
        if not slot_name.fullmatch(text) and not queue.is_reader_of(text, target):
            continue
        slot = Target(target.account, parse(text).address)
        around = environment.find_outer_lock(slot, environ)
        if around is not None:
            yield of_lease(slot, around.lease_id, around.fence, holds)


def _find_recorded(target: Target, holds: HoldRecords, own: JobScope) -> Iterator[JobLock]:
    for hold in holds.list_own(own):
        if hold.endpoint == target.endpoint and str(target.address) in (hold.lock, hold.address):
            yield of_hold(target, hold)


def _is_in_state(known: JobLock, state: HoldState) -> bool:
    return known.hold is not None and known.hold.state is state


def _is_over(known: JobLock) -> bool:
    return known.hold is not None and known.hold.is_over


def _ends_within(seconds: float, hold: HoldRecord, found: LeaseState) -> bool:
    until = find_moment(hold.until)
    if until is None or found.answered_at is None:
        return False
    try:
        return until <= found.answered_at + timedelta(seconds=seconds)
    except OverflowError:
        return False


def _build_not_held(others: Sequence[HoldRecord], own: JobScope, target: Target | None = None) -> NotFound:
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


def _describe_holder(hold: HoldRecord, name: str | None) -> str:
    lock = name or parse(hold.lock).address.short
    return f"{lock} was taken by {scope.describe_job(hold.job)}, at {hold.since}"


def _check_renewed(target: Target, hold: HoldRecord) -> None:
    process = hold.process
    if process is not None and not process.lives:
        raise _build_lost(target, f"the process that renews it was killed (pid {process.pid})")
    if hold.pid is not None and hold.state is not HoldState.HELD:
        raise _build_lost(target, _tell_end(hold))


def _look_at_lease(known: JobLock, deadline: Deadline) -> LeaseState:
    try:
        state = lease_state.look(known.target, deadline, known.lease_id)
    except (Locked, NotFound) as error:
        is_released = known.hold is not None and known.hold.state is HoldState.RELEASED
        # The service knows less: only that the lease is not held.
        why = _tell_end(known.hold) if known.hold is not None and is_released else error.message
        raise _build_lost(known.target, why) from error
    if state.state != "leased":
        raise _build_lost(known.target, f"its lease is {state.state}")
    return state


def _tell_end(hold: HoldRecord) -> str:
    return f"it was {hold.state}" + (f": {hold.why}" if hold.why else "")


def _look_before(known: JobLock, deadline: Deadline) -> LeaseState | None:
    """Return the state of the lock if its lease is held; None if it is not, or the service does not say."""
    try:
        return lease_state.look(known.target, deadline.briefly(_LOOK_SECONDS), known.lease_id)
    except AzguardError:
        return None  # It is asked again, once the process that renews the lease has ended.


def _release(
    known: JobLock,
    before: LeaseState | None,
    ended: HoldRecord | None,
    records: LeaseRecords,
    deadline: Deadline,
    say: Callable[[str], None],
) -> str:
    """Release what is held still, and return the outcome.

    ``before`` is the state in which it was held before its process was ended, ``ended`` its record since.
    """
    if _was_released_by_its_process(known, ended):
        return "released"
    try:
        found = held_lock.release(known.target, known.lease_id, records, deadline)
    except (Locked, NotFound) as error:
        if before is None:
            return _explain_end(known, ended, error, deadline)
        found = before
    else:
        _clean_up(known, found, say)
    lost = held_lock.find_loss(before or found)
    if lost is not None:
        raise _build_lost(known.target, lost).but(reason="lock_lost_before_release")
    return "released"


def _explain_end(known: JobLock, ended: HoldRecord | None, error: AzguardError, deadline: Deadline) -> str:
    """Return the outcome for a lock that is not held any more, as an error of the service says."""
    # What was left was to end, and its lease has ended by itself since.
    if ended is not None and ended.state in (HoldState.RELEASED, HoldState.LEFT):
        return "already_released"
    why = ended.why if ended is not None and ended.state is HoldState.LOST else None
    version = None if ended is None else ended.version
    if why is None and _was_released(known, version, deadline):
        return "already_released"
    raise _build_lost(known.target, why or error.message).but(reason="lock_lost_before_release") from error


def _was_released_by_its_process(known: JobLock, ended: HoldRecord | None) -> bool:
    """Return whether the process that was ended here has released the lock: it has said so since, and looked before."""
    was_renewed = known.hold is not None and known.hold.process is not None and _is_in_state(known, HoldState.HELD)
    return was_renewed and ended is not None and ended.state is HoldState.RELEASED


def _was_released(known: JobLock, version: str | None, deadline: Deadline) -> bool:
    """Return whether a lock that is not held any more was released by its id, as the service shows it now."""
    try:
        return held_lock.was_released(lease_state.look(known.target, deadline), known.fence, version)
    except NotFound:
        return False


def _clean_up(known: JobLock, found: LeaseState, say: Callable[[str], None]) -> None:
    """Clean up after a release, unless the process that renewed the lease did."""
    if owners.is_reader(found.metadata):
        readers.delete(known.target)
    is_logged = _is_in_state(known, HoldState.LOST)
    if known.hold is not None and known.hold.keeps_history and not is_logged:
        _write_log(known, found, held_lock.find_loss(found), say)


def _write_log(known: JobLock, found: LeaseState, lost: str | None, say: Callable[[str], None]) -> None:
    owner = owners.read_owner(found.metadata)
    if owner is None or known.hold is None:
        return
    address = str(known.target.address)
    holding = log.describe_holding(address, owner, known.fence, lost=lost, ended=iso(found.answered_at))
    lock = Target(known.target.account, parse(known.hold.lock).address)
    log.append(lock, LogLine(holding, None), say)
