"""``--guard ledger``: a row beside the entity proves how an update ended, whatever other writers do."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from azure.data.tables import TableClient, UpdateMode

from azguard.tables.updates import PREFIX
from tests.faults.rules import Rule, by_rules, operation
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Decide, Fault, Request
from tests.support.table_world import port, properties, stored, table, through

SILENCE = {"AZGUARD_WRITE_TIMEOUT": "1s"}


@pytest.fixture
def name(cli: CliWorld) -> str:
    """Return the short address of an entity with a counter in it."""
    name = f"{table(cli)}/eu/1"
    assert cli.call("safe-update", f"entity:{name}", "--create", "--set", "n=1", scope="setup").code == 0
    return name


def update(cli: CliWorld, name: str, *words: str, **settings: Any) -> Ran:
    return cli.call("safe-update", f"entity:{name}", "-o", "json", "--guard", "ledger", *words, **settings)


def client(cli: CliWorld, name: str) -> TableClient:
    return TableClient.from_connection_string(cli.connection_string or "", name.split("/", maxsplit=1)[0])


def rows(cli: CliWorld, name: str) -> list[dict[str, Any]]:
    """Return the ledger, without what is different in each run."""
    hidden = ("PartitionKey", "RowKey", "time")
    found = client(cli, name).query_entities("RowKey ge '~op~' and RowKey lt '~op~~'")
    return [{key: value for key, value in row.items() if key not in hidden} for row in found]


def count(cli: CliWorld, name: str) -> int | None:
    return (properties(cli, name) or {}).get("n")


def holding(first: Callable[[Request], bool]) -> tuple[Decide, list[Request], list[bool]]:
    """Return what holds one request until a list is no longer empty, with that request."""
    held: list[Request] = []
    released: list[bool] = []

    def decide(request: Request) -> Fault | Chosen:
        if held or not first(request):
            return Fault.NONE
        held.append(request)
        return Chosen(Fault.ZOMBIE, lambda: bool(released))

    return decide, held, released


def delivered(running: proxy.Proxy, held: list[Request], released: list[bool]) -> tuple[int, ...]:
    """Let the held request arrive; return the statuses within the answer."""
    released.append(True)
    until(lambda: any(each.request is held[0] for each in running.log))
    return next(each.parts for each in running.log if each.request is held[0])


def test_a_row_is_written_with_the_entity(cli: CliWorld, name: str) -> None:
    with proxy.running(port(cli), lambda request: Fault.NONE) as running:
        ran = update(through(cli, running.port), name, "--increment", "n")
    asked = [operation(each.request) for each in running.log]
    assert (ran.json["guard"], asked, count(cli, name)) == ("ledger", ["GET entity", "POST batch"], 2)
    row = stored(cli, f"{name.removesuffix('/1')}/{PREFIX}{ran.json['op_id'].removeprefix('op:')}") or {}
    assert (row["entity"], row["outcome"], row["time@odata.type"]) == ("1", "committed", "Edm.DateTime")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", row["time"])


def test_a_key_costs_one_more_look(cli: CliWorld, name: str) -> None:
    with proxy.running(port(cli), lambda request: Fault.NONE) as running:
        update(through(cli, running.port), name, "--increment", "n", "--op-id", "k")
    asked = [(operation(each.request), PREFIX in unquote(each.request.path)) for each in running.log]
    # In this order: the entity is read before the row.
    assert asked == [("GET entity", False), ("GET entity", True), ("POST batch", False)]


def test_a_key_holds_beside_a_writer_that_keeps_no_lineage(cli: CliWorld, name: str) -> None:
    update(cli, name, "--increment", "n", "--op-id", "k")
    client(cli, name).upsert_entity({"PartitionKey": "eu", "RowKey": "1", "n": 10}, UpdateMode.REPLACE)
    again = update(cli, name, "--increment", "n", "--op-id", "k")
    assert (again.code, again.json["outcome"], again.json["attempts"], count(cli, name)) == (0, "applied_before", 0, 10)


def test_a_key_holds_when_the_entity_is_gone(cli: CliWorld, name: str) -> None:
    words = ("--increment", "n", "--create", "--op-id", "k")
    update(cli, name, *words)
    client(cli, name).delete_entity("eu", "1")
    again = update(cli, name, *words)
    assert (again.code, again.json["outcome"], properties(cli, name)) == (0, "applied_before", None)


def test_without_a_lineage_the_entity_stays_clean_and_a_key_still_holds(cli: CliWorld) -> None:
    name = f"{table(cli)}/eu/1"
    words = ("--increment", "n", "--create", "--no-lineage", "--op-id", "k")
    codes = [update(cli, name, *words).code for _ in range(2)]
    found = {key for key in stored(cli, name) or {} if "odata" not in key}
    assert (codes, count(cli, name), found) == ([0, 0], 1, {"PartitionKey", "RowKey", "Timestamp", "n"})


def test_who_gives_up_leaves_a_void_row_that_keeps_out_what_arrives_late(cli: CliWorld, name: str) -> None:
    decide, held, released = holding(lambda request: operation(request) == "POST batch")
    words = ("--increment", "n", "--op-id", "k", "--max-attempts", "1")
    with proxy.running(port(cli), decide) as running:
        ran = update(through(cli, running.port), name, *words, env=SILENCE)
        late = delivered(running, held, released)
    status = update(cli, name, "--op-id", "k", "--status")
    assert (ran.code, late, count(cli, name), status.code) == (53, (409,), 1, 44)
    assert rows(cli, name) == [{"entity": "1", "outcome": "void"}]


def test_who_gave_up_can_be_run_again_under_the_same_key(cli: CliWorld, name: str) -> None:
    decide, held, released = holding(lambda request: operation(request) == "POST batch")
    with proxy.running(port(cli), decide) as running:
        update(through(cli, running.port), name, "--increment", "n", "--op-id", "k", "--max-attempts", "1", env=SILENCE)
        # The endpoint is part of an op id, so the same key is the same op only through the same proxy.
        again = update(through(cli, running.port), name, "--increment", "n", "--op-id", "k")
        late = delivered(running, held, released)
    assert (again.code, again.json["attempts"], late, count(cli, name)) == (0, 1, (412,), 2)
    assert [each["outcome"] for each in rows(cli, name)] == ["committed"]


def test_a_create_that_was_given_up_never_arrives(cli: CliWorld) -> None:
    """Without a ledger this is unknown: nothing else is in the way of a create that is delivered late."""
    name = f"{table(cli)}/eu/1"
    decide, held, released = holding(lambda request: operation(request) == "POST batch")
    words = ("--increment", "n", "--create", "--max-attempts", "1")
    with proxy.running(port(cli), decide) as running:
        ran = update(through(cli, running.port), name, *words, env=SILENCE)
        late = delivered(running, held, released)
    assert (ran.code, late, properties(cli, name)) == (53, (409,), None)


def test_a_void_row_whose_answer_is_lost_is_written_again(cli: CliWorld, name: str) -> None:
    faults = by_rules([Rule.parse("POST batch * reset"), Rule.parse("POST entity 1 drop")])
    with proxy.running(port(cli), faults) as running:
        ran = update(through(cli, running.port), name, "--increment", "n", "--timeout", "1s")
    assert (ran.code, count(cli, name), rows(cli, name)) == (53, 1, [{"entity": "1", "outcome": "void"}])


def test_a_foreign_writer_between_the_attempt_and_the_look_leaves_no_doubt(cli: CliWorld, name: str) -> None:
    """The lineage is wiped both times; the row tells whether it was our write that was covered."""
    for rule, expected in (("POST batch 1 drop", 100), ("POST batch 1 reset", 101)):
        faults, done = by_rules([Rule.parse(rule)]), list[bool]()

        def decide(request: Request, faults: Decide = faults, done: list[bool] = done) -> Fault | Chosen:
            if done and done.pop():
                client(cli, name).upsert_entity({"PartitionKey": "eu", "RowKey": "1", "n": 100}, UpdateMode.REPLACE)
            found = faults(request)
            done.extend([True] if found is not Fault.NONE else [])
            return found

        with proxy.running(port(cli), decide) as running:
            ran = update(through(cli, running.port), name, "--increment", "n")
        assert (ran.code, ran.json["outcome"], count(cli, name)) == (0, "committed", expected)


def test_status_asks_the_ledger(cli: CliWorld, name: str) -> None:
    update(cli, name, "--increment", "n", "--op-id", "k")
    client(cli, name).upsert_entity({"PartitionKey": "eu", "RowKey": "1", "n": 10}, UpdateMode.REPLACE)
    by_ledger = [update(cli, name, "--op-id", key, "--status") for key in ("k", "other")]
    by_lineage = cli.call("safe-update", f"entity:{name}", "--op-id", "k", "--status")
    assert [(ran.code, ran.json["outcome"]) for ran in (*by_ledger, by_lineage)] == [
        (0, "committed"),
        (44, "not_committed"),
        (74, "unknown"),
    ]


def test_an_id_that_azguard_made_for_another_entity_is_no_proof_for_this_one(cli: CliWorld, name: str) -> None:
    made = update(cli, name, "--increment", "n").json["op_id"]
    other = f"{name.removesuffix('/1')}/2"
    ran = update(cli, other, "--set", "n=1", "--create", "--op-id", made)
    assert (ran.code, ran.error["message"].startswith("--op-id: the id is that of"), stored(cli, other)) == (
        2, True, None,
    )  # fmt: skip
