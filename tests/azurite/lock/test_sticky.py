"""``lock hold --sticky``: a lock without a process, whose time ends by the service's clock."""

import json
import subprocess
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from azure.core.exceptions import ResourceModifiedError
from azure.storage.blob import BlobLeaseClient

from azguard import address
from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import OutcomeUnknown
from azguard.leases import actions, owner_records
from azguard.leases import state as lease_state
from azguard.locks.held_lock import OverdueLock
from azguard.requests.calls import ServiceClock
from azguard.requests.deadline import Deadline
from azguard.times import iso
from tests.faults.rules import Rule, by_rules
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.lock_world import NOTHING, Locks, break_now, call

REASON = ("--reason", "incident 4711")
OTHER_JOB = {"AZGUARD_SCOPE": "other"}
GONE_BY = iso(datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1))


def freeze(world: Locks, lock: str, *words: str) -> Any:
    ran = call(world, "hold", lock, "--sticky", *REASON, *words)
    assert (ran.code, ran.err) == (0, "")
    return ran.json


def end_time(world: Locks, lock: str) -> str:
    """Write on a frozen lock that its time is over, as if it had passed; return the new version."""
    metadata = world.metadata(lock)
    owner = {**json.loads(metadata["azguardowner"]), "until": GONE_BY}
    lease_id = owner["lease_id"]
    changed = world.blob(lock).set_blob_metadata({**metadata, "azguardowner": json.dumps(owner)}, lease=lease_id)
    return str(changed["etag"])


def overdue(world: Locks, lock: str) -> tuple[OverdueLock, Target, list[str]]:
    said: list[str] = []
    at = account.emulator({"blob": world.cli.port})
    target = Target(at, address.parse(lock, Kind.BLOB).address)
    return OverdueLock(target, ServiceClock(time.monotonic), said.append), target, said


def test_a_frozen_environment_refuses_with_its_reason_until_it_is_released(world: Locks) -> None:
    lock = world.new()
    frozen = freeze(world, lock)
    refused = world.run(lock, "--no-wait", "--", "true", env=OTHER_JOB)
    held = world.blob(lock).get_blob_properties().lease
    assert (refused.code, "incident 4711" in refused.err, held.duration, frozen["pid"]) == (75, True, "infinite", None)
    assert (call(world, "check", lock).code, call(world, "release", lock).code, world.left(lock)) == (0, 0, NOTHING)


def test_of_two_releases_at_the_same_time_none_calls_the_lock_lost(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock)
    begun = [world.cli.begin_fork("lock", "release", lock, env=world.marked()) for _ in range(2)]
    told = [each.communicate(b"", 60) for each in begun]
    assert ([each.wait() for each in begun], told[0][1] + told[1][1]) == ([0, 0], b"")
    assert (world.left(lock), list(world.cli.root.rglob("*.lock"))) == (NOTHING, [])


def test_it_is_told_until_when(world: Locks) -> None:
    lock = world.new()
    until = freeze(world, lock, "--until", "2h")["until"]
    refused = world.run(lock, "--no-wait", "--", "true", env=OTHER_JOB)
    assert f"until {until}: azguard lock hold (incident 4711)" in refused.err
    call(world, "release", lock)


@pytest.mark.parametrize("words", [("run", "--no-wait"), ("hold", "--no-wait")])
def test_once_its_time_is_over_the_next_one_has_it(world: Locks, words: tuple[str, ...]) -> None:
    lock = world.new()
    freeze(world, lock, "--until", "2h")
    end_time(world, lock)
    command = ("--", "true") if words[0] == "run" else ()
    ran = world.cli.fork("lock", words[0], lock, *words[1:], *command, env=world.marked(OTHER_JOB))
    assert (ran.code, "the time of its holder is over" in ran.err) == (0, True)
    lost = [call(world, verb, lock) for verb in ("check", "release")]
    assert [each.code for each in lost] == [77, 77]
    call(world, "release", lock, env=OTHER_JOB)


def test_it_is_free_then_although_its_release_was_killed_halfway(world: Locks) -> None:
    lock = world.new()
    lease_id = freeze(world, lock, "--until", "2h")["lease_id"]
    end_time(world, lock)
    owner_records.end(overdue(world, lock)[1], lease_id, Deadline())
    ran = world.run(lock, "--no-wait", "--", "true", env=OTHER_JOB)
    assert (ran.code, "the time of its holder is over" in ran.err) == (0, True)


def test_without_a_queue_its_end_is_noticed_too(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock, "--until", "3s")
    waited = world.run(lock, "--no-fair", "--wait", "45s", "--", "true", env=OTHER_JOB)
    assert (waited.code, "the time of its holder is over" in waited.err) == (0, True)


