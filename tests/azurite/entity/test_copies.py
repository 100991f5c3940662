"""An entity that was read carries its version: ``odata.etag`` guards it when it is written back."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support import table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy

OLD = "W/\"datetime'2001-01-01T00%3A00%3A00.0000000Z'\""


@pytest.fixture
def order(cli: CliWorld) -> str:
    """Return an entity that this scope never read."""
    return _make(cli)


def _make(cli: CliWorld) -> str:
    address = f"{table_world.table(cli)}/eu/1007"
    assert cli.call("entity", "insert", address, "a=1", "b=1", scope="they").code == 0
    return address


class Watched(NamedTuple):
    """Such an entity, and its copy, for all that is refused before any request; the proxy sees each request."""

    cli: CliWorld
    between: proxy.Proxy
    order: str
    copy: dict[str, Any]


@pytest.fixture(scope="module")
def watched(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    cli = CliWorld(tmp_path_factory.mktemp("watched"), connection_string)
    with proxy.running(table_world.port(cli), lambda _: proxy.Fault.NONE) as between:
        world = table_world.through(cli, between.port)
        order = _make(world)
        yield Watched(world, between, order, read(world, order))


def read(cli: CliWorld, order: str) -> dict[str, Any]:
    found: dict[str, Any] = cli.call("entity", "get", order).json
    return found


def theirs(cli: CliWorld, order: str) -> None:
    """Write to an entity as a colleague does."""
    assert cli.call("entity", "merge", order, "b=theirs", "--last-writer-wins", scope="they").code == 0


def write(cli: CliWorld, verb: str, order: str, copy: dict[str, Any], *words: str) -> Ran:
    """Write a copy back, by a command of its own or as the line of a transaction."""
    content = json.dumps(copy).encode()
    if verb.startswith("line"):
        line = {"op": verb.partition(" ")[2], "address": order, "entity": copy}
        for option, value in zip(words[::2], words[1::2], strict=True):
            line[option.strip("-").replace("-", "_")] = value
        return cli.call("entity", "transaction", "-", "-o", "json", stdin=json.dumps(line).encode())
    option = "--version-of" if verb == "delete" else "-f"
    return cli.call("entity", verb, order, option, "-", *words, "-o", "json", stdin=content)


VERBS = ["replace", "merge", "delete", "line replace", "line merge", "line delete"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["odata.etag", "etag"])
def test_a_copy_guards_with_its_version_whatever_was_read(cli: CliWorld, order: str, verb: str, name: str) -> None:
    copy = read(cli, order)
    copy[name] = copy.pop("odata.etag")
    theirs(cli, order)
    current = read(cli, order)
    ran = write(cli, verb, order, copy)
    assert (ran.code, ran.error["expected_etag"], ran.error["current_etag"]) == (42, copy[name], current["odata.etag"])
    assert read(cli, order) == current


@pytest.mark.parametrize("verb", VERBS)
def test_a_copy_that_is_current_guards_in_a_scope_that_never_read_it(cli: CliWorld, order: str, verb: str) -> None:
    copy = cli.call("entity", "get", order, scope="elsewhere").json
    ran = write(cli, verb, order, {**copy, "a": "2"})
    result = ran.json[0] if verb.startswith("line") else ran.json
    assert (ran.code, result["guard"]) == (0, "if-match")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("words", "code"), [(("--etag", "@last"), 0), (("--if-match", "@last"), 0), (("--etag", OLD), 42)]
)
def test_a_condition_that_is_named_stands_above_the_version_of_the_copy(
    cli: CliWorld, order: str, verb: str, words: tuple[str, ...], code: int
) -> None:
    copy = read(cli, order)
    theirs(cli, order)
    read(cli, order)
    assert write(cli, verb, order, copy, *words).code == code


@pytest.mark.parametrize("verb", ["replace", "merge", "delete"])
def test_last_writer_wins_stands_above_the_version_of_the_copy(cli: CliWorld, order: str, verb: str) -> None:
    copy = read(cli, order)
    theirs(cli, order)
    assert write(cli, verb, order, copy, "--last-writer-wins").json["guard"] == "none"


@cases("verb", *VERBS)
@cases("etag", "*", "", None, 5, '"0x1"', 'W/"*"', OLD.strip('"'), f"{OLD}\n")
def test_a_copy_whose_version_is_none_is_refused_before_any_request(watched: Watched, verb: str, etag: object) -> None:
    before = len(watched.between.log)
    ran = write(watched.cli, verb, watched.order, {**watched.copy, "odata.etag": etag})
    asked = watched.between.log[before:]
    assert (ran.code, "odata.etag" in ran.error["message"], asked) == (2, True, [])


@cases("verb", *VERBS)
def test_a_copy_with_two_versions_is_refused(cli: CliWorld, order: str, verb: str) -> None:
    ran = write(cli, verb, order, {**read(cli, order), "etag": OLD})
    assert (ran.code, "two versions" in ran.error["message"], OLD in ran.error["message"]) == (2, True, True)


def test_a_property_called_etag_is_a_property(cli: CliWorld, order: str) -> None:
    read(cli, order)
    assert cli.call("entity", "merge", order, "etag=mine").code == 0
    assert read(cli, order)["etag"] == "mine"


@cases("verb", "delete", "line delete")
def test_a_delete_by_a_copy_that_tells_no_version_is_refused(cli: CliWorld, order: str, verb: str) -> None:
    copy = read(cli, order)
    del copy["odata.etag"]
    ran = write(cli, verb, order, copy)
    assert (ran.code, "odata.etag" in ran.error["message"], cli.call("entity", "get", order).code) == (2, True, 0)


@cases("verb", "delete", "line delete", "replace")
def test_the_copy_of_another_entity_is_refused(cli: CliWorld, order: str, verb: str) -> None:
    assert write(cli, verb, order, {**read(cli, order), "RowKey": "1008"}).code == 2


def test_an_insert_of_a_copy_creates_and_an_upsert_overwrites(cli: CliWorld, order: str) -> None:
    copy = read(cli, order)
    theirs(cli, order)
    assert write(cli, "insert", order, copy).code == 45
    assert write(cli, "upsert", order, copy, "--last-writer-wins").json["guard"] == "none"


def test_the_part_of_an_entity_that_was_read_is_not_put_in_place_of_the_whole(cli: CliWorld, order: str) -> None:
    part = cli.call("entity", "get", order, "--select", "a").json
    assert (write(cli, "replace", order, part).code, write(cli, "merge", order, part).code) == (42, 0)


def test_each_line_of_a_transaction_is_guarded_by_its_own_copy(cli: CliWorld, order: str) -> None:
    other = f"{order.rpartition('/')[0]}/1008"
    cli.call("entity", "insert", other, "a=1", scope="they")
    copies = {each: read(cli, each) for each in (order, other)}
    theirs(cli, other)
    read(cli, other)
    lines = [{"op": "merge", "address": each, "entity": {**copies[each], "a": "mine"}} for each in (order, other)]
    ran = cli.call("entity", "transaction", "-", "-o", "json", stdin="\n".join(map(json.dumps, lines)).encode())
    assert (ran.code, ran.error["line"], read(cli, order)["a"], read(cli, other)["a"]) == (42, 2, "1", "1")
    lines[1]["etag"] = "@last"
    again = cli.call("entity", "transaction", "-", stdin="\n".join(map(json.dumps, lines)).encode())
    assert (again.code, [each["guard"] for each in again.json]) == (0, ["if-match"] * 2)
