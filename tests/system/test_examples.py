"""Every script of examples/ does what it says."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from tests.support import queue_world, table_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.page_shell import on_path
from tests.support.places import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
BLOB = "examples/config.json"


@pytest.fixture
def shared(cli: CliWorld) -> Iterator[CliWorld]:
    """Yield a world with a container of its own for the examples."""
    assert cli.call("container", "create", "examples").code == 0
    yield cli
    assert cli.call("container", "delete", "examples", "--last-writer-wins", "--with-contents").code == 0


def example(world: CliWorld, *words: str, scope: str = "test", **env: str) -> Ran:
    environ = on_path(world.root / "bin", world.environ(scope, env))
    done = subprocess.run(
        [EXAMPLES / words[0], *words[1:]], cwd=world.root, env=environ, stdin=subprocess.DEVNULL, capture_output=True
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def content(world: CliWorld, blob: str = BLOB) -> str:
    return world.call("blob", "get", blob, scope="reader").out


def test_every_example_is_tested_and_runs_as_it_is() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests" / "system").glob("test_*.py"))
    assert [each.name for each in sorted(EXAMPLES.iterdir()) if f'"{each.name}"' not in tests] == []
    assert [each.name for each in sorted(EXAMPLES.glob("*.sh")) if not os.access(each, os.X_OK)] == []


def test_a_release_that_is_run_again_counts_once(shared: CliWorld) -> None:
    assert shared.call("blob", "put", BLOB, stdin=b'{"version": "1.4.1", "releases": 7}').code == 0
    for run in ("1001", "1001", "1002"):
        assert example(shared, "release-version.sh", BLOB, "1.4.2", GITHUB_RUN_ID=run).code == 0
    assert json.loads(content(shared)) == {"version": "1.4.2", "releases": 9}


def test_a_guarded_upload_keeps_theirs_beside_ours(shared: CliWorld) -> None:
    assert shared.call("blob", "put", BLOB, stdin=b"first", scope="other").code == 0
    assert shared.call("blob", "get", BLOB, "-f", "mine").code == 0
    shared.file("mine", "mine")
    assert shared.call("blob", "put", BLOB, stdin=b"theirs", scope="other").code == 0

    refused = example(shared, "guarded-upload.sh", BLOB, "mine")
    assert (refused.code, content(shared), (shared.root / "mine.theirs").read_text()) == (42, "theirs", "theirs")

    advice = refused.err.splitlines()[-1].split("then: azguard ")[1]
    shared.file("mine", "merged")
    assert (shared.call(*shlex.split(advice)).code, content(shared)) == (0, "merged")
    shared.file("mine", "merged again")
    assert (example(shared, "guarded-upload.sh", BLOB, "mine").code, content(shared)) == (0, "merged again")


def test_many_machines_write_one_line_an_hour(shared: CliWorld) -> None:
    log = "examples/hours.txt"
    (shared.root / "bin").mkdir(exist_ok=True)
    uname = shared.file("bin/uname", '#!/bin/sh\necho "$MACHINE"\n')
    uname.chmod(0o755)
    ran = [example(shared, "once-an-hour.sh", log, scope=each, MACHINE=each) for each in ("one", "two", "three")]
    lines = content(shared, log).splitlines()
    # The hour may have changed while they ran.
    assert ([each.code for each in ran], len(lines), len(set(lines))) in (([0, 0, 0], 1, 1), ([0, 0, 0], 2, 2))


def test_stale_copies_are_named(shared: CliWorld) -> None:
    assert shared.call("blob", "put", BLOB, stdin=b"first", scope="other").code == 0
    assert shared.call("blob", "get", BLOB, "-f", "copy").code == 0
    fresh = example(shared, "stale-copies.sh")
    assert shared.call("blob", "put", BLOB, stdin=b"second", scope="other").code == 0
    stale = example(shared, "stale-copies.sh")
    assert [(each.code, each.out) for each in (fresh, stale)] == [
        (0, ""),
        (42, f"changed\t{shared.root / 'copy'}\tblob:{BLOB}\n"),
    ]


#: A change that comes together with another writer's, which is made first, for as long as the lease lets it.
_MEANWHILE = """#!/bin/sh
cat > old
AZGUARD_SCOPE=other azguard safe-update {address} --set-string by=other --timeout 1s -q -o none
sed 's/"n": *1/"n": 2/' old
"""


@pytest.mark.parametrize(
    ("strategy", "code", "left"),
    [
        ("optimistic", 42, {"n": 1, "by": "other"}),
        ("pessimistic", 0, {"n": 2}),
        ("last-writer-wins", 0, {"n": 2}),
    ],
)
def test_each_strategy_meets_another_writer_as_it_says(
    shared: CliWorld, strategy: str, code: int, left: dict[str, object]
) -> None:
    assert shared.call("blob", "put", BLOB, stdin=b'{"n": 1}', scope="first").code == 0
    change = _program(shared, _MEANWHILE.format(address=f"blob:{BLOB}"))
    assert example(shared, "four-strategies.sh", strategy, BLOB, change).code == code
    assert json.loads(content(shared)) == left


def test_the_strategy_for_tables_meets_another_writer_as_it_says(shared: CliWorld) -> None:
    entity = f"{table_world.table(shared)}/eu/1"
    assert shared.call("entity", "insert", entity, "n:int32=1", scope="first").code == 0
    change = _program(shared, _MEANWHILE.format(address=f"entity:{entity}"))
    assert example(shared, "four-strategies.sh", "table", entity, change).code == 42
    found = shared.call("entity", "get", entity, "-o", "json").json
    assert (found["n"], found["by"]) == (1, "other")


def test_an_exclusive_reader_keeps_others_out_and_lets_them_in_again(shared: CliWorld) -> None:
    assert shared.call("blob", "put", BLOB, stdin=b"x", scope="first").code == 0
    look = f"cat; azguard lease show blob:{BLOB} --query state -o tsv"
    read = example(shared, "exclusive-read.sh", BLOB, "sh", "-c", look)
    after = shared.call("lease", "show", f"blob:{BLOB}", "--query", "state", "-o", "tsv").out
    assert (read.code, read.out, after) == (0, "xheld\n", "free\n")


def test_an_exclusive_reader_has_the_status_of_its_command(shared: CliWorld) -> None:
    assert shared.call("blob", "put", BLOB, stdin=b"x", scope="first").code == 0
    assert example(shared, "exclusive-read.sh", BLOB, "sh", "-c", "exit 7").code == 7
    assert example(shared, "exclusive-read.sh", "examples/missing", "cat").code == 44


@pytest.fixture
def outbox(shared: CliWorld) -> tuple[str, str]:
    """Return a table and a queue for the outbox."""
    return table_world.table(shared), queue_world.queue(shared)


def look(world: CliWorld, table: str, queue: str) -> tuple[list[str], list[str]]:
    """Return the messages that readers see, and the rows of the table."""
    seen = [each["text"] for each in world.call("message", "peek", queue, "-o", "json").json]
    rows = world.call("entity", "query", table, "--query", "[].RowKey", "-o", "json").json
    return seen, ["outbox" if row.startswith("~outbox~") else row for row in rows]


def test_a_message_is_shown_once_its_entity_is_saved(shared: CliWorld, outbox: tuple[str, str]) -> None:
    table, queue = outbox
    assert example(shared, "outbox.sh", table, "eu", queue, "1007", '{"state": "new"}').code == 0
    assert look(shared, table, queue) == (["1007"], ["1007"])


def test_an_outbox_that_cannot_be_read_is_not_taken_for_an_empty_one(shared: CliWorld, outbox: tuple[str, str]) -> None:
    assert example(shared, "outbox.sh", "NoSuchTable", "o'hara", outbox[1]).code == 44


def test_a_message_whose_entity_cannot_be_saved_is_never_shown(shared: CliWorld, outbox: tuple[str, str]) -> None:
    table, queue = outbox
    assert shared.call("entity", "insert", f"{table}/eu/1007", "n:int32=1").code == 0
    assert example(shared, "outbox.sh", table, "eu", queue, "1007", '{"state": "new"}').code == 45
    assert (example(shared, "outbox.sh", table, "eu", queue).code, look(shared, table, queue)) == (0, ([], ["1007"]))


@pytest.mark.parametrize("was_shown", [False, True])
def test_what_a_run_left_hidden_is_shown_once_by_the_next(
    shared: CliWorld, outbox: tuple[str, str], was_shown: bool
) -> None:
    table, queue = outbox
    left = shared.call("message", "put", queue, "--content", "1007", "--hidden", "-o", "json", scope="killed").json
    row = f"{table}/eu/~outbox~{left['id']}"
    assert shared.call("entity", "insert", row, f"receipt={left['pop_receipt']}", scope="killed").code == 0
    if was_shown:
        assert shared.call("message", "update", f"{queue}/{left['id']}", "--visible", scope="killed").code == 0
    assert example(shared, "outbox.sh", table, "eu", queue, scope="next").code == 0
    assert look(shared, table, queue) == (["1007"], [])


def _program(world: CliWorld, text: str) -> str:
    path = world.root / "change"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)
