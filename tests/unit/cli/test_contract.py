"""The commands are those of the contract, and those that were added since: ``tests/data/commands.toml``."""

import re
import tomllib
from collections.abc import Iterator

from azguard.cli.parsing.tree import root
from tests.support.command_tree import COMMANDS
from tests.support.places import REPOSITORY

_TABLE: dict[str, dict[str, str]] = tomllib.loads((REPOSITORY / "tests/data/commands.toml").read_text("utf-8"))
_NAMES = {name for name, _ in COMMANDS}
# A name; and what stands in its group, or beside it.
_ENTRY = re.compile(r"([\w-]+)(?: (\w[\w-]*(?:\|[\w-]+)+|set(?!\S))| \[(\w+)\])?")


def expand(noun: str, line: str) -> Iterator[str]:
    """Yield the names of the commands in a line of the table."""
    for word, group, beside in _ENTRY.findall(line):
        name = f"{noun} {word}".strip()
        yield from [f"{name} {verb}" for verb in group.split("|")] if group else [name]
        if beside:
            yield f"{name} {beside}"


def read(section: str) -> set[str]:
    return {name for noun, line in _TABLE[section].items() for name in expand(noun, line)}


def covers(entries: set[str], name: str) -> bool:
    return any(name == entry or name.startswith(f"{entry} ") for entry in entries)


def test_every_command_of_the_contract_can_be_typed() -> None:
    wanted = {*read("contract"), *read("since")}
    assert {entry for entry in wanted if not any(covers({entry}, name) for name in _NAMES)} == set()


def test_every_command_that_can_be_typed_is_in_the_contract_or_was_added_since() -> None:
    listed = {*read("contract"), *read("since")}
    assert {name for name in _NAMES if not covers(listed, name)} == set()


def test_what_was_added_since_is_not_in_the_contract() -> None:
    assert {name for name in read("since") if covers(read("contract"), name)} == set()


def test_help_lists_the_nouns_of_the_contract() -> None:
    assert set(root.list_names()) == {name.split()[0] for name in read("contract")}
