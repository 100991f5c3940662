"""``azguard file resize``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import UsageError

app = group("Files of file shares: resize.")


@app.command(spec=options.operation(operations.FILE_SET_PROPERTIES))
def resize(
    ctx: typer.Context,
    file: file_options.File,
    size: Annotated[str | None, typer.Option("--size", metavar="BYTES", help="The new length; always needed.")] = None,
) -> None:
    """Set the length of a file, if it is still the version that you read.

    Bytes that are cut off are lost. Bytes that are added are zeros and take no room.

    Examples:
        azguard file resize team/plan.txt --size 1MiB --last-writer-wins

    Topics: files
    """
    from azguard.files import ranges

    env = context.of(ctx)
    target = env.locate(file, Kind.FILE, writable=True)
    if size is None:
        raise UsageError("--size is missing", hint="how long the file is to be: --size 1MiB")
    length = values.size(size, "--size")
    if length > ranges.MOST_BYTES:
        raise UsageError(f"--size {size}: a file has at most 4 TiB")
    conditions = env.conditions(target)
    done = ranges.resize_file(target, length, conditions, file_options.guarding(env), env.deadline)
    file_options.record_written(env, target, conditions, done)
    env.out.show(done)
