"""``azguard entity transaction``: all or nothing, each item under its own condition."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from azguard.requests.lineage import KEY, Lineage
from tests.support import table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.table_world import properties, stored

OLD = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""


@pytest.fixture
def partition(cli: CliWorld) -> str:
    """Return the address of a partition of a new table, in which ``a`` and ``b`` are there and were read."""
    return _fill(cli)


def _fill(cli: CliWorld) -> str:
    found = f"{table_world.table(cli)}/eu"
    for row in ("a", "b"):
        assert cli.call("entity", "insert", f"{found}/{row}", "n:int32=1").code == 0
    return found


@dataclass(frozen=True)
class Watched:
    """Such a partition for all that is refused before any request, with a proxy that sees each request."""

    cli: CliWorld
    between: proxy.Proxy
    partition: str


@pytest.fixture(scope="module")
def watched(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    cli = CliWorld(tmp_path_factory.mktemp("watched"), connection_string)
    with proxy.running(table_world.port(cli), lambda _: Fault.NONE) as between:
        world = table_world.through(cli, between.port)
        yield Watched(world, between, _fill(world))


def item(op: str, address: str, n: int = 2, **more: Any) -> dict[str, Any]:
    return {"op": op, "address": address, **({} if op == "delete" else {"entity": {"n": n}}), **more}


def submit(cli: CliWorld, items: list[dict[str, Any]], *words: str) -> Ran:
    lines = "".join(json.dumps(each) + "\n" for each in items)
    return cli.call("entity", "transaction", "-", "-o", "json", *words, stdin=lines.encode())


def test_each_kind_of_write_is_done_and_each_result_is_told(cli: CliWorld, partition: str) -> None:
    assert cli.call("entity", "insert", f"{partition}/c", "n:int32=1", "m=stays").code == 0
    ops = [("replace", "a"), ("delete", "b"), ("merge", "c"), ("insert", "d"), ("upsert", "e")]
    items = [
        item(op, f"{partition}/{row}", **({"last_writer_wins": True} if op == "upsert" else {})) for op, row in ops
    ]
    ran = submit(cli, items)
    etags = [None if row == "b" else table_world.etag(cli, f"{partition}/{row}") for _, row in ops]
    guards = ["if-match", "if-match", "if-match", "if-none-match", "none"]
    assert (ran.code, [list(each.values()) for each in ran.json]) == (0, [
        [line, op, f"entity:{partition}/{row}", etag, etag and etag[12:-2].replace("%3A", ":")[:26] + "Z", guard, 1, 0,
         "committed"]
        for line, ((op, row), etag, guard) in enumerate(zip(ops, etags, guards, strict=True), 1)
    ])  # fmt: skip
    assert list(ran.json[0]) == [
        "line", "op", "address", "etag", "last_modified", "guard", "attempts", "conflicts", "outcome",
    ]  # fmt: skip
    assert [properties(cli, f"{partition}/{row}") for row in "abcde"] == [
        {"n": 2}, None, {"n": 2, "m": "stays"}, {"n": 2}, {"n": 2},
    ]  # fmt: skip


def test_its_versions_guard_the_next_writes(cli: CliWorld, partition: str) -> None:
    first = submit(cli, [item("replace", f"{partition}/a"), item("delete", f"{partition}/b")])
    again = submit(cli, [item("merge", f"{partition}/a", 3), item("insert", f"{partition}/b", 3)])
    single = cli.call("entity", "replace", f"{partition}/b", "n:int32=4")
    assert (first.code, again.code, single.code) == (0, 0, 0)
    assert (properties(cli, f"{partition}/a"), properties(cli, f"{partition}/b")) == ({"n": 3}, {"n": 4})


def test_all_items_carry_one_op_in_their_lineage(cli: CliWorld, partition: str) -> None:
    submit(cli, [item("replace", f"{partition}/a"), item("insert", f"{partition}/c")])
    found = [stored(cli, f"{partition}/{row}") for row in "ac"]
    lineages = [Lineage.parse(None if each is None else each[KEY]).entries for each in found]
    assert ([len(each) for each in lineages], lineages[0][0][0] == lineages[1][0][0]) == ([2, 1], True)


@pytest.mark.parametrize(
    ("failing", "code", "service_code"),
    [
        (("replace", "b", {"etag": OLD}), 42, "UpdateConditionNotSatisfied"),
        (("merge", "b", {"if_match": OLD}), 42, "UpdateConditionNotSatisfied"),
        (("delete", "b", {"etag": OLD}), 42, "UpdateConditionNotSatisfied"),
        (("insert", "b", {}), 45, "EntityAlreadyExists"),
        (("replace", "nosuch", {"last_writer_wins": True}), 44, "ResourceNotFound"),
        (("merge", "nosuch", {"if_match": "*"}), 44, "ResourceNotFound"),
        (("delete", "nosuch", {"last_writer_wins": True}), 44, "ResourceNotFound"),
        (("delete", "nosuch", {"etag": OLD}), 44, "ResourceNotFound"),
    ],
)
def test_one_item_that_fails_is_named_and_nothing_is_written(
    cli: CliWorld, partition: str, failing: tuple[str, str, dict[str, Any]], code: int, service_code: str
) -> None:
    op, row, more = failing
    items = [
        item("replace", f"{partition}/a"),
        item("insert", f"{partition}/c"),
        item(op, f"{partition}/{row}", **more),
    ]
    ran = submit(cli, items)
    told = ran.error
    assert (ran.code, ran.out, told["service_code"], told["line"], told["address"]) == (
        code, "", service_code, 3, f"entity:{partition}/{row}",
    )  # fmt: skip
    assert (told["message"].startswith(f"line 3: {partition}/{row} ") or code == 44, told["message"][-21:]) == (
        True, "; nothing was written",
    )  # fmt: skip
    assert [properties(cli, f"{partition}/{each}") for each in "abc"] == [{"n": 1}, {"n": 1}, None]


def test_a_version_that_changed_is_told_with_both_etags(cli: CliWorld, partition: str) -> None:
    ours = table_world.etag(cli, f"{partition}/a")
    theirs = cli.call("entity", "merge", f"{partition}/a", "m=1", "--last-writer-wins", scope="other").json["etag"]
    ran = submit(cli, [item("replace", f"{partition}/a"), item("replace", f"{partition}/b")])
    assert (ran.code, ran.error["line"], ran.error["expected_etag"], ran.error["current_etag"]) == (42, 1, ours, theirs)


def test_of_two_transactions_on_the_same_versions_one_is_done(cli: CliWorld, partition: str) -> None:
    etags = {row: table_world.etag(cli, f"{partition}/{row}") for row in "ab"}
    running = []
    for n in (2, 3):
        items = [item("replace", f"{partition}/{row}", n, etag=etag) for row, etag in etags.items()]
        file = cli.file(f"{n}.jsonl", "".join(json.dumps(each) + "\n" for each in items))
        line = ("entity", "transaction", str(file), "-o", "none")
        running.append(cli.begin_fork(*line, scope=f"s{n}", stderr=subprocess.DEVNULL))
    codes = [each.wait(60) for each in running]
    winner = {"n": 2 + codes.index(0)}
    assert (sorted(codes), [properties(cli, f"{partition}/{row}") for row in "ab"]) == ([0, 42], [winner, winner])


def lines_of(case: Any, partition: str) -> bytes:
    """Return the lines of a case, in which ``@`` is the partition."""
    text = case if isinstance(case, str) else "".join(json.dumps(each) + "\n" for each in case)
    return text.replace("@", partition).encode()


REFUSED: list[tuple[Any, int, str]] = [
    ("", 2, "there is nothing to write"),
    ("{}\n", 2, 'line 1: there is no "op"'),
    ("\n", 2, "line 1: the line is empty, and it is to hold JSON"),
    ("nonsense\n", 2, "line 1: the line is not JSON: line 1, column 1: Expecting value"),
    ("[1]\n", 2, "line 1: the line is not a JSON object"),
    ('{"op": "delete", "op": "insert"}\n', 2, 'line 1: the line is not JSON: the key "op" appears twice in one object'),
    ([item("destroy", "@/a")], 2, 'line 1: "op" is "destroy"'),
    ([item("delete", "@/a"), {"op": "delete"}], 2, 'line 2: there is no "address"'),
    ([{"op": "insert", "address": "@/c"}], 2, 'line 1: there is no "entity"'),
    (
        [{**item("delete", "@/a"), "entity": {}}],
        2,
        'line 1: "entity" has no odata.etag, and a delete takes only that from it',
    ),
    ([{**item("insert", "@/c"), "entity": []}], 2, 'line 1: "entity" is not a JSON object'),
    ([item("replace", "@/a", eTag=OLD)], 2, "line 1: 'eTag' is not known"),
    ([item("replace", "@/a", etag=None)], 2, 'line 1: "etag" is not a text'),
    ([item("replace", "@/a", etag="")], 2, 'line 1: "etag" is empty'),
    ([item("replace", "@/a", etag="0x1")], 2, 'line 1: "etag": \'0x1\' is not the ETag of an entity'),
    ([item("replace", "@/a", last_writer_wins="yes")], 2, 'line 1: "last_writer_wins" is true, or is left out'),
    ([item("replace", "@/a", last_writer_wins=True, etag=OLD)], 2,
     'line 1: "last_writer_wins" and "etag" do not go together: one asks for a guard, the other for none'),
    ([item("insert", "@/c", last_writer_wins=True)], 2, "line 1: an insert never overwrites"),
    ([item("upsert", "@/a")], 2, "line 1: nothing in the service can guard Insert Or Merge Entity, so it is never done "
     "by default"),
    ([item("merge", "@/a", mode="merge")], 2, 'line 1: "mode" is for an upsert, not for a merge'),
    ([item("upsert", "@/a", mode="fail", last_writer_wins=True)], 2, 'line 1: "mode" is "fail"'),
    ([item("insert", "@/c", 2**40)], 2, "line 1: n is beyond what Edm.Int32 takes"),
    ([item("delete", "@/a"), item("delete", "@/nosuch")], 42,
     "line 2: @/nosuch was never read here, so no version guards this; nothing was done"),
    ([item("delete", "@/a"), item("insert", "@x/c")], 2, "line 2: @x/c is not in the partition of line 1, @/a"),
    ([item("delete", "@/a"), item("insert", "@/c"), item("merge", "@/a")], 2, "line 3: @/a is in line 1 already"),
    ([item("insert", f"@/{n}") for n in range(101)], 2,
     "line 101: a transaction has at most 100 items, and this is one more"),
    ([{**item("insert", f"@/{n}"), "entity": {f"p{k}": "x" * 32_000 for k in range(10)}} for n in range(14)], 2,
     "line 14: up to here these are more than 4,194,304 bytes, the most a transaction takes"),
]  # fmt: skip


@cases("dry_run", (), ("--dry-run",))
@cases(("case", "code", "message"), *REFUSED)
def test_what_cannot_be_a_transaction_is_refused_before_any_request(
    watched: Watched, case: Any, code: int, message: str, dry_run: tuple[str, ...]
) -> None:
    before = len(watched.between.log)
    lines = lines_of(case, watched.partition)
    ran = watched.cli.call("entity", "transaction", "-", "-o", "json", *dry_run, stdin=lines)
    asked = watched.between.log[before:]
    assert (ran.code, ran.out, ran.error["message"], asked) == (code, "", message.replace("@", watched.partition), [])


def test_a_hundred_items_go_in_one_request(cli: CliWorld, partition: str) -> None:
    with proxy.running(table_world.port(cli), lambda _: Fault.NONE) as between:
        world = table_world.through(cli, between.port)
        ran = submit(world, [item("insert", f"{partition}/new{n}") for n in range(100)])
    assert (ran.code, len(ran.json), [each.request.method for each in between.log]) == (0, 100, ["POST"])


def test_a_transaction_just_below_the_limit_is_taken(cli: CliWorld, partition: str) -> None:
    whole = {f"p{k}": "x" * 32_000 for k in range(10)}
    items = [{**item("insert", f"{partition}/{n}"), "entity": whole} for n in range(13)]
    assert submit(cli, items, "--timeout", "30s").code == 0


def test_a_dry_run_shows_what_would_be_sent_and_asks_nobody(cli: CliWorld, partition: str) -> None:
    etag = table_world.etag(cli, f"{partition}/a")
    ran = submit(cli, [item("replace", f"{partition}/a"), item("insert", f"{partition}/c")], "--dry-run")
    shown = [(each["line"], each["op"], each["guard"], each["if_match"], each["outcome"]) for each in ran.json]
    assert (ran.code, shown) == (0, [
        (1, "replace", "if-match", etag, "dry_run"), (2, "insert", "if-none-match", None, "dry_run"),
    ])  # fmt: skip
    assert ran.json[1]["entity"] == {"PartitionKey": "eu", "RowKey": "c", "n": 2}
    assert properties(cli, f"{partition}/c") is None


def test_a_missing_table_is_told(cli: CliWorld) -> None:
    ran = submit(cli, [item("insert", "NoSuchTable/eu/a"), item("insert", "NoSuchTable/eu/b")])
    assert (ran.code, ran.error["message"]) == (44, "there is no table NoSuchTable")


def test_a_file_is_read_as_stdin_is(cli: CliWorld, partition: str) -> None:
    file = cli.file("orders.jsonl", json.dumps(item("replace", f"entity:{partition}/a")))
    ran = cli.call("entity", "transaction", str(file), "--no-lineage")
    found = stored(cli, f"{partition}/a")
    assert found is not None
    assert (ran.code, found["n"], KEY in found) == (0, 2, False)
    assert cli.call("entity", "transaction", "nosuch.jsonl").code == 2


def test_what_get_prints_can_be_put_back(cli: CliWorld, partition: str) -> None:
    got = cli.call("entity", "get", f"{partition}/a", "-o", "json").json
    ran = submit(cli, [{"op": "replace", "address": f"{partition}/a", "entity": {**got, "n": 7}}])
    assert (ran.code, properties(cli, f"{partition}/a")) == (0, {"n": 7})


@pytest.mark.parametrize("first", ["replace", "insert"])
def test_a_transaction_that_the_network_sent_twice_is_known_by_an_item_that_no_other_wrote(
    cli: CliWorld, partition: str, first: str
) -> None:
    """The second copy is refused for the item that another tool has replaced, or deleted, by then, lineage and all."""
    mine = f"{partition}/{'a' if first == 'replace' else 'new'}"
    met: list[str] = []

    def decide(request: Request) -> Fault:
        if "$batch" in request.path:
            return Fault.REPLAYED
        if not met:
            met.append(request.path)
            if first == "replace":
                table_world.merge(cli, mine, {"n": 7}, "replace")
            else:
                table_world.delete(cli, mine)
        return Fault.NONE

    with proxy.running(table_world.port(cli), decide) as between:
        world = table_world.through(cli, between.port)
        words: dict[str, Any] = {"if_match": table_world.etag(cli, mine)} if first == "replace" else {}
        other = item("replace", f"{partition}/b", if_match=table_world.etag(cli, f"{partition}/b"))
        ran = submit(world, [item(first, mine, **words), other])
    assert (ran.code, met != [], properties(cli, f"{partition}/b")) == (0, True, {"n": 2}), ran.err


@pytest.mark.parametrize(
    ("other", "fault", "code"), [("replace", "replayed", 74), ("delete", "replayed", 74), ("delete", "none", 44)]
)
def test_a_delete_that_finds_nothing_is_refused_only_if_another_item_shows_that_none_was_done(
    cli: CliWorld, partition: str, other: str, fault: str, code: int
) -> None:
    """Neither a delete nor a write without lineage tells that the network sent the transaction twice."""
    etags = {row: table_world.etag(cli, f"{partition}/{row}") for row in "ab"}
    if fault == "none":
        table_world.delete(cli, f"{partition}/a")
    with proxy.running(
        table_world.port(cli), lambda each: Fault(fault if "$batch" in each.path else "none")
    ) as between:
        world = table_world.through(cli, between.port)
        items = [item(op, f"{partition}/{row}", if_match=etags[row]) for op, row in (("delete", "a"), (other, "b"))]
        ran = submit(world, items, "--no-lineage")
    assert ran.code == code, ran.err
