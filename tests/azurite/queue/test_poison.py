"""``azguard queue poison list`` against Azurite."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.requests.deadline import Deadline
from azguard.worker.once import OnceClaim, OnceTable
from azguard.worker.settings import MessageFacts
from tests.support import queue_world, table_world
from tests.support.cli_world import CliWorld, Ran

NOW = datetime(2026, 11, 22, tzinfo=UTC)
UNKNOWN = {"original_id": None, "dequeue_count": None, "reason": None, "status": None}
KNOWN = {"original_id": "message-1", "dequeue_count": 5, "reason": "exit_status", "status": 3}


@pytest.fixture
def jobs(cli: CliWorld) -> str:
    """Return a queue that has a poison queue."""
    name = queue_world.queue(cli)
    queue_world.sdk(cli, f"{name}-poison").create_queue()
    return name


def poison(cli: CliWorld, jobs: str, content: str = "resize 17") -> str:
    found: str = queue_world.sdk(cli, f"{jobs}-poison").send_message(content).id
    return found


def look(cli: CliWorld, *words: str) -> Ran:
    return cli.call("queue", "poison", "list", *words, "-o", "json")


def why(ran: Ran) -> dict[str, Any]:
    (found,) = ran.json
    return {name: found[name] for name in UNKNOWN}


def event(copy: str, **facts: Any) -> str:
    known = {"event": "poisoned", "id": "message-1", "dequeue_count": 5, "reason": "exit_status", "status": 3}
    return json.dumps({**known, "poison_id": copy, **facts}) + "\n"


def test_a_message_is_shown_with_its_content_and_stays_as_it_is(cli: CliWorld, jobs: str) -> None:
    copy = poison(cli, jobs)
    ran = look(cli, jobs)
    (found,) = ran.json
    assert (ran.code, found["id"], found["text"], found["decoded"]) == (0, copy, "resize 17", None)
    assert why(ran) == UNKNOWN
    assert look(cli, jobs).json == ran.json


@pytest.mark.parametrize("words", [("{}",), ("{}-poison",), ("other", "--poison-queue", "{}-poison")])
def test_the_poison_queue_is_the_queues_or_the_named_one(cli: CliWorld, jobs: str, words: tuple[str, ...]) -> None:
    copy = poison(cli, jobs)
    assert [each["id"] for each in look(cli, *(each.format(jobs) for each in words)).json] == [copy]


def test_the_reason_is_read_from_the_events_of_the_worker(cli: CliWorld, jobs: str) -> None:
    copy = poison(cli, jobs)
    torn = '{"poison_id": "torn\n'
    cli.file("events.jsonl", event("other", status=9) + event(copy, status=1) + torn + "[]\n\n" + event(copy))
    assert why(look(cli, jobs, "--events", str(cli.root / "events.jsonl"))) == KNOWN


def test_the_reason_is_read_from_the_table_of_claims(cli: CliWorld, jobs: str) -> None:
    copy, table = poison(cli, jobs), table_world.table(cli)
    port = re.search(r"TableEndpoint=http://127\.0\.0\.1:(\d+)", str(cli.connection_string))
    assert port is not None
    account = emulator({"table": int(port[1])})
    claims = OnceTable(Target(account, Address(Kind.TABLE, (table,))), "a")
    mine = claims.claim("the key", MessageFacts(jobs, "message-1", 5, NOW, NOW), 60, Deadline())
    assert isinstance(mine, OnceClaim)
    claims.poison(mine, "exit_status", 3, Deadline(), copy)
    assert why(look(cli, jobs, "--once-table", table)) == KNOWN
    # A message that no row names has no reason.
    poison(cli, jobs)
    assert sorted(str(each["reason"]) for each in look(cli, jobs, "--once-table", table).json) == [
        "None",
        "exit_status",
    ]


def test_the_reason_is_kept_beside_the_message_whose_bytes_are_untouched(cli: CliWorld, jobs: str) -> None:
    queue_world.sdk(cli, jobs).send_message("resize 17")
    (sent,) = queue_world.sdk(cli, jobs).peek_messages()
    ran = cli.fork("queue", "work", jobs, "--drain", "-o", "json", "--", "sh", "-c", "exit 65")
    (moved,) = queue_world.sdk(cli, f"{jobs}-poison").peek_messages()
    known = {"original_id": sent.id, "dequeue_count": 1, "reason": "data_error", "status": 65}
    assert (ran.code, moved.content, why(look(cli, jobs))) == (20, "resize 17", known)


def test_a_table_of_reasons_that_cannot_be_reached_is_said_and_stops_nothing(cli: CliWorld, jobs: str) -> None:
    for each in ("one", "two"):
        queue_world.sdk(cli, jobs).send_message(each)
    begins = "TableEndpoint=http://127.0.0.1:"
    text = re.sub(rf"{re.escape(begins)}\d+", f"{begins}9", str(cli.connection_string))
    cut_off = replace(cli, connection_string=text)
    ran = cut_off.fork("queue", "work", jobs, "--drain", "-o", "json", "--", "sh", "-c", "exit 65")
    assert (ran.code, ran.json["poisoned"]) == (20, 2)
    assert ran.err.count("are not kept in the table azguardpoison") == 1
    listed = look(cut_off, jobs)
    assert (listed.code, len(listed.json), "could not be read" in listed.err) == (0, 2, True)


def test_more_messages_than_can_be_shown_are_said(cli: CliWorld, jobs: str) -> None:
    for _ in range(33):
        poison(cli, jobs)
    ran = look(cli, jobs)
    assert (len(ran.json), "about 33 messages" in ran.err) == (32, True)


def test_a_long_content_is_shown_by_its_beginning(cli: CliWorld, jobs: str) -> None:
    poison(cli, jobs, "x" * 1000)
    assert look(cli, jobs).json[0]["text"] == "x" * 80 + "…"


def test_an_empty_poison_queue_has_an_empty_list(cli: CliWorld, jobs: str) -> None:
    assert (look(cli, jobs).code, look(cli, jobs).json) == (0, [])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("{}", "--events", "nosuchfile"), 2),
        (("{}", "--events", ""), 2),
        (("{}", "--once-table", ""), 2),
        (("{}", "--once-table", "nosuchtable"), 44),
        (("{}", "--poison-queue", ""), 2),
        (("{}", "--poison-queue", "nosuch"), 44),
        (("nosuch",), 44),
    ],
)
def test_what_is_not_there_is_named(cli: CliWorld, jobs: str, words: tuple[str, ...], code: int) -> None:
    poison(cli, jobs)
    ran = look(cli, *(each.format(jobs) for each in words))
    assert (ran.code, bool(ran.error["hint"])) == (code, True)


def test_a_poison_queue_that_no_worker_needed_yet_is_not_to_be_created(cli: CliWorld, jobs: str) -> None:
    ran = look(cli, "nosuch")
    assert (ran.error["message"], "azguard queue create" in ran.error["hint"]) == (
        "there is no queue nosuch-poison",
        False,
    )


def test_a_poison_queue_of_another_account_is_not_looked_for_in_this_one(cli: CliWorld, jobs: str) -> None:
    option = ("--poison-queue", f"https://other.queue.core.windows.net/{jobs}-poison")
    ran = [look(cli, jobs, *option), cli.call("queue", "work", jobs, "--drain", *option, "--", "true")]
    assert [each.code for each in ran] == [78, 78]
