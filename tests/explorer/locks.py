"""Runs under a lock: who holds it beside whom, with which fence, and what is left of them."""

import json
from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import Locked, NotFound
from azguard.leases import state as lease_state
from azguard.leases.owners import FENCE, OWNER, Owner
from azguard.leases.recorded import LeaseRecords
from azguard.locks import held_lock, readers, shown
from azguard.locks.acquire import LockAcquisition
from azguard.locks.held_lock import HeldLock, Renewer
from azguard.locks.lock_blobs import AcquireSettings, LockRequest
from azguard.requests.deadline import Deadline
from tests.explorer import service
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.faults import Fault
from tests.explorer.leases import Records
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import STOPPED_ALONE, Bound, Effect, Foreign, Rules, Scenario, Services, Violation
from tests.explorer.updates import Even, with_pair
from tests.explorer.wire import Asked
from tests.support.no_records import NoRecords

PATH = "locks/x"
TERM_SECONDS = 15
_WAIT_SECONDS = 60.0
_HOLD_SECONDS = 2.0
# A loss is looked for every 5 s, by a request that is answered within 3 s, and sent again once at most here.
_NOTICED_SECONDS = 9.0
# The command is ended so long before the lease ends.
_MARGIN_SECONDS = 1.0
# As ``lock show`` and ``lease list`` say it.
_HELD = ("held", "leased", "breaking")
# That of a program that keeps no record.
_OTHERS_LEASE = "0f000000-0000-4000-8000-000000000000"
# The processes that show it.
_SHOWING = ("V", "L")
_ALPHABET = (Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.TWICE, Fault.LATE, Fault.STORED, Fault.DATE_AHEAD, Fault.SLOW)


class Holding(NamedTuple):
    """A lock that is held, as its holder knows it."""

    until: float
    fence: int
    #: The id of its lease, and the blob that is leased: that of a slot, or of a reader.
    lease: str
    path: str
    slots: int
    is_shared: bool
    #: When another program broke it; None if none did.
    broken: float | None = None


class Ghost(NamedTuple):
    """What the rules remember."""

    holders: tuple[tuple[str, Holding], ...] = ()
    #: The highest fence of each slot so far.
    fences: tuple[tuple[str, int], ...] = ()
    ends: tuple[tuple[str, Ended], ...] = ()
    killed: frozenset[str] = frozenset()
    stopped: frozenset[str] = frozenset()
    #: When each lease ends that was acquired or renewed, as the service knows it; by its id.
    leases: tuple[tuple[str, float], ...] = ()
    #: The process that acquired the lease of the lock last, until it is released.
    leased: str | None = None
    #: When those of processes were broken.
    broken: tuple[tuple[str, float], ...] = ()
    #: Whether the lock was held when one that shows it has asked last, and whether it was by another program.
    looked: tuple[bool, bool] = (False, False)
    #: Those that were told that they could not release it.
    keeping: frozenset[str] = frozenset()
    #: What is recorded of each lease on the machine, where leases are.
    disk: tuple[tuple[str, str], ...] = ()


