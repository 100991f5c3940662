"""``azguard message`` against Azurite."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import queue_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy.faults import Fault


@pytest.fixture
def jobs(cli: CliWorld) -> str:
    return queue_world.queue(cli)


def put(cli: CliWorld, jobs: str, content: bytes, *words: str) -> Ran:
    return cli.call("message", "put", jobs, *words, "-o", "json", stdin=content)


def peek(cli: CliWorld, jobs: str) -> Any:
    return cli.call("message", "peek", jobs, "--num-messages", "32").json


def received(cli: CliWorld, jobs: str, scope: str = "test") -> dict[str, Any]:
    """Return a message that was put and received, with no time in which others could not receive it again."""
    put(cli, jobs, b"work")
    found: dict[str, Any] = cli.call("message", "get", jobs, "-o", "json", scope=scope).json[0]
    return found


def test_a_message_is_put_received_changed_and_deleted(cli: CliWorld, jobs: str) -> None:
    sent = put(cli, jobs, b"work").json
    (got,) = cli.call("message", "get", jobs, "--visibility-timeout", "5m").json
    changed = cli.call("message", "update", f"{jobs}/{got['id']}", "--visible", "--content", "more").json
    (seen,) = peek(cli, jobs)
    gone = cli.call("message", "delete", f"{jobs}/{got['id']}")
    assert (sent["id"], got["content"], got["dequeue_count"], seen["text"]) == (got["id"], "work", 1, "more")
    assert len({sent["pop_receipt"], got["pop_receipt"], changed["pop_receipt"]}) == 3
    assert (changed["guard"], gone.json["guard"], peek(cli, jobs)) == ("receipt", "receipt", [])


def test_a_message_is_the_words_behind_its_queue(cli: CliWorld, jobs: str) -> None:
    assert [cli.call("message", "put", jobs, text).code for text in ("one", "two words", "")] == [0, 0, 2]
    seen = cli.call("message", "peek", jobs, "--num-results", "32").json
    assert [each["text"] for each in seen] == ["one", "two words"]


def test_a_message_is_hidden_until_the_time_that_is_told(cli: CliWorld, jobs: str) -> None:
    got = received(cli, jobs)
    assert got["time_next_visible"] > got["insertion_time"]
    ran = cli.call("message", "get", jobs)
    assert (ran.code, ran.json) == (44, [])


def test_a_put_remembers_the_receipt_so_that_what_is_hidden_can_be_made_visible(cli: CliWorld, jobs: str) -> None:
    sent = put(cli, jobs, b"work", "--hidden").json
    assert peek(cli, jobs) == []
    assert cli.call("message", "update", f"{jobs}/{sent['id']}", "--visible").code == 0
    assert [each["text"] for each in peek(cli, jobs)] == ["work"]


@pytest.mark.parametrize("words", [("delete",), ("update", "--visible")])
@pytest.mark.parametrize("receipt", [None, "@last", "{}", "@message.json"])
def test_a_stale_receipt_does_nothing(cli: CliWorld, jobs: str, words: tuple[str, ...], receipt: str | None) -> None:
    got = received(cli, jobs)
    named = {"{}": got["pop_receipt"], "@message.json": f"@{cli.file('message.json', json.dumps([got]))}"}
    queue_world.sdk(cli, jobs).update_message(got["id"], got["pop_receipt"], visibility_timeout=0)
    options = [] if receipt is None else ["--pop-receipt", named.get(receipt, receipt)]
    ran = cli.call("message", words[0], f"{jobs}/{got['id']}", *words[1:], *options, "-o", "json")
    assert (ran.code, ran.error["expected_etag"], len(peek(cli, jobs))) == (42, got["pop_receipt"], 1)


def test_a_message_that_is_gone_is_said_alike(cli: CliWorld, jobs: str) -> None:
    got = received(cli, jobs)
    address = f"{jobs}/{got['id']}"
    by_id = (address, "--pop-receipt", got["pop_receipt"], "-o", "json")
    assert cli.call("message", "delete", address).code == 0
    ran = cli.call("message", "delete", *by_id, scope="other")
    assert (ran.code, ran.error["service_code"]) == (42, "MessageNotFound")
    # The scope that deleted it knows that.
    for words in (("delete", address), ("delete", *by_id), ("update", address, "--visible")):
        again = cli.call("message", *words)
        assert (again.code, f"{address} is gone: you deleted it at" in again.err) == (44, True)
    assert cli.call("message", "delete", address, "--pop-receipt", "another").code == 42


def test_the_json_of_a_message_carries_its_own_receipt_whatever_was_received_since(cli: CliWorld, jobs: str) -> None:
    got = received(cli, jobs, scope="other")
    file = str(cli.file("message.json", json.dumps(got)))
    assert cli.call("message", "delete", f"{jobs}/{got['id']}").code == 42
    assert cli.call("message", "delete", f"{jobs}/{got['id']}", "--pop-receipt", f"@{file}").code == 0


def test_the_receipt_of_another_message_is_refused(cli: CliWorld, jobs: str) -> None:
    file = str(cli.file("message.json", json.dumps(received(cli, jobs))))
    assert cli.call("message", "delete", f"{jobs}/other", "--pop-receipt", f"@{file}").code == 2


def test_the_receipt_in_json_may_be_piped(cli: CliWorld, jobs: str) -> None:
    got = received(cli, jobs, scope="other")
    words = ("message", "update", f"{jobs}/{got['id']}", "--visible", "--pop-receipt", "@-")
    assert cli.call(*words, stdin=json.dumps([got]).encode()).code == 0


@pytest.mark.parametrize("options", [("-o", "none"), ("--query", "[].id")])
def test_a_receipt_that_was_not_delivered_is_not_remembered(cli: CliWorld, jobs: str, options: tuple[str, ...]) -> None:
    sent = queue_world.sdk(cli, jobs).send_message("work")
    cli.call("message", "get", jobs, *options)
    ran = cli.call("message", "delete", f"{jobs}/{sent.id}", "-o", "json")
    assert (ran.code, ran.error["hint"].startswith(f"receive it first: azguard message get {jobs}")) == (42, True)


@pytest.mark.parametrize("content", [b"a\r\nb\rc\n", "<&>\u00e9\U0001f600]]>".encode(), b"  x ", b"%25 {0}", b"\t"])
def test_text_survives_as_it_is(cli: CliWorld, jobs: str, content: bytes) -> None:
    put(cli, jobs, content)
    got = cli.call("message", "get", jobs, "-f", "body").json
    assert ((cli.root / "body").read_bytes(), got[0]["content"].encode()) == (content, content)


@pytest.mark.parametrize("content", [bytes(range(256)), b"\x00", b"text"])
def test_any_bytes_survive_in_base64(cli: CliWorld, jobs: str, content: bytes) -> None:
    put(cli, jobs, content, "--encoding", "base64")
    cli.call("message", "get", jobs, "--encoding", "base64", "-f", "body")
    assert (cli.root / "body").read_bytes() == content


@cases("content", b"\xff", b"a\x01", b"\x00", "\ufffe".encode())
def test_what_is_no_text_is_refused_with_the_way_out(cli: CliWorld, jobs: str, content: bytes) -> None:
    ran = put(cli, jobs, content)
    assert (ran.code, ran.error["hint"].startswith("--encoding base64"), peek(cli, jobs)) == (2, True, [])


def test_a_peek_shows_both_readings(cli: CliWorld, jobs: str) -> None:
    for content, encoding in ((b"plain!", "text"), (b"text", "base64"), (b"\xff", "base64")):
        put(cli, jobs, content, "--encoding", encoding)
    assert [(each["text"], each["decoded"], each["is_base64"]) for each in peek(cli, jobs)] == [
        ("plain!", None, False), ("dGV4dA==", "text", True), ("/w==", None, True),
    ]  # fmt: skip


def test_what_is_not_base64_is_shown_as_it_is_with_the_consequence(cli: CliWorld, jobs: str) -> None:
    put(cli, jobs, b"plain!")
    ran = cli.call("message", "get", jobs, "--encoding", "base64", "-o", "json")
    assert (ran.json[0]["content"], ran.json[0]["encoding"], "Azure Functions" in ran.err) == ("plain!", "text", True)


@pytest.mark.parametrize(
    ("words", "size"),
    [((), 64 * 1024), (("--encoding", "base64"), 48 * 1024), (("--allow-empty",), 0), (("--time-to-live", "-1"), 1)],
)
def test_what_is_at_the_limit_is_sent(cli: CliWorld, jobs: str, words: tuple[str, ...], size: int) -> None:
    assert (put(cli, jobs, b"x" * size, *words).code, len(peek(cli, jobs))) == (0, 1)


@cases(
    "words",
    ("get", "--num-messages", "33"), ("get", "--num-messages", "0"), ("get", "--visibility-timeout", "0"),
    ("get", "--visibility-timeout", "8d"), ("get", "--encoding", "x"), ("get", "--num-messages", "2", "-f", "b"),
    ("peek", "--num-messages", "33"),
)  # fmt: skip
def test_a_receive_with_wrong_options_receives_nothing(cli: CliWorld, jobs: str, words: tuple[str, ...]) -> None:
    put(cli, jobs, b"work")
    assert (cli.call("message", words[0], jobs, *words[1:]).code, peek(cli, jobs)[0]["dequeue_count"]) == (2, 0)


@cases(
    "words",
    (), ("--visible", "--visibility-timeout", "1"), ("--visible", "--content", ""), ("--visible", "-f", "-"),
    ("--visible", "--content", "x", "-f", "-"), ("--visible", "--allow-empty"), ("--visibility-timeout", "8d"),
    ("--visible", "--content", "x", "--encoding", "gzip"), ("--visible", "--pop-receipt", ""),
    ("--visible", "-f", "nosuch"), ("--visible", "--pop-receipt", "@nosuch"), ("--visible", "--pop-receipt", "@"),
)  # fmt: skip
def test_an_update_with_wrong_options_changes_nothing(cli: CliWorld, jobs: str, words: tuple[str, ...]) -> None:
    got = received(cli, jobs)
    assert cli.call("message", "update", f"{jobs}/{got['id']}", *words).code == 2
    assert cli.call("message", "delete", f"{jobs}/{got['id']}").code == 0


@pytest.mark.parametrize(
    ("words", "stdin", "text"),
    [
        (("-f", "-"), b"new\n", "new\n"),
        (("-f", "-", "--encoding", "base64"), b"\x00\xff", "AP8="),
        (("--content", "", "--allow-empty"), b"", ""),
        ((), b"left alone", "work"),
    ],
)
def test_an_update_gives_new_content_as_a_put_does_or_none(
    cli: CliWorld, jobs: str, words: tuple[str, ...], stdin: bytes, text: str
) -> None:
    got = received(cli, jobs)
    ran = cli.call("message", "update", f"{jobs}/{got['id']}", "--visible", *words, stdin=stdin)
    assert (ran.code, [each["text"] for each in peek(cli, jobs)]) == (0, [text])


@pytest.mark.parametrize(("content", "is_base64"), [(b"work!", False), (b"d29yaw==\n", True)])
def test_what_another_program_encoded_goes_and_comes_as_it_is_and_is_judged(
    cli: CliWorld, jobs: str, content: bytes, is_base64: bool
) -> None:
    ran = put(cli, jobs, content, "--encoding", "raw")
    got = cli.call("message", "get", jobs, "--encoding", "raw", "-f", "body", "-o", "json")
    said = ["Azure Functions" in each.err for each in (ran, got)]
    assert ((cli.root / "body").read_bytes(), said) == (content, [not is_base64] * 2)


def test_text_is_not_judged(cli: CliWorld, jobs: str) -> None:
    assert put(cli, jobs, b"work!").err + cli.call("message", "get", jobs, "-o", "json").err == ""


def test_a_body_that_cannot_be_written_costs_no_receipt(cli: CliWorld, jobs: str) -> None:
    sent = queue_world.sdk(cli, jobs).send_message("work")
    ran = cli.call("message", "get", jobs, "-f", "/dev/full", "-o", "json")
    ((address, receipt),) = ran.error["receipts"].items()
    assert (ran.code, address, "/dev/full" in ran.error["message"]) == (73, f"message:{jobs}/{sent.id}", True)
    assert cli.call("message", "update", f"{jobs}/{sent.id}", "--visible").code == 0
    assert cli.call("message", "delete", f"{jobs}/{sent.id}", "--pop-receipt", receipt).code == 42


def test_a_body_of_no_message_leaves_the_file_and_is_not_found(cli: CliWorld, jobs: str) -> None:
    cli.file("body", "that of the last message")
    ran = cli.call("message", "get", jobs, "-f", "body")
    assert (ran.code, ran.json) == (44, [])
    assert (cli.root / "body").read_text() == "that of the last message"


def test_a_body_that_has_no_place_costs_no_message(cli: CliWorld, jobs: str) -> None:
    put(cli, jobs, b"work")
    codes = [cli.call("message", "get", jobs, "-f", place).code for place in ("nosuch/body", ".")]
    assert (codes, peek(cli, jobs)[0]["dequeue_count"]) == ([2, 2], 0)


def test_a_body_goes_to_a_pipe_or_a_device_and_a_file_keeps_its_permissions(cli: CliWorld, jobs: str) -> None:
    kept = cli.file("body", "old")
    kept.chmod(0o600)
    for place in ("/dev/null", "body"):
        put(cli, jobs, b"work")
        assert cli.call("message", "get", jobs, "-f", place).code == 0
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777, Path("/dev/null").is_char_device()) == (
        b"work",
        0o600,
        True,
    )


def test_a_body_in_a_file_is_delivered_whatever_is_printed(cli: CliWorld, jobs: str) -> None:
    sent = queue_world.sdk(cli, jobs).send_message("work")
    assert cli.call("message", "get", jobs, "-f", "body", "-o", "none").code == 0
    assert cli.call("message", "delete", f"{jobs}/{sent.id}").code == 0


def test_a_receive_whose_answer_is_lost_says_how_long_messages_may_be_hidden(cli: CliWorld, jobs: str) -> None:
    put(cli, jobs, b"work")
    ran, log = queue_world.spoilt(cli, "GET", Fault.DROP, "message", "get", jobs)
    assert (ran.code, len(log), "hidden for 30 seconds" in ran.error["message"]) == (74, 1, True)


def test_a_queue_is_only_cleared_if_both_are_said(cli: CliWorld, jobs: str) -> None:
    put(cli, jobs, b"work")
    both = ("--last-writer-wins", "--with-contents")
    codes = [cli.call("message", "clear", jobs, *words).code for words in (both[1:], both[:1], both)]
    assert (codes, peek(cli, jobs)) == ([2, 42, 0], [])


@pytest.mark.parametrize("words", [("put", "--content", "x"), ("get",), ("peek",)])
def test_a_queue_that_is_not_there_is_named(cli: CliWorld, words: tuple[str, ...]) -> None:
    ran = cli.call("message", words[0], "nosuch", *words[1:], "-o", "json")
    assert (ran.code, ran.error["hint"]) == (
        44,
        "check the name: azguard queue list; to create it: azguard queue create nosuch",
    )


def test_the_status_says_nothing_of_receipts_which_the_service_does_not_tell(cli: CliWorld, jobs: str) -> None:
    address = received(cli, jobs)["address"]
    assert cli.call("status").json == []
    (asked,) = cli.call("status", address).json
    assert (asked["state"], "receipt" in asked["reason"]) == ("unanswered", True)
