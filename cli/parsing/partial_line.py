"""A line that may not be whole: what its words are, read by the rows of the commands; for completion and for help."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from azguard.cli.parsing.rows import Row
from azguard.cli.parsing.tree import Command, Group, root


@dataclass
class PartialLine:
    """What was typed so far: the command, the options with their values, and how many arguments."""

    command: Group | Command
    #: The group that the command is in.
    group: Group | None = None
    #: The words of the command.
    path: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    #: What was typed, by the names that rules have for it.
    names: set[str] = field(default_factory=set)
    #: The options that the command does not have, ``--help`` among them, and words that name no command.
    unknown: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    #: The option whose value comes next.
    pending: Row | None = None
    #: Whether the cursor is behind ``--``.
    rest: bool = False


def walk(words: Sequence[str]) -> PartialLine:
    """Read the words of a line, up to ``--``, by the rows of its command."""
    typed = PartialLine(root)
    for word in words:
        if typed.pending is not None:
            _keep(typed, typed.pending, word)
            typed.pending = None
        elif word == "--":
            typed.rest = True
            break
        elif word.startswith("-"):
            _read_option(typed, word)
        elif isinstance(typed.command, Group):
            _read_name(typed, typed.command, word)
        elif not typed.arguments and word in list_second_words(typed):
            typed.command = _within(typed, f"{typed.path[-1]} {word}")
            typed.path.append(word)
        else:
            typed.arguments.append(word)
    return typed


def _read_name(typed: PartialLine, group: Group, word: str) -> None:
    found = group.get(word)
    if found is None:
        typed.unknown.append(word)
    else:
        typed.path.append(word)
        typed.group, typed.command = group, found


def _read_option(typed: PartialLine, word: str) -> None:
    name, equals, value = word.partition("=")
    row = find_option(typed.command, name)
    if row is None:
        typed.unknown.append(word)
    elif row.is_flag:
        typed.options[row.name] = True
        typed.names.add(name if name == row.off else row.flags[0])
    elif equals:
        _keep(typed, row, value)
    else:
        typed.pending = row


def _keep(typed: PartialLine, row: Row, value: str) -> None:
    typed.options[row.name] = value
    typed.names |= {row.flags[0], f"{row.flags[0]}={value}"}


def _within(typed: PartialLine, name: str) -> Group | Command:
    found = None if typed.group is None else typed.group.get(name)
    assert found is not None
    return found


def list_second_words(typed: PartialLine) -> dict[str, str]:
    """Return the words that make another command of the one that was typed, such as ``seal`` behind ``append``."""
    if typed.group is None or typed.arguments:
        return {}
    first = f"{typed.path[-1]} "
    found = [name for name in typed.group.list_names() if name.startswith(first)]
    return {name.removeprefix(first): typed.group.summarize(name) for name in found}


def find_option(command: Group | Command, name: str) -> Row | None:
    """Return the option of that name; None if the command has none."""
    return next((row for row in command.rows if name in row.flags or name == row.off), None)