class LockRules(Rules):
    """One holder of a slot at a time, each with a higher fence; nothing is left of those that have ended."""

    def __init__(self, *, may_lose: bool = True, is_recorded: bool = False) -> None:
        #: Whether a lock can be lost that nothing took from its holder: requests meet faults.
        self._may_lose = may_lose
        #: Whether leases are recorded on the machine: each before it is asked for, and as long as a request may come.
        self._is_recorded = is_recorded

    def begin(self) -> Ghost:
        return Ghost()

    def see_sent(self, ghost: Ghost, who: str, asked: Asked, services: Services, now: float) -> Ghost:
        if who not in _SHOWING:
            return ghost
        lock = find_lock(services)
        # Who took the lease and left no record can be told from the holder before if its record is over.
        is_over = json.loads(lock.meta(OWNER) or "{}").get("lease") == ""
        return ghost._replace(looked=(service.is_locked(lock.lease, now), is_over and _is_of_other(lock.lease)))

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        blob: Blob | None = effect.after["blob"].blobs.get(effect.asked.path)
        if effect.asked.path == PATH and ghost.leased is not None and find_lock(effect.after).lease is None:
            ghost = ghost._replace(leased=None)
        if blob is None or blob.lease is None or "lease" not in effect.asked.action:
            return ghost
        if effect.asked.action == "PUT lease acquire":
            if self._is_recorded and blob.lease.id not in dict(ghost.disk):
                raise Violation(f"{effect.who} has a lease of {effect.asked.path}, and no record has its id")
            ghost = ghost._replace(broken=with_pair(ghost.broken, effect.who, None))
            if effect.asked.path == PATH:
                ghost = _take_again(ghost, effect.who)._replace(leased=effect.who)
        ghost = ghost._replace(leases=with_pair(ghost.leases, blob.lease.id, blob.lease.ends))
        held = dict(ghost.holders).get(effect.who)
        if held is not None:
            _check_end(ghost, effect.who, held)
        return ghost

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        lease = find_lock(after).lease
        if lease is None or lease.broken is None or ghost.leased is None:
            return ghost
        # Whose lease was broken may not know yet that it holds the lock.
        who, held = ghost.leased, dict(ghost.holders).get(ghost.leased)
        if held is not None:
            ghost = ghost._replace(holders=with_pair(ghost.holders, who, held._replace(broken=lease.broken)))
        return ghost._replace(broken=with_pair(ghost.broken, who, lease.broken))

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        match event:
            case "disk", lease_id, text:
                return ghost._replace(disk=with_pair(ghost.disk, lease_id, text)) if self._is_recorded else ghost
            case "shows", state, holder:
                self._check_shown(ghost, who, state, holder)
                return ghost
            case ("keeps",):
                return ghost._replace(keeping=ghost.keeping | {who})
            case "leaves", _:
                broken = dict(ghost.holders)[who].broken if who in dict(ghost.holders) else None
                _check_noticed(ghost, f"{who} goes on", who, broken, now)
                return ghost._replace(holders=with_pair(ghost.holders, who, None))
            case "renews", until:
                held = dict(ghost.holders)[who]._replace(until=until)
            case "holds", until, fence, lease, path, slots, is_shared:
                broken = None if is_shared else dict(ghost.broken).get(who)
                held = Holding(until, fence, lease, path, slots, is_shared, broken)
                ghost = self._begin(ghost, who, held, now)
        _check_end(ghost, who, held)
        if held.broken is None and now < held.until:
            _check_beside(ghost, who, held, now)
        return ghost._replace(holders=with_pair(ghost.holders, who, held))

    def _begin(self, ghost: Ghost, who: str, held: Holding, now: float) -> Ghost:
        if held.is_shared:
            return ghost
        highest = dict(ghost.fences).get(held.path, 0)
        if held.broken is not None:
            _check_noticed(ghost, f"{who} begins", who, held.broken, now)
        elif held.fence <= highest and now < held.until:
            raise Violation(f"{who} has fence {held.fence}, after {highest}")
        return ghost._replace(fences=with_pair(ghost.fences, held.path, max(held.fence, highest)))

    def _check_shown(self, ghost: Ghost, who: str, state: str, holder: str | None) -> None:
        was_held, is_unknown = ghost.looked
        if holder is not None and is_unknown:
            raise Violation(f"{who} shows {holder} as the holder, and it is another program")
        if (state in _HELD) is not was_held:
            raise Violation(f"{who} shows {state}, and the lock was {'' if was_held else 'not '}held")

    def see_kill(self, ghost: Ghost, who: str) -> Ghost:
        holders = with_pair(ghost.holders, who, None)
        return ghost._replace(holders=holders, killed=ghost.killed | {who})

    def see_stop(self, ghost: Ghost, who: str, now: float) -> Ghost:
        return ghost._replace(stopped=ghost.stopped | {who})

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        if ended.status == 75 and not _is_of_other(find_lock(services).lease) and who not in ghost.stopped:
            raise Violation(f"{who} waits for ever")
        # A record, or a release, without an answer, of a lease that is still held when the time is up, may come yet.
        is_open = ended.status == 74 and ended.outcome in ("lease_outcome_unknown", "outcome_unknown")
        is_refused = (ended.status, ended.outcome) == (2, "lock_slots_differ")
        if ended.status not in (0, 44, 53, 75, 77) and not is_open and not is_refused:
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        if ended.outcome == "lost" and not self._may_lose and who not in ghost.stopped:
            raise Violation(f"{who} has lost the lock, and nothing took it")
        return ghost._replace(ends=with_pair(ghost.ends, who, ended))

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        blobs: BlobService = services["blob"]
        # The next run under the lock ends it, or the job that holds it still.
        if ghost.keeping or "until" in json.loads(find_lock(services).meta(OWNER) or "{}"):
            return
        for path, blob in blobs.blobs.items():
            is_held = service.is_locked(blob.lease, now) and not _is_of_other(blob.lease)
            if is_held and blob.lease is not None and blob.lease.ends > now + TERM_SECONDS:
                raise Violation(f"a lease of {path} is left that does not end by itself")

    def find_truth(self, ghost: Ghost, who: str, what: str) -> Hashable:
        return "held" if ghost.leased == who and who not in dict(ghost.broken) else "not held"


