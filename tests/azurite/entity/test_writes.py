"""``azguard entity insert|replace|merge|upsert|delete`` against Azurite: what is written, and when it is refused."""

import json
import subprocess
from typing import Any

import pytest

from azguard.requests.lineage import KEY, Lineage
from tests.support import table_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault
from tests.support.table_world import properties, stored

OLD = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
TWO_WRITES = ("replace", "merge")


@pytest.fixture
def order(cli: CliWorld) -> str:
    """Return the address of an entity in a new table, which is not there yet."""
    return f"{table_world.table(cli)}/eu/1007"


def write(cli: CliWorld, verb: str, order: str, *words: str, scope: str = "test") -> Ran:
    """Run a writing command; all but a delete set ``status``, so that a property of the old entity may stay."""
    given = () if verb == "delete" else ("status=new",)
    return cli.call("entity", verb, order, *given, *words, "-o", "json", scope=scope)


def made(cli: CliWorld, order: str) -> str:
    """Insert the entity with one property ``n``, in the scope of the test, and return its ETag."""
    ran = cli.call("entity", "insert", order, "n:int64=5")
    assert ran.code == 0, ran.err
    return str(ran.json["etag"])


def overwritten(cli: CliWorld, order: str) -> str:
    """Write the entity as another writer and return its ETag."""
    ran = cli.call("entity", "upsert", order, "theirs=1", "--mode", "replace", "--last-writer-wins", scope="other")
    assert ran.code == 0, ran.err
    return str(ran.json["etag"])


def sent(between: proxy.Proxy) -> list[tuple[str, str | None, int | None]]:
    """Return the method, If-Match and status of each write that went through."""
    return [
        (each.request.method, each.request.headers.get("if-match"), each.status)
        for each in between.log
        if each.request.writes
    ]


# What is written.


def test_an_insert_creates_the_entity_and_its_result_says_so(cli: CliWorld, order: str) -> None:
    ran = cli.call("entity", "insert", order, "status=new", "n:int64=5")
    etag = table_world.etag(cli, order)
    assert ran.json == {
        "address": f"entity:{order}",
        "etag": etag,
        "last_modified": etag[12:-2].replace("%3A", ":")[:26] + "Z",
        "guard": "if-none-match",
        "attempts": 1,
        "conflicts": 0,
        "outcome": "committed",
    }
    assert properties(cli, order) == {"status": "new", "n": "5"}


@pytest.mark.parametrize(
    ("verb", "words", "left", "guard"),
    [
        ("replace", (), {"status": "new"}, "if-match"),
        ("merge", (), {"status": "new", "n": "5"}, "if-match"),
        ("replace", ("--last-writer-wins",), {"status": "new"}, "none"),
        ("merge", ("--last-writer-wins",), {"status": "new", "n": "5"}, "none"),
        ("replace", ("--if-match", "*"), {"status": "new"}, "if-match"),
        ("merge", ("--if-match", "@last"), {"status": "new", "n": "5"}, "if-match"),
        ("merge", ("--etag", "@last"), {"status": "new", "n": "5"}, "if-match"),
        ("upsert", ("--last-writer-wins",), {"status": "new", "n": "5"}, "none"),
        ("upsert", ("--last-writer-wins", "--mode", "replace"), {"status": "new"}, "none"),
        ("delete", (), None, "if-match"),
        ("delete", ("--last-writer-wins",), None, "none"),
    ],
)
def test_what_was_read_last_or_said_guards_the_write(
    cli: CliWorld, order: str, verb: str, words: tuple[str, ...], left: dict[str, Any] | None, guard: str
) -> None:
    made(cli, order)
    ran = write(cli, verb, order, *words)
    assert (ran.code, ran.json["guard"], properties(cli, order)) == (0, guard, left)
    assert ran.json["etag"] == (None if left is None else table_world.etag(cli, order))


