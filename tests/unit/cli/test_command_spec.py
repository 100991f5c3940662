"""Which operations have a command: the table says it in prose, the commands say it in their specs."""

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib import import_module

import typer

from azguard.cli.registry import COMMANDS
from azguard.conditions import operations
from azguard.conditions.operations import ALL
from azguard.leases.kinds import KINDS

_WITHOUT = re.findall(r"``([a-z]+\.[a-z_*]+)``", (operations.__doc__ or "").partition(" Some of them ")[0])


def _specs(app: typer.Typer) -> Iterator[str]:
    for command in app.registered_commands:
        operation = command.cls.keywords["spec"].operation  # type: ignore[union-attr]  # a partial, as group() makes it
        if operation is not None:
            yield operation.name
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from _specs(group.typer_instance)


def _commanded() -> set[str]:
    named = {
        name
        for entry in COMMANDS.values()
        for module in {entry.module, *entry.parts.values()}
        for name in _specs(import_module(f"azguard.commands.{module}").app)
    }
    # One command leases every kind of resource, and one writes an entity in two ways.
    leases = {action.name for kind in KINDS.values() for action in kind.actions.values()}
    return named | leases | {"table.entity_insert_or_merge"}


def test_the_table_names_every_operation_without_a_command_and_no_other() -> None:
    assert {name for name in ALL if any(fnmatch(name, each) for each in _WITHOUT)} == set(ALL) - _commanded()


def test_the_table_names_no_operation_that_does_not_exist() -> None:
    assert [each for each in _WITHOUT if not any(fnmatch(name, each) for name in ALL)] == []
