"""``azguard batch``: lines in one process, each as if it were a process of its own."""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from azguard.batch import TextLine
from azguard.cli import signals
from azguard.cli.context import Environment
from azguard.cli.parsing.tree import root
from azguard.commands.batch import run as batch
from azguard.commands.batch.lines import LineRunner, LineWork
from azguard.wire import network
from tests.support import places, table_world, thorough
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request

_ERROR = json.loads((places.SCHEMAS / "error.json").read_text())


@pytest.fixture
def site(cli: CliWorld) -> str:
    return cli.container()


def client(cli: CliWorld, site: str) -> ContainerClient:
    service: Any = BlobServiceClient.from_connection_string(cli.connection_string or "")
    found: ContainerClient = service.get_container_client(site)
    return found


def read_all(cli: CliWorld, site: str) -> dict[str, bytes]:
    blobs = client(cli, site)
    return {each.name: blobs.download_blob(each.name).readall() for each in blobs.list_blobs()}


def list_puts(site: str, count: int) -> str:
    return "".join(f"blob put {site}/{number} --content 1\n" for number in range(count))


def play(cli: CliWorld, lines: str | Iterable[object], *words: str, **settings: Any) -> Ran:
    """Run lines of text, or values that are written as JSON, from stdin."""
    text = lines if isinstance(lines, str) else "".join(f"{json.dumps(each)}\n" for each in lines)
    return cli.call("batch", *words, stdin=text.encode(), **settings)


