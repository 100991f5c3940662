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
    return cli.call("safe-update", "-o", "json", *place, *words)


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


def test_what_an_error_tells_of_a_change_has_no_value(cli: CliWorld) -> None:
    place = _blob(cli)
    run(cli, place, "--op-id", "k", "--increment", "n")
    edits = ("--set-string", "token=hunter2", "--append", "hunter2\n", "--increment", "m")
    by_edits = run(cli, place, "--op-id", "k", *edits).error["message"]
    by_command = run(cli, place, "--op-id", "k", "--", "sed", "s/x/hunter2/").error["message"]
    assert [each.partition("this one is ")[2][8:] for each in (by_edits, by_command)] == [
        "--set-string token=… --append … --increment m; nothing was written",
        "-- sed …; nothing was written",
    ]


# Each writes the blob {0} in its own way, after the scope has read it.
WRITERS = [
    ("blob put {0} -f {file}",),
    ("blob metadata set {0} --metadata a=1",),
    ("blob set-properties {0} --content-type text/plain",),
    ("blob block stage {0} -f {file} --block-id cGFydA==", "blob block commit {0} --block-id cGFydA=="),
    ("blob copy {0} --source {1}",),
    ("blob snapshot {0}", "blob restore {0} --from snapshot"),
    ("lease acquire blob:{0} --reason why",),
    ("lock run blob:{0} --no-wait -- true",),
]


@pytest.mark.parametrize("lines", WRITERS, ids=lambda lines: lines[0].split(" {")[0])
def test_a_key_outlives_each_other_way_to_write_a_blob(cli: CliWorld, lines: tuple[str, ...]) -> None:
    place = _blob(cli)
    source = make(cli, b"other")
    name = place[0].removeprefix("blob:")
    run(cli, place, "--op-id", "k", "--increment", "n")
    file = cli.root / "file"
    assert cli.call("blob", "get", name, "-f", str(file)).code == 0
    file.write_text('{"n": 7}')
    for line in lines:
        ran = cli.fork(*line.format(name, source, file=file).split())
        assert ran.code == 0, ran.err
    assert run(cli, place, "--op-id", "k", "--status").json["outcome"] == "committed"


@pytest.mark.parametrize("words", [("replace", "-f", "-"), ("merge", "-f", "-"), ("transaction", "-")])
def test_a_key_outlives_each_other_way_to_write_an_entity(cli: CliWorld, words: tuple[str, ...]) -> None:
    place = _entity(cli)
    name = place[0].removeprefix("entity:")
    run(cli, place, "--op-id", "k", "--increment", "n")
    copy = cli.call("entity", "get", name, "-o", "json").json
    verb, *rest = words
    if verb == "transaction":
        line = json.dumps({"op": "replace", "address": name, "entity": copy})
        ran = cli.call("entity", verb, *rest, stdin=line.encode())
    else:
        ran = cli.call("entity", verb, name, *rest, stdin=json.dumps(copy).encode())
    assert (ran.code, run(cli, place, "--op-id", "k", "--status").json["outcome"]) == (0, "committed")


@pytest.mark.parametrize(("make_place", "noun"), [(_container, "container"), (_queue, "queue")])
def test_a_key_outlives_set_metadata(cli: CliWorld, make_place: Callable[[CliWorld], Place], noun: str) -> None:
    place = make_place(cli)
    name = place[0].partition(":")[2]
    run(cli, place, "--op-id", "k", "--increment", "n")
    cli.call(noun, "metadata", "get", name)
    assert cli.call(noun, "metadata", "set", name, "--metadata", "a=1", "--allow-race").code == 0
    assert run(cli, place, "--op-id", "k", "--status").json["outcome"] == "committed"
