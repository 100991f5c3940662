"""Runs under a lock: who holds it beside whom, with which fence, and what is left of them."""

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.leases import actions
from azguard.leases.owners import Owner
from azguard.locks.acquire import LockAcquisition
from azguard.locks.lock_blobs import AcquireSettings, LockRequest
from tests.explorer.blob_service import BlobService
from tests.explorer.faults import Fault
from tests.explorer.player import Ended, Process, Program
from tests.explorer.updates import Even, with_pair
from tests.explorer.world import Bound, Effect, Scenario, Services, Violation
from tests.support.no_records import NoRecords

PATH = "locks/x"
_TERM_SECONDS = 15
_WAIT_SECONDS = 60.0
_HOLD_SECONDS = 2.0
_ALPHABET = (Fault.LOST_AFTER, Fault.LOST_BEFORE, Fault.TWICE, Fault.LATE, Fault.STORED, Fault.DATE_AHEAD, Fault.SLOW)


class Ghost(NamedTuple):
    """What the rules remember."""

    #: Who holds the lock, and until when at most.
    holders: tuple[tuple[str, float], ...] = ()
    #: The highest fence so far.
    fence: int = 0
    ends: tuple[tuple[str, Ended], ...] = ()


class LockRules:
    """One holder at a time, each with a higher fence; nothing is left of those that have ended."""

    def begin(self) -> Ghost:
        return Ghost()

    def find_given(self, ghost: Ghost, program: Program) -> tuple[tuple[str, str], ...]:
        return ()

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        return ghost

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        return ghost

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        if event[0] == "leaves":
            return ghost._replace(holders=with_pair(ghost.holders, who, None))
        _, until, fence = event
        beside = [other for other, ends in ghost.holders if now < ends]
        if beside:
            raise Violation(f"{who} holds the lock beside {beside[0]}")
        if fence <= ghost.fence:
            raise Violation(f"{who} has fence {fence}, after {ghost.fence}")
        return ghost._replace(holders=with_pair(ghost.holders, who, until), fence=fence)

    def see_kill(self, ghost: Ghost, who: str) -> Ghost:
        return ghost._replace(holders=with_pair(ghost.holders, who, None))

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services) -> Ghost:
        if ended.status not in (0, 75, 53):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        return ghost._replace(ends=with_pair(ghost.ends, who, ended))

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        blob = services["blob"].blobs.get(PATH)
        if blob is not None and blob.lease is not None and blob.lease.ends > now + _TERM_SECONDS:
            raise Violation("a lease is left that does not end by itself")

    def find_truth(self, ghost: Ghost, who: str) -> Hashable:
        return None


def _runner(name: str, begins: float = 0.0, holds: float = _HOLD_SECONDS) -> Program:
    def main(process: Process) -> str:
        target = Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))
        settings = AcquireSettings(
            owner=Owner(name, "host", 1, "sh", None),
            seconds=_TERM_SECONDS,
            create=True,
            patience=process.deadline(30.0),
            records=NoRecords(),
            say=lambda text: None,
            tell=lambda text: None,
            uniform=Even().uniform,
            now=process.clock,
        )
        deadline = process.deadline(_WAIT_SECONDS)
        held = LockAcquisition(LockRequest(target), settings, deadline).run()
        process.tell("holds", held.ends, held.fence)
        process.sleep(min(holds, max(0.0, (held.ends or 0.0) - process.now - 1.0)))
        process.tell("leaves")
        actions.give_back(held.target, held.lease_id, deadline, 10.0)
        return "held"

    return Program(name, main, begins=begins)


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of locks."""
    yield _scenario("lock, two runs", _runner("A"), _runner("B"), bound=Bound(kills=1), short=Bound())
    yield _scenario(
        "lock, two runs and a waiter", _runner("A"), _runner("B"), _runner("C", begins=1.0), bound=Bound(kills=1)
    )


def _scenario(name: str, *programs: Program, bound: Bound, short: Bound | None = None) -> Scenario:
    return Scenario(
        name=name,
        programs=programs,
        services={"blob": BlobService()},
        rules=LockRules(),
        bound=bound,
        short=short,
        alphabet=_ALPHABET,
        slow_seconds=0.0,
        judges_doubts=False,
    )