def told(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def statuses(ran: Ran) -> dict[int, int]:
    return {each["line"]: each["exit_code"] for each in told(ran)}


def test_lines_are_words_or_json_with_names_and_stdin(cli: CliWorld, site: str) -> None:
    cli.file("a file.json", "1")
    lines = f"""# words, and JSON
        blob put {site}/a -f 'a file.json'

        ["blob", "put", "{site}/b", "--content", "2"]
        {{"args": ["blob", "put", "{site}/c"], "stdin": "3\\n", "id": "third"}}
    """
    ran = play(cli, lines, "--ordered")
    assert (ran.code, ran.err) == (0, "3 lines: 3 done\n")
    assert [(each["id"], each["line"], each["result"]["address"]) for each in told(ran)] == [
        (None, 2, f"blob:{site}/a"),
        (None, 4, f"blob:{site}/b"),
        ("third", 5, f"blob:{site}/c"),
    ]
    assert read_all(cli, site) == {"a": b"1", "b": b"2", "c": b"3\n"}


def test_each_line_has_a_status_a_guard_and_an_error_of_its_own(cli: CliWorld, site: str) -> None:
    lines = f"""blob put {site}/a --content 1
        blob put {site}/a --content 2
        blob put {site}/a --content 3 --scope another
        blob put {site}/a --content 4 --etag 0x1
        blob exists {site}/none
        blob list {site} --query [].address
        help batch
        blob show {site}/a -o none"""
    ran = play(cli, lines, "--ordered")
    found = told(ran)
    assert [each["exit_code"] for each in found] == [0, 0, 45, 42, 44, 0, 0, 0]
    assert [each["error"] and each["error"]["kind"] for each in found[:5]] == [None, None, "exists", "changed", None]
    assert (found[4]["result"]["exists"], found[5]["result"], found[7]["result"]) == (False, [f"blob:{site}/a"], None)
    assert found[6]["result"].startswith("Usage: azguard batch")
    assert set(found[3]["error"]) <= set(_ERROR["properties"]["error"]["properties"])
    assert ran.code == 20
    assert ran.err.splitlines()[-3:] == [
        "8 lines: 5 done, 3 failed",
        "error: 3 of 8 lines failed",
        "hint: each line above says why",
    ]
    assert f"line 3 (45): {site}/a exists, and this scope never read it" in ran.err


def test_lines_of_one_address_keep_their_order_and_a_container_comes_before_its_blobs(cli: CliWorld, site: str) -> None:
    counts = [f"safe-update blob:{site}/log --append-line {number} --create ''" for number in range(12)]
    ran = play(cli, "\n".join([f"container create {site}2", *counts, f"blob put {site}2/a --content 1"]))
    assert ran.code == 0, ran.err
    assert read_all(cli, site)["log"].decode().split() == [str(number) for number in range(12)]


@cases(
    "line, message",
    ("lock run x -- true", "lock run cannot run in a batch: it runs a command of yours"),
    ("file lock run s/x -- true", "file lock run cannot run in a batch: it runs a command of yours"),
    ("queue work q -- true", "queue work cannot run in a batch: it runs a command of yours"),
    ("safe-update blob:s/x -- cat", "safe-update cannot run in a batch: it runs a command of yours"),
    ("emulator run -- true", "emulator run cannot run in a batch: it runs a command of yours"),
    ("emulator start", "emulator start cannot run in a batch: it starts and stops servers"),
    ("edit blob:s/x", "edit cannot run in a batch: it needs a terminal"),
    ("demo", "demo cannot run in a batch: it needs a terminal"),
    ("batch", "batch cannot run in a batch: its lines belong into this one"),
    ("lock hold x", "lock hold cannot run in a batch: it leaves a process behind"),
    ("blob get s/x", "the content would go to stdout, where the results are"),
    ("file get s/x -f -", "the content would go to stdout, where the results are"),
    ("blob show s/x -o table", "the result of a line is JSON"),
    ("blob show s/x --debug", "--debug is not for a line of a batch"),
    ("lock list s --watch", "--watch is not for a line of a batch"),
    ("blob show s/x --help", "this line shows help, and does nothing"),
    ("blob", "azguard blob needs a command"),
    ("blob put site --content 1", "'site' is not the address of a blob: NAME is missing"),
    ("blob list s", "'s' is not a container name"),
    ("blob shwo s/x", "no such command 'shwo'"),
    ("blob put s/x --etag ''", "--etag is empty"),
    ("blob put s/x -r --etag 0x1", "--recursive and --etag do not go together: each file has a version of its own"),
    ('{"args": []}', '"args" is not a list of texts'),
    ('{"args": ["version"], "stdin": "a\\ud800"}', '"stdin" is not a text'),
)
def test_a_line_that_cannot_run_is_refused_with_its_number_before_anything_is_sent(
    cli: CliWorld, site: str, line: str, message: str
) -> None:
    lines = f"blob put {site}/a --content 1\n# a remark\n{line}\n"
    ran = play(cli, lines)
    assert (ran.code, ran.out, ran.err.splitlines()[0]) == (2, "", f"error: line 3: {message}")
    checked = play(cli, lines, "--dry-run")
    assert (checked.code, statuses(checked)) == (2, {1: 0, 3: 2})
    assert told(checked)[1]["error"]["message"] == message
    assert read_all(cli, site) == {}


def test_lines_on_a_share_wait_for_it_and_for_its_directories(files_cli: CliWorld) -> None:
    puts = "".join(f"file put batches/a/{number} --content {number}\n" for number in range(12))
    again = "".join(f"file put batches/a/{number} --content again\n" for number in range(12))
    lines = f"share create batches\ndir create batches/a\n{puts}{again}file list batches/a\n"
    ran = play(files_cli, lines, "--ordered")
    assert (ran.code, len(told(ran)[-1]["result"])) == (0, 12), ran.err


def test_every_command_that_needs_a_command_of_yours_is_refused() -> None:
    """A new one would be found by its argument."""
    needs = [name for name, command in root.walk() if any("CMD" in row.metavar for row in command.own)]
    assert needs == ["safe-update", "queue work", "file lock run", "lock run", "emulator run"]


def test_a_dry_run_sends_nothing(cli: CliWorld, site: str) -> None:
    requests: list[Request] = []

    def decide(request: Request) -> Fault:
        requests.append(request)
        return Fault.NONE

    with proxy.running(cli.port, decide) as running:
        ran = play(cli.through(running.port), f"blob put {site}/a --content 1\nblob list {site}\n", "--dry-run")
    assert (ran.code, statuses(ran), requests) == (0, {1: 0, 2: 0}, [])
    assert ran.err == "2 lines can be run; nothing was sent\n"


def test_after_a_failure_no_line_begins_if_that_is_wanted(cli: CliWorld, site: str) -> None:
    lines = [f"blob put {site}/{number} --content 1{' --etag 0x1' * (number == 3)}" for number in range(50)]
    ran = play(cli, "\n".join(lines), "--stop-on-error", "--jobs", "1")
    assert (ran.code, len(read_all(cli, site))) == (20, 3)
    assert "50 lines: 3 done, 1 failed, 46 not begun" in ran.err


def test_so_many_lines_run_at_a_time_as_jobs_says(cli: CliWorld, site: str) -> None:
    puts: list[Request] = []

    def decide(request: Request) -> Chosen:
        """Hold the first six until all of them are there."""
        puts.append(request)
        return Chosen(until=lambda: len(puts) >= 6)

    with proxy.running(cli.port, decide) as running:
        ran = play(cli.through(running.port), list_puts(site, 18), "--jobs", "6")
    assert (ran.code, len(puts)) == (0, 18)


def test_a_second_run_with_keys_changes_nothing(cli: CliWorld, site: str) -> None:
    lines = [
        {
            "args": [
                "safe-update",
                f"blob:{site}/{number % 4}",
                "--increment",
                "n",
                "--create",
                "{}",
                "--op-id",
                f"r{number}",
            ]
        }
        for number in range(20)
    ]
    first, second = play(cli, lines), play(cli, lines, scope="another")
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert {json.loads(content)["n"] for content in read_all(cli, site).values()} == {5}


def test_a_line_whose_end_was_not_told_is_not_applied_again(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", "--content", '{"n": 1}')
    words = ("batch", "-f", str(cli.file("lines", f"safe-update {site}/a --increment n --op-id k")))
    with open("/dev/full", "wb") as full:
        running = cli.begin_fork(*words, stdin=subprocess.DEVNULL, stdout=full)
        running.communicate()
    client(cli, site).get_blob_client("a").set_blob_metadata({})
    again = cli.call(*words)
    assert (running.returncode, statuses(again), read_all(cli, site)) == (73, {1: 74}, {"a": b'{"n": 2}'})


def test_answers_that_are_lost_double_nothing(cli: CliWorld, site: str) -> None:
    count = [0]

    def decide(request: Request) -> Fault:
        count[0] += request.writes
        return Fault.DROP if request.writes and count[0] % 3 == 0 else Fault.NONE

    lines = [
        *(f"safe-update blob:{site}/{number % 3} --increment n --create '{{}}'" for number in range(12)),
        *(f"blob put {site}/put{number} --content {number}" for number in range(12)),
    ]
    with proxy.running(cli.port, decide) as running:
        ran = play(cli.through(running.port), "\n".join(lines))
        lost = sum(each.dropped for each in running.log)
    assert (ran.code, set(statuses(ran).values()), lost > 0) == (0, {0}, True), ran.err
    found = read_all(cli, site)
    assert [json.loads(found[str(number)])["n"] for number in range(3)] == [4, 4, 4]
    assert [found[f"put{number}"] for number in range(12)] == [str(number).encode() for number in range(12)]


def test_one_set_of_connections_serves_all_lines(cli: CliWorld, site: str) -> None:
    with patch.object(network, "connect", wraps=network.connect) as connect:
        ran = play(cli, list_puts(site, 40), "--jobs", "4")
    assert (ran.code, connect.call_count <= 4) == (0, True)


def test_ctrl_c_settles_what_is_under_way_and_says_how_far_it_came(cli: CliWorld, site: str) -> None:
    writes: list[Request] = []
    go: list[bool] = []

    def decide(request: Request) -> Chosen:
        writes.extend([request] if request.writes else [])
        position = len(writes)
        return Chosen(until=lambda: position <= 20 or bool(go))

    file = cli.file("lines", list_puts(site, 300))
    with proxy.running(cli.port, decide) as running:
        words = ("batch", "-f", str(file), "--jobs", "4")
        process = cli.through(running.port).begin_fork(*words, stdin=subprocess.DEVNULL)
        until(lambda: len(writes) >= 24)
        process.send_signal(signal.SIGINT)
        go.append(True)
        out, err = process.communicate(timeout=60)
    written = {f"blob:{site}/{name}" for name in read_all(cli, site)}
    shown = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 130
    assert {each["result"]["address"] for each in shown if each["exit_code"] == 0} == written
    assert f"300 lines: {len(written)} done, {300 - len(written)} not begun" in err.decode()


def test_a_line_that_ctrl_c_ends_says_so(cli: CliWorld, site: str) -> None:
    reads: list[Request] = []

    def decide(request: Request) -> Fault:
        reads.append(request)
        return Fault.NONE

    file = cli.file("lines", f"blob wait {site}/none --until exists --wait 5m")
    with proxy.running(cli.port, decide) as running:
        process = cli.through(running.port).begin_fork("batch", "-f", str(file), stdin=subprocess.DEVNULL)
        until(lambda: bool(reads))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    error = json.loads(out)["error"]
    assert (process.returncode, error["exit_code"], error["message"]) == (130, 130, "interrupted; nothing was applied")


def test_ctrl_c_while_lines_are_checked_says_that_nothing_was_sent(cli: CliWorld, site: str) -> None:
    prepare = LineRunner.prepare

    def end_at_third(runner: LineRunner, text: TextLine) -> LineWork:
        if text.number == 3:
            raise signals.EndedBySignal(signal.SIGINT)
        return prepare(runner, text)

    with patch.object(LineRunner, "prepare", end_at_third):
        ran = play(cli, list_puts(site, 4))
    assert (ran.code, ran.out, ran.err) == (130, "", "2 lines checked; nothing was sent\nerror: interrupted\n")
    assert read_all(cli, site) == {}


def test_where_lines_failed_it_is_told_too_that_results_cannot_be_written(cli: CliWorld, site: str) -> None:
    file = cli.file("lines", f"blob show {site}/none\n")
    with open("/dev/full", "wb") as full:
        process = cli.begin_fork("batch", "-f", str(file), stdin=subprocess.DEVNULL, stdout=full)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.decode().splitlines()[-3:]) == (
        20,
        [
            "error: 1 of 1 line failed",
            "  the operation is done, but its result cannot be written: No space left on device",
            "hint: each line above says why",
        ],
    )


def test_lines_go_on_when_no_one_reads_their_results(cli: CliWorld, site: str) -> None:
    file = cli.file("lines", list_puts(site, 40))
    reads, writes = os.pipe()
    os.close(reads)
    process = cli.begin_fork("batch", "-f", str(file), stdin=subprocess.DEVNULL, stdout=writes)
    os.close(writes)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, len(read_all(cli, site))) == (0, 40), err


