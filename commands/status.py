"""``azguard status``: which of the things read here changed since."""

from collections.abc import Sequence
from typing import Annotated

from azguard import status as azguard_status
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.options import common
from azguard.cli.parsing.rows import argument
from azguard.cli.parsing.tree import Group
from azguard.errors import Changed, Unavailable
from azguard.status import Read

_FRESH = {azguard_status.UNCHANGED, azguard_status.PROPERTIES_UNCHANGED}

app = Group()


@app.command(
    spec=common.remote("status compares what is there with what was read here, and writes nothing", takes_key=True)
)
def status(
    env: Environment,
    addresses: Annotated[
        list[str] | None,
        argument("[ADDRESS...]", "The resources.", completer=completers.addresses, otherwise="all that you read"),
    ] = None,
) -> int:
    """Compare what you read with the service: exit 0 if all is the same, 42 if not, or if a lease is in the way.

    The ETag of a container, a table, a share or a directory does not cover its contents. So their state is
    properties_unchanged.

    Examples:
        azguard status
        azguard status blob:site/config.json
        azguard status -o json

    Topics: scopes
    """
    env.cache.require_readable()
    checked = azguard_status.check_each(_reads(env, addresses or ()), env.deadline.fresh)
    found = env.out.gather(checked, "resources")
    return env.out.answer(found, _exit_status({each.state for each in found}))


def _reads(env: Environment, addresses: Sequence[str]) -> list[Read]:
    if addresses:
        return azguard_status.reads_of(env.cache, [env.locate(each) for each in addresses])
    return azguard_status.all_reads(
        env.cache,
        env.scope,
        env.account,
        lambda number: env.out.info(f"{number} more were read in other accounts: see azguard cache list"),
    )


def _exit_status(states: set[str]) -> int:
    if azguard_status.UNANSWERED in states:
        return Unavailable.exit_code
    return Changed.exit_code if states - _FRESH else 0
