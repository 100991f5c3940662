"""All commands of the command line, each with its words."""

from collections.abc import Iterator
from typing import Any

from azguard.cli import app


def _within(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for sub in command.list_commands(None):
        yield from _within(f"{name} {sub}", command.get_command(None, sub))


def _all() -> Iterator[tuple[str, Any]]:
    root = app._root()
    for name in root.list_commands(None):
        yield from _within(name, root.get_command(None, name))


#: The words of each command, such as ``blob put``, and the command.
COMMANDS = tuple(_all())
