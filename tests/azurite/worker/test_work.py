"""``queue work`` against the emulator, message by message."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support import queue_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.forked_process import ForkedProcess

# Handles a message as its body says: a number is its exit status.
_SCRIPT = """#!/bin/sh
body=$(cat)
echo "$AZGUARD_MESSAGE_DEQUEUE_COUNT $body" >> "$LOG"
case $body in [0-9]*) exit "$body" ;; x) sleep 60 ;; esac
"""


@pytest.fixture
def script(cli: CliWorld) -> str:
    """Return a command that ends as a message says, and notes each in the file log."""
    cli.file("handle.sh", _SCRIPT).chmod(0o755)
    return "./handle.sh"


def work(cli: CliWorld, queue: str, *words: str, options: tuple[str, ...] = ()) -> Ran:
    env = {"LOG": str(cli.root / "log")}
    return cli.fork("queue", "work", queue, "--drain", "-o", "json", *options, "--", *words, env=env)


def bodies(cli: CliWorld, queue: str) -> list[str]:
    """Return the messages of a queue that can be seen."""
    return [each.content for each in queue_world.sdk(cli, queue).peek_messages(max_messages=32)]


def count(cli: CliWorld, queue: str) -> int:
    """Return how many messages a queue has, hidden ones included."""
    return int(queue_world.sdk(cli, queue).get_queue_properties().approximate_message_count)


@contextmanager
def _running(cli: CliWorld, queue: str, *words: str) -> Iterator[ForkedProcess]:
    with open(cli.root / "out", "wb") as out:
        options = ("--drain", "--visibility-timeout", "2s", "-o", "json")
        process = cli.begin_fork("queue", "work", queue, *options, "--", *words, stdout=out, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize(("options", "messages", "code", "told", "left", "log"), [
    ("--jobs 2", "abc", 0, {"done": 3}, 0, ["1 a", "1 b", "1 c"]),
    ("--retry-visibility 0 --max-dequeue 3", "1", 20, {"failed": 2, "poisoned": 1}, 0, ["1 1", "2 1", "3 1"]),
    ("--max-messages 2", "abc", 0, {"done": 2, "stopped_by": "max_messages"}, 1, ["1 a", "1 b"]),
    ("--strict --max-dequeue 1", "333", 75, {"received": 1}, 3, ["1 3"]),
    ("--stop-after 2", "737", 75, {"received": 2, "stopped_by": "stop_after"}, 3, ["1 3", "1 7"]),
    ("--max-time 1s", "x", 20, {"failed": 1}, 1, ["1 x"]),
])  # fmt: skip
def test_options_bound_what_is_handled(
    cli: CliWorld, script: str, options: str, messages: str, code: int, told: dict[str, Any], left: int, log: list[str]
) -> None:
    queue = queue_world.queue(cli, *messages)
    ran = work(cli, queue, script, options=tuple(options.split()))
    assert (ran.code, {name: ran.json[name] for name in told}, count(cli, queue)) == (code, told, left)
    assert sorted((cli.root / "log").read_text().splitlines()) == log


@pytest.mark.parametrize(("status", "code", "outcome", "seen"), [
    ("0", 0, "done", (0, None)),
    ("75", 0, "retried", (1, None)),
    ("3", 20, "failed", (1, None)),
    ("65", 20, "poisoned", (0, ["65"])),
])  # fmt: skip
def test_the_exit_status_decides_about_the_message(
    cli: CliWorld, script: str, status: str, code: int, outcome: str, seen: tuple[int, list[str] | None]
) -> None:
    queue = queue_world.queue(cli, status)
    ran = work(cli, queue, script)
    poisoned = bodies(cli, f"{queue}-poison") if outcome == "poisoned" else None
    assert (ran.code, ran.json[outcome], (count(cli, queue), poisoned)) == (code, 1, seen)


def test_the_text_of_a_poisoned_message_is_untouched(cli: CliWorld) -> None:
    text = "a\nb  <&>\u00e9\t"
    queue = queue_world.queue(cli, text)
    work(cli, queue, "sh", "-c", "exit 65")
    assert bodies(cli, f"{queue}-poison") == [text]


@pytest.mark.parametrize(("encoding", "content"), [("text", b"YWJj"), ("base64", b"abc"), ("raw", b"YWJj")])
def test_the_body_is_read_as_the_encoding_says(cli: CliWorld, encoding: str, content: bytes) -> None:
    queue = queue_world.queue(cli, "YWJj")
    work(cli, queue, "sh", "-c", 'cat > "$LOG"', options=("--encoding", encoding))
    assert (cli.root / "log").read_bytes() == content


def test_any_bytes_reach_the_command(cli: CliWorld) -> None:
    queue, content = queue_world.queue(cli), bytes(range(256))
    cli.call("message", "put", queue, "--encoding", "base64", stdin=content)
    work(cli, queue, "sh", "-c", 'cat > "$LOG"', options=("--encoding", "base64"))
    assert (cli.root / "log").read_bytes() == content


def test_the_file_of_a_message_has_what_the_variables_have(cli: CliWorld) -> None:
    queue = queue_world.queue(cli, "work")
    names = ("ID", "DEQUEUE_COUNT", "INSERTION_TIME", "EXPIRATION_TIME")
    shown = " ".join(f"$AZGUARD_MESSAGE_{name}" for name in names)
    work(cli, queue, "sh", "-c", f'(echo "$AZGUARD_QUEUE {shown}"; cat "$AZGUARD_MESSAGE_FILE") > "$LOG"')
    words, described = (cli.root / "log").read_text().splitlines()
    found = json.loads(described)
    assert words.split() == [str(found[name]) for name in ("queue", *(name.lower() for name in names))]
    assert (found["content"], found["encoding"], found["is_base64"]) == ("work", "text", True)


def test_what_the_command_prints_is_not_in_the_result(cli: CliWorld) -> None:
    ran = work(cli, queue_world.queue(cli, "work"), "echo", "seen")
    assert (ran.json["done"], "seen" in ran.err) == (1, True)


def test_each_message_is_a_scope_of_its_own(cli: CliWorld) -> None:
    queue = queue_world.queue(cli, "work")
    words = ("queue", "work", queue, "--drain", "--", "sh", "-c", 'echo "$AZGUARD_SCOPE" > "$LOG"')
    environ = cli.environ(env={"LOG": str(cli.root / "log")})
    del environ["AZGUARD_SCOPE"]
    running = ForkedProcess(words, cli.root, environ)
    running.communicate(timeout=60)
    assert running.returncode == 0
    assert (cli.root / "log").read_text().startswith(f"{queue}/")


def test_a_message_whose_receipt_is_refused_is_lost_and_its_command_ended(cli: CliWorld) -> None:
    queue = queue_world.queue(cli, "work")
    with _running(cli, queue, "sh", "-c", f'cp "$AZGUARD_MESSAGE_FILE" {cli.root}/facts; sleep 60') as running:
        until((cli.root / "facts").exists)
        queue_world.sdk(cli, queue).clear_messages()
        code = running.wait(60)
    ran = json.loads((cli.root / "out").read_bytes())
    assert (code, ran["lost"], ran["done"]) == (20, 1, 0)


@pytest.mark.parametrize(("options", "code", "poisoned"), [
    ((), 75, 3),
    (("--max-poison", "2"), 75, 2),
    (("--max-poison", "0"), 20, 4),
    (("--poison-exit-code", "9"), 20, 0),
    (("--poison-exit-code", "9", "--max-dequeue", "1"), 20, 4),
])  # fmt: skip
def test_a_command_that_refuses_everything_stops_it_and_the_way_back_is_said(
    cli: CliWorld, script: str, options: tuple[str, ...], code: int, poisoned: int
) -> None:
    queue = queue_world.queue(cli, "65", "65", "65", "65")
    ran = work(cli, queue, script, options=options)
    assert (ran.code, ran.json["poisoned"]) == (code, poisoned)
    is_said = f"the command refuses everything: {poisoned} messages are in {queue}-poison" in ran.err
    way_back = f"azguard queue move {queue}-poison {queue}"
    assert (is_said, way_back in ran.err) == (code == 75, code == 75)


@pytest.mark.parametrize(("command", "code"), [("./nowhere", 127), ("./plain", 126)])
def test_a_command_that_cannot_run_is_said_before_a_message_is_taken(cli: CliWorld, command: str, code: int) -> None:
    cli.file("plain", "x")
    queue = queue_world.queue(cli, "work")
    assert (work(cli, queue, command).code, bodies(cli, queue)) == (code, ["work"])


def test_a_queue_that_is_not_there_is_said(cli: CliWorld) -> None:
    assert work(cli, "nowhere", "true").code == 44


def test_a_file_that_cannot_be_written_is_said_before_a_message_is_taken(cli: CliWorld) -> None:
    queue = queue_world.queue(cli, "work")
    codes = [work(cli, queue, "true", options=(option, "/nowhere/x")).code for option in ("--events", "--metrics")]
    assert (codes, bodies(cli, queue)) == ([2, 2], ["work"])


def test_a_key_that_was_done_is_deleted_and_not_run_again(cli: CliWorld, script: str) -> None:
    table = f"T{queue_world.queue(cli)}"
    cli.call("table", "create", table)
    queue = queue_world.queue(cli, '{"id": 1}', '{"id": 2}', '{"id": 1}')
    ran = work(cli, queue, script, options=("--once-table", table, "--once-key", "id"))
    assert (ran.json["done"], ran.json["duplicates"], count(cli, queue)) == (2, 1, 0)
    assert len((cli.root / "log").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "code", "counted", "poisoned"),
    [
        ((), 0, {"done": 1, "duplicates": 1, "duplicate_differs": 1, "poisoned": 0}, []),
        (
            ("--strict-key", "--stop-after", "1"),
            20,
            {"done": 1, "duplicates": 1, "duplicate_differs": 0, "poisoned": 1},
            ['{"id": 1, "to": "b"}'],
        ),
    ],
)
def test_a_key_that_was_done_with_another_body_is_told_and_not_run(
    cli: CliWorld, script: str, options: tuple[str, ...], code: int, counted: dict[str, int], poisoned: list[str]
) -> None:
    table = f"T{queue_world.queue(cli)}"
    cli.call("table", "create", table)
    queue = queue_world.queue(cli, '{"id": 1, "to": "a"}', '{"id": 1, "to": "b"}', '{"id": 1, "to": "a"}')
    ran = work(cli, queue, script, options=("--once-table", table, "--once-key", "id", *options))
    assert (ran.code, {name: ran.json[name] for name in counted}) == (code, counted)
    assert "its key '1' was done with another body, by message " in ran.err
    assert (len((cli.root / "log").read_text().splitlines()), count(cli, queue)) == (1, 0)
    assert (bodies(cli, f"{queue}-poison") if poisoned else []) == poisoned


def test_claims_without_their_table_take_no_message(cli: CliWorld) -> None:
    queue = queue_world.queue(cli, "work")
    ran = work(cli, queue, "true", options=("--once-table", "Missing"))
    assert (ran.code, bodies(cli, queue)) == (44, ["work"])


def test_a_key_of_any_characters_harms_nothing(cli: CliWorld, script: str) -> None:
    table = f"T{queue_world.queue(cli)}"
    cli.call("table", "create", table)
    queue = queue_world.queue(cli, '{"id": "a\\u0000b"}', '{"id": "\\ud800"}', '{"id": "é"}')
    events = str(cli.root / "events")
    ran = work(cli, queue, script, options=("--once-table", table, "--once-key", "id", "--events", events))
    assert (ran.code, ran.json["done"]) == (0, 3)
