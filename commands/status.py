"""``azguard status``: which of the things read here changed since."""

from typing import Annotated

import typer

from azguard import status as azguard_status
from azguard.cli import context, memory, options
from azguard.cli.groups import alone
from azguard.errors import Changed, Unavailable

_FRESH = {azguard_status.UNCHANGED, azguard_status.PROPERTIES_UNCHANGED}


def status(
    ctx: typer.Context,
    addresses: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ADDRESS...]", help="Only these; all that this scope read by default."),
    ] = None,
) -> None:
    """Ask which of the resources read here changed, vanished or are leased: exit 0 none, 42 some.

    The ETag of a container or a table says nothing of what is in it: properties_unchanged is all it can tell.

    Example: azguard status
    """
    env = context.of(ctx)
    found = list(azguard_status.check_each(memory.reads(env, addresses or ()), env.deadline.fresh))
    states = {each.state for each in found}
    worst = Unavailable.exit_code if "unanswered" in states else Changed.exit_code if states - _FRESH else 0
    env.answer(found, worst)


_WHY_NO_CONDITIONS = "status compares what is there with what was read here, and writes nothing"
app = alone(status, "status", options.remote(_WHY_NO_CONDITIONS))
