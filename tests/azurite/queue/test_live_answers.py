"""What the live service says of queues and messages, and the emulator does not: a scripted service gives its answers.

Where there is a recording of it, the answer is taken from there.
"""

from pathlib import Path

import pytest

from tests.support import scripted_service
from tests.support.cli_world import CliWorld, Ran
from tests.support.scripted_service import Answer

ID = "e452b094-6ed0-4db3-b893-acd67db571fb"
MESSAGE = f"jobs/{ID}"
# Received at 01:20:08, and hidden until 01:20:39.
RECEIVED = Answer.recorded("test_queue.test_update_message", 2)
RECEIPT = "AgAAAAMAAAAAAAAApfesaQUG1QE="
CONTENT = "application/xml"
BUSY = Answer(503, "ServerBusy")
EXISTS = Answer.recorded("test_queue.test_create_queue_fail_on_exist_different_metadata", 1)
# The same metadata again.
THE_SAME = Answer.recorded("test_queue.test_create_queue_already_exist", 1)
MADE = Answer(201)
DONE = Answer(204)


def not_found(at: str) -> Answer:
    """Return how the live service refuses a stale receipt, and one of a message that is gone.

    The Date is a gateway's: before the message could be received by others.
    """
    words = f"The specified message does not exist.\nRequestId:1\nTime:2019-05-09T{at}.1234567Z"
    body = f"<Error><Code>MessageNotFound</Code><Message>{words}</Message></Error>".encode()
    return Answer(404, "MessageNotFound", {"Date": "Thu, 09 May 2019 01:20:10 GMT", "Content-Type": CONTENT}, body)


def play(root: Path, *steps: tuple[tuple[str, ...], tuple[Answer, ...]]) -> tuple[list[Ran], list[str]]:
    """Run commands in one scope, each with what the service answers; return what they said, and what was asked last."""
    ran: list[Ran] = []
    with scripted_service.running(DONE) as service:
        world = CliWorld(root, service.connection_string)
        for words, answers in steps:
            service.script[:] = answers
            service.asked.clear()
            ran.append(world.call(*words, "-o", "json", "--timeout", "2s"))
        return ran, [method for method, _ in service.asked]


def play_delete(root: Path, at: str, *words: str) -> Ran:
    """Receive a message, and lose the answer to its delete, which is refused the second time at this moment."""
    ran, asked = play(
        root,
        (("message", "get", "jobs"), (RECEIVED,)),
        (("message", "delete", MESSAGE, *words), (BUSY, not_found(at))),
    )
    assert (ran[0].json[0]["pop_receipt"], asked) == (RECEIPT, ["DELETE", "DELETE"])
    return ran[1]


