"""``azguard safe-update --where``: many entities of a table, each updated by itself."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from azure.data.tables import TableClient, UpdateMode

from azguard.cli.output.results import Output
from tests.faults.rules import operation
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request
from tests.support.table_world import port, table, through

NEW = "PartitionKey eq 'eu' and status eq 'new'"
INCREMENT = ("--increment", "n")


def filled(cli: CliWorld, count: int, **properties: Any) -> TableClient:
    """Return a table of so many entities, in rows of numbers."""
    client = TableClient.from_connection_string(cli.connection_string or "", table(cli))
    for first in range(0, count, 100):
        made = [
            {"PartitionKey": "eu", "RowKey": f"{row:05}", "n": 1, "status": "new", **properties}
            for row in range(first, min(count, first + 100))
        ]
        client.submit_transaction([("create", entity) for entity in made])
    return client


@pytest.fixture
def orders(cli: CliWorld) -> TableClient:
    return filled(cli, 10)


def update(cli: CliWorld, orders: TableClient, *words: str, where: str = NEW, **settings: Any) -> Ran:
    return cli.call("safe-update", f"table:{orders.table_name}", "--where", where, *words, **settings)


def summary(orders: TableClient, **counts: object) -> dict[str, object]:
    """Return the summary that says so; what is not named is 0."""
    names = ("matched", "updated", "unchanged", "applied_before", "skipped", "failed", "unknown")
    return {"address": f"table:{orders.table_name}", **dict.fromkeys(names, 0), "created_keys": [], **counts}


def told(ran: Ran) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of the failures, and the summary behind them."""
    *failures, summary = map(json.loads, ran.out.splitlines())
    return failures, summary


def counts(orders: TableClient) -> dict[str, int]:
    return {str(each["RowKey"]): each["n"] for each in orders.list_entities()}


def every(number: int, changed: dict[str, int] | None = None) -> dict[str, int]:
    return {f"{row:05}": number for row in range(10)} | (changed or {})


def before_write_of(row: str, act: Callable[[], object]) -> Callable[[Request], Fault]:
    """Return what has another act just before the first write of a row arrives."""
    done: list[bool] = []

    def decide(request: Request) -> Fault:
        if operation(request) == "PUT entity" and f"RowKey='{row}'" in request.path and not done:
            done.append(True)
            act()
        return Fault.NONE

    return decide


def test_what_matches_is_updated_and_nothing_else(cli: CliWorld, orders: TableClient) -> None:
    ran = update(cli, orders, "--increment", "n", "--set", 'status="done"', where=f"{NEW} and RowKey lt '00004'")
    assert (ran.code, ran.json) == (0, summary(orders, matched=4, updated=4))
    assert counts(orders) == every(1) | dict.fromkeys(("00000", "00001", "00002", "00003"), 2)


def test_a_key_that_an_increment_creates_is_named_before_and_after(cli: CliWorld, orders: TableClient) -> None:
    words = ("--increment", "nosuch", "--increment", "n")
    shown = update(cli, orders, *words, "--dry-run")
    chosen = update(cli, orders, *words, "--dry-run", "-o", "json")
    ran = update(cli, orders, *words)
    assert shown.err == "--increment would create nosuch: there is no such key\n"
    assert ([each["created_keys"] for each in chosen.json], chosen.err) == ([["nosuch"]] * 10, "")
    assert ran.json == summary(orders, matched=10, updated=10, created_keys=["nosuch"])
    assert update(cli, orders, *words, "--dry-run").err == ""


def test_one_request_reads_them_and_one_each_writes_them(cli: CliWorld, orders: TableClient) -> None:
    with proxy.running(port(cli), lambda request: Fault.NONE) as running:
        update(through(cli, running.port), orders, *INCREMENT)
    asked = [operation(each.request) for each in running.log]
    assert (asked[0], sorted(asked[1:])) == ("GET entities", ["PUT entity"] * 10)


def test_all_pages_are_read(cli: CliWorld) -> None:
    orders = filled(cli, 1001)
    with proxy.running(port(cli), lambda request: Fault.NONE) as running:
        ran = update(through(cli, running.port), orders, "--set", "n=1")
    assert ran.json == summary(orders, matched=1001, unchanged=1001)
    assert [operation(each.request) for each in running.log] == ["GET entities"] * 2


def test_parameters_are_bound_as_values(cli: CliWorld, orders: TableClient) -> None:
    words = ("--param", "status=new", "--param", "n:int32=1", *INCREMENT)
    ran = update(cli, orders, *words, where="status eq @status and n eq @n")
    assert (ran.code, ran.json["updated"]) == (0, 10)


