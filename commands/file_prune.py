"""``azguard file prune``."""

from datetime import timedelta
from typing import Annotated

import typer

from azguard.cli import context, file_options, options, values
from azguard.cli.groups import group

app = group("Files of file shares: prune.")


@app.command(spec=options.remote("each temporary file is deleted as the version that was judged"))
def prune(
    ctx: typer.Context,
    folder: file_options.Folder,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="DURATION", help="Delete also those that were not written for this long."),
    ] = None,
    recursive: Annotated[bool, typer.Option("--recursive", help="Include the directories below.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
) -> None:
    """Delete the temporary files that killed writes left in a share or directory.

    A command that writes a whole file, such as file put or safe-update, first writes a temporary file beside it, whose
    name begins with .azguard-. If azguard is killed, the temporary file stays. prune deletes those whose process on
    this machine has ended. The next file put in the directory does the same.

    Another machine may still be writing the others, so they are kept, and shown. With --older-than they are deleted if
    they were not written for this long, by the clock of the service. Choose a time that is longer than any pause of an
    upload. A file that is written or leased meanwhile stays.

    Examples:
        azguard file prune team --recursive --dry-run
        azguard file prune team --recursive
        azguard file prune team/reports --older-than 7d

    Topics: files
    """
    from azguard.files import leftovers

    env = context.of(ctx)
    target = file_options.locate_folder(env, folder, writable=True)
    age = None if older_than is None else timedelta(seconds=values.duration(older_than, "--older-than"))
    pruning = leftovers.Pruning(file_options.guarding(env), env.deadline, older_than=age, only_tells=dry_run)
    env.out.show_each(leftovers.prune(target, pruning, recursive=recursive))