@cases(
    "words, message",
    (("-o", "table"), "--output 'table' is not known"),
    (("-o", "json", "-o", "none"), "--output/-o is given twice, and takes one value"),
    (("--jobs", "0"), "--jobs: '0' is not a whole number from 1 to 64"),
    (("--if-match", "*"), "--if-match is not enforced here: each line has conditions of its own"),
    (("--query", "[0]"), "--query '[0]' needs all lines at once, and each is printed as it comes"),
    (("-f", "none"), "none cannot be read: No such file or directory"),
)
def test_batch_itself_refuses(cli: CliWorld, words: tuple[str, ...], message: str) -> None:
    ran = play(cli, "version", *words)
    assert (ran.code, ran.out, ran.err.splitlines()[0]) == (2, "", f"error: {message}")


def test_a_query_picks_from_each_line_or_picks_lines(cli: CliWorld, site: str) -> None:
    lines = f"blob put {site}/a --content 1\nblob show {site}/none\n"
    assert play(cli, lines, "--query", "exit_code", "--ordered").out == "0\n44\n"
    # The blob is there now, and this scope wrote it: only the other one is missing.
    failed = play(cli, lines, "--query", "[?exit_code!=`0`].line")
    assert (failed.code, failed.out) == (20, "2\n")
    assert play(cli, lines, "-o", "none").out == ""


