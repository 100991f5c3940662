"""Which operations have a command: the table says it in prose, the commands say it in their specs."""

import re
from fnmatch import fnmatch

from azguard.leases.state import KINDS
from azguard.wire import catalogue
from azguard.wire.catalogue import ALL
from tests.support.command_tree import COMMANDS

_WITHOUT = re.findall(r"``([a-z]+\.[a-z_*]+)``", (catalogue.__doc__ or "").partition(" Some of them ")[0])


def _commanded() -> set[str]:
    operations_of = (command.spec.operation for _, command in COMMANDS)
    named = {operation.name for operation in operations_of if operation is not None}
    # One command leases every kind of resource, one writes an entity in two ways, and two take a source or none.
    leases = {action.name for kind in KINDS.values() for action in kind.actions.values()}
    return named | leases | {"table.entity_insert_or_merge", "blob.append_block", "blob.put_page"}


def test_the_table_names_every_operation_without_a_command_and_no_other() -> None:
    assert {name for name in ALL if any(fnmatch(name, each) for each in _WITHOUT)} == set(ALL) - _commanded()


def test_the_table_names_no_operation_that_does_not_exist() -> None:
    assert [each for each in _WITHOUT if not any(fnmatch(name, each) for name in ALL)] == []
