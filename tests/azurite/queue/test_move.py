"""``azguard queue move`` against Azurite."""

import json
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import QueueSasPermissions, generate_queue_sas

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.support import queue_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

if TYPE_CHECKING:
    from tests.support.forked_process import ForkedProcess


@pytest.fixture
def jobs(cli: CliWorld) -> str:
    """Return a queue that has a poison queue with three messages."""
    name = queue_world.queue(cli)
    client = queue_world.sdk(cli, f"{name}-poison")
    client.create_queue()
    for each in ("a", "b", "c"):
        client.send_message(each)
    return name


def texts(cli: CliWorld, queue: str) -> list[str]:
    return sorted(each.content for each in queue_world.sdk(cli, queue).peek_messages(max_messages=32))


def count(cli: CliWorld, queue: str) -> int:
    found: int = queue_world.sdk(cli, queue).get_queue_properties().approximate_message_count
    return found


def move(cli: CliWorld, *words: str) -> Ran:
    return cli.call("queue", "move", *words, "-o", "json")


def test_the_messages_of_a_poison_queue_go_back_to_the_queue_it_is_of(cli: CliWorld, jobs: str) -> None:
    ran = move(cli, f"{jobs}-poison")
    assert ran.json == {
        "address": f"queue:{jobs}-poison",
        "destination": f"queue:{jobs}",
        "moved": 3,
        "duplicated": 0,
        "failed": 0,
        "unknown": 0,
    }
    assert (texts(cli, jobs), count(cli, f"{jobs}-poison")) == (["a", "b", "c"], 0)


@pytest.mark.parametrize("text", ["a\r\nb\rc\n", "<&>\u00e9\U0001f600]]>", "  x ", "AAEC/w==", "x" * 65536])
def test_a_message_is_moved_as_the_service_keeps_it(cli: CliWorld, text: str) -> None:
    source, other = queue_world.queue(cli), queue_world.queue(cli)
    assert cli.call("message", "put", source, stdin=text.encode()).code == 0
    assert move(cli, source, other).code == 0
    assert [each["text"] for each in cli.call("message", "peek", other).json] == [text]


def test_no_more_are_moved_than_were_asked_for(cli: CliWorld, jobs: str) -> None:
    assert move(cli, f"{jobs}-poison", "--max-messages", "2").json["moved"] == 2
    assert (len(texts(cli, jobs)), len(texts(cli, f"{jobs}-poison"))) == (2, 1)


def test_many_messages_are_moved_in_several_batches(cli: CliWorld) -> None:
    names = [f"m{number}" for number in range(70)]
    source, other = queue_world.queue(cli, *names), queue_world.queue(cli)
    assert move(cli, source, other).json["moved"] == 70
    assert (count(cli, source), count(cli, other)) == (0, 70)


def test_an_empty_queue_has_nothing_to_move_and_that_is_said(cli: CliWorld, jobs: str) -> None:
    ran = move(cli, jobs, f"{jobs}-poison")
    said = f"nothing was moved: queue:{jobs} has no message that is visible now\n"
    assert (ran.code, ran.json["moved"], ran.err) == (0, 0, said)


def life(cli: CliWorld, jobs: str) -> float:
    (found,) = queue_world.sdk(cli, jobs).peek_messages(max_messages=32)
    return float((found.expires_on - found.inserted_on).total_seconds())


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [(60, (), 7 * 86_400), (30 * 86_400, (), 30 * 86_400), (None, ("--time-to-live", "1h"), 3600)],
)
def test_a_moved_message_is_kept_for_seven_days_or_as_long_as_was_left_to_it(
    cli: CliWorld, before: int | None, words: tuple[str, ...], after: int
) -> None:
    source, other = queue_world.queue(cli), queue_world.queue(cli)
    queue_world.sdk(cli, source).send_message("x", time_to_live=before)
    move(cli, source, other, *words)
    assert life(cli, other) == pytest.approx(after, abs=5)