def test_options_of_the_batch_hold_for_each_line_that_says_no_other(cli: CliWorld, site: str) -> None:
    connection = cli.connection_string or ""
    bare = CliWorld(cli.root)
    lines = f"blob put {site}/a --content 1\nblob put {site}/b --content 1 --scope mine\n"
    assert play(bare, lines, "--connection-string", connection, "--scope", "yours").code == 0
    for name, scope, code in (("a", "yours", 0), ("a", "mine", 45), ("b", "mine", 0), ("b", "yours", 45)):
        assert cli.call("blob", "put", f"{site}/{name}", "--content", "2", scope=scope).code == code


def test_a_result_and_an_error_are_those_of_the_line_alone_with_o_json(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/a", stdin=b"1")
    lines = [["safe-update", f"{site}/a", "--append", "2", "--dry-run"], ["version"], ["blob", "show", f"{site}no/a"]]
    alone = [cli.call(*line, "-o", "json", "--scope", "mine") for line in lines]
    done = told(play(cli, lines, "--ordered", "--scope", "mine"))
    assert [each["result"] for each in done] == [alone[0].json, alone[1].json, None]
    assert done[2]["error"] == alone[2].error | {"request_id": done[2]["error"]["request_id"]}
    assert "--scope mine" in done[2]["error"]["hint"]


def test_a_result_of_lines_is_a_list_of_them_also_of_one_or_none(cli: CliWorld, site: str) -> None:
    table = table_world.table(cli)
    for folder, names in (("none", ()), ("one", ("a\u2028b",)), ("two", ("a", "b"))):
        (cli.root / folder).mkdir()
        for name in names:
            cli.file(f"{folder}/{name}", "1")
    cli.call("entity", "insert", f"{table}/p/r", "n:int32=1")
    lines = [
        *(
            ["blob", "put", folder, f"{site}/{folder}/", "-r", "--query", "outcome"]
            for folder in ("none", "one", "two")
        ),
        ["entity", "query", table, "--filter", "n eq 2"],
        ["entity", "query", table, "--query", "[].n"],
        ["safe-update", f"table:{table}", "--where", "n eq 1", "--increment", "n", "--query", "matched"],
        ["blob", "delete", f"{site}/", "-r", "-o", "none"],
    ]
    found = [each["result"] for each in told(play(cli, lines, "--ordered", "--jobs", "1"))]
    assert found == [[], ["created"], ["created"] * 2, [], [1], [1], None]


@pytest.mark.parametrize(("words", "code"), [((), 0), (("-o", "none"), 42), (("--query", "exit_code"), 42)])
def test_only_a_read_whose_whole_result_is_told_guards_a_write(
    cli: CliWorld, words: tuple[str, ...], code: int
) -> None:
    entity = f"{table_world.table(cli)}/p/r"
    cli.call("entity", "insert", entity, "n=1", scope="another")
    play(cli, f"entity get {entity}\n", *words)
    assert cli.call("entity", "merge", entity, "n=2").code == code


def test_the_streams_of_lines_do_not_mix(cli: CliWorld, site: str) -> None:
    lines: list[dict[str, Any]] = [
        {"args": ["blob", "put", f"{site}/{number}", "-f", "-"], "stdin": f"{number}\n" * 100, "id": str(number)}
        for number in range(60)
    ]
    ran = play(cli, lines)
    assert {each["id"]: each["result"]["address"] for each in told(ran)} == {
        str(number): f"blob:{site}/{number}" for number in range(60)
    }
    assert read_all(cli, site) == {str(number): f"{number}\n".encode() * 100 for number in range(60)}


def test_a_trace_names_the_command_of_each_line(cli: CliWorld, site: str) -> None:
    (cli.root / "tree").mkdir()
    cli.file("tree/x", "1")
    lines = f"blob put {site}/a --content 1\nblob put tree {site}/v/ -r\nsafe-update {site}/a --append 2\n"
    play(cli, lines, env={"AZGUARD_TRACE": str(cli.root / "trace")})
    steps = map(json.loads, (cli.root / "trace").read_text().splitlines())
    assert {(step["command"], step["address"]) for step in steps} == {
        ("blob put", f"blob:{site}/a"),
        ("blob put", f"blob:{site}/v/x"),
        ("safe-update", f"blob:{site}/a"),
    }


def test_what_a_line_tells_on_stderr_is_told_with_its_number(cli: CliWorld, site: str) -> None:
    ran = play(cli, f"version\nblob show {site}/a --query nothing\nblob list {site} -q\n")
    assert "line 2 (44): " in ran.err
    blob = play(cli, f"blob put {site}/a --content 1\nblob show {site}/a --query nothing\n")
    assert "line 2: --query matches nothing: the result has no nothing" in blob.err


def count_left(cli: CliWorld, lines: str) -> int:
    """Return how many lines are in memory when all of them have ended."""
    left: list[int] = []

    def count(*_: object) -> None:
        left.append(sum(isinstance(each, Environment) for each in gc.get_objects()))

    with patch.object(batch._Results, "tell", count), patch.object(batch, "_MOST_READY", 0):
        play(cli, lines, "--jobs", "1")
    return left[0]


def test_a_line_that_was_done_is_freed_without_the_collector(cli: CliWorld, site: str) -> None:
    assert count_left(cli, list_puts(site, 20)) < 5


@patch.object(batch, "_OBJECTS_BEFORE_COLLECTING", 1000)
@patch.object(gc, "disable", lambda: None)
def test_lines_that_failed_are_collected_while_others_run(cli: CliWorld, site: str) -> None:
    before = gc.get_threshold()
    gc.set_threshold(100_000)  # as azguard.__main__ does
    try:
        left = count_left(cli, f"blob show {site}/none\n" * 60)
        assert gc.get_threshold()[0] == 100_000
    finally:
        gc.set_threshold(*before)
    assert left < 40


def test_ten_thousand_lines_take_no_more_memory_than_a_hundred(cli: CliWorld) -> None:
    assert _measure_peak(cli, thorough.count(10_000, few=2_000)) < 1.3 * _measure_peak(cli, 100)


def _measure_peak(cli: CliWorld, count: int) -> int:
    file = cli.file("lines", "version\n" * count)
    words = [sys.executable, "-m", "azguard", "batch", "-f", str(file), "-o", "none"]
    process = subprocess.Popen(words, env=cli.environ(), cwd=cli.root, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.stderr is not None
    with process.stderr as told:
        assert (process.returncode, told.read()) == (0, f"{count:,} lines: {count:,} done\n".encode())
    return usage.ru_maxrss
