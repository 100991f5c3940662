"""A lock that is held for the steps that follow: each step finds, checks or releases what its own job holds."""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from azguard.cache import scope
from azguard.errors import AzguardError, Changed, Locked, OutcomeUnknown, Unavailable
from azguard.locks import held_lock, job_locks, slot_leases
from azguard.locks.background_holder import HoldPlan
from azguard.locks.hold_records import HoldRecord, HoldRecords, HoldState, JobScope
from azguard.locks.job_locks import JobLock
from azguard.locks.lock_blobs import LockRequest
from azguard.locks.steps import HeldUntil, StickyHold
from azguard.times import find_moment
from tests.explorer import service
from tests.explorer.blob_service import BlobService
from tests.explorer.faults import Fault
from tests.explorer.locks import (
    BREAKS,
    PATH,
    TERM_SECONDS,
    LockRules,
    acquire,
    break_lease,
    find_lock,
    runner,
    settings,
    take,
    target,
)
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import STOPPED, STOPPED_ALONE, Bound, Effect, Foreign, Rules, Scenario, Services, Violation
from tests.explorer.updates import with_pair
from tests.explorer.wire import Asked
from tests.support.no_records import NoRecords

_SCOPE = "scope"
_UNTIL_SECONDS = 8.0
_PROPOSED = "x-ms-proposed-lease-id"
_ALPHABET = (Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.TWICE, Fault.LATE, Fault.STORED)


class _Holds(HoldRecords):
    """The records of a machine that a story remembers."""

    def __init__(self, process: Process) -> None:
        super().__init__(Path("/nowhere"))
        object.__setattr__(self, "_process", process)
        object.__setattr__(self, "_kept", dict(process.given))

    def save(self, hold: HoldRecord) -> None:
        text = json.dumps(asdict(hold))
        self._kept[hold.lease_id] = text  # type: ignore[attr-defined]  # set in __init__
        self._process.tell("disk", hold.lease_id, text)  # type: ignore[attr-defined]  # set in __init__

    def find(self, lease_id: str) -> HoldRecord | None:
        return next((each for each in self._list() if each.lease_id == lease_id), None)

    @contextmanager
    def lock(self, lease_id: str, at_most_seconds: float) -> Iterator[None]:
        yield

    def prune(self) -> None:
        """Keep what ended long ago."""

    def _list(self) -> Iterator[HoldRecord]:
        for text in self._kept.values():  # type: ignore[attr-defined]  # set in __init__
            found: dict[str, Any] = json.loads(text)
            yield HoldRecord(**{**found, "state": HoldState(found["state"])})


class Ghost(NamedTuple):
    """What the rules remember."""

    disk: tuple[tuple[str, str], ...] = ()
    ends: tuple[tuple[str, Ended], ...] = ()
    #: Whether the lock was held when a process has asked last, by a lease that a job had noted.
    was_held: bool = False
    #: Whether a copy of a request has taken the lock again, after it was free, under the lease that a job had noted.
    is_taken_again: bool = False
    #: Whether the lock is held, as far as no time has passed.
    is_held: bool = False
    #: Whether the job has begun to release it, and whether the lease was broken before.
    is_asked: bool = False
    is_lost: bool = False
    #: Whether it was held when a run inside the job asked last whether it is.
    is_seen: bool = True