@pytest.mark.parametrize(("before", "words"), [(-1, ()), (60, ("--time-to-live", "-1"))])
def test_a_message_that_never_ends_goes_on_for_ever(cli: CliWorld, before: int, words: tuple[str, ...]) -> None:
    source, other = queue_world.queue(cli), queue_world.queue(cli)
    queue_world.sdk(cli, source).send_message("x", time_to_live=before)
    move(cli, source, other, *words)
    assert life(cli, other) > 1e9


def test_a_dry_run_shows_the_messages_and_leaves_them(cli: CliWorld, jobs: str) -> None:
    ran = move(cli, f"{jobs}-poison", "--dry-run")
    assert ([each["text"] for each in ran.json], "about 3 messages" in ran.err) == (["a", "b", "c"], True)
    assert (texts(cli, jobs), {each["dequeue_count"] for each in ran.json}) == ([], {0})


def test_a_missing_destination_is_told_before_anything_is_received(cli: CliWorld, jobs: str) -> None:
    ran = move(cli, f"{jobs}-poison", "nosuch")
    seen = cli.call("message", "peek", f"{jobs}-poison", "--num-messages", "32").json
    assert (ran.code, ran.error["hint"]) == (
        44,
        "check the name: azguard queue list; to create it: azguard queue create nosuch",
    )
    assert [each["dequeue_count"] for each in seen] == [0, 0, 0]


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.RESET, Fault.FAIL_BEFORE])
def test_a_put_whose_answer_is_lost_leaves_the_message_visible_again(cli: CliWorld, jobs: str, fault: Fault) -> None:
    ran, _ = queue_world.spoilt(cli, "POST", fault, "queue", "move", f"{jobs}-poison", "--max-messages", "1", once=True)
    assert (ran.code, ran.json["unknown"], ran.json["moved"]) == (74, 1, 0)
    assert (texts(cli, f"{jobs}-poison"), len(texts(cli, jobs))) == (["a", "b", "c"], int(fault.reaches))


def test_others_are_moved_beside_a_message_of_which_it_is_not_known(cli: CliWorld, jobs: str) -> None:
    ran, _ = queue_world.spoilt(cli, "POST", Fault.DROP, "queue", "move", f"{jobs}-poison", once=True)
    assert (ran.code, ran.json["unknown"], ran.json["moved"]) == (74, 1, 2)
    assert (len(texts(cli, f"{jobs}-poison")), texts(cli, jobs)) == (1, ["a", "b", "c"])


def test_a_receive_whose_answer_is_lost_puts_nothing(cli: CliWorld, jobs: str) -> None:
    met: list[Request] = []

    def decide(request: Request) -> Fault:
        if request.method == "GET" and "visibilitytimeout" in request.path:
            met.append(request)
            return Fault.DROP
        return Fault.NONE

    with proxy.running(queue_world.port(cli), decide) as between:
        ran = move(queue_world.through(cli, between.port), f"{jobs}-poison")
    assert (ran.code, len(met), texts(cli, jobs), count(cli, f"{jobs}-poison")) == (74, 1, [], 3)


def test_a_message_that_another_reader_got_meanwhile_is_told_to_be_perhaps_in_both(cli: CliWorld) -> None:
    source, other = queue_world.queue(cli, "x"), queue_world.queue(cli)
    stolen: list[str] = []

    def steal(request: Request) -> Fault:
        if request.method == "DELETE" and not stolen:
            url = urlsplit(request.path)
            stolen.append(url.path.rpartition("/")[2])
            (receipt,) = parse_qs(url.query)["popreceipt"]
            queue_world.sdk(cli, source).update_message(stolen[0], receipt, visibility_timeout=0)
        return Fault.NONE

    with proxy.running(queue_world.port(cli), steal) as between:
        ran = move(queue_world.through(cli, between.port), source, other)
    assert (ran.code, ran.json["duplicated"], "it may be in both queues" in ran.err) == (42, 1, True)
    assert (texts(cli, source), texts(cli, other)) == (["x"], ["x"])


