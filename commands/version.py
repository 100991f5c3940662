"""``azguard version``: the version, as ``--version`` prints it."""

import typer

from azguard import __version__
from azguard.cli import context
from azguard.cli.groups import alone


def version(ctx: typer.Context) -> None:
    """Print the version of azguard; with -o or --query as data.

    Examples:
        azguard version
        azguard version --query version -o tsv
    """
    env = context.of(ctx)
    if env.shared.get("output") or env.shared.get("query"):
        env.out.show({"version": __version__})
    else:
        typer.echo(f"azguard {__version__}")


app = alone(version, "version")
