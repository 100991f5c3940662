"""``azguard blob``: show, exists, list. Its other commands have modules of their own.

Each command imports its part of ``azguard.blobs`` itself: most of a short run is imports.
"""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import NotFound

app = group("Blobs: get, put, show, exists, list, delete, copy, snapshot, restore, metadata, tags, tier.")


@app.command(spec=options.operation(operations.BLOB_GET_PROPERTIES))
def show(ctx: typer.Context, blob: options.Blob) -> None:
    """Show a blob's properties, without its content.

    Examples:
        azguard blob show site/config.json
        azguard blob show site/config.json --query etag -o tsv
        azguard blob show site/config.json -o json > properties.json

    Topics: conditions
    """
    from azguard.blobs import listing

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    env.out.show(listing.show(target, env.conditions(target), env.deadline))


@app.command(spec=options.operation(operations.BLOB_GET_PROPERTIES))
def exists(ctx: typer.Context, blob: options.Blob) -> None:
    """Exit 0 if the blob exists, 44 if not. Where its container does not exist, an error says so (44).

    Examples:
        azguard blob exists site/config.json
        azguard blob exists site/config.json -o none && echo "it is there"

    Topics: conditions
    """
    from azguard.blobs import listing
    from azguard.resources import existence

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    conditions = env.conditions(target)
    found = existence.ask_whether_exists(target, lambda: listing.show(target, conditions, env.deadline))
    env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(name="list", spec=options.operation(operations.CONTAINER_LIST_BLOBS))
def list_(
    ctx: typer.Context,
    container: options.Container,
    prefix: options.Prefix = None,
    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", metavar="TEXT", help="Show one line for all names that are equal up to this text."),
    ] = None,
    include: Annotated[
        str | None,
        typer.Option(
            "--include",
            metavar="LIST",
            help="Show also metadata, snapshots, versions, deleted, tags, uncommittedblobs.",
        ),
    ] = None,
    num_results: options.Limit = None,
) -> None:
    """List a container's blobs.

    Examples:
        azguard blob list site
        azguard blob list site --prefix conf
        azguard blob list site --query '[].name' -o tsv
    """
    from azguard.blobs.listing import list_blobs

    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    env.conditions(target)
    env.out.show_each(
        list_blobs(
            target,
            env.deadline,
            prefix=prefix,
            delimiter=values.not_empty(delimiter, "--delimiter"),
            include=values.parse_included(include),
            limit=values.count(num_results, "--num-results"),
        )
    )
