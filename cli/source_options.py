"""The source of an append or of pages that the service reads itself."""

from typing import TYPE_CHECKING, Annotated

import typer

from azguard.accounts.target import Target
from azguard.cli import completers, copy_options, values
from azguard.cli.context import Environment
from azguard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azguard.blobs.copy_sources import SourcePiece
    from azguard.conditions.resolve import Conditions

SourceUrl = Annotated[
    str | None,
    typer.Option(
        "--source-url",
        metavar="CONTAINER/NAME|URL",
        help="Let the service read the content from this blob.",
        autocompletion=completers.blobs,
    ),
]


def check(url: str | None, sas: str | None, file: str | None) -> None:
    """Refuse what contradicts a source, or needs one.

    Raises:
        UsageError: names the options, and what goes instead.
    """
    if values.not_empty(url, "--source-url") is None:
        if sas is not None:
            raise UsageError("--source-sas is for a source", hint="name it with --source-url")
    elif file is not None:
        raise UsageError("--source-url and --file do not go together", hint="leave one of them out")


def read(
    env: Environment, target: Target, url: str, sas: str | None, conditions: "Conditions"
) -> "Iterator[SourcePiece]":
    """Yield the ranges of the source, under the conditions on it."""
    from azguard.blobs import copy_sources

    source = copy_options.locate_source(env, target, url, sas)
    return copy_sources.read_pieces(source, conditions.source_headers, env.deadline)
