"""A dataclass of options is as many options to Typer, and one value to the command."""

from dataclasses import dataclass, field
from typing import Annotated

import typer
from typer.testing import CliRunner

from azguard.cli.parsing.command_spec import expand


@dataclass(frozen=True)
class Inner:
    """Options within options."""

    wait: Annotated[str | None, typer.Option("--wait")] = None


@dataclass(frozen=True)
class Outer:
    """Options with an argument among them."""

    names: Annotated[list[str] | None, typer.Argument()] = None
    fast: Annotated[bool, typer.Option("--fast")] = False
    inner: Inner = field(default_factory=Inner)


def test_a_command_is_called_with_the_dataclass_of_what_was_typed() -> None:
    app, calls = typer.Typer(), list[tuple[str, Outer, int]]()

    @app.command()
    @expand
    def run(first: str, given: Outer, count: Annotated[int, typer.Option("--count")] = 1) -> None:
        calls.append((first, given, count))

    ran = [CliRunner().invoke(app, words).exit_code for words in (["a", "b", "c", "--fast", "--wait", "1s"], ["a"])]
    assert (ran, calls) == (
        [0, 0],
        [("a", Outer(["b", "c"], fast=True, inner=Inner("1s")), 1), ("a", Outer(calls[1][1].names), 1)],
    )
