"""``azguard table`` against Azurite."""

import json
import uuid
from typing import Any

import pytest

from tests.support import table_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Fault, Request

WRITTEN = {"etag": None, "last_modified": None, "attempts": 1, "conflicts": 0, "outcome": "committed"}
READERS = {"start": "2026-01-01T00:00:00.0000000Z", "expiry": "2027-01-01T00:00:00.1234567Z", "permission": "r"}


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:20]}"


def acl(cli: CliWorld, name: str, policies: dict[str, Any], *words: str, scope: str = "test") -> Any:
    return cli.call("table", "acl", "set", name, *words, stdin=json.dumps(policies).encode(), scope=scope)


def spoilt(cli: CliWorld, method: str, fault: Fault, *words: str) -> tuple[Any, list[tuple[str, bool]]]:
    """Run a command whose requests of one method all meet a fault; return also what the emulator did of them."""

    def decide(request: Request) -> Fault:
        return fault if request.method == method else Fault.NONE

    with proxy.running(table_world.port(cli), decide) as between:
        ran = table_world.through(cli, between.port).call(*words, "-o", "json", "--timeout", "1s")
    return ran, [(each.request.method, each.committed) for each in between.log]


def test_a_table_is_created_listed_and_deleted(cli: CliWorld, name: str) -> None:
    made = cli.call("table", "create", name)
    listed = cli.call("table", "list", "--prefix", name)
    gone = cli.call("table", "delete", name, "--last-writer-wins")
    assert [made.json, listed.json, gone.json] == [
        {"address": f"table:{name}", "guard": "if-none-match", **WRITTEN},
        [{"address": f"table:{name}", "name": name}],
        {"address": f"table:{name}", "guard": "none", **WRITTEN},
    ]
    assert cli.call("table", "list", "--prefix", name).json == []


def test_a_table_that_exists_is_left_alone_whatever_the_case_of_its_name(cli: CliWorld, name: str) -> None:
    cli.call("table", "create", name)
    for same in (name, name.upper()):
        ran = cli.call("table", "create", same, "-o", "json")
        assert (ran.code, ran.error["message"]) == (45, f"{same} exists already")


def test_a_table_is_only_deleted_if_that_is_said(cli: CliWorld, name: str) -> None:
    cli.call("table", "create", name)
    ran, log = spoilt(cli, "GET", Fault.NONE, "table", "delete", name)
    assert (ran.code, log, ran.error["hint"]) == (2, [], "to do it without a guard: --last-writer-wins")
    assert cli.call("table", "list", "--prefix", name).json != []


def test_a_table_that_is_not_there_cannot_be_deleted(cli: CliWorld, name: str) -> None:
    ran = cli.call("table", "delete", name, "--last-writer-wins", "-o", "json")
    assert (ran.code, ran.error["message"]) == (44, f"there is no table {name}")


def test_a_create_whose_answer_is_lost_says_that_nobody_knows_whose_the_table_is(cli: CliWorld, name: str) -> None:
    ran, log = spoilt(cli, "POST", Fault.DROP, "table", "create", name)
    assert (ran.code, log) == (74, [("GET", False), ("POST", True), ("GET", False)])
    assert ran.error["hint"] == f"look before you try again: azguard table list --prefix {name}"


def test_tables_are_listed_page_by_page(cli: CliWorld, name: str) -> None:
    for suffix in "cabD":
        cli.call("table", "create", f"{name}{suffix}")
    found = cli.call("table", "list", "--prefix", name).json
    assert sorted(each["name"][-1] for each in found) == ["D", "a", "b", "c"]
    assert len(cli.call("table", "list", "--prefix", name, "--num-results", "2").json) == 2
    assert cli.call("table", "list", "--prefix", f"{name}d").json == []
    assert cli.call("table", "list", "--prefix", "a-b").json == []
    assert {f"{name}{suffix}" for suffix in "cabD"} <= {each["name"] for each in cli.call("table", "list").json}


def test_the_status_tells_whether_access_policies_that_were_read_changed(cli: CliWorld) -> None:
    table = table_world.table(cli)
    assert acl(cli, table, {}, "--last-writer-wins").code == 0
    assert cli.call("status", f"table:{table}").json[0]["state"] == "properties_unchanged"
    assert acl(cli, table, {"readers": READERS}, "--last-writer-wins", scope="other").code == 0
    assert cli.call("status", f"table:{table}").json[0]["state"] == "changed"