class HoldRules(Rules):
    """A step says what the service knows, and releases what its own job holds, and nothing else."""

    def begin(self) -> Ghost:
        return Ghost()

    def find_given(self, ghost: Ghost, program: Program) -> tuple[tuple[str, str], ...]:
        return ghost.disk

    def see_sent(self, ghost: Ghost, who: str, asked: Asked, services: Services, now: float) -> Ghost:
        is_held = _is_held(ghost, services, now)
        if who == "W1" and asked.header("x-ms-lease-id") in dict(ghost.disk):
            ghost = ghost._replace(is_seen=is_held)
        return ghost._replace(was_held=is_held, is_asked=ghost.is_asked or who == "R1")

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        if effect.asked.action == "PUT lease release" and effect.who not in ("H1", "R1", "W1"):
            raise Violation(f"{effect.who} released the lock of another job")
        was = find_lock(effect.before).lease
        is_late = effect.asked.action == "PUT lease acquire" and effect.asked.header(_PROPOSED) in dict(ghost.disk)
        # docs/guarantees.md says so: it ends with its term.
        if is_late and not service.is_locked(was, effect.now):
            ghost = ghost._replace(is_taken_again=True, is_lost=False)
        return ghost._replace(is_held=service.is_locked(find_lock(effect.after).lease, effect.now))

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        was, lease = find_lock(before).lease, find_lock(after).lease
        is_broken = was is not None and was.id in dict(ghost.disk) and lease is not None and lease.broken is not None
        return ghost._replace(is_held=False, is_lost=ghost.is_lost or (is_broken and not ghost.is_asked))

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        _, name, text = event
        return ghost._replace(disk=with_pair(ghost.disk, name, text))

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        if who == "C1" and (ended.outcome == "held") is not ghost.was_held and ended.status != 53:
            raise Violation(f"{who} says {ended.outcome}, and the lock was {'' if ghost.was_held else 'not '}held")
        if who == "R1" and ended.status == 0 and _is_held(ghost, services, now) and not ghost.is_taken_again:
            raise Violation(f"{who} says that the lock is released, and it is held")
        if who == "R1" and ended.status == 0 and ghost.is_lost:
            raise Violation(f"{who} says that the lock is released, and it was lost before")
        # What was free then can be taken again by a late copy of the job's request: it ends with its term.
        if who == "W1" and ended.status == 75 and ghost.is_seen and _is_held(ghost, services, now):
            raise Violation(f"{who} waits for its own job")
        if who in ("C2", "R2") and ended.status == 0:
            raise Violation(f"{who} took the lock of another job for its own")
        if ended.status not in (0, 44, 49, 53, 74, 75, 77):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        return ghost._replace(ends=with_pair(ghost.ends, who, ended))

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        """A lock that is held stays held."""

    def find_truth(self, ghost: Ghost, who: str, what: str) -> Hashable:
        return "held" if ghost.is_held else "not held"


def _is_held(ghost: Ghost, services: Services, now: float) -> bool:
    """Return whether a lease is held that a job has noted: that of an acquisition which was given up is of no job."""
    lease = find_lock(services).lease
    return lease is not None and lease.state(now) == "leased" and lease.id in dict(ghost.disk)


def _hold(process: Process, own: JobScope, seconds: float = 20.0) -> str:
    holds, request = _Holds(process), LockRequest(target(process))
    held = acquire(process, request, process.deadline(seconds))
    holds.save(HoldPlan(request, settings(process), seconds, holds, own).build_record(held))
    return "held"


def _check(process: Process, own: JobScope) -> str:
    known = job_locks.find(target(process), {}, _Holds(process), own)
    return job_locks.check(known, process.deadline(20)).state


def _release(process: Process, own: JobScope) -> str:
    holds = _Holds(process)
    known = job_locks.find(target(process), {}, holds, own)
    return job_locks.release(known, holds, NoRecords(), process.deadline(20), lambda text: None).outcome


def _wait(process: Process, own: JobScope) -> str:
    """Ask for the lock as a run inside the job does, that waits for less than the term."""
    seconds, request = TERM_SECONDS / 3, LockRequest(target(process))
    job_locks.refuse_own(request, seconds, _Holds(process), own, process.deadline(20))
    held = acquire(process, request, process.deadline(seconds))
    held_lock.release(held.target, held.lease_id, NoRecords(), process.deadline(20))
    return "held"


def _hold_until(process: Process) -> str:
    """Hold the lock without a process, prolong it when its time is over, and release it."""
    sticky, found = _stay(process, HeldUntil(seconds=_UNTIL_SECONDS))
    if found is None:
        return "lost"
    process.sleep(_UNTIL_SECONDS + 0.5)
    lock = None
    with suppress(Changed):  # One that was stopped has no time to read the lock again.
        lock = sticky.prolong(found)
    if lock is None or lock.hold is None:
        process.tell("leaves", True)
        return "lost"
    process.tell("renews", _find_end(lock.hold))
    return _leave(process, lock)


def _hold_for_ever(process: Process) -> str:
    """Hold the lock without a process and without an end, and release it."""
    _, found = _stay(process, HeldUntil())
    return "lost" if found is None else _leave(process, found)


def _stay(process: Process, until: HeldUntil) -> tuple[StickyHold, JobLock | None]:
    """Hold the lock without a process; None if it was lost before."""
    request, holds = LockRequest(target(process)), _Holds(process)
    plan = HoldPlan(request, settings(process), _UNTIL_SECONDS, holds, JobScope(_SCOPE, None))
    sticky = StickyHold(plan, until)
    taken = [acquire(process, request, process.deadline(60.0))]
    try:
        sticky._exclude_late(taken)
        record = sticky._stay(taken[-1])
    except AzguardError as error:
        is_free = sticky._give_back_all(taken)
        if isinstance(error, (Changed, Locked)):
            return sticky, None
        if is_free and isinstance(error, OutcomeUnknown):
            raise slot_leases.explain_not_acquired(error) from error
        raise
    (held,) = taken
    process.tell("holds", _find_end(record), held.fence, held.lease_id, PATH, 1, False)
    return sticky, job_locks.of_hold(held.target, record)


