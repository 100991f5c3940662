"""Leases as commands take, release and break them, and as a guarded write takes one: what is held, and by whom."""

import json
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from math import inf
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.guards.resolve import Conditions
from azguard.leases import breaking, guard, own
from azguard.leases.breaking import BreakRequest, Safeguards
from azguard.leases.owners import OWNER, Owner
from azguard.leases.recorded import LeaseRequest, RecordedLease
from tests.explorer import service
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.faults import Fault
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import STOPPED, STOPPED_BESIDE, Bound, Effect, Rules, Scenario, Services, Violation
from tests.explorer.updates import with_pair
from tests.support.no_records import NoRecords

PATH = "site/a"
# Under which it is remembered that people were told that a request may come late, or of what could not be asked.
_WARNED = "warned"
_ALPHABET = (Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.LATE, Fault.STORED)


class Records(NoRecords):
    """The records of a machine that a story remembers: each lease that may be held, by its id."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def add(self, _target: Any, lease_id: str, _seconds: int | None, *, has_reason: bool = False) -> None:
        self._process.tell("disk", lease_id, "asked for")

    def remove(self, _target: Any, lease_id: str) -> None:
        self._process.tell("disk", lease_id, None)

    def give_up(self, _target: Any, lease_id: str, _seconds: int | None, *, is_told: bool = True) -> None:
        self._process.tell("disk", lease_id, "given up")

    def find_released(self, _target: Any) -> str | None:
        return None

    def note_release(self, _target: Any, _lease_id: str) -> None:
        """Nothing asks for it."""

    def forget_release(self, _target: Any) -> None:
        """Nothing asks for it."""

    def knows(self, _target: Any, _etag: str) -> bool:
        return False


class Ghost(NamedTuple):
    """What the rules remember."""

    #: What is recorded of each lease on the machine.
    disk: tuple[tuple[str, str], ...] = ()
    #: The process that acquired the lease last.
    holder: str | None = None
    #: The holder that each process has shown before it breaks the lease.
    shown: tuple[tuple[str, str], ...] = ()
    #: Processes that have ended well, those that began to release the lease, and those whose request has released it.
    done: frozenset[str] = frozenset()
    releasing: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    #: Holders whose lease was broken, and those that began to release it after that.
    broken: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


class LeaseRules(Rules):
    """A break hits the holder that was shown, and each lease that is left is recorded, or told.

    One with a term that comes late after all went well ends by itself.
    """

    def begin(self) -> Ghost:
        return Ghost()

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        if effect.asked.action == "PUT lease acquire":
            # A late copy takes again what was broken, as ``actions`` says.
            again = {effect.who}
            return ghost._replace(holder=effect.who, broken=ghost.broken - again, lost=ghost.lost - again)
        if effect.asked.action == "PUT lease release":
            return ghost._replace(released=ghost.released | (ghost.releasing & {effect.who}))
        was = _find(effect.before).lease
        if effect.asked.action == "PUT lease break" and service.is_locked(was, effect.now):
            meant, record = dict(ghost.shown).get(effect.who), _find(effect.before).meta(OWNER) or "{}"
            # A next holder that has not written its record yet looks like the one before, as ``breaking`` says.
            if json.loads(record).get("who") != meant:
                raise Violation(f"{effect.who} broke the lease of {ghost.holder}, and {meant} was shown")
            return ghost._replace(broken=ghost.broken | {str(ghost.holder)})
        return ghost

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        kind, name, text = event
        if kind == "shows":
            return ghost._replace(shown=with_pair(ghost.shown, who, name))
        if kind == "releases":
            lost = ghost.lost | (ghost.broken & {who})
            return ghost._replace(lost=lost, releasing=ghost.releasing | {who})
        return ghost._replace(disk=with_pair(ghost.disk, name, text))

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        if ended.status not in (0, 42, 44, 49, 53, 74, 77):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        # docs/leases.md says that it warns where it could not ask.
        is_warned = "could not be asked" in dict(ghost.disk).get(_WARNED + who, "")
        if ended.status == 0 and who in ghost.lost and not is_warned:
            raise Violation(f"{who} ended 0, and its lease was broken before it began to release it")
        if ended.status in (42, 49, 53) and who in ghost.released:
            raise Violation(f"{who} ended {ended.status} ({ended.outcome}), and has released the lease")
        return ghost._replace(done=ghost.done | {who}) if ended.status == 0 else ghost

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        lease = _find(services).lease
        if lease is None or lease.state(now) != "leased":
            return
        if any(name == lease.id or name.startswith(_WARNED) for name, _ in ghost.disk):
            return
        if lease.term == inf or ghost.holder not in ghost.done:
            raise Violation("a lease is left, and no record has its id")

    def find_truth(self, ghost: Ghost, who: str, what: str) -> Hashable:
        return None


def _find(services: Services) -> Blob:
    found: Blob = services["blob"].blobs[PATH]
    return found


def _target(process: Process) -> Target:
    return Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))


def _lease(process: Process) -> RecordedLease:
    def warn(text: str) -> None:
        process.tell("disk", _WARNED + process.name, text)

    return RecordedLease(_target(process), Records(process), process.deadline(10), warn, lambda state: None)


def _hold_and_release(process: Process, *, changes: bool = False) -> str:
    """Acquire the lease with a reason, and release it, as commands of a script do; under another id if it changes."""
    lease, owner = _lease(process), Owner(process.name, "host", 1, "sh", None)
    lease_id = _choose_id(process)
    lease.acquire(LeaseRequest(lease_id, None, Conditions(), owner))
    process.sleep(1.0)
    if changes:
        before, lease_id = lease_id, _choose_id(process)
        lease.change(Conditions(lease_id=before), lease_id)
    process.tell("releases", None, None)
    return own.release(lease, Conditions(lease_id=lease_id), lambda: service.moment(process.now)).outcome


def _choose_id(process: Process) -> str:
    """Return the id of a lease that no other process has."""
    return f"{process.make(4).hex()}-0000-4000-8000-000000000000"


def _guard(process: Process) -> str:
    """Hold a lease as a guarded write does."""
    with guard.hold(_target(process), None, Records(process), process.deadline(0.1)):
        return "guarded"


def _break(process: Process) -> str:
    """Break the lease that A holds, and no other."""
    request = BreakRequest(_target(process), 0, Conditions(), Safeguards(owner="A@host"))
    process.tell("shows", "A", None)
    return breaking.break_after_showing(request, process.deadline(10), lambda text: None, None).outcome


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of leases."""
    one: tuple[tuple[str, Callable[[Process], str]], ...] = (
        ("lease, acquired and released", _hold_and_release),
        ("lease, changed and released", partial(_hold_and_release, changes=True)),
        ("lease, of a guarded write", _guard),
    )
    for name, run in one:
        yield _scenario(name, Program("A", run), bound=Bound(faults=2, kills=1), short=Bound(faults=1, kills=1))
    programs = Program("A", _hold_and_release), Program("C", _hold_and_release, after="A"), Program("B", _break)
    yield _scenario("lease, broken", *programs, bound=Bound(faults=1), short=Bound(), stopped=STOPPED_BESIDE)


def _scenario(
    name: str, *programs: Program, bound: Bound, short: Bound | None = None, stopped: Bound = STOPPED
) -> Scenario:
    return Scenario(
        name=name,
        programs=programs,
        services={"blob": BlobService().write(PATH, 0.0, content=b"s")},
        rules=LeaseRules(),
        bound=bound,
        short=short or Bound(faults=1),
        stopped=stopped,
        alphabet=_ALPHABET,
        slow_seconds=inf,
        # No rule tells whether a 74 is of the lease, of the record of its holder, or of the release.
        judges_doubts=False,
    )
