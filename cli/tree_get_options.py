"""The options of a get of a tree: a put, which builds its own, has no use for them."""

from dataclasses import dataclass
from typing import Annotated

import typer

from azguard.cli import options, values
from azguard.cli.tree_options import TreeCopyOptions

_TREES = options.TREES


@dataclass(frozen=True)
class TreeGetOptions(TreeCopyOptions):
    """What a get of a tree takes besides."""

    if_exists: Annotated[
        str | None,
        typer.Option("--if-exists", metavar="skip", rich_help_panel=_TREES, help="Leave alone what is in the folder."),
    ] = None

    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            rich_help_panel=_TREES,
            help="End with 0 if nothing is there; with --mirror this empties your folder.",
        ),
    ] = False

    @property
    def skips_existing(self) -> bool:
        """Return whether what is in the folder is left alone, whatever it holds."""
        return values.choice(values.not_empty(self.if_exists, "--if-exists"), "--if-exists", ("skip",)) is not None
