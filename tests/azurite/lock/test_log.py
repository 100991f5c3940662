"""The history of a lock: a line of each holder, which costs a run nothing that it would notice."""

import os
import signal
import time
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import parse
from azguard.leases.owners import Owner
from azguard.locks import log
from azguard.locks.log import LogLine
from azguard.requests.calls import CallOutcome, CallResult
from azguard.wire.failures import Refusal
from tests.faults.rules import operation
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.lock_world import Locks, break_now, is_gone


def history(world: Locks, lock: str, *words: str) -> list[dict[str, Any]]:
    ran = world.cli.call("lock", "log", lock, *words, "-o", "json")
    assert ran.code == 0
    found: list[dict[str, Any]] = ran.json
    return found


def test_each_holder_is_there_with_its_end_and_its_reason(world: Locks) -> None:
    lock = world.new()
    run = {"GITHUB_RUN_ID": "7", "GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "o/r"}
    assert world.run(lock, "--reason", "release 4", "--", "true", env=run).code == 0
    working = world.begin_working(lock, "--grace", "1s")
    break_now(world, lock)
    assert working.ended().code == 77
    held = world.cli.fork("lock", "hold", lock, env=world.marked()).json
    assert world.cli.call("lock", "release", lock).code == 0
    found = history(world, lock)
    assert [(each["fence"], each["outcome"], each["reason"], each["run"]) for each in found] == [
        (1, "released", "release 4", "https://github.example/o/r/actions/runs/7"),
        (2, "lost", None, None),
        (3, "released", None, None),
    ]
    assert (found[2]["pid"], "was broken" in found[1]["why"], found[0]["since"] <= found[0]["ended"]) == (
        held["pid"], True, True
    )  # fmt: skip


def test_a_frozen_lock_is_there_once_it_is_released(world: Locks) -> None:
    lock = world.new()
    assert world.cli.call("lock", "hold", lock, "--sticky", "--reason", "incident 4711").code == 0
    assert (world.cli.call("lock", "release", lock).code, history(world, lock)[0]["reason"]) == (0, "incident 4711")


def test_the_one_before_a_frozen_lock_is_there_too(world: Locks) -> None:
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    for reason in ("incident 1", "incident 2"):
        assert world.cli.call("lock", "hold", lock, "--sticky", "--reason", reason).code == 0
        break_now(world, lock)
    assert [(each["fence"], each["outcome"], each["reason"]) for each in history(world, lock)] == [
        (1, "released", None), (2, "unknown", "incident 1"),
    ]  # fmt: skip


def test_a_holder_that_was_killed_is_known_by_the_next_one(world: Locks) -> None:
    lock = world.new()
    held = world.cli.fork("lock", "hold", lock, "--reason", "one", env=world.marked()).json
    os.kill(held["pid"], signal.SIGKILL)
    until(lambda: is_gone(held["pid"]))
    break_now(world, lock)
    assert world.run(lock, "--", "true").code == 0
    assert [(each["fence"], each["outcome"], each["reason"]) for each in history(world, lock)] == [
        (1, "unknown", "one"), (2, "released", None)
    ]  # fmt: skip


def test_a_lock_that_was_released_from_elsewhere_was_not_lost(world: Locks) -> None:
    lock = world.new()
    held = world.cli.fork("lock", "hold", lock, env=world.marked()).json
    elsewhere = {"AZGUARD_CACHE_DIR": str(world.cli.root / "elsewhere")}
    assert world.cli.call("lock", "release", lock, "--lease-id", held["lease_id"], env=elsewhere).code == 0
    until(lambda: is_gone(held["pid"]))
    assert ("by its id" in world.cli.call("lock", "check", lock).err, history(world, lock)[0]["outcome"]) == (
        True, "released"
    )  # fmt: skip


def test_without_a_history_nothing_is_written(world: Locks) -> None:
    lock = world.new()
    assert world.run(lock, "--no-log", "--", "true").code == 0
    blob = f"{lock.removeprefix('blob:')}!log"
    assert (history(world, lock), world.cli.call("blob", "exists", blob).json["exists"]) == ([], False)


def test_the_history_of_no_lock_is_not_found(world: Locks) -> None:
    assert world.cli.call("lock", "log", world.new()).code == 44


def test_the_newest_holders_are_shown(world: Locks) -> None:
    lock = world.new()
    for _ in range(3):
        assert world.run(lock, "--", "true").code == 0
    assert [each["fence"] for each in history(world, lock, "--num-results", "2")] == [2, 3]


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_BEFORE, Fault.LATE, Fault.RESET, Fault.ZOMBIE])
def test_a_history_that_cannot_be_written_neither_fails_nor_delays_a_run(world: Locks, fault: Fault) -> None:
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    asked: list[float] = []

    def decide(request: Request) -> Fault:
        if operation(request) != "PUT appendblock":
            return Fault.NONE
        asked.append(time.monotonic())
        return fault

    with proxy.running(world.cli.port, decide) as between:
        through = replace(world, cli=world.cli.through(between.port))
        ran = through.run(lock, "--", "sh", "-c", "exit 3")
        seconds = time.monotonic() - asked[0]
    # It is not asked again: the line could be there already.
    assert (ran.code, len(asked), seconds < 20) == (3, 1, True)
    assert ran.err.startswith(f"warning: the history of {lock} may lack a line: ")
    assert ran.err.count("\n") == 1


