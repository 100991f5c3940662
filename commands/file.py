"""``azguard file``: show, exists, list, delete."""

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, options, values
from azguard.cli.file_tree_options import FileTreeDeleteOptions
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import NotFound
from azguard.files import entries, files
from azguard.resources.existence import ask_whether_exists

app = group(
    "Files: get, put, show, list, delete, prune, copy, rename, resize, set-properties, metadata, range, handle, lock."
)


@app.command(spec=options.operation(operations.FILE_GET_PROPERTIES))
def show(ctx: typer.Context, file: file_options.File) -> None:
    """Show a file's properties and metadata.

    Examples:
        azguard file show team/plan.txt
        azguard file show team/plan.txt --query content_length -o tsv

    Topics: files
    """
    env = context.of(ctx)
    target = env.locate(file, Kind.FILE)
    env.out.show(files.show(target, env.conditions(target), env.deadline))


@app.command(spec=options.operation(operations.FILE_GET_PROPERTIES))
def exists(ctx: typer.Context, file: file_options.File) -> None:
    """Exit 0 if the file exists, 44 if not. Where its share does not exist, an error says so (44).

    Examples:
        azguard file exists team/plan.txt
        azguard file exists team/plan.txt -o none && echo "it is there"
    """
    env = context.of(ctx)
    target = env.locate(file, Kind.FILE)
    conditions = env.conditions(target)
    found = ask_whether_exists(target, lambda: files.show(target, conditions, env.deadline))
    env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(name="list", spec=options.remote("List Directories and Files honours no conditions"))
def list_(
    ctx: typer.Context,
    folder: file_options.Folder,
    prefix: options.Prefix = None,
    num_results: options.Limit = None,
) -> None:
    """List the directories and files in a share or directory, not those below its directories.

    Examples:
        azguard file list team
        azguard file list team/reports --prefix 2026
        azguard file list team --query "[?type=='file'].name" -o tsv

    Topics: files
    """
    env = context.of(ctx)
    target = file_options.locate_folder(env, folder)
    limit = values.count(num_results, "--num-results")
    env.out.show_each(entries.list_entries(target, env.deadline, prefix=prefix, limit=limit))


@app.command(spec=options.operation(operations.FILE_DELETE))
def delete(ctx: typer.Context, file: file_options.File, *, tree: FileTreeDeleteOptions) -> None:
    """Delete a file, if it is still the version that you read.

    The service does not compare the ETag. So azguard takes a lease, compares, deletes. An unchanged ETag does not
    prove that no program has the file open over SMB; the lease does: it is not granted then (exit 49).

    With --recursive all files below a directory are deleted, each under its guard, then the directories that are
    empty.

    Examples:
        azguard file delete team/plan.txt
        azguard file delete team/plan.txt --last-writer-wins
        azguard file delete team/reports/ --recursive

    Topics: files, trees
    """
    env = context.of(ctx)
    if tree.recursive:
        from azguard.cli import tree_plans, tree_stores

        tree_plans.delete(env, lambda: tree_stores.files(env, file), tree, keeps_folders=tree.keep_directories)
        return
    tree.check(env)
    target = env.locate(file, Kind.FILE, writable=True)
    conditions = env.conditions(target)
    guarding = file_options.guarding(env)
    env.out.show(env.reads.delete(target, conditions, lambda: files.delete(target, conditions, guarding, env.deadline)))