@pytest.mark.parametrize("words", [(), ("--pop-receipt", "@last"), ("--pop-receipt", RECEIPT)])
def test_a_message_that_is_not_found_while_hidden_was_deleted_by_us(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = play_delete(tmp_path, "01:20:30", *words)
    assert (ran.code, ran.json["outcome"]) == (0, "committed")


@pytest.mark.parametrize("at", ["01:20:36", "01:20:39", "01:30:00"])
def test_a_message_that_is_not_found_once_others_could_receive_it_is_unknown(tmp_path: Path, at: str) -> None:
    ran = play_delete(tmp_path, at)
    assert (ran.code, "another reader may have received it" in ran.error["message"]) == (74, True)


def test_a_receipt_that_is_not_the_last_of_the_scope_proves_nothing(tmp_path: Path) -> None:
    assert play_delete(tmp_path, "01:20:30", "--pop-receipt", "AwAAAAMAAAAAAAAA").code == 74


def test_a_clock_that_the_service_does_not_tell_proves_nothing(tmp_path: Path) -> None:
    ran, _ = play(
        tmp_path,
        (("message", "get", "jobs"), (RECEIVED,)),
        (("message", "delete", MESSAGE), (BUSY, Answer(404, "MessageNotFound", not_found("").headers))),
    )
    assert ran[1].code == 74


def test_an_update_moves_the_time_until_which_no_other_reader_can_have_the_message(tmp_path: Path) -> None:
    visible = Answer.recorded("test_queue.test_update_message", 3)
    ran, _ = play(
        tmp_path,
        (("message", "get", "jobs"), (RECEIVED,)),
        (("message", "update", MESSAGE, "--visible"), (visible,)),
        (("message", "delete", MESSAGE), (BUSY, not_found("01:20:30"))),
    )
    assert [each.code for each in ran] == [0, 0, 74]


def test_after_an_update_in_doubt_another_reader_can_have_the_message(tmp_path: Path) -> None:
    stale = not_found("01:20:30")
    ran, _ = play(
        tmp_path,
        (("message", "get", "jobs"), (RECEIVED,)),
        (("message", "update", MESSAGE, "--visible"), (BUSY, stale)),
        (("message", "delete", MESSAGE), (BUSY, stale)),
    )
    assert [each.code for each in ran] == [0, 74, 74]


@pytest.mark.parametrize("answer", [Answer(403, "AuthorizationFailure"), Answer(404, "QueueNotFound")])
def test_another_refusal_says_nothing_of_a_delete_whose_answer_was_lost(tmp_path: Path, answer: Answer) -> None:
    ran, _ = play(tmp_path, (("message", "get", "jobs"), (RECEIVED,)), (("message", "delete", MESSAGE), (BUSY, answer)))
    assert ran[1].code == 74


@pytest.mark.parametrize("words", [("delete",), ("update", "--visible")])
def test_a_stale_receipt_is_said_alike_where_the_message_is_still_there(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran, asked = play(
        tmp_path,
        (("message", "get", "jobs"), (RECEIVED,)),
        (("message", words[0], MESSAGE, *words[1:]), (not_found("01:20:45"),)),
    )
    told = ran[1].error
    assert (ran[1].code, told["expected_etag"], "stale" in told["message"], len(asked)) == (42, RECEIPT, True, 1)


def test_a_clear_that_is_refused_after_some_messages_were_deleted_is_unknown(tmp_path: Path) -> None:
    words = ("message", "clear", "jobs", "--last-writer-wins", "--with-contents")
    answers = (Answer(500, "OperationTimedOut"), Answer(403, "AuthorizationFailure"))
    ran, _ = play(tmp_path, (words, answers))
    assert ran[0].code == 74


def test_a_queue_that_is_being_deleted_is_busy_for_a_while(tmp_path: Path) -> None:
    answers = (Answer(409, "QueueBeingDeleted"),)
    ran, asked = play(tmp_path, (("queue", "create", "jobs"), answers))
    error = ran[0].error
    assert (ran[0].code, error["message"], error["retriable"]) == (49, "jobs is still being deleted", True)
    assert asked == ["PUT"]


def test_a_message_for_a_queue_that_is_being_deleted_is_not_put(tmp_path: Path) -> None:
    ran, asked = play(tmp_path, (("message", "put", "jobs", "--content", "x"), (Answer(409, "QueueBeingDeleted"),)))
    assert (ran[0].code, ran[0].error["message"]) == (49, "jobs is still being deleted")
    assert asked[0] == "POST"


def test_a_queue_of_other_metadata_exists(tmp_path: Path) -> None:
    theirs = Answer(200, headers={"x-ms-meta-owner": "them", "x-ms-approximate-messages-count": "0"})
    ran, _ = play(tmp_path, (("queue", "create", "jobs"), (EXISTS, theirs)))
    assert (ran[0].code, ran[0].error["service_code"]) == (45, "QueueAlreadyExists")


def test_a_queue_of_the_same_metadata_that_is_not_ours_is_no_success(tmp_path: Path) -> None:
    theirs = Answer(200, headers={"x-ms-meta-owner": "them", "x-ms-approximate-messages-count": "0"})
    ran, _ = play(tmp_path, (("queue", "create", "jobs"), (THE_SAME, theirs)))
    assert ran[0].code == 74


def test_a_clear_that_the_service_does_in_parts_is_asked_for_until_it_is_done(tmp_path: Path) -> None:
    late = Answer(500, "OperationTimedOut")
    ran, asked = play(
        tmp_path, (("message", "clear", "jobs", "--last-writer-wins", "--with-contents"), (late, late, DONE))
    )
    assert (ran[0].code, ran[0].json["attempts"], asked) == (0, 1, ["DELETE"] * 3)


def test_a_clear_that_is_never_done_is_unknown(tmp_path: Path) -> None:
    late = Answer(500, "OperationTimedOut")
    ran, asked = play(tmp_path, (("message", "clear", "jobs", "--last-writer-wins", "--with-contents"), (late,)))
    assert (ran[0].code, len(asked) > 1) == (74, True)


def test_a_message_is_kept_as_long_as_the_service_allows(tmp_path: Path) -> None:
    put = Answer.recorded("test_queue.test_put_message_large_time_to_live", 1)
    with scripted_service.running(put) as service:
        ran = CliWorld(tmp_path, service.connection_string).call(
            "message", "put", "jobs", "--content", "x", "--time-to-live", "1073741824", "-o", "json"
        )
    assert (ran.code, ran.json["expiration_time"]) == (0, "2053-05-17T14:56:55Z")
    assert "messagettl=1073741824" in service.paths[0]
