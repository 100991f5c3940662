"""What the cache keeps of a version behind the command that read it."""

from datetime import UTC, datetime

from azguard.cache import records
from tests.support.cases import cases

SOON = datetime(2026, 11, 22, 4, 0, 30, tzinfo=UTC)


def test_until_when_a_message_is_hidden_is_kept_behind_the_command() -> None:
    command = records.add_hidden_until("message get", SOON)
    assert (command.startswith("message get"), records.find_hidden_until(command)) == (True, SOON)


@cases(
    "command", ["message get", "", records.add_hidden_until("message get", None), "message get, hidden until then",
                "message get, hidden until 2026-11-22T04:00:30"],
)  # fmt: skip
def test_what_names_no_moment_tells_none(command: str) -> None:
    assert records.find_hidden_until(command) is None
