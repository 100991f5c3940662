"""The options that commands share: of their account and their output, and the conditions of their operation."""

import inspect
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import TYPE_CHECKING

import typer
from typer.core import TyperOption
from typer.main import get_command

from azguard.cli import options

if TYPE_CHECKING:
    from azguard.conditions.operations import Operation

#: Every option that asks for a condition, whatever the command.
CONDITIONS = frozenset(
    name
    for declaration in (options.conditions, options.rare_conditions)
    for name in inspect.signature(declaration).parameters
)


def general_params() -> list[TyperOption]:
    """Return the options that every command takes."""
    return list(_params(options.general, options.GENERAL))


def account_params() -> list[TyperOption]:
    """Return the options that choose an account."""
    return list(_params(options.account, options.ACCOUNT))


@cache
def _params(declaration: Callable[..., None], panel: str) -> tuple[TyperOption, ...]:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(declaration)
    params = tuple(param for param in get_command(app).params if isinstance(param, TyperOption))
    for param in params:
        param.rich_help_panel = panel
    return params


def condition_params(operation: "Operation | None") -> list[TyperOption]:
    """Return every condition option; those that mean nothing here are hidden, and refused by name with the reason."""
    shown = set() if operation is None else _list_shown(operation)
    params = []
    for declaration in (options.conditions, options.rare_conditions):
        for param in _params(declaration, options.CONDITIONS):
            own = copy(param)
            own.hidden = param.name not in shown
            params.append(own)
    return params


def _list_shown(operation: "Operation") -> set[str]:
    """Return the names of the condition options that mean something to an operation."""
    shown = {condition.replace("-", "_") for condition in operation.honours}
    if operation.names_lease:
        shown.add("lease_id")
    if operation.writes and operation.guard != "none":
        shown.add("etag")
    if operation.fences:
        shown.add("fence")
    if operation.overwrites:
        shown.add("last_writer_wins")
    if operation.guard == "compare":
        shown.add("allow_race")
    return shown
