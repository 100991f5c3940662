"""``azguard dir``: set-properties, rename."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, file_options, options
from azguard.cli.file_property_options import SmbPropertyOptions
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("Directories: set-properties, rename.")


@app.command(name="set-properties", spec=options.operation(operations.DIRECTORY_SET_PROPERTIES))
def set_properties(ctx: typer.Context, directory: file_options.Directory, given: SmbPropertyOptions) -> None:
    """Change attributes and times of a directory. What you do not name stays.

    A directory has no lease that could guard this write. With --allow-race azguard compares the version with the one
    that you read last, or with --etag. Another writer can still come in between.

    Examples:
        azguard dir set-properties team/reports --attributes Hidden --last-writer-wins

    Topics: files
    """
    from azguard.files import properties

    env = context.of(ctx)
    target = env.locate(directory, Kind.DIR, writable=True)
    wanted = given.check()
    conditions = env.conditions(target)
    done = properties.change_directory(target, wanted, conditions, env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    env.out.show(done)


@app.command(spec=options.operation(operations.DIRECTORY_RENAME))
def rename(
    ctx: typer.Context,
    directory: file_options.Directory,
    new: Annotated[str, typer.Argument(metavar="SHARE/PATH", help="Its new address.", autocompletion=completers.files)],
) -> None:
    """Rename a directory with all that is in it, inside its share, and replace nothing.

    What is at the new address stays, and the exit status is 45. With --last-writer-wins a file that is there is
    replaced; --lease-id is the lease of that file. A directory there is never replaced.

    Examples:
        azguard dir rename team/reports team/archive

    Topics: files
    """
    from azguard.files import directories

    env = context.of(ctx)
    source = env.locate(directory, Kind.DIR, writable=True)
    target = env.locate(new, Kind.DIR, writable=True)
    replaced = directories.find_replaced(target)
    last = env.reads.find_last(source)
    result = directories.rename_directory(source, target, env.conditions(replaced), env.deadline)
    env.reads.move_leases(source, target)
    env.reads.forget(source)
    env.reads.forget(replaced)
    if last is not None and last.etag == result.previous_etag:
        env.reads.record(target, result)
    else:
        env.reads.forget(target)
    env.out.show(result)
