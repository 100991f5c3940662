"""All commands of the command line, each with its words."""

from collections.abc import Collection

from docs.generate import commands

#: The words of each command, such as ``blob put``, and the command.
COMMANDS = tuple(commands())


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