def test_a_time_that_was_prolonged_meanwhile_is_respected(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock, "--until", "2h")
    end_time(world, lock)
    waiter, target, said = overdue(world, lock)
    seen = lease_state.look(target, Deadline())
    assert freeze(world, lock, "--until", "3h")["outcome"] == "prolonged"
    assert (waiter.end(seen, Deadline()), said, world.state(lock)) == (False, [], "leased")
    assert (call(world, "check", lock).code, call(world, "release", lock).code) == (0, 0)


def test_of_two_waiters_one_ends_it_and_the_next_lease_is_not_hit(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock, "--until", "2h")
    end_time(world, lock)
    (one, target, _), (two, _, _) = overdue(world, lock), overdue(world, lock)
    seen = lease_state.look(target, Deadline())
    assert one.end(seen, Deadline()) is True
    # It has the lease, and has not written its record: the version is still the one that both have seen.
    lease = BlobLeaseClient(world.blob(lock), str(uuid.uuid4()))
    lease.acquire(60)
    assert (two.end(seen, Deadline()), world.state(lock)) == (False, "leased")
    lease.release()


def test_two_waiters_for_an_overdue_lock_run_one_after_the_other(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock, "--until", "2h")
    end_time(world, lock)
    inside = world.cli.root / "inside"
    script = f"mkdir '{inside}' && sleep 0.3 && rmdir '{inside}'"
    begun = [
        world.begin(lock, "--wait", "30s", "--", "sh", "-c", script, env={"AZGUARD_SCOPE": scope}) for scope in "ab"
    ]
    assert [each.ended().code for each in begun] == [0, 0]


def test_a_record_that_an_earlier_holder_left_ends_no_other_lease(world: Locks) -> None:
    lock = world.new()
    frozen = freeze(world, lock, "--until", "2h")
    end_time(world, lock)
    assert call(world, "release", lock, "--lease-id", frozen["lease_id"]).code == 0
    # Another program, which leaves no record.
    lease = BlobLeaseClient(world.blob(lock), str(uuid.uuid4()))
    lease.acquire(-1)
    ran = world.run(lock, "--wait", "2s", "--", "true", env=OTHER_JOB)
    assert (ran.code, world.state(lock)) == (75, "leased")
    lease.release()


def test_no_wait_is_too_short_to_end_what_is_not_over(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock, "--until", "2h")
    assert (world.run(lock, "--wait", "1s", "--", "true", env=OTHER_JOB).code, world.state(lock)) == (75, "leased")
    call(world, "release", lock)


def test_another_machine_releases_it_by_its_lease(world: Locks) -> None:
    lock = world.new()
    lease_id = freeze(world, lock)["lease_id"]
    elsewhere = {**OTHER_JOB, "AZGUARD_CACHE_DIR": str(world.cli.root / "elsewhere")}
    refused = call(world, "release", lock, env=elsewhere)
    released = call(world, "release", lock, "--lease-id", lease_id, env=elsewhere)
    assert (refused.code, released.code, world.state(lock)) == (44, 0, "available")


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.RESET])
@pytest.mark.parametrize(
    ("what", "nth"), [("PUT lease:acquire", 1), ("PUT lease:acquire", 2), ("PUT metadata", 1), ("PUT metadata", 2)]
)
def test_a_lost_answer_keeps_no_environment_from_a_freeze(world: Locks, what: str, nth: int, fault: Fault) -> None:
    lock = world.new()
    world.blob(lock).upload_blob(b"")
    with proxy.running(world.cli.port, by_rules([Rule(what, nth, fault)])) as between:
        through = world.cli.through(between.port)
        held = through.call("lock", "hold", lock, "--sticky", *REASON, "--until", "2h").json
        owner = json.loads(world.metadata(lock)["azguardowner"])
        lease = world.blob(lock).get_blob_properties().lease
        assert (owner["until"], owner["lease_id"], lease.duration) == (held["until"], held["lease_id"], "infinite")
        assert (through.call("lock", "release", lock).code, world.left(lock)) == (0, NOTHING)


def test_a_change_of_the_id_whose_outcome_is_unknown_leaves_no_lease(world: Locks) -> None:
    lock, change = world.new(), actions.change
    world.blob(lock).upload_blob(b"")

    def lose(*words: Any) -> None:
        change(*words)
        raise OutcomeUnknown("sent, and not answered")

    late = Rule("PUT lease:acquire", 1, Fault.DROP)
    with proxy.running(world.cli.port, by_rules([late])) as between, patch.object(actions, "change", lose):
        ran = world.cli.through(between.port).call("lock", "hold", lock, "--sticky", *REASON)
    assert (ran.code, world.state(lock)) == (53, "available")


