"""Messages go with their queue, or with a clear: on a terminal, a person is asked."""

import pytest

from tests.support import queue_world, terminal_world
from tests.support.cli_world import CliWorld

DELETE, CLEAR = ("queue", "delete"), ("message", "clear")


@pytest.fixture
def jobs(cli: CliWorld) -> str:
    return queue_world.queue(cli, "one", "two")


@pytest.mark.parametrize(
    ("words", "answer", "code", "question"),
    [
        (DELETE, "y", 0, "delete {} and the 2 messages in it? [y/N] "),
        (DELETE, "n", 130, "delete {} and the 2 messages in it? [y/N] "),
        (CLEAR, "yes", 0, "delete the 2 messages in {}? [y/N] "),
        (CLEAR, "", 130, "delete the 2 messages in {}? [y/N] "),
    ],
)
def test_on_a_terminal_it_asks(
    cli: CliWorld, jobs: str, words: tuple[str, str], answer: str, code: int, question: str
) -> None:
    status, said = terminal_world.answer(cli, answer, *words, jobs, "--last-writer-wins")
    left = cli.call("queue", "show", jobs, "--query", "approximate_message_count", "-o", "tsv")
    there = {(DELETE, 0): (44, ""), (CLEAR, 0): (0, "0\n")}.get((words, code), (0, "2\n"))
    assert (status, question.format(jobs) in said, (left.code, left.out)) == (code, True, there)


@pytest.mark.parametrize(("words", "end"), [(DELETE, "with it"), (CLEAR, "would be deleted")])
def test_messages_are_counted_without_a_terminal(cli: CliWorld, jobs: str, words: tuple[str, str], end: str) -> None:
    ran = cli.call(*words, jobs, "--last-writer-wins", "-o", "json")
    assert (ran.code, "2 messages" in ran.error["message"], ran.error["message"].endswith(end)) == (42, True, True)


@pytest.mark.parametrize("words", [DELETE, CLEAR])
def test_a_dry_run_deletes_nothing(cli: CliWorld, jobs: str, words: tuple[str, str]) -> None:
    said = (*words, jobs, "--last-writer-wins", "--dry-run")
    assert (cli.call(*said).code, cli.call(*words, "nosuch", *said[3:]).code) == (42, 44)
    assert cli.call(*said, "--with-contents").json["outcome"] == "would delete"
    assert cli.call("queue", "show", jobs).json["approximate_message_count"] == 2
