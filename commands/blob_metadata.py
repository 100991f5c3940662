"""``azguard blob metadata``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The metadata of a blob: get, set.")


@app.command(spec=options.operation(operations.BLOB_GET_PROPERTIES))
def get(ctx: typer.Context, blob: options.Blob) -> None:
    """Read the metadata of a blob and remember their version, which guards the next metadata set.

    What you read of the content still guards the next put.

    Examples:
        azguard blob metadata get site/config.json
        azguard blob metadata get site/config.json > metadata.json

    Topics: conditions
    """
    from azguard.blobs import metadata

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    found, lineage = metadata.get(target, env.conditions(target), env.deadline)
    part_options.deliver(env, target, Part.METADATA, found, lineage)


@app.command(name="set", spec=options.operation(operations.BLOB_SET_METADATA))
def set_(
    ctx: typer.Context,
    blob: options.Blob,
    metadata: options.Metadata = None,
    file: part_options.File = None,
) -> None:
    """Replace all metadata of a blob, but only of the version you have seen.

    A file that metadata get printed names its version, which guards the write. Without such a file, the version that
    you read last does: by metadata get, else by blob get. To change one entry and keep the others, use
    azguard safe-update --metadata.

    azguard reads the blob first. It keeps its own entries, and those of a lock. With a condition other than
    --if-match it takes a lease meanwhile.

    The ETag of the blob changes, its content does not. So a file that you read with blob get can still be put.

    Examples:
        azguard blob metadata set site/config.json --metadata owner=ops
        echo '{"owner": "ops"}' | azguard blob metadata set site/config.json

    Topics: conditions
    """
    from azguard.blobs.metadata import replace_all
    from azguard.cli.lease_options import CacheRecords

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    wanted, seen = part_options.read_metadata(metadata, file)
    done = replace_all(target, wanted, env.conditions(target, seen), CacheRecords(env), env.deadline)
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.reads.record_part(target, Part.METADATA, done.written, done.lineage)
    env.out.show(done.written)
