"""Only a read that delivered the content, whole, to a place where it can be used moves the guard."""

import subprocess

import pytest

from tests.azurite.blob.test_copies import shell, theirs
from tests.azurite.output.test_output import on_a_terminal
from tests.support import table_world
from tests.support.cli_world import CliWorld


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that this scope never read."""
    name = f"{cli.container()}/config.json"
    assert theirs(cli, name, b"v1")
    return name


@pytest.fixture
def order(cli: CliWorld) -> str:
    """Return an entity that this scope never read."""
    address = f"{table_world.table(cli)}/eu/1007"
    assert cli.call("entity", "insert", address, "a=1", "b=1", scope="they").code == 0
    return address


def guards(cli: CliWorld) -> dict[str, str]:
    """Return what guards the writes of this scope."""
    return {each["address"]: each["etag"] for each in cli.call("cache", "list").json}


def guards_after(cli: CliWorld, lines: list[str], *words: str) -> dict[str, dict[str, str]]:
    """Run lines of a shell, one after the other, and return what guards the writes of this scope after each."""
    found = {}
    for line in lines:
        shell(cli, line.format(*words))
        found[line] = guards(cli)
    return found


_NOWHERE = [
    "AZGUARD blob get {} > /dev/null", "AZGUARD blob get {} -f /dev/null", "AZGUARD blob get {} -f /dev/zero",
    "AZGUARD blob get {} > /dev/zero", "AZGUARD blob get {} > /dev/full", "AZGUARD blob get {} >&-",
    "AZGUARD blob get {} -f /dev/full", "AZGUARD blob get {} --result r > /dev/null",
    "ln -s /dev/null n; AZGUARD blob get {} -f n",
    "mkfifo gone; sleep 1 < gone & exec 3> gone; kill $!; wait $!; AZGUARD blob get {} >&3",
]  # fmt: skip


def test_a_blob_that_was_read_to_nowhere_was_not_read(cli: CliWorld, blob: str) -> None:
    found = guards_after(cli, _NOWHERE, blob)
    assert found == {line: {} for line in _NOWHERE}
    assert cli.call("blob", "put", blob, stdin=b"x").code == 45


@pytest.mark.parametrize(
    "line",
    [
        "AZGUARD blob get {} | cat", "AZGUARD blob get {} -o none > f", "AZGUARD blob get {} -f f -o none",
        "AZGUARD blob get {} -f f --query etag > /dev/null", "AZGUARD blob get {} -f f > /dev/full",
        "AZGUARD blob get {} --result /dev/null | cat", "AZGUARD blob get {} -f >(cat)",
        "AZGUARD blob get {} -f /dev/stdout | cat",
    ],
)  # fmt: skip
def test_a_blob_whose_bytes_arrived_was_read_whatever_became_of_the_result(cli: CliWorld, blob: str, line: str) -> None:
    shell(cli, line.format(blob))
    assert list(guards(cli)) == [f"blob:{blob}"]


def test_another_name_of_an_open_file_is_written_to_as_it_is_open(cli: CliWorld, blob: str) -> None:
    cli.file("log", "kept,")
    get = f"AZGUARD blob get {blob}"
    line = f"{get} -f /dev/stdout; {get} -f /dev/fd/3 -o none; {get} --result /dev/fd/3 > /dev/null"
    assert shell(cli, f"({line}) >> log 3>> log").err == ""
    assert (cli.root / "log").read_text().startswith("kept,v1v1{")
    assert cli.call("cache", "show", f"blob:{blob}", "--query", "[].path").json == []


def test_a_blob_shown_on_a_terminal_was_read(cli: CliWorld, blob: str) -> None:
    assert on_a_terminal(cli, "blob", "get", blob)[0] == 0
    assert list(guards(cli)) == [f"blob:{blob}"]


NOTHING = [
    "AZGUARD entity get {0} > /dev/null",
    "AZGUARD entity get {0} -o none",
    "AZGUARD entity get {0} --query b",
    "AZGUARD entity get {0} --query '{{a: a, b: b}}'",
    "AZGUARD entity get {0} --query 'length(@)'",
    "AZGUARD entity get {0} > /dev/full",
    "AZGUARD entity get {0} >&-",
    "AZGUARD entity get {0} --query 'abs(a)'",
    "AZGUARD entity query {1} > /dev/null",
    "AZGUARD entity query {1} -o none",
    "AZGUARD entity query {1} --query 'length(@)'",
    "AZGUARD entity query {1} --query '[].a'",
    "AZGUARD entity query {1} > /dev/full",
    "AZGUARD entity query {1} -o tsv > /dev/null",
    "AZGUARD entity query {1} --query \"[?a=='2']\"",
    "AZGUARD entity query {1} -o table > /dev/null",
]
WHOLE = [
    "AZGUARD entity get {0}",
    "AZGUARD entity get {0} > o.json",
    "AZGUARD entity get {0} -o tsv",
    "AZGUARD entity get {0} -o yaml",
    "AZGUARD entity get {0} -o table",
    "AZGUARD entity get {0} --query @",
    "AZGUARD entity query {1}",
    "AZGUARD entity query {1} -o tsv > o",
    "AZGUARD entity query {1} --query \"[?a=='1']\"",
    "AZGUARD entity query {1} --query '[0]'",
    "AZGUARD entity query {1} -o table",
]


def test_an_entity_that_was_not_delivered_whole_moves_no_guard(cli: CliWorld, order: str) -> None:
    words = (order, order.partition("/")[0])
    assert guards_after(cli, NOTHING, *words) == {line: {} for line in NOTHING}
    assert cli.call("entity", "merge", order, "a=2").code == 42
    before = cli.call("entity", "get", order).json["odata.etag"]
    cli.call("entity", "merge", order, "b=theirs", "--last-writer-wins", scope="they")
    assert guards_after(cli, NOTHING, *words) == {line: {f"entity:{order}": before} for line in NOTHING}
    assert cli.call("entity", "merge", order, "a=2").code == 42


@pytest.mark.parametrize("line", WHOLE)
def test_an_entity_that_was_delivered_whole_moves_the_guard(cli: CliWorld, order: str, line: str) -> None:
    assert shell(cli, line.format(order, order.partition("/")[0])).code == 0
    assert list(guards(cli)) == [f"entity:{order}"]


def test_a_query_that_chooses_entities_delivers_those_alone(cli: CliWorld, order: str) -> None:
    table = order.partition("/")[0]
    cli.call("entity", "insert", f"{table}/eu/2", "a=2", scope="they")
    assert len(cli.call("entity", "query", table, "--query", "[?a=='2']").json) == 1
    assert list(guards(cli)) == [f"entity:{table}/eu/2"]


def test_a_list_that_leaves_columns_out_delivers_nothing_whole(cli: CliWorld, order: str) -> None:
    wide = f"{order.partition('/')[0]}/eu/wide"
    cli.call("entity", "insert", wide, *(f"p{number}=x" for number in range(9)), scope="they")
    assert cli.call("entity", "query", order.partition("/")[0], "-o", "table").code == 0
    assert guards(cli) == {}
    assert cli.call("entity", "get", wide, "-o", "table").code == 0
    assert list(guards(cli)) == [f"entity:{wide}"]


def select(cli: CliWorld, order: str, names: str) -> None:
    assert cli.call("entity", "get", order, "--select", names).code == 0


def their_merge(cli: CliWorld, order: str, word: str = "a=theirs") -> None:
    assert cli.call("entity", "merge", order, word, "--last-writer-wins", scope="they").code == 0


def test_a_part_read_later_does_not_stand_for_the_whole_or_another_part(cli: CliWorld, order: str) -> None:
    select(cli, order, "a")
    first = guards(cli)
    their_merge(cli, order)
    select(cli, order, "b")
    assert (guards(cli) == first, cli.call("entity", "merge", order, "a=2").code) == (True, 42)
    select(cli, order, "a")
    assert cli.call("entity", "merge", order, "a=2").code == 0
    assert cli.call("entity", "replace", order, "a=3").code == 42
    assert cli.call("entity", "get", order).code == 0
    whole = guards(cli)
    their_merge(cli, order)
    select(cli, order, "b")
    assert (guards(cli) == whole, cli.call("entity", "merge", order, "b=2").code) == (True, 42)


def test_a_part_read_again_after_an_own_merge_still_guards_a_merge(cli: CliWorld, order: str) -> None:
    for number in range(3):
        select(cli, order, "a,b")
        assert cli.call("entity", "merge", order, f"a={number}").code == 0
        their_merge(cli, order, "c=3")
        select(cli, order, "b, a")
        assert cli.call("entity", "merge", order, "b=2").code == 0


@pytest.mark.parametrize("words", [("-o", "none"), ("--query", "policies"), ("--query", "etag")])
def test_access_policies_that_were_not_shown_whole_were_not_read(cli: CliWorld, words: tuple[str, ...]) -> None:
    table = table_world.table(cli)
    assert cli.call("table", "acl", "get", table, *words).code == 0
    assert guards(cli) == {}
    assert shell(cli, f"AZGUARD table acl get {table} > /dev/null").code == 0
    assert guards(cli) == {}
    assert cli.call("table", "acl", "get", table).code == 0
    assert list(guards(cli)) == [f"table:{table}"]


@pytest.mark.parametrize(("words", "is_read"), [(("--set", "a=1"), False), (("--", "cat"), True)])
def test_an_update_that_changes_nothing_delivers_the_content_to_a_command_only(
    cli: CliWorld, words: tuple[str, ...], is_read: bool
) -> None:
    name = f"{cli.container()}/a.json"
    theirs(cli, name, b'{"a": 1}')
    before = cli.call("blob", "get", name).json and guards(cli)
    theirs(cli, name, b'{"a": 1, "theirs": 2}')
    assert cli.call("safe-update", f"blob:{name}", *words).json["outcome"] == "unchanged"
    assert (guards(cli) == before) == (not is_read)


def test_a_reader_that_went_away_early_has_not_read(cli: CliWorld, blob: str) -> None:
    theirs(cli, blob, b"line\n" * 400_000)
    running = cli.begin_fork("blob", "get", blob, stdout=subprocess.PIPE)
    assert running.stdout is not None
    running.stdout.read(1)
    running.stdout.close()
    running.wait()
    assert guards(cli) == {}
