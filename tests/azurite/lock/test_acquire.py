"""How ``lock run`` acquires: what it asks the service, how often, and what it makes of lost and late answers."""

import sys
import threading
import time
from dataclasses import replace

import pytest

from tests.faults.rules import Rule, by_rules, operation
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Decide, Fault, Request
from tests.support.lock_world import Locks


def asked(world: Locks, decide: Decide, *words: str) -> tuple[int, list[str], float]:
    """Run ``lock run`` through a proxy; return its exit status, its requests, and how long it took in seconds.

    The moment at which its command ran is among the requests as ``command``.
    """
    mark = world.cli.root / "ran"
    mark.unlink(missing_ok=True)
    with proxy.running(world.cli.port, decide) as between:
        began = time.monotonic()
        through = replace(world, cli=world.cli.through(between.port))
        # A busy machine is no fault.
        patience = ("--timeout", "60s") if decide is untouched else ()
        ran = through.run(*words, *patience, "--", "sh", "-c", f"date +%s.%N >'{mark}'")
        seconds = time.monotonic() - began
    log = [(each.answered or each.sent or 0.0, operation(each.request)) for each in between.log]
    if mark.exists():
        # Not the time of the file, which is some milliseconds behind the clock.
        log.append((float(mark.read_text()), "command"))
    return ran.code, [what for _, what in sorted(log)], seconds


def untouched(request: Request) -> Fault:
    return Fault.NONE


ACQUIRED = ["GET list", "PUT lease:acquire", "PUT metadata", "command"]
# Its history is written once the lock is free.
RELEASED = ["HEAD blob", "PUT metadata", "PUT lease:release", "PUT appendblock"]
RELEASED_FIRST = [*RELEASED, "PUT blob", "PUT appendblock"]


def test_a_lock_takes_three_requests_before_the_command_and_its_first_time_four(world: Locks) -> None:
    lock = world.new()
    made = ["GET list", "PUT blob", "PUT lease:acquire", "PUT metadata", "command"]
    assert asked(world, untouched, lock)[:2] == (0, [*made, *RELEASED_FIRST])
    assert asked(world, untouched, lock)[:2] == (0, [*ACQUIRED, *RELEASED])


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_guardian_is_forked_before_more_modules_are_loaded(world: Locks) -> None:
    # The command's parent is the guardian, and the guardian's is azguard, which remembers in a database.
    lines = """
        azguard=$(awk '{print $4}' /proc/$PPID/stat)
        grep -c _sqlite3 /proc/$azguard/maps
        grep -c _sqlite3 /proc/$PPID/maps
    """
    in_azguard, in_guardian = map(int, world.cli.run("lock", "run", world.new(), "--", "sh", "-c", lines).out.split())
    assert (in_azguard > 0, in_guardian) == (True, 0)


def test_slots_take_one_request_more(world: Locks) -> None:
    lock = world.new()
    assert asked(world, untouched, lock, "--slots", "1")[0] == 0
    several = world.new()
    for _ in range(4):  # each of the three slots may have to be made
        code, requests, _ = asked(world, untouched, several, "--slots", "3")
        assert (code, len(requests[: requests.index("command")]) <= 8) == (0, True)
    while world.state(f"{several}.slot2") == "absent" or world.state(f"{several}.slot3") == "absent":
        assert world.run(several, "--slots", "3", "--", "true").code == 0
    code, requests, _ = asked(world, untouched, several, "--slots", "3")
    # The listing shows the version of the first slot alone.
    of_another = [*ACQUIRED[:2], "HEAD blob", *ACQUIRED[2:], *RELEASED]
    assert (code, requests in (of_another, [*ACQUIRED, *RELEASED])) == (0, True)