def _is_of_other(lease: service.Lease | None) -> bool:
    return lease is not None and lease.id == _OTHERS_LEASE


def _take_again(ghost: Ghost, who: str) -> Ghost:
    """Note that a late copy has undone a break, before another held the lock: its holder holds it as before."""
    held = dict(ghost.holders).get(who)
    if held is None or held.fence < dict(ghost.fences)[held.path]:
        return ghost
    return ghost._replace(holders=with_pair(ghost.holders, who, held._replace(broken=None)))


def _check_noticed(ghost: Ghost, does: str, who: str, broken: float | None, now: float) -> None:
    """See that a break is noticed in time, but by one that was stopped: its command ends with its lease."""
    if broken is not None and now > broken + _NOTICED_SECONDS and who not in ghost.stopped:
        raise Violation(f"{does} {now - broken:.0f} s after its lease was broken")


def _check_end(ghost: Ghost, who: str, held: Holding) -> None:
    ends = dict(ghost.leases).get(held.lease, 0.0)
    if held.until > ends:
        raise Violation(f"{who} counts on its lease until {held.until:.0f} s, and it ends at {ends:.0f} s")


def _check_beside(ghost: Ghost, who: str, held: Holding, now: float) -> None:
    for other, theirs in ghost.holders:
        is_apart = theirs.is_shared if held.is_shared else _are_slots_of_one(theirs, held)
        if other != who and theirs.broken is None and now < theirs.until and not is_apart:
            raise Violation(f"{who} holds the lock beside {other}")


def _are_slots_of_one(one: Holding, other: Holding) -> bool:
    return not one.is_shared and one.slots == other.slots and one.path != other.path


def find_lock(services: Services) -> Blob:
    """Return the blob of the lock; an empty one if there is none."""
    found: Blob = services["blob"].blobs.get(PATH) or Blob("", 0.0)
    return found


def settings(process: Process, records: LeaseRecords | None = None) -> AcquireSettings:
    """Return how a process acquires the lock."""
    return AcquireSettings(
        owner=Owner(process.name, "host", 1, "sh", None),
        seconds=TERM_SECONDS,
        create=True,
        patience=process.deadline(30.0),
        records=records or NoRecords(),
        say=lambda text: None,
        tell=lambda text: None,
        uniform=Even().uniform,
        now=process.clock,
    )


def acquire(
    process: Process, request: LockRequest, deadline: Deadline, records: LeaseRecords | None = None
) -> HeldLock:
    """Acquire the lock; between two attempts a process knows no more than hangs on the acquisition."""
    acquisition = LockAcquisition(request, settings(process, records), deadline, lambda: process.rest(acquisition))
    return acquisition.run()


def target(process: Process) -> Target:
    """Return the lock."""
    return Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))


class _Wake:
    """Waits where a renewer waits, and ends it when its command has ended, or must end before the lease does."""

    def __init__(self, process: Process, renewer: Renewer, until: float, ends: float) -> None:
        self._process, self._renewer, self._until, self.ends = process, renewer, until, ends

    def wait(self, seconds: float) -> None:
        over = min(self._until, self.ends - _MARGIN_SECONDS)
        # One that was stopped may renew its lease before its command is ended.
        is_last = over <= self._renewer._due
        # Not so short that the clock, which has microseconds, stands still.
        self._process.sleep(max(0.001, min(self._renewer._due, over) - self._process.now))
        if is_last and over <= self._process.now:
            self._renewer._is_stopped = True

    def clear(self) -> None:
        """Nothing is set."""


def _work(process: Process, held: HeldLock, seconds: float) -> bool:
    """Renew the lease while the command runs, and return whether it was lost."""
    lost: list[str] = []

    def note(ends: float) -> None:
        wake.ends = ends
        process.tell("renews", ends)

    renewer = Renewer(held, on_renewal=note, on_loss=lost.append, tell=lambda text: None, now=process.clock)
    wake = _Wake(process, renewer, process.now + seconds, held.ends)
    renewer._wake = wake  # type: ignore[assignment]  # it waits in a greenlet instead of a thread
    renewer._ask_until_stopped()
    return bool(lost)


