"""An option that takes one value is refused if it is given twice."""

import pytest

from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import Row
from azguard.cli.parsing.tree import Command, root
from azguard.errors import UsageError
from tests.support.cases import cases
from tests.support.command_tree import COMMANDS, read_line


def _is_refused_twice(command: Command, row: Row) -> bool:
    try:
        read_line(command, [row.flags[0], "1", row.flags[-1], "1"])
    except UsageError as error:
        return error.message == f"{'/'.join(row.flags)} is given twice, and takes one value"
    return False


@cases(("name", "command"), *COMMANDS)
def test_every_option_of_one_value_is_refused_twice(name: str, command: Command) -> None:
    of_one_value = [row for row in command.rows if not (row.is_argument or row.is_many or row.is_flag)]
    assert [row.flags[0] for row in of_one_value if not _is_refused_twice(command, row)] == []


@cases(
    "words",
    ["blob", "list", "site", "-vv", "-q", "-q"],
    ["container", "create", "site", "--metadata", "a=1", "--metadata", "b=2"],
    ["safe-update", "site/x", "--set", "a=1", "--set", "a=2"],
    ["lock", "run", "a", "-E", "1", "--", "true", "-E", "2", "-E", "3"],
    ["lock", "run", "a", "-E", "1", "--", "true", "--", "-E", "2", "-E", "3"],
)
def test_flags_lists_and_the_words_of_another_program_may_be_repeated(words: list[str]) -> None:
    command = dict(COMMANDS).get(" ".join(words[:2])) or dict(COMMANDS)[words[0]]
    assert read_line(command, words[2 if " ".join(words[:2]) in dict(COMMANDS) else 1 :])


def test_a_value_before_the_command_may_be_given_again_behind_it_but_not_beside_it() -> None:
    assert read_line(root, ["-o", "json", "version", "-o", "yaml"])
    with pytest.raises(UsageError, match="--output/-o is given twice"):
        read_line(root, ["-o", "json", "--output=yaml", "version"])


@cases("stdin", ["-f", "-"], ["-f-"], ["--file", "-"], ["--file=-"])
def test_a_hint_that_names_another_file_does_not_repeat_the_option(stdin: list[str]) -> None:
    assert command_line.drop(["blob", "put", "a/b", *stdin], ()) == ["blob", "put", "a/b"]
