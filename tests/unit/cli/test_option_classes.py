"""A dataclass of options is as many rows, and one value to the command."""

from dataclasses import dataclass, field
from typing import Annotated

from azguard.cli.parsing.rows import argument, fill, flag, list_rows, option
from docs.help_pages import write_row


@dataclass(frozen=True)
class Inner:
    """Options within options."""

    wait: Annotated[str | None, option("--wait", "DURATION", "Wait.")] = None


@dataclass(frozen=True)
class Outer:
    """Options with an argument among them."""

    names: Annotated[list[str] | None, argument("NAME", "Names.")] = None
    fast: Annotated[bool, flag("--fast", "Be fast.")] = False
    inner: Inner = field(default_factory=Inner)


def command(env: object, first: Annotated[str, argument("FIRST", "The first.")], given: Outer) -> None:
    """Stand for the function of a command."""


def test_the_rows_of_a_command_are_those_of_its_parameters_and_of_the_dataclasses_in_them() -> None:
    rows = [(row.name, write_row(row), row.is_required) for row in list_rows(command)]
    assert rows == [
        ("first", "FIRST", True),
        ("names", "[NAME...]", False),
        ("fast", "--fast", False),
        ("wait", "--wait DURATION", False),
    ]


def test_a_command_is_called_with_the_dataclass_of_what_was_typed() -> None:
    given = {"first": "a", "names": ["b"], "fast": True, "wait": "1s"}
    assert fill(command, given) == {"first": "a", "given": Outer(["b"], fast=True, inner=Inner("1s"))}