def runner(
    name: str,
    *,
    begins: float = 0.0,
    holds: float = _HOLD_SECONDS,
    slots: int = 1,
    is_shared: bool = False,
    is_renewed: bool = True,
    is_recorded: bool = False,
    ends_within: float = 10.0,
) -> Program:
    def main(process: Process) -> str:
        records = Records(process) if is_recorded else NoRecords()
        deadline = process.deadline(_WAIT_SECONDS)
        request = LockRequest(target(process), slots, is_shared=is_shared)
        held = acquire(process, request, deadline, records)
        process.rest(held)
        # Its guardian starts no command so late.
        is_lost = process.now >= held.ends - _MARGIN_SECONDS
        if not is_lost:
            path = "/".join(held.target.address.parts)
            process.tell("holds", held.ends, held.fence, held.lease_id, path, slots, is_shared)
            if is_renewed:
                is_lost = _work(process, held, holds)
            else:
                process.sleep(min(holds, held.ends - _MARGIN_SECONDS - process.now))
            process.tell("leaves", is_lost)
        if is_lost:
            held_lock.forget(held, records)
            return "lost"
        try:
            held_lock.release(held.target, held.lease_id, NoRecords(), process.deadline(ends_within))
        except (Locked, NotFound):
            return "lost"
        finally:
            held_lock.forget(held, records)
        if is_shared:
            readers.delete(held.target)
        return "held"

    return Program(name, main, begins=begins)


def _shower(name: str, after: str) -> Program:
    """Return a process that shows the lock, as ``lock show`` does."""

    def main(process: Process) -> str:
        [found] = shown.show(target(process), process.deadline(30))
        process.tell("shows", found.state, found.held_by)
        return "shown"

    return Program(name, main, after=after)


def _lister(name: str, after: str) -> Program:
    """Return a process that lists the leases beside the lock, as ``lease list`` does."""

    def main(process: Process) -> str:
        container = Target(process.account, Address(Kind.CONTAINER, (target(process).address.container,)))
        listed = lease_state.list_states(container, process.deadline(30), None)
        states = [each.state for each in listed if each.address == str(target(process).address)]
        process.tell("shows", states[0] if states else "free", None)
        return "shown"

    return Program(name, main, after=after)


def break_lease(services: Services, now: float, seconds: float = 0.0) -> Services | None:
    blobs: BlobService = services["blob"]
    lease = find_lock(services).lease
    if lease is None or not service.is_locked(lease, now) or lease.broken is not None:
        return None
    return {**services, "blob": blobs.with_lease(PATH, replace(lease, broken=now + seconds))}


