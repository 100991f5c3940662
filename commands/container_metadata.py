"""``azguard container metadata``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The metadata of a container: get, set.")


@app.command(spec=options.operation(operations.CONTAINER_GET_PROPERTIES))
def get(ctx: typer.Context, container: options.Container) -> None:
    """Read the metadata of a container and remember their version, which guards the next metadata set.

    Examples:
        azguard container metadata get site
        azguard container metadata get site > metadata.json

    Topics: conditions
    """
    from azguard.blobs.metadata import read_container_metadata

    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    found, lineage = read_container_metadata(target, env.conditions(target), env.deadline)
    part_options.deliver(env, target, Part.METADATA, found, lineage)


@app.command(name="set", spec=options.operation(operations.CONTAINER_SET_METADATA))
def set_(
    ctx: typer.Context,
    container: options.Container,
    metadata: options.Metadata = None,
    file: part_options.File = None,
) -> None:
    """Replace all metadata of a container. azguard keeps its own entry.

    The service cannot guard this write, and a lease on a container does not keep other writers out. With --allow-race
    azguard compares the version with the one that you read last, or with --etag. Another writer can still come in
    between.

    A change of the access policies changes the version too.

    Examples:
        azguard container metadata set site --metadata owner=ops --allow-race

    Topics: conditions
    """
    from azguard.blobs.metadata import replace_container_metadata

    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    wanted, seen = part_options.read_metadata(metadata, file)
    done = replace_container_metadata(target, wanted, env.conditions(target, seen), env.deadline)
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.reads.record_part(target, Part.METADATA, done.written, done.lineage)
    env.out.show(done.written)
