"""``azguard file handle``: list, close."""

import shlex
from typing import Annotated

import typer

from azguard.cli import context, file_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import Partial, UsageError

app = group("Handles that programs hold on files over SMB: list, close.")

_Recursive = Annotated[bool, typer.Option("--recursive", help="Include all files and directories below it.")]


@app.command(name="list", spec=options.operation(operations.FILE_LIST_HANDLES))
def list_(
    ctx: typer.Context,
    path: file_options.Path,
    recursive: _Recursive = False,
    num_results: options.Limit = None,
) -> None:
    """List the handles on a file, directory or share: which client has it open, for what, and since when.

    Only programs that use SMB hold handles. A lease over REST is no handle: see azguard lease show.

    Examples:
        azguard file handle list team/plan.txt
        azguard file handle list team --recursive
        azguard file handle list team/plan.txt --query '[].handle_id' -o tsv

    Topics: files
    """
    from azguard.files import handles

    env = context.of(ctx)
    target = file_options.locate_path(env, path)
    limit = values.count(num_results, "--num-results")
    env.out.show_each(handles.list_handles(target, env.deadline, recursive=recursive, limit=limit))


@app.command(spec=options.operation(operations.FILE_FORCE_CLOSE_HANDLES))
def close(
    ctx: typer.Context,
    path: file_options.Path,
    handle_id: Annotated[str | None, typer.Option("--handle-id", metavar="ID", help="Close this handle.")] = None,
    close_all: Annotated[bool, typer.Option("--close-all", help="Close all handles on it.")] = False,
    recursive: _Recursive = False,
) -> None:
    """Close a handle on a file, directory or share, or all of them.

    The program that held it gets an error when it uses the file next; what it had not written yet is lost. If the file
    was in delete pending, it is deleted with its last handle.

    If no handle was open, the exit status is 0 and the outcome is unchanged. If the service fails to close some, the
    exit status is 20.

    Examples:
        azguard file handle close team/plan.txt --close-all
        azguard file handle close team --close-all --recursive

    Topics: files
    """
    from azguard.files import handles

    if (handle_id is None) is not close_all or handle_id == "*":
        listed = f"azguard file handle list {shlex.quote(path)}"
        raise UsageError(
            "name either one handle or all of them",
            hint=f"--handle-id ID closes one (see {listed}); --close-all closes all",
        )
    if recursive and not close_all:
        raise UsageError("--recursive is about all handles", hint="add --close-all instead of --handle-id")
    env = context.of(ctx)
    target = file_options.locate_path(env, path)
    done = handles.close(target, values.not_empty(handle_id, "--handle-id"), env.deadline, recursive=recursive)
    env.out.answer(done, Partial.exit_code if done.failed else 0)