def test_a_command_is_told_which_entity_it_changes(cli: CliWorld, orders: TableClient) -> None:
    code = (
        "import json, os, sys; e = json.load(sys.stdin); e['n'] = int(os.environ['AZGUARD_ADDRESS'][-5:]); "
        "json.dump(e, sys.stdout)"
    )
    ran = update(cli, orders, "--", sys.executable, "-c", code)
    assert (ran.code, counts(orders)) == (0, {f"{row:05}": row for row in range(10)})


def test_one_that_changed_since_the_query_is_read_again(cli: CliWorld, orders: TableClient) -> None:
    def rival() -> None:
        orders.upsert_entity({"PartitionKey": "eu", "RowKey": "00003", "n": 10, "status": "new"}, UpdateMode.REPLACE)

    with proxy.running(port(cli), before_write_of("00003", rival)) as running:
        ran = update(through(cli, running.port), orders, *INCREMENT)
    assert (ran.json, counts(orders)) == (summary(orders, matched=10, updated=10), every(2, {"00003": 11}))


def test_one_that_does_not_match_any_more_is_left_alone(cli: CliWorld, orders: TableClient) -> None:
    def rival() -> None:
        orders.upsert_entity({"PartitionKey": "eu", "RowKey": "00003", "n": 10, "status": "done"}, UpdateMode.REPLACE)

    with proxy.running(port(cli), before_write_of("00003", rival)) as running:
        ran = update(through(cli, running.port), orders, *INCREMENT)
    assert (ran.code, ran.json) == (0, summary(orders, matched=10, updated=9, skipped=1))
    assert counts(orders) == every(2, {"00003": 10})


def test_one_that_was_deleted_since_is_left_alone(cli: CliWorld, orders: TableClient) -> None:
    with proxy.running(port(cli), before_write_of("00003", lambda: orders.delete_entity("eu", "00003"))) as running:
        ran = update(through(cli, running.port), orders, *INCREMENT)
    assert (ran.code, ran.json) == (0, summary(orders, matched=10, updated=9, skipped=1))
    assert "00003" not in counts(orders)


def test_one_whose_own_write_ends_the_match_is_known_to_be_updated(cli: CliWorld, orders: TableClient) -> None:
    """The answer is lost, and the entity does not match any more because of us: that is no reason to skip it."""
    lost: list[Request] = []

    def decide(request: Request) -> Fault:
        lost.extend([request] if operation(request) == "PUT entity" and "RowKey='00003'" in request.path else [])
        return Fault.DROP if lost and request is lost[0] else Fault.NONE

    with proxy.running(port(cli), decide) as running:
        ran = update(through(cli, running.port), orders, *INCREMENT, "--set", 'status="done"')
    assert (ran.json, counts(orders)) == (summary(orders, matched=10, updated=10), every(2))


def test_one_that_fails_is_told_and_the_others_are_updated(cli: CliWorld, orders: TableClient) -> None:
    orders.upsert_entity({"PartitionKey": "eu", "RowKey": "00003", "n": "one", "status": "new"}, UpdateMode.REPLACE)
    ran = update(cli, orders, *INCREMENT)
    (line,), counted = told(ran)
    found = (line["address"], line["outcome"], line["error"]["exit_code"], line["error"]["address"])
    address = f"entity:{orders.table_name}/eu/00003"
    assert (ran.code, found) == (20, (address, "failed", 65, address))
    assert counted == summary(orders, matched=10, updated=9, failed=1)
    assert "1 of 10 entities" in ran.err


def test_one_whose_fate_cannot_be_known_is_told_as_unknown(cli: CliWorld, orders: TableClient) -> None:
    def decide(request: Request) -> Fault:
        return Fault.RESET if request.writes and "RowKey='00003'" in request.path else Fault.NONE

    with proxy.running(port(cli), decide) as running:
        ran = update(through(cli, running.port), orders, *INCREMENT, "--timeout", "5s")
    (line,), counted = told(ran)
    assert (ran.code, line["outcome"], line["error"]["exit_code"]) == (20, "unknown", 74)
    assert counted == summary(orders, matched=10, updated=9, unknown=1)


def test_a_key_makes_a_second_run_a_no_op(cli: CliWorld, orders: TableClient) -> None:
    runs = [update(cli, orders, *INCREMENT, "--op-id", "k").json for _ in range(2)]
    assert runs == [summary(orders, matched=10, updated=10), summary(orders, matched=10, applied_before=10)]
    assert counts(orders) == every(2)


def test_a_key_whose_summary_was_not_told_is_not_applied_again(cli: CliWorld, orders: TableClient) -> None:
    words = ("safe-update", f"table:{orders.table_name}", "--where", NEW, *INCREMENT, "--op-id", "k")
    with open("/dev/full", "wb") as full:
        running = cli.begin_fork(*words, stdout=full)
        running.communicate()
    for row in counts(orders):
        orders.upsert_entity({"PartitionKey": "eu", "RowKey": row, "n": 2, "status": "new"}, UpdateMode.REPLACE)
    again = cli.call(*words)
    assert (running.returncode, again.code, counts(orders)) == (73, 20, every(2))
    assert told(again)[1] == summary(orders, matched=10, unknown=10)


