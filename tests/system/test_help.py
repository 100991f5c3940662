"""``--help`` of every command: readable in 80 columns, with an example that runs as printed."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup

from azguard.cli import app
from tests.support.cli_world import CliWorld


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


EVERY = [pytest.param(path, id=" ".join(path)) for path in commands(app._root())]


def example(cli: CliWorld, path: tuple[str, ...]) -> str:
    text = re.sub(r"\s+", " ", cli.call(*path, "--help", env={"COLUMNS": "500"}).out)
    found = re.search(r"Example: (.*?)(?= (?:Arguments|Options|Conditions|Account|General):)", text)
    assert found is not None, f"{' '.join(path)} has no example"
    return found[1]


@pytest.mark.parametrize("path", EVERY)
def test_every_command_has_an_example_of_itself(offline: CliWorld, path: tuple[str, ...]) -> None:
    assert f"azguard {' '.join(path)}" in example(offline, path)


@pytest.mark.parametrize("path", [pytest.param((), id="azguard"), *EVERY])
def test_help_fits_eighty_columns_and_groups_its_options(offline: CliWorld, path: tuple[str, ...]) -> None:
    ran = offline.call(*path, "--help", env={"COLUMNS": "80"})
    headings = re.findall(r"^(\w+):$", ran.out, re.MULTILINE)
    order = ["Arguments", "Options", "Conditions", "Account", "General", "Commands"]
    assert (ran.code, ran.err, [line for line in ran.out.splitlines() if len(line) > 80]) == (0, "", [])
    assert headings == sorted(headings, key=order.index)


@pytest.mark.parametrize("path", EVERY)
def test_every_option_and_argument_says_what_it_is_for(path: tuple[str, ...]) -> None:
    command: Any = app._root()
    for name in path:
        command = command.get_command(None, name)
    assert [param.name for param in command.params if not param.help] == []


# In an order in which each finds what it needs.
RUNNABLE = [
    ("container", "create"), ("blob", "put"), ("blob", "get"), ("blob", "show"), ("blob", "exists"), ("blob", "list"),
    ("container", "show"), ("container", "exists"), ("container", "list"), ("lease", "acquire"), ("lease", "renew"),
    ("lease", "change"), ("lease", "show"), ("lease", "list"), ("lease", "release"), ("lease", "wait"), ("status",),
    ("cache", "list"), ("cache", "show"), ("cache", "path"), ("cache", "export"), ("blob", "delete"),
    ("container", "delete"), ("cache", "forget"), ("cache", "prune"), ("cache", "clear"), ("profile", "set"),
    ("profile", "show"), ("profile", "list"), ("profile", "delete"), ("help",), ("version",), ("completion",),
]  # fmt: skip


def test_the_examples_run_as_printed(cli: CliWorld) -> None:
    site = f"site{cli.container()}"
    cli.file("config.json", '{"replicas": 1}')
    ended = {}
    for path in RUNNABLE:
        if path == ("cache", "forget"):
            cli.call("blob", "get", f"{site}/config.json")
        line = re.sub(r"\bsite\b", site, example(cli, path)).partition(" > ")[0]
        ended[" ".join(path)] = (cli.call(*shlex.split(line)[1:]).code, line)
    assert {name: (code, line) for name, (code, line) in ended.items() if code} == {}
