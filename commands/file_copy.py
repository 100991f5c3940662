"""``azguard file copy`` and ``file abort-copy``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import (
    completers,
    context,
    copy_options,
    file_copy_options,
    file_options,
    lifecycle_options,
    options,
    values,
)
from azguard.cli.file_copy_options import FileCopyOptions
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("Files: copy, abort-copy.")

_Destination = Annotated[
    str, typer.Argument(metavar="SHARE/PATH", help="The destination, or its URL.", autocompletion=completers.files)
]


@app.command(spec=options.operation(operations.FILE_RENAME))
def copy(
    ctx: typer.Context,
    path: _Destination,
    given: FileCopyOptions,
    second: Annotated[str | None, typer.Argument(hidden=True, help="Refused: see --source.")] = None,
) -> None:
    """Copy a file or a blob over the version you have seen, or to where nothing is.

    The argument is the destination, and --source is what is copied: a file, blob:CONTAINER/NAME in the same account,
    one in a snapshot, or a URL. For a source in another account the URL has a SAS, or --source-sas has it.

    The service copies into a temporary file beside the destination. azguard waits for the end, and then renames that
    file. So the destination is never a part of the copy. It is guarded as by azguard file put: exit status 45 if it
    exists and you never read it, 42 if it changed since. Only the rename is done under a lease.

    The copy belongs to this command. Within an account it usually ends at once; from another account it may take hours.
    Ctrl-C, TERM and --timeout stop it, and nothing is written. Without --timeout azguard waits as long as the copy goes
    on, and gives up (exit 75) when no byte came for an hour. After kill -9 a temporary file remains, whose name begins
    with .azguard-, and a pending copy goes on into it. The next copy or put in the directory on this machine stops and
    deletes it, and so does azguard file prune.

    The service compares no version of the source. azguard reads its ETag before and after the copy; if it changed, the
    exit status is 42 and nothing is written. A program that has the source open over SMB may move the ETag later: copy
    from a snapshot of the share then.

    Content headers are those of the source, and so are the metadata, unless you give --metadata. Attributes, the
    creation time and the permission are those of the version that is replaced, unless you set them or preserve those
    of the source.

    Examples:
        azguard file copy team/copy.txt --source team/plan.txt
        azguard file copy team/copy.txt --source team/plan.txt --if-exists skip
        azguard file copy team/old.txt --source team/plan.txt --preserve-info

    Topics: files, conditions
    """
    from azguard.files import copies, uploads, writes
    from azguard.files.copy_runs import FileCopy
    from azguard.requests.lineage import fresh_op
    from azguard.resources import existence

    env = context.of(ctx)
    copy_options.refuse_order(path, second, given.source, "file", "SHARE/PATH")
    target = env.locate(path, Kind.FILE, writable=True)
    skip = lifecycle_options.skips(env, given.if_exists)
    source = file_copy_options.locate_source(env, target, given)
    timeout = env.shared.get("timeout")
    plan = FileCopy(
        target=target,
        source=source,
        source_etag=given.read_source_etag(env, source),
        settings=given.check(source),
        conditions=uploads.create_only(target) if skip else env.conditions(target),
        deadline=env.deadline,
        patience=env.patience(timeout, copy_options.WAIT_SECONDS),
        is_strict=timeout is not None,
        op=fresh_op(),
    )
    guarding = file_options.guarding(env)
    with env.out.progress_bar(f"copy {target}") as progress:
        copied = existence.create(
            lambda: copies.copy(plan, guarding, progress.at),
            lambda: writes.find_existing(target, plan.op, env.deadline),
            skip=skip,
        )
    lineage = getattr(copied, "lineage", None)
    env.reads.follow_parts(target, plan.conditions.expected_etag, copied.etag, lineage)
    env.reads.record(target, copied, lineage=lineage)
    env.out.show(copied)


@app.command("abort-copy", spec=options.operation(operations.FILE_ABORT_COPY))
def abort_copy(
    ctx: typer.Context,
    path: _Destination,
    copy_id: Annotated[
        str | None, typer.Option("--copy-id", metavar="ID", help="Stop this copy; by default, the pending one.")
    ] = None,
) -> None:
    """Stop a copy that is pending. The destination is then an empty file.

    It is for copies that other programs began, such as az storage file copy start. azguard file copy stops its own copy
    when it is interrupted. If azguard was killed on another machine, azguard file list SHARE --prefix .azguard- shows
    its temporary file: stop the copy into it, and delete it.

    If the copy was stopped before, the exit status is 0 and the outcome is unchanged. If it has ended otherwise, the
    exit status is 42: there is nothing to stop, and the destination stays as it is.

    Examples:
        azguard file abort-copy team/copy.txt
        azguard file abort-copy team/copy.txt --copy-id "$COPY_ID"

    Topics: files
    """
    from azguard.files import copies

    env = context.of(ctx)
    target = env.locate(path, Kind.FILE, writable=True)
    named = values.not_empty(copy_id, "--copy-id")
    done = copies.abort(target, named, env.conditions(target), env.deadline)
    env.reads.forget(target)
    env.out.show(done)
