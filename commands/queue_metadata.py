"""``azguard queue metadata``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The metadata of a queue: get, set.")


@app.command(spec=options.operation(operations.QUEUE_GET_METADATA))
def get(ctx: typer.Context, queue: options.Queue) -> None:
    """Read the metadata of a queue and remember their version, which guards the next metadata set.

    The service gives them no ETag; azguard makes the one it shows from their content.

    Examples:
        azguard queue metadata get jobs
        azguard queue metadata get jobs > metadata.json

    Topics: queues
    """
    from azguard.queues import metadata

    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    part_options.deliver(env, target, Part.METADATA, metadata.get(target, env.deadline))


@app.command(name="set", spec=options.operation(operations.QUEUE_SET_METADATA))
def set_(
    ctx: typer.Context,
    queue: options.Queue,
    metadata: options.Metadata = None,
    file: part_options.File = None,
) -> None:
    """Replace all metadata of a queue. azguard keeps its own entry.

    The service cannot guard this write. With --allow-race azguard compares the metadata with those that you read
    last, or with --etag. Another writer can still come in between.

    Examples:
        azguard queue metadata set jobs --metadata owner=ops --last-writer-wins

    Topics: queues
    """
    from azguard.queues.metadata import replace_all

    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    wanted, seen = part_options.read_metadata(metadata, file)
    done = replace_all(target, wanted, env.conditions(target, seen), env.deadline)
    env.reads.record_part(target, Part.METADATA, done)
    env.out.show(done)
