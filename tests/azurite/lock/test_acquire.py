"""How ``lock run`` acquires: what it asks the service, how often, and what it makes of lost answers."""

import sys
import time
from dataclasses import replace

import pytest

from tests.faults.rules import Rule, by_rules, operation
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Decide, Fault, Request
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
        ran = through.run(*words, "--", "sh", "-c", f"date +%s.%N >'{mark}'")
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
        code, requests, seconds = asked(world, decide, lock, "--wait", "5s", "--timeout", "1s")
    polls = requests.count("PUT lease:acquire")
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
    assert (code, requests, world.fence(lock)) == (0, [*ACQUIRED[:3], *ACQUIRED, *RELEASED], 3)


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
