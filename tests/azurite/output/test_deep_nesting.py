"""JSON, filters and queries that are nested too deeply to be read: one clear error, wherever they come in."""

import json

import pytest

from tests.support import table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld

# One that no reader takes, and one that readers take and what works on it does not.
DEPTHS = (100_000, 700)


def brackets(depth: int) -> str:
    return "[" * depth + "]" * depth


def braces(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.fixture
def blob(cli: CliWorld) -> str:
    name = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", name, stdin=b'{"a": 1}').code == 0
    return name


def told(cli: CliWorld, *words: str) -> tuple[int, str]:
    """Return the exit status and the message of a command line that is refused, in process and short."""
    ran = cli.call(*words)
    assert (ran.out, ran.err[:7]) == ("", "error: ")
    return ran.code, ran.err.removeprefix("error: ").splitlines()[0]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("shape", [brackets, braces])
def test_no_edit_is_lost_in_what_is_nested_too_deeply(cli: CliWorld, blob: str, depth: int, shape: object) -> None:
    assert callable(shape)
    deep = shape(depth)
    file = str(cli.file("deep.json", deep))
    patch = str(cli.file("patch.json", f'[{{"op": "add", "path": "/b", "value": {deep}}}]'))
    for edit in (("--set", f"b={deep}"), ("--merge-patch", file), ("--json-patch", patch)):
        code, message = told(cli, "safe-update", f"blob:{blob}", *edit)
        # What cannot be read is refused before any request; what cannot be worked on, when it is tried.
        assert (code, "nested too deeply" in message) == (2 if depth == DEPTHS[0] else 65, True), message[:200]
    assert cli.call("blob", "get", blob).out == '{"a": 1}'


@pytest.mark.parametrize("depth", DEPTHS)
def test_content_that_is_nested_too_deeply_fails_the_edit_and_stays(cli: CliWorld, blob: str, depth: int) -> None:
    assert cli.call("blob", "put", blob, stdin=braces(depth).encode()).code == 0
    path = ".".join("a" * (depth - 1)) if depth == DEPTHS[1] else "b"
    code, message = told(cli, "safe-update", f"blob:{blob}", "--set", f"{path}=2")
    assert (code, "nested too deeply" in message) == (65, True)
    assert cli.call("blob", "get", blob).out == braces(depth)


def test_metadata_that_are_nested_too_deeply_are_no_metadata(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "metadata", "set", blob, stdin=brackets(DEPTHS[0]).encode())
    told = "error: stdin is not JSON of use here: it is nested too deeply\n"
    assert (ran.code, ran.out, ran.err) == (2, "", told)


def test_the_output_of_a_command_that_is_nested_too_deeply_is_no_json(cli: CliWorld, blob: str) -> None:
    file = str(cli.file("deep.json", brackets(DEPTHS[0])))
    code, message = told(cli, "safe-update", f"blob:{blob}", "--", "cat", file)
    assert (code, "nested too deeply" in message) == (65, True)


@cases("depth", *DEPTHS)
def test_what_is_read_for_a_table_is_refused_before_any_request(offline: CliWorld, depth: int) -> None:
    deep = str(offline.file("deep.json", braces(depth)))
    entity = braces(depth)
    line = f'{{"op": "insert", "address": "Orders/eu/1", "entity": {entity}}}'
    lines = str(offline.file("lines.jsonl", line))
    account = ("--connection-string", "AccountName=acc;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:9/acc")
    for words in (
        ("entity", "insert", "Orders/eu/1", "-f", deep),
        ("entity", "merge", "Orders/eu/1", "-f", deep, "--last-writer-wins"),
        ("entity", "transaction", lines),
        ("table", "acl", "set", "Orders", "-f", deep, "--last-writer-wins"),
    ):
        code, message = told(offline, *words, *account)
        assert (code, len(message) < 500) == (2, True), message[:200]


@cases("depth", *DEPTHS)
@cases("shape", brackets, braces)
def test_an_import_is_refused_by_its_line(offline: CliWorld, depth: int, shape: object) -> None:
    assert callable(shape)
    file = str(offline.file("deep.jsonl", shape(depth)))
    code, message = told(offline, "cache", "import", file)
    assert (code, message.startswith("line 1")) == (2, True)


@cases("query", "[" * 30_000, brackets(30_000), "(" * 30_000, "!" * 30_000 + "a", f"`{brackets(30_000)}`")
def test_a_query_that_is_nested_too_deeply_is_refused_before_anything_is_done(offline: CliWorld, query: str) -> None:
    assert told(offline, "cache", "path", "--query", query) == (2, "--query is nested too deeply")


def test_a_query_with_a_number_of_thousands_of_digits_is_refused(offline: CliWorld) -> None:
    code, message = told(offline, "cache", "path", "--query", f"[{'9' * 5000}]")
    assert (code, message.startswith("--query is not JMESPath")) == (2, True)


def test_a_result_that_cannot_be_printed_is_said_to_be_done(offline: CliWorld) -> None:
    code, message = told(offline, "cache", "path", "--query", f"`{brackets(DEPTHS[1])}`", "-o", "yaml")
    assert (code, "nested too deeply to be printed" in message) == (73, True)


def test_an_entity_is_as_it_was_after_an_edit_that_failed(cli: CliWorld) -> None:
    entity = f"{table_world.table(cli)}/eu/1"
    assert cli.call("entity", "insert", entity, "a=1").code == 0
    for depth in DEPTHS:
        code, message = told(cli, "safe-update", f"entity:{entity}", "--set", f"a={brackets(depth)}")
        assert (code in (2, 65), "nested too deeply" in message) == (True, True)
    assert json.loads(cli.call("entity", "get", entity).out)["a"] == "1"