def test_a_lock_may_not_be_named_like_a_history(world: Locks) -> None:
    ran = world.cli.call("lock", "show", f"{world.new()}!log")
    assert (ran.code, "history" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "status", "signalled"),
    [
        (["true"], 0, None),
        (["sh", "-c", "exit 3"], 3, None),
        (["sh", "-c", "kill -9 $$"], 137, 9),
        (["#!/no/such"], 127, None),
    ],
)
def test_the_end_of_the_command_is_there(world: Locks, command: list[str], status: int, signalled: int | None) -> None:
    lock = world.new()
    if command[0].startswith("#!"):  # what cannot be started is found out under the lock
        script = world.cli.root / "script"
        script.write_text(command[0])
        script.chmod(0o700)
        command = [str(script)]
    assert world.run(lock, "--", *command).code == status
    assert [(each["outcome"], each["exit_status"], each["signal"]) for each in history(world, lock)] == [
        ("released", status, signalled)
    ]


@pytest.mark.parametrize("verb", ["lock", "lease"])
def test_who_broke_a_lock_is_there_with_the_reason(world: Locks, verb: str) -> None:
    lock = world.new()
    assert world.cli.call("lock", "hold", lock, "--sticky", "--reason", "incident 4711").code == 0
    run = {"GITHUB_RUN_ID": "7", "GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "o/r"}
    assert world.cli.call(verb, "break", lock, "--yes", "--reason", "over since 9:00", env=run).code == 0
    [found] = history(world, lock)
    assert (found["outcome"], found["reason"], found["break_reason"], found["break_run"]) == (
        "broken", "incident 4711", "over since 9:00", "https://github.example/o/r/actions/runs/7",
    )  # fmt: skip
    assert "@" in found["broken_by"]
    assert found["since"] <= found["broken_at"] <= found["ended"]


def test_a_break_is_in_the_line_of_the_holder_that_lost_the_lock(world: Locks) -> None:
    lock = world.new()
    working = world.begin_working(lock, "--grace", "1s")
    assert world.cli.call("lock", "break", lock, "--yes", "--lease-break-period", "0", "--reason", "stuck").code == 0
    assert working.ended().code == 77
    [found] = history(world, lock)
    assert (found["outcome"], found["break_reason"], found["exit_status"], found["fence"]) == ("lost", "stuck", 143, 1)


def test_the_break_of_a_slot_is_in_the_history_of_its_lock(world: Locks) -> None:
    lock = world.new()
    workers = [world.begin_working(lock, "--grace", "1s", "--slots", "2") for _ in range(2)]
    for slot in (lock, f"{lock}.slot2"):
        assert world.cli.call("lock", "break", slot, "--yes", "--lease-break-period", "0").code == 0
    assert [each.ended().code for each in workers] == [77, 77]
    found = history(world, lock)
    assert {each["address"] for each in found if each["broken_by"]} == {lock, f"{lock}.slot2"}


def test_the_reason_for_the_break_of_what_is_no_lock_is_recorded_nowhere(world: Locks) -> None:
    blob = world.new()
    with world.taken(blob):
        ran = world.cli.call("lease", "break", blob, "--yes", "--lease-break-period", "0", "--reason", "stuck")
        assert (ran.code, "the reason is recorded nowhere" in ran.err) == (0, True)
    assert world.cli.call("blob", "exists", f"{blob.removeprefix('blob:')}!log").json["exists"] is False


def append(world: Locks, lock: str, fence: int) -> list[str]:
    """Append a line in this process, and return what people are told."""
    told: list[str] = []
    target = Target(account.emulator({"blob": world.cli.port}), parse(lock).address)
    owner = Owner("ops", "h", 7, "sh", f"2026-11-22T10:00:{fence:02d}Z")
    holding = log.describe_holding(lock, owner, fence, lost=None, ended=None)
    # A busy machine is no fault.
    with patch.object(log, "_SECONDS", 60.0):
        log.append(target, LogLine(holding, None), told.append)
    return told


def list_parts(world: Locks, lock: str) -> list[str]:
    listed = world.cli.call("blob", "list", world.container, "--prefix", lock.rpartition("/")[2] + "!log").json
    return sorted(each["name"].rpartition("/")[2].partition("!")[2][:6] for each in listed)


def test_a_history_that_is_full_begins_anew(world: Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MOST_APPENDS", 3)
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    assert [append(world, lock, number) for number in range(2, 9)] == [[]] * 7
    assert [each["fence"] for each in history(world, lock)][:-1] == list(range(2, 9))  # the run itself is of today
    assert [each["fence"] for each in history(world, lock, "--num-results", "2")] == [7, 8]  # without the earliest part
    assert list_parts(world, lock) == ["log", "log.0x", "log.0x"]
    assert world.cli.call("lock", "show", f"{lock}!log.0x1F").code == 2
    parts = world.cli.call("blob", "list", world.container, "--prefix", lock.rpartition("/")[2] + "!log.").json
    for part in parts:
        blob = f"{world.container}/{part['name']}"
        assert world.cli.call("blob", "delete", blob, "--last-writer-wins").code == 0
    ran = world.cli.call("lock", "log", lock)
    assert (ran.code, "the older part is deleted" in ran.err) == (0, True)


def test_a_history_that_takes_no_line_begins_anew(world: Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    send, asked = log._LogBlob._append, list[bytes]()

    def refuse_first(blob: Any, text: bytes) -> CallResult[Any]:
        # As the service refuses what comes after 50,000.
        asked.append(text)
        error = Refusal(409, "BlockCountExceedsLimit")
        return CallResult(CallOutcome.REFUSED, error=error) if len(asked) == 1 else send(blob, text)

    monkeypatch.setattr(log._LogBlob, "_append", refuse_first)
    assert append(world, lock, 2) == []
    assert {each["fence"] for each in history(world, lock)} == {1, 2}
    assert list_parts(world, lock) == ["log", "log.0x"]


def test_a_line_while_a_history_begins_anew_is_not_lost(world: Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    create = log._LogBlob._create

    def append_before(blob: Any, condition: Any, metadata: Any) -> None:
        monkeypatch.undo()
        assert append(world, lock, 3) == []
        create(blob, condition, metadata)

    monkeypatch.setattr(log, "_MOST_APPENDS", 2)
    monkeypatch.setattr(log._LogBlob, "_create", append_before)
    assert append(world, lock, 2) == []
    assert {each["fence"] for each in history(world, lock)} == {1, 2, 3}


@pytest.mark.parametrize("content", ["not a line\n", "{}"])
def test_a_history_that_cannot_be_read_is_an_error(world: Locks, content: str) -> None:
    lock = world.new()
    assert world.run(lock, "--no-log", "--", "true").code == 0
    blob = f"{lock.removeprefix('blob:')}!log"
    assert world.cli.call("blob", "put", blob, stdin=content.encode()).code == 0
    ran = world.cli.call("lock", "log", lock)
    assert (ran.code, "no line of it can be read" in ran.err) == (65, True)
    assert "may lack a line" in world.run(lock, "--", "true").err


def test_holders_without_a_history_are_told(world: Locks) -> None:
    lock = world.new()
    assert world.run(lock, "--no-log", "--", "true").code == 0
    ran = world.cli.call("lock", "log", lock)
    assert (ran.code, "had holders and has no history" in ran.err) == (0, True)
