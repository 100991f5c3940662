"""An acquire that comes after its run has ended: the id is kept, and the next run of the scope releases the lease."""

import threading
from dataclasses import replace

import pytest

from tests.faults.rules import operation
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request
from tests.support.lock_world import Locks

MINE, OTHER = {"AZGUARD_SCOPE": "mine"}, {"AZGUARD_SCOPE": "other"}


class Gate:
    """Keeps the first acquire until it is opened; until then the client finds no service, if that is silent."""

    def __init__(self, *, is_silent: bool) -> None:
        self.opened = threading.Event()
        self._is_silent = is_silent
        self._has_acquire = False

    def decide(self, request: Request) -> Chosen:
        if self._has_acquire:
            return Chosen(Fault.RESET if self._is_silent and not self.opened.is_set() else Fault.NONE)
        if operation(request) != "PUT lease:acquire":
            return Chosen()
        self._has_acquire = True
        return Chosen(Fault.ZOMBIE, until=self.opened.is_set)


def ask(world: Locks, verb: str, lock: str, *words: str, env: dict[str, str] = MINE) -> tuple[int, str]:
    ran = world.cli.fork("lock", verb, lock, *words, env=world.marked(env))
    return ran.code, ran.err


def held(world: Locks, lock: str) -> list[tuple[str, bool]]:
    found = world.cli.call("lease", "list", "--mine", env=MINE).json
    return [(each["action"], each["confirmed"]) for each in found if each["address"] == lock]


@pytest.mark.parametrize("order", [(), ("--no-fair",)], ids=["in order", "not in order"])
def test_an_acquire_that_comes_late_is_told_and_released_by_the_next_run_of_the_scope(
    world: Locks, order: tuple[str, ...]
) -> None:
    lock, gate = world.new(), Gate(is_silent=True)
    assert ask(world, "run", lock, "--reason", "innocent", "--", "true", env=OTHER)[0] == 0
    with proxy.running(world.cli.port, gate.decide) as between:
        through = replace(world, cli=world.cli.through(between.port))
        code, said = ask(through, "run", lock, "--wait", "2s", "--timeout", "1s", *order, "--", "true")
        assert (code, "may yet be leased for up to 1m although nothing holds it" in said) == (53, True)
        assert held(through, lock) == [("lock run, given up", False)]
        gate.opened.set()
        until(lambda: world.state(lock) == "leased")
        shown = world.cli.call("lock", "show", lock).json
        assert (shown["held_by"], shown["last_owner"]["reason"]) == (None, "innocent")
        assert world.cli.call("lock", "break", lock, "--if-owner", shown["last_owner"]["who"]).code == 42
        code, said = ask(through, "run", lock, "--no-wait", "--", "true", env=OTHER)
        assert (code, "is held by an unknown holder; before: " in said) == (75, True)
        code, said = ask(through, "run", lock, "--no-wait", *order, "--", "true")
        assert (code, "was leased by an earlier request of this scope that came late: released" in said) == (0, True)
        assert (world.state(lock), held(through, lock)) == ("available", [])


def test_a_run_that_went_well_keeps_the_id_of_an_acquire_that_may_come_after_it(world: Locks) -> None:
    lock, gate = world.new(), Gate(is_silent=False)
    with proxy.running(world.cli.port, gate.decide) as between:
        through = replace(world, cli=world.cli.through(between.port))
        code, said = ask(through, "run", lock, "--", "true")
        assert (code, said, held(through, lock)) == (0, "", [("lock run, given up", False)])
        gate.opened.set()
        until(lambda: world.state(lock) == "leased")
        acquired = through.cli.call("lease", "acquire", lock, env=MINE)
        assert (acquired.code, held(through, lock)) == (0, [("lease acquire", True)])