def test_a_lock_that_another_held_before_it_was_frozen_is_not_frozen(world: Locks) -> None:
    lock = world.new()
    frozen: list[Request] = []

    def decide(request: Request) -> Fault:
        if request.headers.get("x-ms-lease-duration") == "-1" and not frozen:
            # As after a pause in which the lease ended.
            frozen.append(request)
            break_now(world, lock)
            assert world.run(lock, "--", "true", env=OTHER_JOB).code == 0
        return Fault.NONE

    with proxy.running(world.cli.port, decide) as between:
        through = world.cli.through(between.port)
        ran = through.call("lock", "hold", lock, "--sticky", *REASON, "--until", "2h", "--timeout", "2m")
    assert (ran.code, world.left(lock), world.fence(lock)) == (53, NOTHING, 2)
    assert "ended before it was made infinite" in ran.err


def test_a_request_that_comes_late_does_not_freeze_a_lock_that_was_released(world: Locks) -> None:
    lock, lost = world.new(), list[Request]()

    def decide(request: Request) -> Fault:
        if lost or request.headers.get("x-ms-lease-duration") != "-1":
            return Fault.NONE
        lost.append(request)
        return Fault.RESET

    with proxy.running(world.cli.port, decide) as between:
        through = world.cli.through(between.port)
        codes = [
            through.call("lock", *words).code for words in (("hold", lock, "--sticky", *REASON), ("release", lock))
        ]
    late = BlobLeaseClient(world.blob(lock), lost[0].headers["x-ms-proposed-lease-id"])
    with pytest.raises(ResourceModifiedError):
        late.acquire(-1, headers={"If-Match": lost[0].headers.get("if-match", "*")})
    assert (codes, world.left(lock)) == ([0, 0], NOTHING)


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.LATE, Fault.RESET])
def test_a_lost_answer_does_not_keep_an_overdue_lock_from_being_taken(world: Locks, fault: Fault) -> None:
    lock = world.new()
    freeze(world, lock, "--until", "2h")
    end_time(world, lock)
    with proxy.running(world.cli.port, by_rules([Rule("PUT lease:release", 1, fault)])) as between:
        through = replace(world, cli=world.cli.through(between.port))
        ran = through.run(lock, "--wait", "30s", "--", "true", env=OTHER_JOB)
    assert (ran.code, world.state(lock)) == (0, "available")


def test_a_lock_that_was_frozen_and_broken_can_be_frozen_again(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock)
    assert call(world, "break", lock, "--yes").code == 0
    assert (call(world, "check", lock).code, freeze(world, lock)["outcome"]) == (77, "held")
    assert call(world, "release", lock).code == 0


def test_a_lock_is_prolonged_only_as_one_that_stays(world: Locks) -> None:
    lock = world.new()
    lease = BlobLeaseClient(world.blob(lock), freeze(world, lock)["lease_id"])
    # As if the run that froze it had been killed before it made the lease infinite.
    lease.acquire(60)
    prolonged = freeze(world, lock)["outcome"]
    duration = world.blob(lock).get_blob_properties().lease.duration
    lease.break_lease(30)
    ending = call(world, "hold", lock, "--sticky", *REASON, "--no-wait").code
    assert (prolonged, duration, ending) == ("prolonged", "infinite", 75)
    lease.release()


def test_the_lease_of_a_frozen_lock_is_not_shown(world: Locks) -> None:
    lock = world.new()
    lease_id = freeze(world, lock, "--until", "2h")["lease_id"]
    assert lease_id not in call(world, "show", lock).out
    call(world, "release", lock)


def test_later_steps_work_under_a_frozen_lock(world: Locks) -> None:
    lock = world.new()
    freeze(world, lock, "--env-file", "env")
    lines = subprocess.run(["sh", "-c", "set -a; . ./env; env -0"], cwd=world.cli.root, env={}, capture_output=True)
    found = dict(line.split("=", 1) for line in lines.stdout.decode().split("\0") if line.startswith("AZGUARD"))
    assert world.run(lock, "--no-wait", "--", "true", env={**OTHER_JOB, **found}).code == 0
    assert (world.state(lock), call(world, "release", env={**OTHER_JOB, **found}).code) == ("leased", 0)


def test_a_time_that_is_over_is_refused_and_nothing_is_held(world: Locks) -> None:
    lock = world.new()
    ran = call(world, "hold", lock, "--sticky", *REASON, "--until", str(GONE_BY))
    assert (ran.code, world.left(lock)) == (2, NOTHING)
