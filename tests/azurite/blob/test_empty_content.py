"""Empty input, and filters that print nothing or no JSON: refused, unless it is said that it is meant."""

import os
import threading

import pytest

from tests.support.cli_world import CliWorld


@pytest.fixture
def blob(cli: CliWorld) -> str:
    return f"{cli.container()}/config.json"


def content(cli: CliWorld, blob: str) -> bytes:
    return cli.call("blob", "get", blob, scope="reader").stdout


def test_an_empty_file_behind_another_name_of_stdin_is_no_named_file(cli: CliWorld, blob: str) -> None:
    cli.file("empty")
    with open(cli.root / "empty", "rb") as stdin:
        running = cli.begin_fork("blob", "put", blob, "-f", "/dev/stdin", stdin=stdin)
    assert (running.wait(60), cli.call("blob", "exists", blob).code) == (2, 44)
    running.communicate()


def test_an_empty_fifo_is_refused(cli: CliWorld, blob: str) -> None:
    os.mkfifo(cli.root / "fifo")
    writer = threading.Thread(target=lambda: open(cli.root / "fifo", "wb").close())
    writer.start()
    ran = cli.call("blob", "put", blob, "-f", "fifo")
    writer.join()
    assert (ran.code, cli.call("blob", "exists", blob).code) == (2, 44)


def test_an_empty_file_that_is_named_is_meant(cli: CliWorld, blob: str) -> None:
    cli.file("empty")
    assert cli.call("blob", "put", blob, "-f", "empty").json["content_length"] == 0


def test_allow_empty_writes_an_empty_blob(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "put", blob, stdin=b"old")
    assert cli.call("blob", "put", blob, "--allow-empty").json["content_length"] == 0
    assert content(cli, blob) == b""


@pytest.mark.parametrize("command", [("true",), ("echo", "not json"), ("sh", "-c", "cat; cat /no/such 2>&1; true")])
@pytest.mark.parametrize("mode", [(), ("--dry-run",)])
def test_a_filter_may_not_spoil_json(cli: CliWorld, blob: str, command: tuple[str, ...], mode: tuple[str, ...]) -> None:
    cli.call("blob", "put", blob, stdin=b'{"a": 1}')
    ran = cli.call("safe-update", f"blob:{blob}", *mode, "-o", "json", "--", *command)
    assert (ran.code, ran.error["kind"], content(cli, blob)) == (65, "transform_failed", b'{"a": 1}')


def test_a_filter_that_prints_nothing_is_refused_for_text_too(cli: CliWorld, blob: str) -> None:
    text = blob.replace(".json", ".txt")
    cli.call("blob", "put", text, stdin=b"text")
    ran = cli.call("safe-update", f"blob:{text}", "--", "true")
    assert (ran.code, "--allow-empty" in ran.err, content(cli, text)) == (65, True, b"text")


def test_the_content_type_says_json_too(cli: CliWorld, blob: str) -> None:
    counter = blob.replace(".json", "")
    cli.call("blob", "put", counter, "--content-type", "application/json", stdin=b"5")
    assert cli.call("safe-update", f"blob:{counter}", "--", "echo", "six").code == 65


def test_what_is_meant_is_written(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "put", blob, stdin=b'{"a": 1}')
    assert cli.call("safe-update", f"blob:{blob}", "--any-content", "--", "echo", "hi").code == 0
    assert content(cli, blob) == b"hi\n"
    assert cli.call("safe-update", f"blob:{blob}", "--allow-empty", "--", "true").code == 0
    assert content(cli, blob) == b""


def test_nothing_made_of_nothing_is_no_loss(cli: CliWorld, blob: str) -> None:
    assert cli.call("safe-update", f"blob:{blob}", "--create", "--", "cat").json["created"] is True


def test_where_there_was_an_initial_content_nothing_is_refused(cli: CliWorld, blob: str) -> None:
    assert cli.call("safe-update", f"blob:{blob}", "--create", "{}", "--", "true").code == 65
    assert cli.call("blob", "exists", blob).code == 44