def take(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    lock = find_lock(services)
    # Once it was held: what a later lock run has to wait for is another matter.
    if lock.meta(OWNER) is None or lock.meta(FENCE) is None or service.is_locked(lock.lease, now):
        return None
    return {**services, "blob": blobs.with_lease(PATH, service.Lease(_OTHERS_LEASE, inf, inf))}


# Of three processes, whose orders are many.
_STOPPED = Bound(stops=1, switches=0)
BREAKS: dict[str, Foreign] = {"breaks the lease": break_lease}


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of locks."""
    both = runner("A", is_renewed=False), runner("B", is_renewed=False)
    deep: dict[str, Any] = {"deep": Bound(faults=1, kills=1, switches=0), "is_symmetric": True}
    deep |= {"stopped": STOPPED_ALONE}
    yield _scenario("lock, two runs", *both, bound=Bound(kills=1), short=Bound(), **deep)
    # While one is stopped, another comes and goes, and its time for its record is over when it goes on.
    quick = runner("B", holds=0.0, is_renewed=False), runner("C", begins=8.0, holds=0.0, is_renewed=False)
    stopped: dict[str, Any] = {"bound": Bound(kills=1, switches=0), "stopped": _STOPPED}
    yield _scenario("lock, stopped before its record", both[0], *quick, **stopped)
    waiter = runner("C", begins=1.0, is_renewed=False)
    three: dict[str, Any] = {"bound": Bound(kills=1), "stopped": _STOPPED, "is_symmetric": True}
    yield _scenario("lock, two runs and a waiter", *both, waiter, **three)
    lost: dict[str, Any] = {"bound": Bound(faults=1, switches=0), "deep": Bound(faults=1, kills=1, switches=0)}
    one = (Fault.LOST_AFTER,)
    yield _scenario("lock, a waiter and a lost answer", *both, waiter, alphabet=one, **{**three, **lost})
    yield _scenario(
        "lock, to the end of its lease",
        runner("A", holds=100.0, is_renewed=False),
        runner("B", begins=5.0),
        bound=Bound(faults=1),
        short=Bound(faults=1),
        stopped=STOPPED_ALONE,
        alphabet=(Fault.DELAYED,),
    )
    yield _scenario(
        "lock, renewed",
        runner("A", holds=12.0),
        bound=Bound(faults=1, foreign=1),
        short=Bound(faults=1, foreign=1),
        alphabet=(Fault.DELAYED, Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.STORED),
        foreign=BREAKS,
    )
    yield _scenario(
        "lock, release given up",
        runner("A", ends_within=0.01),
        bound=Bound(faults=1, foreign=1),
        short=Bound(faults=1, foreign=1),
        deep=Bound(faults=2, foreign=1),
        alphabet=(Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.LATE),
        foreign=BREAKS,
    )
    yield _scenario(
        "lock, broken beside a waiter",
        runner("A", holds=12.0),
        runner("B", begins=5.0),
        bound=Bound(foreign=1, kills=1),
        short=Bound(foreign=1),
        stopped=Bound(foreign=1, stops=1, switches=0),
        foreign=BREAKS,
    )
    yield _scenario(
        "lock, readers",
        runner("R", is_shared=True),
        runner("S", is_shared=True, begins=0.5),
        runner("A", begins=1.0, holds=1.0),
        bound=Bound(kills=1),
        short=Bound(),
        stopped=_STOPPED,
        page=1,
    )
    yield _scenario(
        "lock, a reader and a writer",
        runner("R", is_shared=True, holds=20.0),
        runner("A", holds=12.0),
        rules=LockRules(may_lose=False),
        bound=Bound(kills=1),
        short=Bound(),
        stopped=STOPPED_ALONE,
    )
    both = runner("A", slots=2, is_renewed=False), runner("B", slots=2, is_renewed=False)
    third: dict[str, Any] = {"bound": Bound(kills=1), "short": Bound(), "stopped": _STOPPED}
    last = runner("C", slots=2, begins=1.0, is_renewed=False)
    yield _scenario("lock, of two slots", *both, last, is_symmetric=True, **third)
    last = runner("C", begins=0.5, is_renewed=False)
    yield _scenario("lock, of two slots and of one", runner("A", slots=2, holds=1.0), both[1], last, **third)
    yield _scenario(
        "lock, shown",
        runner("A"),
        _shower("V", after="A"),
        bound=Bound(faults=1, kills=1, foreign=1),
        short=Bound(kills=1, foreign=1),
        foreign={**BREAKS, "takes the lease": take},
    )
    short = Bound(kills=1, foreign=1)
    late: dict[str, Any] = {"bound": Bound(faults=1, foreign=1), "short": Bound(faults=1, foreign=1)}
    yield _scenario(
        "lock, broken and taken again",
        runner("A", holds=12.0, is_recorded=True),
        rules=LockRules(is_recorded=True),
        alphabet=(Fault.LATE,),
        foreign=BREAKS,
        **late,
    )
    twice: dict[str, Any] = {"bound": Bound(faults=1), "deep": Bound(faults=1, foreign=2, switches=0)}
    twice |= {"stopped": STOPPED_ALONE}
    both = runner("A", holds=12.0), runner("B", begins=5.0, holds=0.5)
    yield _scenario("lock, taken again after another", *both, alphabet=(Fault.LATE,), foreign=BREAKS, **twice)
    both = runner("A"), _lister("L", after="A")
    yield _scenario("lock, listed", *both, bound=short, short=short, deep=short._replace(faults=1), foreign=BREAKS)


def _scenario(
    name: str,
    *programs: Program,
    bound: Bound,
    short: Bound | None = None,
    page: int = 3,
    rules: Rules | None = None,
    alphabet: tuple[Fault, ...] = _ALPHABET,
    **more: Any,
) -> Scenario:
    return Scenario(
        name=name,
        programs=programs,
        services={"blob": BlobService(page=page)},
        rules=rules or LockRules(),
        bound=bound,
        short=short,
        alphabet=alphabet,
        slow_seconds=0.0,
        **more,
    )