def test_our_own_write_guards_the_next(cli: CliWorld, order: str) -> None:
    made(cli, order)
    runs = [write(cli, verb, order) for verb in ("replace", "merge", "replace", "delete")]
    assert [(ran.code, ran.json["guard"]) for ran in runs] == [(0, "if-match")] * 4


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_an_upsert_of_nothing_creates_it(cli: CliWorld, order: str, mode: str) -> None:
    ran = write(cli, "upsert", order, "--mode", mode, "--last-writer-wins")
    assert (ran.code, properties(cli, order)) == (0, {"status": "new"})


# When it is refused.


@pytest.mark.parametrize("verb", [*TWO_WRITES, "delete"])
@pytest.mark.parametrize("condition", [(), ("--etag", "{etag}"), ("--if-match", "{etag}")])
def test_a_changed_version_is_refused_by_etag(cli: CliWorld, order: str, verb: str, condition: tuple[str, ...]) -> None:
    ours = made(cli, order)
    theirs = overwritten(cli, order)
    ran = write(cli, verb, order, *(word.format(etag=ours) for word in condition))
    told = ran.error
    assert (ran.code, told["kind"], told["http_status"], told["service_code"], told["retriable"]) == (
        42, "changed", 412, "UpdateConditionNotSatisfied", False,
    )  # fmt: skip
    assert (told["expected_etag"], told["current_etag"], told["address"]) == (ours, theirs, f"entity:{order}")
    assert properties(cli, order) == {"theirs": "1"}


@pytest.mark.parametrize("verb", [*TWO_WRITES, "delete"])
@pytest.mark.parametrize("condition", [("--etag", OLD), ("--if-match", "*"), ("--last-writer-wins",)])
def test_what_is_missing_is_not_created(cli: CliWorld, order: str, verb: str, condition: tuple[str, ...]) -> None:
    ran = write(cli, verb, order, *condition)
    assert (ran.code, ran.error["kind"], ran.error["http_status"], stored(cli, order)) == (44, "not_found", 404, None)


@pytest.mark.parametrize("verb", [*TWO_WRITES, "delete"])
def test_what_was_deleted_since_it_was_read_is_gone(cli: CliWorld, order: str, verb: str) -> None:
    made(cli, order)
    assert write(cli, "delete", order, "--last-writer-wins", scope="other").code == 0
    ran = write(cli, verb, order)
    assert (ran.code, ran.error["message"], stored(cli, order)) == (44, f"{order} is no longer there", None)


@pytest.mark.parametrize("guard", [(), ("--last-writer-wins",)])
@pytest.mark.parametrize("verb", TWO_WRITES)
def test_after_a_deletion_the_hint_inserts_it(cli: CliWorld, order: str, verb: str, guard: tuple[str, ...]) -> None:
    made(cli, order)
    cli.call("entity", "delete", order, "--last-writer-wins", scope="other")
    hint = write(cli, verb, order, *guard).error["hint"].splitlines()[0]
    command = hint.removeprefix("to create it with these properties alone: ")
    assert command == f"azguard entity insert {order} status=new -o json"
    assert cli.call(*command.split()[1:]).code == 0


def test_an_entity_that_is_deleted_already_needs_no_second_delete(cli: CliWorld, order: str) -> None:
    made(cli, order)
    cli.call("entity", "delete", order, "--last-writer-wins", scope="other")
    ran = write(cli, "delete", order)
    assert (ran.code, ran.error["hint"]) == (44, "there is nothing left to delete")


def test_an_insert_of_what_exists_is_refused(cli: CliWorld, order: str) -> None:
    made(cli, order)
    for scope in ("test", "other"):
        ran = write(cli, "insert", order, scope=scope)
        assert (ran.code, ran.error["kind"], ran.error["http_status"], ran.error["service_code"]) == (
            45, "exists", 409, "EntityAlreadyExists",
        )  # fmt: skip
    assert properties(cli, order) == {"n": "5"}


def test_something_never_read_is_refused_with_three_ways_out(cli: CliWorld, order: str) -> None:
    ran = write(cli, "replace", order)
    assert (ran.code, ran.error["message"], ran.error["hint"]) == (
        42,
        f"{order} was never read here, so no version guards this; nothing was done",
        f"read it first: azguard entity get {order}; or name the version you mean: --etag ETAG; "
        "or say --last-writer-wins",
    )


