"""``azguard version``: the version, as ``--version`` prints it."""

import typer

from azguard import __version__
from azguard.cli.groups import alone


def version() -> None:
    """Print the version of azguard.

    Examples:
        azguard version
    """
    typer.echo(f"azguard {__version__}")


app = alone(version, "version")
