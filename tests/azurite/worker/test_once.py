"""Claims in a table of Azurite; a claim expires here by a row that is written as if it had been claimed earlier."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Changed, ConfigError, NotFound, OutcomeUnknown
from azguard.requests.deadline import Deadline
from azguard.worker.once import OnceClaim, OnceTable
from azguard.worker.settings import DoneBefore, HeldByAnother, MessageFacts
from tests.faults.rules import operation
from tests.support import table_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request

NOW = datetime(2026, 11, 22, tzinfo=UTC)
MESSAGE = MessageFacts("jobs", "message-1", 1, NOW, NOW)
KEY = "order 17"
# What happens to a write: its answer is lost, nothing arrives, it arrives twice, or late.
FAULTS = [Fault.DROP, Fault.FAIL_AFTER, Fault.HALF, Fault.RESET, Fault.FAIL_BEFORE, Fault.REPLAYED, Fault.ZOMBIE]


@pytest.fixture
def table(cli: CliWorld) -> str:
    return table_world.table(cli)


def port(cli: CliWorld) -> int:
    found = re.search(r"TableEndpoint=http://127\.0\.0\.1:(\d+)", str(cli.connection_string))
    assert found is not None
    return int(found[1])


def worker(cli: CliWorld, table: str, by: str = "a", at: int | None = None) -> OnceTable:
    """Return the claims of one worker, perhaps behind a proxy."""
    account = emulator({"table": port(cli) if at is None else at})
    return OnceTable(Target(account, Address(Kind.TABLE, (table,))), by)


def patience(seconds: float = 10) -> Deadline:
    return Deadline(seconds, answer_seconds=1, settle_seconds=2)


def claim(of: OnceTable, key: str = KEY, message: MessageFacts = MESSAGE, seconds: float = 60) -> Any:
    return of.claim(key, message, seconds, patience())


def by_way_of(of: OnceTable, mine: Any) -> Any:
    """Return a claim as this worker made it."""
    return replace(mine, target=Target(of.table.account, mine.target.address))


def row(cli: CliWorld, table: str, key: str = KEY, queue: str = "jobs") -> dict[str, Any]:
    found: dict[str, Any] = cli.call("entity", "get", f"{table}/{queue}/{key.replace(' ', '~20')}").json
    return found


def expire(cli: CliWorld, table: str) -> None:
    """Let the claim be as if it had been made an hour ago."""
    ran = cli.call("entity", "merge", f"{table}/jobs/order~2017", "seconds=-3600", "--last-writer-wins")
    assert ran.code == 0, ran.err


def test_a_key_is_claimed_and_done_and_then_done_for_all(cli: CliWorld, table: str) -> None:
    first, second = worker(cli, table, "a"), worker(cli, table, "b")
    mine = claim(first)
    assert isinstance(mine, OnceClaim)
    first.finish(mine, patience())
    assert (claim(second), claim(first)) == (DoneBefore(KEY), DoneBefore(KEY))
    found = row(cli, table)
    assert (found["state"], found["by"], found["message"], found["key"]) == ("done", "a", "message-1", KEY)


def test_a_key_that_another_has_claimed_is_held_until_its_end_by_the_services_clock(cli: CliWorld, table: str) -> None:
    claim(worker(cli, table, "a"), seconds=60)
    held = claim(worker(cli, table, "b"))
    assert isinstance(held, HeldByAnother)
    written = datetime.fromisoformat(row(cli, table)["Timestamp"])
    assert (held.by, 60 <= (held.until - written).total_seconds() < 70) == ("a", True)


def test_a_claim_that_has_expired_is_taken_over_and_its_owner_is_told(cli: CliWorld, table: str) -> None:
    first, second = worker(cli, table, "a"), worker(cli, table, "b")
    mine = claim(first)
    expire(cli, table)
    theirs = claim(second)
    assert isinstance(theirs, OnceClaim)
    acts: list[Callable[[], object]] = [
        lambda: first.extend(mine, 60, patience()),
        lambda: first.finish(mine, patience()),
        lambda: first.give_up(mine, "failed", 1, patience()),
        lambda: first.poison(mine, "failed", 1, patience()),
    ]
    for act in acts:
        with pytest.raises(Changed) as told:
            act()
        assert told.value.reason == "claim_taken_over"
    second.finish(theirs, patience())
    assert row(cli, table)["state"] == "done"


def test_a_claim_that_was_extended_is_not_taken_over(cli: CliWorld, table: str) -> None:
    first = worker(cli, table, "a")
    mine = claim(first)
    expire(cli, table)
    first.extend(mine, 60, patience())
    assert isinstance(claim(worker(cli, table, "b")), HeldByAnother)


def test_a_claim_that_has_expired_and_that_no_one_has_taken_over_is_finished(cli: CliWorld, table: str) -> None:
    first = worker(cli, table)
    mine = claim(first)
    expire(cli, table)
    first.finish(mine, patience())
    assert claim(worker(cli, table, "b")) == DoneBefore(KEY)


@pytest.mark.parametrize(("act", "state"), [("give_up", "failed"), ("poison", "poisoned")])
def test_a_key_that_failed_can_be_claimed_again_and_says_why(cli: CliWorld, table: str, act: str, state: str) -> None:
    first = worker(cli, table)
    extra = {"copy_id": "copy-1"} if act == "poison" else {}
    getattr(first, act)(claim(first), "exit_status", 3, patience(), **extra)
    found = row(cli, table)
    assert (found["state"], found["reason"], found["status"]) == (state, "exit_status", 3)
    assert found.get("poison_message") == extra.get("copy_id")
    again = claim(worker(cli, table, "b"))
    assert (isinstance(again, OnceClaim), again.is_first) == (True, False)
    assert (row(cli, table)["state"], "reason" in row(cli, table)) == ("claimed", False)


def test_what_is_done_stays_done(cli: CliWorld, table: str) -> None:
    first = worker(cli, table)
    mine = claim(first)
    first.finish(mine, patience())
    first.give_up(mine, "failed", 1, patience())
    assert row(cli, table)["state"] == "done"


def test_a_message_in_the_poison_queue_has_the_key_of_its_queue(cli: CliWorld, table: str) -> None:
    first = worker(cli, table)
    first.finish(claim(first), patience())
    assert claim(first, message=replace(MESSAGE, queue="jobs-poison")) == DoneBefore(KEY)


@pytest.mark.parametrize(
    "key", ["a/b\\c#d?e", "it's", "%2f", "\u00e9\U0001f600", "x" * 5000, " ", "\x00\x7f", "\ud800", '{"a":1}', "a+b=c"]
)
def test_any_text_can_be_a_key(cli: CliWorld, table: str, key: str) -> None:
    first = worker(cli, table)
    mine = claim(first, key)
    first.finish(mine, patience())
    assert (claim(first, key), isinstance(claim(first, key + "x"), OnceClaim)) == (DoneBefore(key), True)


def test_of_many_workers_one_gets_a_key(cli: CliWorld, table: str) -> None:
    found: list[Any] = []

    def take(by: str) -> None:
        found.append(claim(worker(cli, table, by)))

    for expired in (False, True):
        if expired:
            expire(cli, table)
        found.clear()
        threads = [threading.Thread(target=take, args=(f"w{number}",)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        kinds = [type(each) for each in found]
        assert (kinds.count(OnceClaim), kinds.count(HeldByAnother)) == (1, 7)


def test_a_row_that_no_worker_wrote_is_left_as_it_is(cli: CliWorld, table: str) -> None:
    assert cli.call("entity", "insert", f"{table}/jobs/order~2017", "customer=ann").code == 0
    with pytest.raises(ConfigError) as refused:
        claim(worker(cli, table))
    assert (refused.value.reason, row(cli, table)["customer"]) == ("once_row_foreign", "ann")


def test_a_table_that_is_missing_is_refused_with_the_way_out(cli: CliWorld, table: str) -> None:
    worker(cli, table).check(patience())
    for act in (lambda of: of.check(patience()), claim):
        with pytest.raises(NotFound) as refused:
            act(worker(cli, "nosuchtable"))
        assert refused.value.reason == "once_table_missing"


# What each write does to the row, and what the next worker then finds.
ACTS: dict[str, tuple[str, Callable[[OnceTable, Any], object], str]] = {
    "claim": ("POST entity", lambda of, mine: None, "claimed"),
    "take-over": ("PUT entity", lambda of, mine: claim(of), "claimed"),
    "extend": ("PUT entity", lambda of, mine: of.extend(mine, 60, patience()), "claimed"),
    "finish": ("PUT entity", lambda of, mine: of.finish(mine, patience()), "done"),
    "give-up": ("PUT entity", lambda of, mine: of.give_up(mine, "why", 1, patience()), "failed"),
    "poison": ("PUT entity", lambda of, mine: of.poison(mine, "why", 1, patience(), "copy"), "poisoned"),
}


@contextmanager
def spoilt(cli: CliWorld, what: str, fault: Fault, *, every: bool = False) -> Iterator[tuple[int, list[Request]]]:
    """Yield the port of a proxy that spoils the first write of a kind, or each."""
    met: list[Request] = []

    def decide(request: Request) -> Fault | Chosen:
        if operation(request) != what or (met and not every):
            return Fault.NONE
        met.append(request)
        return fault

    with proxy.running(port(cli), decide) as between:
        yield between.port, met


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ACTS)
def test_a_write_whose_answer_is_lost_is_settled(cli: CliWorld, table: str, name: str, fault: Fault) -> None:
    what, act, state = ACTS[name]
    mine = claim(worker(cli, table)) if name != "claim" else None
    if name == "take-over":
        expire(cli, table)
    with spoilt(cli, what, fault) as (at, met):
        through = worker(cli, table, at=at)
        if name == "claim":
            mine = claim(through)
            assert isinstance(mine, OnceClaim)
        else:
            act(through, by_way_of(through, mine))
    assert (len(met), row(cli, table)["state"]) == (1, state)
    if name == "claim":
        # The claim is usable whatever became of the answer.
        direct = worker(cli, table)
        direct.finish(by_way_of(direct, mine), patience())


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.RESET])
def test_a_claim_of_unknown_outcome_does_not_lock_its_worker_out(cli: CliWorld, table: str, fault: Fault) -> None:
    broken: list[bool] = [True]

    def decide(request: Request) -> Fault:
        # The first claim is perhaps made, and then nothing can be asked.
        return (fault if request.method == "POST" else Fault.RESET) if broken[0] else Fault.NONE

    with proxy.running(port(cli), decide) as between:
        through = worker(cli, table, at=between.port)
        with pytest.raises(AzguardError) as told:
            through.claim(KEY, MESSAGE, 60, Deadline(0.5, answer_seconds=0.5, settle_seconds=0.5))
        assert isinstance(told.value, OutcomeUnknown)
        broken[0] = False
        others = claim(worker(cli, table, "b")) if fault is Fault.DROP else None
        again = claim(through)
    assert (isinstance(again, OnceClaim), isinstance(others, HeldByAnother)) == (True, fault is Fault.DROP)
    assert again.is_first


def test_an_extension_of_unknown_outcome_leaves_the_claim_usable(cli: CliWorld, table: str) -> None:
    mine = claim(worker(cli, table))
    broken: list[bool] = [True]

    def decide(request: Request) -> Fault:
        return (Fault.DROP if request.method == "PUT" else Fault.RESET) if broken[0] else Fault.NONE

    with proxy.running(port(cli), decide) as between:
        through = worker(cli, table, at=between.port)
        with pytest.raises(OutcomeUnknown):
            through.extend(by_way_of(through, mine), 60, Deadline(0.5, answer_seconds=0.5, settle_seconds=0.5))
        broken[0] = False
        through.finish(by_way_of(through, mine), patience())
    assert claim(worker(cli, table, "b")) == DoneBefore(KEY)


# Behind a gateway that writes a Date of its own.


@pytest.mark.parametrize("ahead_seconds", [7200, -7200])
def test_a_living_claim_is_not_taken_over_by_a_wrong_date(cli: CliWorld, table: str, ahead_seconds: int) -> None:
    claim(worker(cli, table))
    with proxy.running(port(cli), lambda _: Chosen(ahead_seconds=ahead_seconds)) as between:
        other = worker(cli, table, "b", between.port)
        assert isinstance(claim(other), HeldByAnother)
        assert isinstance(claim(other, "another key"), OnceClaim)  # which tells the time, too
        assert isinstance(claim(other), HeldByAnother)


@pytest.mark.parametrize("ahead_seconds", [7200, -7200])
@pytest.mark.parametrize("checks", [True, False])
def test_a_claim_that_is_over_is_taken_over_whatever_the_date_of_an_answer(
    cli: CliWorld, table: str, ahead_seconds: int, *, checks: bool
) -> None:
    claim(worker(cli, table))
    expire(cli, table)
    with proxy.running(port(cli), lambda _: Chosen(ahead_seconds=ahead_seconds)) as between:
        other = worker(cli, table, "b", between.port)
        if checks:
            other.check(patience())
        assert isinstance(claim(other), OnceClaim)
