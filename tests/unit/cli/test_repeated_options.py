"""An option that takes one value is refused if it is given twice."""

from typing import Any

import pytest

from azguard.cli.parsing import command_line
from azguard.errors import UsageError
from docs.manual import find_root
from tests.support.cases import cases
from tests.support.command_tree import COMMANDS


def _is_refused_twice(command: Any, option: Any) -> bool:
    try:
        command.make_context("x", [option.opts[0], "a", option.opts[-1], "a"])
    except UsageError as error:
        return error.message == f"{'/'.join(option.opts)} is given twice, and takes one value"
    return False


@cases(("name", "command"), COMMANDS)
def test_every_option_of_one_value_is_refused_twice(name: str, command: Any) -> None:
    options = [each for each in command.params if each.param_type_name == "option"]
    of_one_value = [each for each in options if not each.multiple and not each.is_flag]
    assert [each.opts[0] for each in of_one_value if not _is_refused_twice(command, each)] == []


@cases(
    "words",
    [
        ["blob", "list", "site", "-vv", "-q", "-q"],
        ["container", "create", "site", "--metadata", "a=1", "--metadata", "b=2"],
        ["safe-update", "site/x", "--set", "a=1", "--set", "a=2"],
        ["lock", "run", "a", "-E", "1", "--", "true", "-E", "2", "-E", "3"],
        ["lock", "run", "a", "-E", "1", "--", "true", "--", "-E", "2", "-E", "3"],
    ],
)
def test_flags_lists_and_the_words_of_another_program_may_be_repeated(words: list[str]) -> None:
    command = dict(COMMANDS).get(" ".join(words[:2])) or dict(COMMANDS)[words[0]]
    own = words[2 if " ".join(words[:2]) in dict(COMMANDS) else 1 :]
    assert command.make_context(words[0], own) is not None


def test_a_value_before_the_command_may_be_given_again_behind_it_but_not_beside_it() -> None:
    assert find_root().make_context("azguard", ["-o", "json", "version", "-o", "yaml"]) is not None
    with pytest.raises(UsageError, match="--output/-o is given twice"):
        find_root().make_context("azguard", ["-o", "json", "--output=yaml", "version"])


@cases("stdin", [["-f", "-"], ["-f-"], ["--file", "-"], ["--file=-"]])
def test_a_hint_that_names_another_file_does_not_repeat_the_option(stdin: list[str]) -> None:
    assert command_line.drop(["blob", "put", "a/b", *stdin], ()) == ["blob", "put", "a/b"]