def test_after_a_merge_into_what_nobody_read_here_a_replace_has_no_guard(cli: CliWorld, order: str) -> None:
    made(cli, order)
    overwritten(cli, order)
    assert write(cli, "merge", order, "--last-writer-wins").code == 0
    assert (write(cli, "replace", order).code, properties(cli, order)) == (42, {"theirs": "1", "status": "new"})


# On the wire: without If-Match a PUT or a PATCH would be an upsert.


@pytest.mark.parametrize(
    ("verb", "words", "expected"),
    [
        ("replace", (), ("PUT", "{etag}", 204)), ("merge", (), ("PATCH", "{etag}", 204)),
        ("delete", (), ("DELETE", "{etag}", 204)), ("replace", ("--last-writer-wins",), ("PUT", "*", 204)),
        ("merge", ("--last-writer-wins",), ("PATCH", "*", 204)),
        ("delete", ("--last-writer-wins",), ("DELETE", "*", 204)),
        ("replace", ("--if-match", OLD), ("PUT", OLD, 412)), ("merge", ("--etag", OLD), ("PATCH", OLD, 412)),
        ("delete", ("--etag", OLD), ("DELETE", OLD, 412)), ("insert", (), ("POST", None, 409)),
        ("upsert", ("--last-writer-wins",), ("PATCH", None, 204)),
        ("upsert", ("--last-writer-wins", "--mode", "replace"), ("PUT", None, 204)),
    ],
)  # fmt: skip
def test_the_condition_is_on_the_one_request_that_writes(
    cli: CliWorld, order: str, verb: str, words: tuple[str, ...], expected: tuple[str, str | None, int]
) -> None:
    with proxy.running(table_world.port(cli), lambda _: Fault.NONE) as between:
        world = table_world.through(cli, between.port)
        etag = made(world, order)
        write(world, verb, order, *words)
    method, condition, status = expected
    assert sent(between)[1:] == [(method, None if condition is None else condition.format(etag=etag), status)]


# Claiming.


def test_of_two_who_claim_by_deleting_one_gets_it(cli: CliWorld, order: str) -> None:
    for _ in range(3):
        etag = made(cli, order)
        line = ("entity", "delete", order, "--etag", etag, "-o", "none")
        claims = [cli.begin_fork(*line, scope=f"c{n}", stderr=subprocess.DEVNULL) for n in (1, 2)]
        won, lost = sorted(claim.wait(60) for claim in claims)
        # It was there when both looked: then a copy of the request could be why the second finds nothing.
        assert (won, lost in (44, 74)) == (0, True)


# The lineage.


def test_every_write_carries_the_lineage_on(cli: CliWorld, order: str) -> None:
    etags = [made(cli, order)]
    etags += [write(cli, verb, order).json["etag"] for verb in TWO_WRITES]
    found = stored(cli, order)
    assert found is not None
    entries = Lineage.parse(found[KEY]).entries
    times = [etag[12:-2].replace("%3A", ":") for etag in etags]
    assert [parent for _, parent in entries] == [times[1], times[0], "-"]
    assert len({op for op, _ in entries}) == 3


def test_no_lineage_leaves_none(cli: CliWorld, order: str) -> None:
    made(cli, order)
    write(cli, "replace", order, "--no-lineage")
    found = stored(cli, order)
    assert found is not None
    assert KEY not in found


def test_a_lineage_in_the_input_is_not_written(cli: CliWorld, order: str) -> None:
    ran = cli.call("entity", "insert", order, "--no-lineage", stdin=b'{"azguardlineage": "x", "a": 1}')
    found = stored(cli, order)
    assert found is not None
    assert (ran.code, KEY in found) == (0, False)


# A lost answer: more in tests/faults.


def test_a_lost_answer_to_a_merge_is_settled_without_an_etag_to_be_guarded_by(cli: CliWorld, order: str) -> None:
    """The merge of another keeps our lineage, so what is there may be more than what we wrote."""

    def lose(request: proxy.Request) -> Fault:
        return Fault.DROP if request.method == "PATCH" else Fault.NONE

    with proxy.running(table_world.port(cli), lose) as between:
        world = table_world.through(cli, between.port)
        made(world, order)
        ran = write(world, "merge", order)
        again = write(world, "replace", order)
    assert (ran.code, ran.json["etag"], again.code) == (0, None, 42)
    assert properties(cli, order) == {"n": "5", "status": "new"}


