"""``azguard safe-update`` of an entity against Azurite: what a user, a script or a CI step sees."""

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.faults.rules import Rule, by_rules, operation
from tests.support.cli_world import CliWorld
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.table_world import etag, port, properties, stored, table, through

PYTHON = sys.executable
INCREMENT = (PYTHON, "-c", "import json, sys; e = json.load(sys.stdin); e['n'] += 1; json.dump(e, sys.stdout)")


@pytest.fixture
def name(cli: CliWorld) -> str:
    """Return the short address of an entity with a counter and a total in it."""
    name = f"{table(cli)}/eu/1"
    made = cli.call(
        "safe-update", f"entity:{name}", "--create", '{"n": 1, "total": "5", "total@odata.type": "Edm.Int64"}',
        "--set", 's="x"', scope="setup",
    )  # fmt: skip
    assert made.code == 0, made.err
    return name


def update(cli: CliWorld, name: str, *words: str, **settings: Any) -> Any:
    return cli.call("safe-update", f"entity:{name}", "-o", "json", *words, **settings)


def test_an_update_says_all_there_is_to_say(cli: CliWorld, name: str) -> None:
    ran = cli.fork("safe-update", f"entity:{name}", "--increment", "n")
    assert re.fullmatch(r"op:[A-Za-z0-9_-]{16}", ran.json["op_id"])
    assert {**ran.json, "op_id": None} == {
        "address": f"entity:{name}",
        "etag": etag(cli, name),
        "last_modified": None,
        "version_id": None,
        "content_length": None,
        "guard": "if-match",
        "attempts": 1,
        "conflicts": 0,
        "doubts": 0,
        "outcome": "committed",
        "created": False,
        "op_id": None,
        "applied_at": None,
        "written_since": None,
        "created_keys": [],
        "merged_with": None,
    }
    assert (ran.code, ran.err) == (0, "")
    assert properties(cli, name) == {"n": 2, "total": "5", "s": "x"}


def test_an_update_takes_two_requests(cli: CliWorld, name: str) -> None:
    with proxy.running(port(cli), lambda request: Fault.NONE) as running:
        assert update(through(cli, running.port), name, "--increment", "n").code == 0
    assert [operation(each.request) for each in running.log] == ["GET entity", "PUT entity"]


def test_a_command_gets_the_entity_and_gives_the_new_one(cli: CliWorld, name: str) -> None:
    assert update(cli, name, "--", *INCREMENT).code == 0
    assert properties(cli, name) == {"n": 2, "total": "5", "s": "x"}


def test_an_entity_beyond_the_limits_is_65_and_writes_nothing(cli: CliWorld, name: str) -> None:
    before = etag(cli, name)
    cli.file("patch.json", json.dumps({"large": "x" * 40_000}))
    ran = update(cli, name, "--merge-patch", "patch.json")
    assert (ran.code, "large" in ran.error["message"], etag(cli, name)) == (65, True, before)


def test_what_is_not_there_is_44_and_created_only_if_asked_for(cli: CliWorld) -> None:
    name = f"{table(cli)}/eu/new"
    missing = update(cli, name, "--increment", "n")
    made = update(cli, name, "--increment", "n", "--create")
    assert (missing.code, missing.error["hint"]) == (44, "add --create to make it")
    assert (made.json["created"], made.json["guard"], properties(cli, name)) == (True, "if-none-match", {"n": 1})


def test_a_command_that_drops_a_property_drops_its_type(cli: CliWorld, name: str) -> None:
    drop = "import json, sys; e = json.load(sys.stdin); del e['total']; json.dump(e, sys.stdout)"
    assert (update(cli, name, "--", PYTHON, "-c", drop).code, properties(cli, name)) == (0, {"n": 1, "s": "x"})


def test_without_a_table_nothing_can_be_created(cli: CliWorld) -> None:
    ran = update(cli, "nowhere/eu/1", "--increment", "n", "--create")
    assert (ran.code, ran.error["message"]) == (44, "there is no table nowhere")


def test_no_lineage_leaves_the_entity_clean(cli: CliWorld) -> None:
    name = f"{table(cli)}/eu/1"
    assert update(cli, name, "--set", "n=1", "--create", "--no-lineage").code == 0
    assert update(cli, name, "--increment", "n", "--no-lineage").code == 0
    assert "azguardlineage" not in (stored(cli, name) or {})


def test_the_next_write_is_guarded_by_what_the_update_wrote(cli: CliWorld, name: str) -> None:
    update(cli, name, "--increment", "n")
    ours = cli.call("entity", "merge", name, "n:int32=10")
    update(cli, name, "--increment", "n", scope="other")
    stale = cli.call("entity", "replace", name, "n:int32=20")
    assert (ours.code, stale.code, (properties(cli, name) or {})["n"]) == (0, 42, 11)


def test_a_run_that_ends_unknown_is_settled_by_the_next(cli: CliWorld, name: str) -> None:
    """The answer is lost, and the service cannot be asked any more: what was sent for which version is remembered."""
    armed: list[Request] = []
    healthy = threading.Event()

    def decide(request: Request) -> Fault:
        if healthy.is_set():
            return Fault.NONE
        armed.extend([request] if operation(request) == "PUT entity" else [])
        return Fault.NONE if not armed else Fault.RESET if len(armed) > 1 or request is not armed[0] else Fault.DROP

    with proxy.running(port(cli), decide) as running:
        lost = update(through(cli, running.port), name, "--increment", "n", "--op-id", "k", "--timeout", "3s")
        healthy.set()
        again = update(through(cli, running.port), name, "--increment", "n", "--op-id", "k")
    assert (lost.code, again.code, (properties(cli, name) or {})["n"]) == (74, 0, 2)


def test_a_write_that_never_arrived_is_made_by_the_next_run(cli: CliWorld, name: str) -> None:
    faulty = by_rules([Rule.parse("PUT entity * reset"), Rule.parse("PATCH entity * reset")])
    healthy = threading.Event()
    with proxy.running(port(cli), lambda asked: Fault.NONE if healthy.is_set() else faulty(asked)) as running:
        lost = update(through(cli, running.port), name, "--increment", "n", "--op-id", "k", "--timeout", "3s")
        healthy.set()
        again = update(through(cli, running.port), name, "--increment", "n", "--op-id", "k")
    assert (lost.code, again.code, (properties(cli, name) or {})["n"]) == (74, 0, 2)


def test_work_that_cannot_be_written_is_kept_with_its_types(cli: CliWorld, name: str) -> None:
    with proxy.running(port(cli), by_rules([Rule.parse("PUT entity * reset")])) as running:
        ran = update(through(cli, running.port), name, "--increment", "total", "--timeout", "3s")
    kept = json.loads(Path(ran.error["kept"]).read_bytes())
    assert (ran.code, kept["total"], kept["total@odata.type"]) == (53, "6", "Edm.Int64")
    assert ran.error["hint"].startswith(f"resume it: azguard safe-update entity:{name}")


def test_a_text_is_set_as_a_text_except_where_the_type_says_otherwise(cli: CliWorld, name: str) -> None:
    done = cli.call("safe-update", f"entity:{name}", "--set-string", "state=5", "--set-string", "total=7")
    refused = cli.call("safe-update", f"entity:{name}", "--set-string", "total=many")
    found = cli.call("entity", "get", name).json
    assert (done.code, refused.code) == (0, 65)
    assert (found["state"], found["total"], found["total@odata.type"]) == ("5", "7", "Edm.Int64")
