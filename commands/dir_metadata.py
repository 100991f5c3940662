"""``azguard dir metadata``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The metadata of a directory: get, set.")


@app.command(spec=options.operation(operations.DIRECTORY_GET_PROPERTIES))
def get(ctx: typer.Context, directory: file_options.Directory) -> None:
    """Read the metadata of a directory and remember their version, which guards the next metadata set.

    Examples:
        azguard dir metadata get team/reports
        azguard dir metadata get team/reports > metadata.json

    Topics: files
    """
    from azguard.files import properties

    env = context.of(ctx)
    target = env.locate(directory, Kind.DIR)
    found, lineage = properties.get_metadata(target, env.conditions(target), env.deadline)
    part_options.deliver(env, target, Part.METADATA, found, lineage)


@app.command(name="set", spec=options.operation(operations.DIRECTORY_SET_METADATA))
def set_(
    ctx: typer.Context,
    directory: file_options.Directory,
    metadata: options.Metadata = None,
    file_: part_options.File = None,
) -> None:
    """Replace all metadata of a directory, if they are still those that you read. azguard keeps its own entry.

    A directory has no lease that could guard this write. With --allow-race azguard compares the version with the one
    that you read last, or with --etag. Another writer can still come in between.

    Examples:
        azguard dir metadata set team/reports --metadata owner=ops --last-writer-wins
        azguard dir metadata get team/reports > metadata.json
        azguard dir metadata set team/reports -f metadata.json --allow-race

    Topics: files
    """
    from azguard.files.properties import replace_metadata

    env = context.of(ctx)
    target = env.locate(directory, Kind.DIR, writable=True)
    wanted, seen = part_options.read_metadata(metadata, file_)
    done = replace_metadata(target, wanted, env.conditions(target, seen), file_options.guarding(env), env.deadline)
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.reads.record_part(target, Part.METADATA, done.written, done.lineage)
    env.out.show(done.written)
