"""The history of a lock: a line of each holder, which costs a run nothing that it would notice."""

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from azguard.faultproxy import proxy
from azguard.faultproxy.faults import Fault, Request
from tests.faults.rules import operation
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.lock_world import Locks, break_now, is_gone, locks
from tests.support.places import REPOSITORY

SCHEMAS = json.loads((REPOSITORY / "tests/data/schemas/results.json").read_text())


@pytest.fixture
def world(cli: CliWorld) -> Iterator[Locks]:
    """Yield a world of locks."""
    with locks(cli) as made:
        yield made


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
    schema = {"$defs": SCHEMAS["$defs"], "$ref": "#/$defs/lock log"}
    jsonschema.Draft202012Validator(schema).validate(found)
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
    until(lambda: is_gone(held["pid"]), 20)
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
    until(lambda: is_gone(held["pid"]), 20)
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
    assert [each["fence"] for each in history(world, lock, "--last", "2")] == [2, 3]


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
    assert (ran.code, ran.err, len(asked), seconds < 5) == (3, "", 1, True)


def test_a_lock_may_not_be_named_like_a_history(world: Locks) -> None:
    ran = world.cli.call("lock", "show", f"{world.new()}!log")
    assert (ran.code, "history" in ran.err) == (2, True)
