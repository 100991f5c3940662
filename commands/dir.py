"""``azguard dir``: create, show, exists, list, delete."""

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, lifecycle_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import NotFound
from azguard.files import directories, entries, writes
from azguard.requests.lineage import fresh_op
from azguard.resources.existence import ask_whether_exists
from azguard.resources.existence import create as create_unless_exists

app = group("Directories: create, show, exists, list, delete, rename, set-properties, metadata.")


@app.command(spec=options.operation(operations.DIRECTORY_CREATE))
def create(
    ctx: typer.Context,
    directory: file_options.Directory,
    metadata: options.Metadata = None,
    if_exists: options.IfExists = None,
) -> None:
    """Create a directory; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    Its parent directory must exist. Creating is atomic: if several try, one succeeds.

    Examples:
        azguard dir create team/reports
        azguard dir create team/reports --if-exists skip

    Topics: files
    """
    env = context.of(ctx)
    target = env.locate(directory, Kind.DIR, writable=True)
    env.conditions(target)
    stamps = values.metadata(metadata)
    op = fresh_op()
    result = create_unless_exists(
        lambda: directories.create(target, stamps, env.deadline, op),
        lambda: writes.find_existing(target, op, env.deadline),
        skip=lifecycle_options.skips(env, if_exists),
    )
    env.reads.record(target, result)
    env.out.show(result)


@app.command(spec=options.operation(operations.DIRECTORY_GET_PROPERTIES))
def show(ctx: typer.Context, directory: file_options.Directory) -> None:
    """Show a directory's properties and metadata.

    Examples:
        azguard dir show team/reports
        azguard dir show team/reports --query etag -o tsv

    Topics: files
    """
    env = context.of(ctx)
    target = env.locate(directory, Kind.DIR)
    env.conditions(target)
    env.out.show(directories.show(target, env.deadline))


@app.command(spec=options.operation(operations.DIRECTORY_GET_PROPERTIES))
def exists(ctx: typer.Context, directory: file_options.Directory) -> None:
    """Exit 0 if the directory exists, 44 if not.

    Examples:
        azguard dir exists team/reports
        azguard dir exists team/reports -o none && echo "it is there"
    """
    env = context.of(ctx)
    target = env.locate(directory, Kind.DIR)
    env.conditions(target)
    found = ask_whether_exists(target, lambda: directories.show(target, env.deadline))
    env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(name="list", spec=options.remote("List Directories and Files honours no conditions"))
def list_(
    ctx: typer.Context,
    folder: file_options.Folder,
    prefix: options.Prefix = None,
    num_results: options.Limit = None,
) -> None:
    """List the directories in a share or directory. For files too, see azguard file list.

    Examples:
        azguard dir list team
        azguard dir list team/reports --query '[].name' -o tsv

    Topics: files
    """
    env = context.of(ctx)
    target = file_options.locate_folder(env, folder)
    limit = values.count(num_results, "--num-results")
    env.out.show_each(entries.list_entries(target, env.deadline, prefix=prefix, limit=limit, kind=Kind.DIR))


@app.command(spec=options.operation(operations.DIRECTORY_DELETE))
def delete(ctx: typer.Context, directory: file_options.Directory) -> None:
    """Delete a directory, if it is empty.

    A directory that is not empty is never deleted (exit 40). The service cannot guard the version of a directory:
    --etag needs --allow-race, and another writer can come between the comparison and the delete.
    A second delete of what this scope deleted needs no --allow-race, and ends with 44.

    Examples:
        azguard dir delete team/reports --last-writer-wins
        azguard dir delete team/reports --etag @last --allow-race

    Topics: files
    """
    env = context.of(ctx)
    target = env.locate(directory, Kind.DIR, writable=True)
    conditions = env.conditions(target)
    env.out.show(env.reads.delete(target, conditions, lambda: directories.delete(target, conditions, env.deadline)))