def test_a_key_whose_summary_was_told_leaves_nothing_on_this_machine(cli: CliWorld, orders: TableClient) -> None:
    orders.upsert_entity({"PartitionKey": "eu", "RowKey": "00003", "n": "one", "status": "new"}, UpdateMode.REPLACE)
    ran = update(cli, orders, *INCREMENT, "--op-id", "k")
    update_line = ["safe-update", f"table:{orders.table_name}", "--where", NEW, *INCREMENT, "--op-id", "l"]
    cli.call("batch", stdin=json.dumps(update_line).encode())
    changed = [n for row, n in counts(orders).items() if row != "00003"]
    assert (ran.code, changed, list((cli.root / ".cache" / "attempts").iterdir())) == (20, [3] * 9, [])


def test_a_key_turns_back_no_row_that_was_as_wanted_and_names_one_change(cli: CliWorld, orders: TableClient) -> None:
    everywhere = {"where": "PartitionKey eq 'eu'"}
    first = update(cli, orders, "--set-string", "status=new", "--op-id", "k", **everywhere).json
    assert update(cli, orders, "--set-string", "status=old", where="RowKey lt '00004'").code == 0
    again = update(cli, orders, "--set-string", "status=new", "--op-id", "k", **everywhere).json
    assert [first, again] == [summary(orders, matched=10, unchanged=10), summary(orders, matched=10, applied_before=10)]
    assert len([each for each in orders.list_entities() if each["status"] == "old"]) == 4
    lines, counted = told(update(cli, orders, *INCREMENT, "--op-id", "k", **everywhere))
    assert {line["error"]["outcome"] for line in lines} == {"key_of_another_change"}
    assert counted == summary(orders, matched=10, failed=10)


def test_the_rows_of_a_ledger_are_no_entities(cli: CliWorld, orders: TableClient) -> None:
    words = (*INCREMENT, "--guard", "ledger", "--op-id", "k")
    runs = [update(cli, orders, *words, where="PartitionKey eq 'eu'").json for _ in range(2)]
    assert runs == [summary(orders, matched=10, updated=10), summary(orders, matched=10, applied_before=10)]
    assert len(list(orders.list_entities())) == 20


def test_a_dry_run_prints_every_difference_and_writes_nothing(cli: CliWorld, orders: TableClient) -> None:
    ran = update(cli, orders, *INCREMENT, "--dry-run", where=f"{NEW} and RowKey lt '00002'")
    changed = [line for line in ran.out.splitlines() if line.startswith(("-  ", "+  "))]
    assert (ran.code, changed, counts(orders)) == (0, ['-  "n": 1,', '+  "n": 2,'] * 2, every(1))
    told = update(cli, orders, *INCREMENT, "--dry-run", "-o", "json").json
    assert {(each["outcome"], '+  "n": 2' in each["diff"]) for each in told} == {("dry_run", True)}


def test_a_filter_that_is_none_ends_with_the_words_of_the_service(cli: CliWorld, orders: TableClient) -> None:
    ran = update(cli, orders, *INCREMENT, where="n eq eq")
    assert (ran.code, ran.out) == (40, "")


def test_ctrl_c_settles_what_is_under_way_and_says_how_far_it_came(cli: CliWorld) -> None:
    orders = filled(cli, 300)
    writes: list[Request] = []
    go: list[bool] = []

    def decide(request: Request) -> Chosen:
        """Let forty writes through, and hold the others until the interruption was sent."""
        writes.extend([request] if operation(request) == "PUT entity" else [])
        position = len(writes)
        return Chosen(until=lambda: position <= 40 or bool(go))

    with proxy.running(port(cli), decide) as running:
        words = ("safe-update", f"table:{orders.table_name}", "--where", NEW, *INCREMENT, "--jobs", "4")
        process = through(cli, running.port).begin_fork(*words, stdin=subprocess.DEVNULL)
        until(lambda: len(writes) >= 44)
        process.send_signal(signal.SIGINT)
        go.append(True)
        out, err = process.communicate(timeout=60)
    updated = sum(number == 2 for number in counts(orders).values())
    assert (process.returncode, json.loads(out)) == (130, summary(orders, matched=updated, updated=updated))
    assert 40 <= updated < 300, err


def test_a_signal_between_the_last_commit_and_the_summary_changes_nothing(cli: CliWorld, orders: TableClient) -> None:
    show = Output.show

    def struck(out: Output, summary: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        show(out, summary)

    with patch.object(Output, "show", struck):
        ran = update(cli, orders, *INCREMENT)
    assert (ran.code, ran.json, counts(orders)) == (0, summary(orders, matched=10, updated=10), every(2))
