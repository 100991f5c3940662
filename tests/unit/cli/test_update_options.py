"""Which options of safe-update go together, for which kind of resource: each contradiction is refused, by name."""

from dataclasses import replace
from typing import Any

import pytest

from azguard.address import parse
from azguard.cli.options.updates import UpdateOptions
from azguard.errors import UsageError
from tests.support.cases import cases

BLOB, ENTITY, TABLE = "blob:site/config.json", "entity:Orders/eu/1007", "table:Orders"
EDIT = UpdateOptions(increment=["n"])
FILTER = "n gt 1"
ONE = "leave one of them out"

REFUSED: list[tuple[str, dict[str, Any], str, str | None]] = [
    # Of many entities.
    (ENTITY, {"jobs": "4"}, "--param and --jobs are for many entities", "choose them with --where"),
    (ENTITY, {"param": ["n=1"]}, "--param and --jobs are for many entities", "choose them with --where"),
    (BLOB, {"where": FILTER}, "--where is about the entities of a table, not blob:site/config.json", "table:NAME"),
    (TABLE, {"where": FILTER, "create": ""}, "--create and --where do not go together",
     "name the entity: entity:TABLE/PARTITION/ROW"),
    (TABLE, {"where": FILTER, "op_id": "op:aaaaaaaaaaaaaaaa"}, "--op-id: an id that azguard made is of one entity",
     "choose a key of your own"),
    (TABLE, {"where": FILTER, "jobs": "65"}, "--jobs: '65' is not a whole number from 1 to 64", "--jobs 1"),
    (TABLE, {"where": FILTER, "metadata": True}, "--metadata does not apply to an entity", "leave it out"),
    # Of the outcome of an update.
    (BLOB, {"status": True}, "--status asks for the outcome of an update",
     "name it with --op-id KEY, without --dry-run or --where"),
    (BLOB, {"status": True, "op_id": "k", "dry_run": True}, "--status asks for the outcome of an update",
     "name it with --op-id KEY, without --dry-run or --where"),
    (TABLE, {"status": True, "op_id": "k", "where": FILTER}, "--status asks for the outcome of an update",
     "name it with --op-id KEY, without --dry-run or --where"),
    (BLOB, {"op_id_any_change": True}, "--op-id-any-change is about a key", "name it with --op-id KEY"),
    # Of the kind of resource.
    (TABLE, {}, "which entities of the table?",
     "entity:TABLE/PARTITION/ROW, or safe-update with --where FILTER"),
    ("share:files", {}, "of a share only the metadata can be updated", "add --metadata; or file:SHARE/PATH"),
    ("queue:jobs", {}, "of a queue only the metadata can be updated", "add --metadata --allow-race"),
    ("queue:jobs", {"metadata": True}, "the service compares no version of a queue, so another writer may come between",
     "add --allow-race"),
    ("queue:jobs", {"metadata": True, "allow_race": True, "lease_id": "@held"},
     "--lease-id does not apply to a queue: the Queue service has no leases", "leave it out"),
    ("container:site", {}, "of a container only the metadata can be updated", "add --metadata --allow-race"),
    (BLOB, {"guard": "ledger"}, "--guard ledger is for entities", "for a blob that others write: --guard lease"),
    (ENTITY, {"guard": "lease"}, "--guard lease: the Table service has no leases",
     "--guard ledger is sound beside any writer; or take a lock for a while: azguard lock run table:NAME"),
    (ENTITY, {"lease_id": "@held"}, "--lease-id does not apply to an entity", "leave it out"),
    (ENTITY, {"wait_lease": True}, "--wait-lease does not apply to an entity", "leave it out"),
    (ENTITY, {"fence": "1"}, "--fence does not apply to an entity", "leave it out"),
    (ENTITY, {"metadata": True}, "--metadata does not apply to an entity", "leave it out"),
    # Of the guard.
    (BLOB, {"guard": "etag"}, "--guard 'etag' is not known", "lineage or lease or ledger"),
    (BLOB, {"guard": "lease", "lease_id": "@held"}, "--guard lease and --lease-id contradict each other", ONE),
    (BLOB, {"guard": "lineage", "no_lineage": True}, "--guard lineage and --no-lineage contradict each other", ONE),
    (BLOB, {"no_lineage": True, "op_id": "k"},
     "--no-lineage and --op-id contradict each other: the lineage is where the id is kept", ONE),
    (BLOB, {"wait_lease": True, "lease_id": "@held"}, "--wait-lease and --lease-id contradict each other", ONE),
    # Of the change.
    (BLOB, {"command": ["=", "3 4"]}, "--increment and a command do not go together: = '3 4'",
     "run safe-update twice; if it is part of an edit, write the edit as one word, such as 'replicas=3'"),
    (BLOB, {"increment": None}, "nothing to do: no edit and no command",
     "add --set PATH=JSON or another edit, or a command: -- jq '.replicas += 1'"),
    (BLOB, {"metadata": True, "create": ""}, "--create and --metadata do not go together",
     "create the blob first: azguard blob put"),
    (BLOB, {"allow_empty": True}, "--allow-empty is about what a command prints, and there is none", "leave it out"),
    (BLOB, {"any_content": True, "metadata": True},
     "--any-content does not apply to metadata, which is always a JSON object", "leave it out"),
    (ENTITY, {"any_content": True}, "--any-content does not apply to an entity, which is always a JSON object",
     "leave it out"),
    # Of one option alone.
    (BLOB, {"op_id": " "}, "--op-id is empty", "an unset shell variable looks like this; leave the option out"),
    (TABLE, {"where": ""}, "--where is empty", "an unset shell variable looks like this; leave the option out"),
    (BLOB, {"max_attempts": "0"}, "--max-attempts: '0' is not a whole number above zero",
     "--max-attempts 10"),
    (BLOB, {"max_attempts": "9" * 19}, f"--max-attempts: '{'9' * 19}' is too large a number", "--max-attempts 10"),
]  # fmt: skip


@cases(("address", "changes", "message", "hint"), REFUSED)
def test_a_contradiction_is_refused_by_name(address: str, changes: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        replace(EDIT, **changes).check(parse(address).address)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_malformed_fence_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        replace(EDIT, fence="x").check(parse(BLOB).address)
    assert caught.value.reason == "fence_malformed"


@cases(
    ("address", "changes"),
    [
        (BLOB, {}),
        (ENTITY, {}),
        (ENTITY, {"guard": "ledger", "no_lineage": True, "op_id": "k"}),
        (TABLE, {"where": FILTER, "jobs": "64", "dry_run": True}),
        (BLOB, {"status": True, "op_id": "k", "increment": None}),
        (BLOB, {"status": True, "op_id": "k"}),
        (BLOB, {"increment": None, "command": ["jq", "."], "allow_empty": True, "any_content": True}),
        (BLOB, {"guard": "lease", "fence": "7", "wait_lease": True, "create": "", "max_attempts": "3"}),
    ],
)
def test_what_goes_together_is_not_refused(address: str, changes: dict[str, Any]) -> None:
    replace(EDIT, **changes).check(parse(address).address)


def test_edits_are_in_the_order_in_which_they_were_typed() -> None:
    given = UpdateOptions(set_=["a=1", "b=2"], unset=["c"])
    assert given.edits_in(["set_", "op_id", "unset", "set_"]) == (("--set", "a=1"), ("--unset", "c"), ("--set", "b=2"))
