"""``azguard file metadata``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The metadata of a file: get, set.")


@app.command(spec=options.operation(operations.FILE_GET_PROPERTIES))
def get(ctx: typer.Context, file: file_options.File) -> None:
    """Read the metadata of a file and remember their version, which guards the next metadata set.

    Examples:
        azguard file metadata get team/plan.txt
        azguard file metadata get team/plan.txt > metadata.json

    Topics: files
    """
    from azguard.files import properties

    env = context.of(ctx)
    target = env.locate(file, Kind.FILE)
    found, lineage = properties.get_metadata(target, env.conditions(target), env.deadline)
    part_options.deliver(env, target, Part.METADATA, found, lineage)


@app.command(name="set", spec=options.operation(operations.FILE_SET_METADATA))
def set_(
    ctx: typer.Context,
    file: file_options.File,
    metadata: options.Metadata = None,
    file_: part_options.File = None,
) -> None:
    """Replace all metadata of a file, if they are still those that you read. azguard keeps its own entry.

    The service does not compare the ETag here. So azguard takes a lease, compares, writes. The ETag changes, the
    content does not. So a file that you read with file get can still be put.

    Examples:
        azguard file metadata set team/plan.txt --metadata owner=ops
        azguard file metadata get team/plan.txt > metadata.json
        azguard file metadata set team/plan.txt -f metadata.json

    Topics: files
    """
    from azguard.files.properties import replace_metadata

    env = context.of(ctx)
    target = env.locate(file, Kind.FILE, writable=True)
    wanted, seen = part_options.read_metadata(metadata, file_)
    done = replace_metadata(target, wanted, env.conditions(target, seen), file_options.guarding(env), env.deadline)
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.reads.record_part(target, Part.METADATA, done.written, done.lineage)
    env.out.show(done.written)