def test_a_waiter_asks_no_more_often_when_the_service_has_gone_silent(world: Locks) -> None:
    lock, met = world.new(), []

    def decide(request: Request) -> Fault:
        met.append(operation(request))
        return Fault.NONE if met.count("PUT lease:acquire") < 2 else Fault.RESET

    with world.taken(lock):
        for wait in ("5s", "60s"):  # A busy machine may not come to the second request in 5 s.
            met.clear()
            code, requests, seconds = asked(world, decide, lock, "--wait", wait, "--timeout", "3s")
            polls = requests.count("PUT lease:acquire")
            if polls > 1:
                break
    # Not more than four a second are asked for when all is well.
    assert (code, 2 <= polls <= 4 * seconds) == (53, True)


@pytest.mark.parametrize("fault", [Fault.LATE, Fault.ZOMBIE])
@pytest.mark.parametrize(("what", "times"), [("GET list", 3), ("PUT metadata", 3), ("PUT lease:acquire", 1)])
def test_answers_that_come_too_late_are_no_reason_to_give_up(world: Locks, what: str, times: int, fault: Fault) -> None:
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    rules = by_rules([Rule(what, nth + 1, fault) for nth in range(times)])
    code, requests, _ = asked(world, rules, lock, "--lease-duration", "15s")
    assert (code, requests.count("command"), world.state(lock)) == (0, 1, "available")


def test_a_lease_that_slow_answers_have_used_up_is_asked_for_anew_before_the_command_starts(world: Locks) -> None:
    lock, slow = world.new(), ["PUT lease:acquire", "PUT metadata"]
    assert world.run(lock, "--", "true").code == 0

    def decide(request: Request) -> proxy.Chosen:
        if operation(request) not in slow:
            return proxy.Chosen()
        slow.remove(operation(request))
        # Each comes in time for its request, and both together too late for the first renewal of 15 s.
        until = time.monotonic() + 2.7
        return proxy.Chosen(until=lambda: time.monotonic() > until)

    code, requests, _ = asked(world, decide, lock, "--lease-duration", "15s")
    # On a busy machine a slow answer becomes a late one, which is looked for; or the next lease is used up, too.
    acquired = requests.count("PUT lease:acquire")
    assert code == 0
    assert acquired > 1
    assert requests[-len([*ACQUIRED, *RELEASED]) :] == [*ACQUIRED, *RELEASED]
    assert world.fence(lock) == 1 + acquired


def test_a_plain_lock_and_one_of_slots_do_not_mix(world: Locks) -> None:
    plain, three = world.new(), world.new()
    assert world.run(plain, "--", "true").code == 0
    assert world.run(three, "--slots", "3", "--", "true").code == 0
    refused = [
        world.run(plain, "--slots", "3", "--", "true"),
        world.run(three, "--slots", "2", "--", "true"),
        world.run(three, "--", "true"),
    ]
    short = {lock: lock.removeprefix("blob:") for lock in (plain, three)}
    assert [(ran.code, ran.err.splitlines()[0]) for ran in refused] == [
        (2, f"error: {short[plain]} is a lock of 1 slot, not of 3"),
        (2, f"error: {short[three]} is a lock of 3 slots, not of 2"),
        (2, f"error: {short[three]} is a lock of 3 slots, not of 1"),
    ]
    assert (world.state(plain), world.state(three)) == ("available", "available")


def test_slots_on_a_blob_that_another_tool_has_leased_are_busy_and_no_error(world: Locks) -> None:
    lock = world.new()
    with world.taken(lock):
        ran = world.run(lock, "--slots", "2", "--wait", "1s", "--", "true")
    assert (ran.code, world.run(lock, "--slots", "2", "--", "true").code) == (75, 0)


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
def test_a_late_acquire_is_told_and_released_by_the_next_run_of_the_scope(world: Locks, order: tuple[str, ...]) -> None:
    lock, gate = world.new(), Gate(is_silent=True)
    assert ask(world, "run", lock, "--reason", "innocent", "--", "true", env=OTHER)[0] == 0
    with proxy.running(world.cli.port, gate.decide) as between:
        through = replace(world, cli=world.cli.through(between.port))
        code, said = ask(through, "run", lock, "--wait", "4s", "--timeout", "2s", *order, "--", "true")
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