def _leave(process: Process, lock: JobLock) -> str:
    process.sleep(1.0)
    process.tell("leaves", False)
    try:
        return job_locks.release(lock, _Holds(process), NoRecords(), process.deadline(20), lambda text: None).outcome
    except (OutcomeUnknown, Unavailable):
        process.tell("keeps")
        raise


def _find_end(record: HoldRecord) -> float:
    """Return when the next one may take the lock, in seconds since the begin."""
    end = find_moment(record.until)
    return inf if end is None else (end - service.moment(0.0)).total_seconds()


def _step(name: str, run: Callable[[Process, JobScope], str], after: str | None = None) -> Program:
    """Return one step of the job whose number its name ends with."""
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "1", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_JOB": name[-1]}
    own = JobScope(_SCOPE, scope.find_job(environ))
    return Program(name, lambda process: run(process, own), after=after)


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of locks that are held beyond one command."""
    steps = (
        _step("H1", _hold),
        _step("C2", _check, "H1"),
        _step("R2", _release, "C2"),
        _step("C1", _check, "R2"),
        _step("R1", _release, "C1"),
    )
    yield _scenario("hold, check, release", *steps)
    # Before the end of a lease that was broken, and that a late copy of its request has taken again.
    hurried = partial(_hold, seconds=TERM_SECONDS / 2)
    lost = _step("H1", _hold), _step("C1", _check, "H1"), _step("R1", _release, "C1")
    yield _scenario(
        "hold, lost to another",
        *lost,
        bound=Bound(foreign=2),
        stopped=Bound(foreign=2, stops=1, switches=0),
        foreign={
            **BREAKS,
            "breaks the lease in 5 s": partial(break_lease, seconds=5.0),
            "takes the lease": take,
            "writes the lock": _write,
        },
    )
    yield _scenario(
        "hold, and a run of its job",
        _step("H1", _hold),
        _step("W1", _wait, "H1"),
        bound=Bound(foreign=1),
        stopped=Bound(stops=1),
    )
    yield Scenario(
        name="hold, until a time",
        programs=(Program("H", _hold_until), runner("B", begins=1.0, holds=1.0)),
        services={"blob": BlobService()},
        rules=LockRules(),
        bound=Bound(foreign=1, kills=1, switches=1),
        short=Bound(),
        stopped=STOPPED_ALONE,
        foreign=BREAKS,
        alphabet=_ALPHABET,
        slow_seconds=0.0,
    )
    yield Scenario(
        name="hold, for ever",
        programs=(Program("H", _hold_for_ever),),
        services={"blob": BlobService()},
        rules=LockRules(),
        bound=Bound(faults=1, foreign=1),
        short=Bound(faults=1, foreign=1),
        stopped=Bound(faults=1, stops=1),
        foreign=BREAKS,
        alphabet=(Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.LATE),
        # Killed, it leaves what it was to leave.
        mortal=(),
        slow_seconds=0.0,
    )
    yield _scenario("hold, given up", _step("H1", hurried), _step("C1", _check, "H1"), _step("R1", _release, "C1"))


def _write(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    lock = blobs.blobs.get(PATH)
    if lock is None or service.is_locked(lock.lease, now):
        return None
    return {**services, "blob": blobs.write(PATH, now, content=b"w", lease=None)}


def _scenario(
    name: str,
    *steps: Program,
    bound: Bound = Bound(faults=1, foreign=1),  # noqa: B008  # a value
    foreign: Mapping[str, Foreign] = BREAKS,
    stopped: Bound = STOPPED,
) -> Scenario:
    return Scenario(
        name=name,
        programs=steps,
        services={"blob": BlobService()},
        rules=HoldRules(),
        bound=bound,
        short=Bound(foreign=1),
        stopped=stopped,
        foreign=foreign,
        alphabet=_ALPHABET,
        # Killed before it has noted what it holds, the first step leaves a lock that the others cannot know.
        mortal=("C1", "C2", "R1", "R2"),
        slow_seconds=0.0,
    )