@pytest.mark.parametrize(("merged_by_another", "told"), [(False, True), (True, False)])
def test_a_lost_answer_tells_an_etag_of_ours(cli: CliWorld, order: str, merged_by_another: bool, told: bool) -> None:
    """Another tool's merge keeps our lineage, and its version must not guard a write of what we know."""
    lost: list[proxy.Request] = []

    def decide(request: proxy.Request) -> Fault:
        if request.method == "PUT":
            lost.append(request)
            return Fault.DROP
        if lost and merged_by_another:
            table_world.merge(cli, order, {"theirs": "1"})
        return Fault.NONE

    with proxy.running(table_world.port(cli), decide) as between:
        world = table_world.through(cli, between.port)
        made(world, order)
        ran = write(world, "replace", order)
    assert (ran.code, ran.json["etag"]) == (0, table_world.etag(cli, order) if told else None)
    assert len(lost) == 1


def test_keys_may_hold_what_a_url_may_not(cli: CliWorld, order: str) -> None:
    odd = f"{order.partition('/')[0]}/O'Brien & söhne/a%20b ✓ =1,2(;)"
    made(cli, odd)
    codes = [write(cli, verb, odd).code for verb in ("replace", "merge", "insert")]
    line = json.dumps({"op": "merge", "address": odd, "entity": {"n": 1}}).encode()
    grouped = cli.call("entity", "transaction", "-", stdin=line)
    assert (codes, grouped.code, properties(cli, odd)) == ([0, 0, 45], 0, {"status": "new", "n": 1})
    assert (write(cli, "delete", odd).code, write(cli, "delete", odd, "--last-writer-wins").code) == (0, 44)


def test_the_hints_after_a_conflict_run_as_they_are(cli: CliWorld, order: str) -> None:
    for verb in (*TWO_WRITES, "delete"):
        write(cli, "upsert", order, "--mode", "replace", "--last-writer-wins")
        overwritten(cli, order)
        refused = cli.call("entity", verb, order, *(() if verb == "delete" else ("status=new",)))
        lines = [line.split("azguard ")[1].split() for line in refused.err.splitlines() if ": azguard entity" in line]
        assert (refused.code, [cli.call(*line).code for line in lines]) == (42, [0, 0])


def test_a_refusal_is_told_for_people_with_a_way_out(cli: CliWorld, order: str) -> None:
    ours = made(cli, order)
    theirs = overwritten(cli, order)
    ran = cli.call("entity", "replace", order, "status=new")
    first, versions, written, *hints = ran.err.splitlines()
    assert (first, versions) == (f"error: {order} changed since you read it", f"  you have {ours}, it is now {theirs}")
    assert (written.startswith("  now: written 20"), hints) == (
        True,
        [
            f"hint: see what it is now: azguard entity get {order}",
            f"      merge the two in your words, then: azguard entity replace {order} status=new --etag @last",
            f"      or let azguard retry the change: azguard safe-update entity:{order} --set NAME=JSON",
        ],
    )


def test_what_was_read_in_part_is_not_replaced_until_it_is_read_whole(cli: CliWorld, order: str) -> None:
    made(cli, order)
    cli.call("cache", "forget", f"entity:{order}")
    assert cli.call("entity", "get", order, "--select", "status").code == 0
    refused = write(cli, "replace", order)
    assert (refused.code, refused.error["message"]) == (
        42,
        f"only a part of {order} was read here, and replacing it would lose the rest",
    )
    assert write(cli, "merge", order).code == 0
    assert write(cli, "replace", order).code == 42  # merged into what was never seen
    assert write(cli, "merge", order, "--etag", table_world.etag(cli, order), scope="other").code == 0
    assert [write(cli, verb, order, scope="other").code for verb in ("replace", "merge", "replace")] == [42, 0, 42]
    assert cli.call("entity", "get", order).code == 0
    assert write(cli, "replace", order).code == 0
