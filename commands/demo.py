"""``azguard demo``: watch updates get lost, doubled, and applied exactly once."""

import random
from typing import Annotated

import typer

from azguard.cli import context, demo_view, values
from azguard.cli.groups import alone
from azguard.demo import race
from azguard.emulators.azurite_install import check_system

_WRITERS, _INCREMENTS = "8", "25"
# More would only measure this machine's memory and Azurite's patience.
_MOST_WRITERS, _MOST_INCREMENTS, _MOST_SEED = 64, 1000, 9999


def demo(
    ctx: typer.Context,
    writers: Annotated[str, typer.Option("--writers", metavar="N", help="Let N processes write.")] = _WRITERS,
    increments: Annotated[
        str, typer.Option("--increments", metavar="N", help="Let each writer apply N increments.")
    ] = _INCREMENTS,
    seed: Annotated[str | None, typer.Option("--seed", metavar="N", help="Choose which answers get lost.")] = None,
) -> None:
    """Watch updates get lost, doubled, and applied exactly once.

    Many processes add 1 to the same blob, in an emulator of their own. One answer in ten gets lost. They do it three
    times: as scripts do it today, as careful scripts do it, and with azguard safe-update. The demo needs no account and
    changes nothing of yours. It takes less than a minute. It exits with 0 only if the count of azguard is exact.

    Examples:
        azguard demo
        azguard demo --writers 4 --increments 10
    """
    check_system()
    env = context.of(ctx)
    plan = race.DemoPlan(
        writers=values.whole(writers, "--writers", 1, _MOST_WRITERS),
        increments=values.whole(increments, "--increments", 1, _MOST_INCREMENTS),
        seed=random.randint(0, _MOST_SEED) if seed is None else values.whole(seed, "--seed", 0, _MOST_SEED),
    )
    with demo_view.of(env, plan) as view:
        result = race.run(plan, env.folders.emulator, env.environ, say=env.out.info, watch=view.watch)
    demo_view.finish(env, view, result)


app = alone(demo, "demo")
