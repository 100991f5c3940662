"""``azguard help``: the help of a command, as ``--help`` prints it."""

from typing import Annotated

import typer
from typer.core import TyperGroup

from azguard.cli.groups import alone
from azguard.errors import UsageError


def show(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND [SUBCOMMAND]]", help="The command; azguard itself by default."),
    ] = None,
) -> None:
    """Show the help of a command, as COMMAND --help does.

    Example: azguard help blob put
    """
    asked = ctx.find_root()
    for word in command or ():
        group = asked.command
        if not isinstance(group, TyperGroup):
            raise UsageError(
                f"{asked.command_path} has no command {word!r}", hint=asked.command_path.replace(" ", " help ", 1)
            )
        name, found, _ = group.resolve_command(asked, [word])
        assert found is not None
        asked = type(asked)(found, info_name=name, parent=asked)
    typer.echo(asked.get_help())


app = alone(show, "help")
