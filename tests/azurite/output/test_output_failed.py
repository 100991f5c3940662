"""What is done, but whose result cannot be written, ends with 73, and never as if it were not done."""

import json
import subprocess

import pytest

from azguard.cli.output.stream import UNDELIVERED
from tests.support import forked, queue_world
from tests.support.cli_world import CliWorld, command
from tests.support.table_world import table

BAD_STDOUT = [">/dev/full", ">&-"]


@pytest.fixture
def blob(cli: CliWorld) -> str:
    address = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", address, stdin=b"{}").code == 0
    return address


def _command(unbuffered: str, *words: str) -> list[str]:
    # A fork has its streams already, and reads no PYTHONUNBUFFERED.
    return command(*words) if unbuffered else forked.command(*words)


def typed(cli: CliWorld, where: str, *words: str, unbuffered: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a command line in a shell that redirects its stdout; what is piped in is "new"."""
    line = f"echo new | {' '.join(_command(unbuffered, *words))} {where}"
    return subprocess.run(
        line, shell=True, capture_output=True, text=True, cwd=cli.root,
        env=cli.environ(env={"PYTHONUNBUFFERED": unbuffered}), check=False,
    )  # fmt: skip


@pytest.mark.parametrize("where", BAD_STDOUT)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_write_whose_result_gets_lost_is_done_and_told(cli: CliWorld, blob: str, where: str, unbuffered: str) -> None:
    ran = typed(cli, where, "blob", "put", blob, unbuffered=unbuffered)
    assert (ran.returncode, ran.stderr.startswith(f"error: {UNDELIVERED}: ")) == (73, True)
    assert cli.call("blob", "get", blob).out == "new\n"


@pytest.mark.parametrize("where", BAD_STDOUT)
@pytest.mark.parametrize("words", [("blob", "show"), ("blob", "get"), ("blob", "exists"), ("lease", "show")])
def test_a_read_whose_result_gets_lost_ends_so(cli: CliWorld, blob: str, where: str, words: tuple[str, ...]) -> None:
    ran = typed(cli, where, *words, f"blob:{blob}" if words[0] == "lease" else blob, "-o", "json")
    error = json.loads(ran.stderr)["error"]
    assert (ran.returncode, error["kind"], error["exit_code"]) == (73, "output_failed", 73)


@pytest.mark.parametrize("words", [("list",), ("export",), ("path",)])
def test_a_list_that_cannot_be_written_ends_so_too(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    assert typed(cli, ">/dev/full", "cache", *words).returncode == 73


def test_an_entity_that_cannot_be_written_ends_so_too(cli: CliWorld) -> None:
    orders = table(cli)
    assert typed(cli, ">/dev/full", "entity", "insert", f"{orders}/eu/1", "n:int32=1").returncode == 73
    assert typed(cli, ">/dev/full", "entity", "query", orders).returncode == 73
    assert cli.call("entity", "get", f"{orders}/eu/1").json["n"] == 1


def test_the_receipt_of_a_message_that_cannot_be_printed_is_told_and_remembered(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli, "work")
    ran = typed(cli, ">/dev/full", "message", "get", jobs, "-o", "json")
    error = json.loads(ran.stderr)["error"]
    ((address, receipt),) = error["receipts"].items()
    assert (ran.returncode, error["exit_code"], len(receipt) > 0) == (73, 73, True)
    assert cli.call("message", "delete", address.removeprefix("message:")).code == 0
    # Of an empty queue no one is told that a message was received.
    assert "received" not in typed(cli, ">/dev/full", "message", "get", jobs).stderr


@pytest.mark.parametrize("where", BAD_STDOUT)
def test_an_answer_that_the_exit_status_gives_is_given(cli: CliWorld, blob: str, where: str) -> None:
    assert typed(cli, where, "blob", "exists", f"{blob}x").returncode == 44


@pytest.mark.parametrize("where", BAD_STDOUT)
def test_nothing_to_write_is_no_failure(cli: CliWorld, blob: str, where: str) -> None:
    ran = typed(cli, where, "blob", "put", blob, "-o", "none")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_reader_that_has_gone_is_no_failure_of_a_read(cli: CliWorld, blob: str) -> None:
    assert typed(cli, "| true", "blob", "show", blob).stderr == ""


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (("blob", "put"), "abs(etag)"),
        (("blob", "show"), "abs(etag)"),
        # Python's own error, which JMESPath lets through.
        (("blob", "put"), "contains(etag, attempts)"),
    ],
)
def test_a_query_that_fails_on_the_result_never_says_that_nothing_was_done(
    cli: CliWorld, blob: str, words: tuple[str, ...], query: str
) -> None:
    ran = cli.call(*words, blob, "--query", query, stdin=b"new")
    done = "the operation is done" if words[1] == "put" else "it was read"
    assert (ran.code, ran.err.startswith(f"error: {done}, but --query failed")) == (73, True)
    assert ("do not repeat a write" in ran.err, "nothing was changed" in ran.err) == (
        words[1] == "put",
        words[1] != "put",
    )
    assert cli.call("blob", "get", blob).out == ("new" if words[1] == "put" else "{}")


def test_a_result_file_that_cannot_be_written_ends_so_too(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "get", blob, "-f", "a.json", "--result", "/dev/full", "-o", "json")
    assert (ran.code, ran.error["kind"], (cli.root / "a.json").read_text()) == (73, "output_failed", "{}")


@pytest.mark.parametrize("file", ["/dev/full", "-"])
def test_content_that_cannot_be_written_ends_so_too(cli: CliWorld, blob: str, file: str) -> None:
    ran = typed(cli, ">/dev/full", "blob", "get", blob, "-f", file)
    assert (ran.returncode, "was read, but not all of it could be written: No space left on device" in ran.stderr) == (
        73, True,
    )  # fmt: skip
