"""The options of trees of files that only a service with directories has a use for."""

from dataclasses import dataclass
from typing import Annotated

import typer

from azguard.cli import options
from azguard.cli.tree_options import TreeOptions, TreePutOptions

_KeepDirectories = Annotated[
    bool,
    typer.Option(
        "--keep-directories",
        rich_help_panel=options.TREES,
        help="Keep directories that the deletes made empty.",
    ),
]


@dataclass(frozen=True)
class FileTreeDeleteOptions(TreeOptions):
    """What a delete of a tree takes besides."""

    keep_directories: _KeepDirectories = False


@dataclass(frozen=True)
class FileTreePutOptions(TreePutOptions):
    """What a put of a tree takes besides."""

    keep_directories: _KeepDirectories = False