def test_a_put_that_is_refused_ends_the_move_and_shows_the_messages_again(cli: CliWorld, jobs: str) -> None:
    def remove(request: Request) -> Fault:
        if request.method == "POST" and count(cli, f"{jobs}-poison") == 3:
            with suppress(ResourceNotFoundError):
                queue_world.sdk(cli, jobs).delete_queue()
        return Fault.NONE

    with proxy.running(queue_world.port(cli), remove) as between:
        ran = move(queue_world.through(cli, between.port), f"{jobs}-poison")
    assert (ran.code, ran.error["service_code"], ran.json["moved"]) == (44, "QueueNotFound", 0)
    assert texts(cli, f"{jobs}-poison") == ["a", "b", "c"]


def signed(cli: CliWorld, queue: str, permission: str) -> str:
    """Return the URL of a queue with a SAS that allows no more than this."""
    client = queue_world.sdk(cli, queue)
    until = datetime.now(UTC) + timedelta(hours=1)
    sas = generate_queue_sas(
        EMULATOR_NAME, queue, EMULATOR_KEY, permission=QueueSasPermissions.from_string(permission), expiry=until
    )
    return f"{client.url}?{sas}"


def test_who_may_only_put_there_and_receive_here_moves_as_many_as_it_says(cli: CliWorld, jobs: str) -> None:
    words = signed(cli, f"{jobs}-poison", "p"), signed(cli, jobs, "a")
    refused = move(cli, *words)
    assert (refused.code, refused.error["hint"]) == (43, "set the most to move: --max-messages 1000")
    assert (move(cli, *words, "--max-messages", "1000").json["moved"], texts(cli, jobs)) == (3, ["a", "b", "c"])


def test_a_put_that_is_not_allowed_moves_nothing(cli: CliWorld, jobs: str) -> None:
    ran = move(cli, f"{jobs}-poison", signed(cli, jobs, "r"))
    assert (ran.code, ran.json["moved"], texts(cli, f"{jobs}-poison")) == (43, 0, ["a", "b", "c"])


def test_a_move_that_is_killed_loses_no_message(cli: CliWorld) -> None:
    names = [f"m{number:02}" for number in range(24)]
    source, other = queue_world.queue(cli, *names), queue_world.queue(cli)
    running: list[ForkedProcess] = []
    deletes: list[str] = []

    def kill(request: Request) -> Fault:
        if request.method == "DELETE":
            deletes.append(request.path)
            if len(deletes) == 10:
                running[0].kill()
        return Fault.NONE

    with proxy.running(queue_world.port(cli), kill) as between:
        running.append(queue_world.through(cli, between.port).begin_fork("queue", "move", source, other))
        running[0].communicate(timeout=60)
    put = texts(cli, other)
    assert (running[0].returncode, len(put)) == (-signal.SIGKILL, len(set(put)))
    assert 24 <= count(cli, source) + len(put) <= 24 + 8


def test_ctrl_c_between_put_and_delete_ends_what_was_begun(cli: CliWorld) -> None:
    names = [f"m{number:02}" for number in range(64)]
    source, other = queue_world.queue(cli, *names), queue_world.queue(cli)
    running: list[ForkedProcess] = []

    def interrupt(request: Request) -> Fault:
        if request.method == "DELETE" and running:
            running.pop().send_signal(signal.SIGINT)
        return Fault.NONE

    with proxy.running(queue_world.port(cli), interrupt) as between:
        begun = queue_world.through(cli, between.port).begin_fork("queue", "move", source, other, "-o", "json")
        running.append(begun)
        out, _ = begun.communicate(timeout=60)
    every = count(cli, source) + count(cli, other)
    assert (begun.returncode, json.loads(out)["moved"], every) == (130, count(cli, other), 64)
    # What was received and not moved can be seen again.
    assert len(queue_world.sdk(cli, source).peek_messages(max_messages=32)) == 32
