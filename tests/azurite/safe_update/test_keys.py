"""A key of ``safe-update`` and ``edit`` names one change of one resource, whatever kind that is."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import queue_world
from tests.support.blob_world import client, make
from tests.support.cli_world import CliWorld, Ran
from tests.support.table_world import table

# Of what an update of each kind is: its address, with the words that go with it.
Place = tuple[str, ...]


def _blob(cli: CliWorld) -> Place:
    name = make(cli, content=b'{"v": "1", "n": 0}')
    return (f"blob:{name}",)


def _metadata(cli: CliWorld) -> Place:
    return (f"blob:{make(cli, metadata={'v': '1', 'n': '0'})}", "--metadata")


def _container(cli: CliWorld) -> Place:
    place = (f"container:{cli.container()}", "--metadata", "--allow-race")
    cli.call("safe-update", *place, "--set-string", "v=1", "--set", "n=0", scope="setup")
    return place


def _queue(cli: CliWorld) -> Place:
    place = (f"queue:{queue_world.queue(cli)}", "--metadata", "--allow-race")
    cli.call("safe-update", *place, "--set-string", "v=1", "--set", "n=0", scope="setup")
    return place


def _entity(cli: CliWorld) -> Place:
    name = f"{table(cli)}/eu/1"
    assert cli.call("entity", "insert", name, "v=1", scope="setup").code == 0
    assert cli.call("safe-update", f"entity:{name}", "--set", "n=0", scope="setup").code == 0
    return (f"entity:{name}",)


def _ledger(cli: CliWorld) -> Place:
    return (*_entity(cli), "--guard", "ledger")


def _clean_ledger(cli: CliWorld) -> Place:
    return (*_ledger(cli), "--no-lineage")


def _leased(cli: CliWorld) -> Place:
    return (*_blob(cli), "--guard", "lease")


KINDS = [_blob, _metadata, _container, _queue, _entity, _ledger, _clean_ledger, _leased]


def run(cli: CliWorld, place: Place, *words: str) -> Ran:
    return cli.call("safe-update", *place, *words, "-o", "json")


def shown(cli: CliWorld, place: Place) -> Any:
    """Return what is there, without azguard's own entries."""
    kind, _, name = place[0].partition(":")
    what = ("get", name) if kind == "entity" or "--metadata" not in place else ("metadata", "get", name)
    ran = cli.call(kind, *what, "-o", *(["json"] if kind == "entity" or "--metadata" in place else ["none"]))
    if kind == "blob" and "--metadata" not in place:
        return json.loads(client(cli, name).download_blob().readall())
    found = ran.json if kind == "entity" else ran.json["metadata"]
    return {each: str(value) if each == "v" else int(value) for each, value in found.items() if each in ("v", "n")}


@pytest.mark.parametrize("make_place", KINDS)
def test_a_run_whose_change_was_there_turns_nothing_back_and_a_key_names_one_change(
    cli: CliWorld, make_place: Callable[[CliWorld], Place]
) -> None:
    place = make_place(cli)
    first = run(cli, place, "--op-id", "run-71", "--set-string", "v=1")
    second = run(cli, place, "--op-id", "run-72", "--set-string", "v=2")
    again = run(cli, place, "--op-id", "run-71", "--set-string", "v=1")
    other = run(cli, place, "--op-id", "run-71", "--set-string", "v=3")
    asked = run(cli, place, "--op-id", "run-71", "--status")
    wrong = run(cli, place, "--op-id", "run-71", "--set-string", "v=3", "--status")
    taken = run(cli, place, "--op-id", "run-71", "--set-string", "v=3", "--op-id-any-change")
    assert [each.json["outcome"] for each in (first, second, again, asked, taken)] == [
        "unchanged",
        "committed",
        "applied_before",
        "committed",
        "applied_before",
    ]
    assert [(each.code, each.error["outcome"]) for each in (other, wrong)] == [(45, "key_of_another_change")] * 2
    assert (again.json["applied_at"] is not None, shown(cli, place)) == (True, {"v": "2", "n": 0})


@pytest.mark.parametrize("make_place", [_blob, _metadata, _container, _queue, _entity])
def test_a_key_outlives_the_writes_of_others(cli: CliWorld, make_place: Callable[[CliWorld], Place]) -> None:
    place = make_place(cli)
    run(cli, place, "--op-id", "run-71", "--increment", "n")
    for _ in range(17):
        assert run(cli, place, "--increment", "n").code == 0
    again = run(cli, place, "--op-id", "run-71", "--increment", "n")
    asked = run(cli, place, "--op-id", "run-71", "--status")
    assert (again.json["outcome"], again.json["written_since"], asked.json["outcome"], shown(cli, place)["n"]) == (
        "applied_before", True, "committed", 18,
    )  # fmt: skip
    assert "another write followed" in again.err


def test_a_preview_records_nothing_and_tells_what_a_run_would(cli: CliWorld) -> None:
    place = _blob(cli)
    name = place[0].removeprefix("blob:")
    before = client(cli, name).get_blob_properties().etag
    previews = [run(cli, place, "--op-id", "k", "--set-string", "v=1", "--dry-run") for _ in range(2)]
    assert ([each.json["outcome"] for each in previews], client(cli, name).get_blob_properties().etag) == (
        ["unchanged"] * 2,
        before,
    )
    run(cli, place, "--op-id", "k", "--set-string", "v=1")
    again = run(cli, place, "--op-id", "k", "--set-string", "v=1", "--dry-run")
    other = run(cli, place, "--op-id", "k", "--set-string", "v=2", "--dry-run")
    assert (again.json["outcome"], other.code) == ("applied_before", 45)


def test_what_makes_a_change_another_one(cli: CliWorld) -> None:
    place = _blob(cli)
    patch = cli.file("patch.json", '{"n": 5}')
    base = ("--merge-patch", str(patch), "--op-id", "k")
    assert run(cli, place, *base).json["outcome"] == "committed"
    assert run(cli, place, *base).json["outcome"] == "applied_before"
    assert cli.call("safe-update", *place, "--merge-patch", "-", "--op-id", "k", stdin=b'{"n": 5}').code == 0
    others: list[tuple[str, ...]] = [
        (*base, "--unset", "v"), (*base, "--create"), ("--op-id", "k", "--metadata", "--set", "a=1"),
        ("--op-id", "k", "--", "cat"), ("--op-id", "k", "--", "cat", "-u"),
    ]  # fmt: skip
    assert [run(cli, place, *words).code for words in others] == [45] * 5
    patch.write_text('{"n": 6}')
    assert run(cli, place, *base).code == 45
