"""``azguard file rename``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, file_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.resolve import Conditions

app = group("Files of file shares: rename.")


@app.command(spec=options.operation(operations.FILE_RENAME))
def rename(
    ctx: typer.Context,
    file: file_options.File,
    new: Annotated[str, typer.Argument(metavar="SHARE/PATH", help="Its new address.", autocompletion=completers.files)],
    source_lease_id: Annotated[
        str | None, typer.Option("--source-lease-id", metavar="ID", help="The lease of the file that is renamed.")
    ] = None,
) -> None:
    """Rename a file inside its share; nothing is replaced that you did not read.

    What is at the new address stays, and the exit status is 45: of several that rename to one address, one succeeds. If
    you read the file there, or name its version with --etag, that version is replaced. If you read the file that is
    renamed, its version is compared, too. azguard holds a lease on both files meanwhile. With --last-writer-wins it
    holds no lease, and replaces what is there.

    The conditions and --lease-id are those of the new address. A lease of the file stays with it.

    Examples:
        azguard file rename team/plan.txt team/reports/plan.txt

    Topics: files
    """
    from azguard.files import files

    env = context.of(ctx)
    source = env.locate(file, Kind.FILE, writable=True)
    target = env.locate(new, Kind.FILE, writable=True)
    last = env.reads.find_last(source)
    lease_id = env.reads.choose_lease_id(source, values.not_empty(source_lease_id, "--source-lease-id"))
    given = files.FileRename(
        source=source,
        target=target,
        conditions=env.conditions(target),
        on_source=Conditions(guard="lease", expected_etag=None if last is None else last.etag, lease_id=lease_id),
        guarding=file_options.guarding(env),
        deadline=env.deadline,
    )
    done = files.rename_file(given)
    env.reads.forget(source)
    if last is None:
        env.reads.forget(target)
    else:
        env.reads.record(target, done)
    env.out.show(done)
