"""All commands of the command line, each with its words."""

from collections.abc import Collection, Sequence

from azguard.cli.errors import Facts
from azguard.cli.parsing.parser import build
from azguard.cli.parsing.tree import Command, Group, root

#: The words of each command, such as ``blob put``, and the command.
COMMANDS = tuple(root.walk())


def command_at(path: Sequence[str]) -> Command:
    """Return the command of these words."""
    found = root.find(path)
    assert isinstance(found, Command)
    return found


def read_line(node: Command | Group, words: Sequence[str]) -> bool:
    """Return whether the words of a line are read; an error of the parser is raised."""
    return build(node).make_context("x", list(words), obj=Facts()) is not None


def find_name(line: str, names: Collection[str]) -> str | None:
    """Return which of these names a line begins with; the longest, if there are several."""
    words = line.split()
    heads = (" ".join(words[:length]) for length in range(len(words), 0, -1))
    return next((head for head in heads if head in names), None)


def find_command(line: str) -> str:
    """Return the words of the command that a line begins with."""
    found = find_name(line, [words for words, _ in COMMANDS])
    assert found is not None, f"there is no such command: {line}"
    return found
