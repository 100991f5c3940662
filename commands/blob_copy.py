"""``azguard blob copy`` and ``blob abort-copy``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, copy_options, lifecycle_options, options, signals, values
from azguard.cli.copy_options import CopyOptions
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.requests.lineage import fresh_op
from azguard.resources import existence

app = group("Blobs: copy, abort-copy.")

_Destination = Annotated[
    str,
    typer.Argument(metavar="CONTAINER/NAME", help="The destination, or its URL.", autocompletion=completers.blobs),
]


@app.command(spec=options.operation(operations.BLOB_COPY))
def copy(
    ctx: typer.Context,
    blob: _Destination,
    given: CopyOptions,
    second: Annotated[str | None, typer.Argument(hidden=True, help="Refused: see --source.")] = None,
) -> None:
    """Copy a blob over the version you have seen, or to where nothing is.

    The argument is the destination, and --source is what is copied: an address in the same account, or a URL. For a
    source in another account the URL has a SAS, or --source-sas has it.

    The service copies the content and its headers. azguard sends the metadata of the source along, unless you give
    --metadata, which replaces all of it. Index tags, the access tier and snapshots are not copied: set --tags and
    --tier.

    One version of the source is copied. If the source changes before the copy begins, azguard reads its metadata
    again. With --source-if-match the exit status is then 42. The error says which side has changed.

    Within an account a copy usually ends at once. From another account it may take hours: then copy_status is pending,
    and the destination cannot be written until the copy ends. --wait waits for the end, for an hour or as long as
    --timeout says; if the copy is still pending then, the exit status is 75, and the copy goes on. If it fails or is
    aborted, an empty blob remains.

    With --fence the number of your lock guards the destination, not the version.

    Examples:
        azguard blob copy site/copy.json --source site/config.json
        azguard blob copy site/copy.json --source site/config.json --wait
        azguard blob copy site/copy.json --source site/config.json --if-exists skip

    Topics: copies, conditions, fences
    """
    from azguard.blobs import copies
    from azguard.blobs.content.upload import create_only
    from azguard.blobs.write_checks import find_blob

    env = context.of(ctx)
    copy_options.refuse_order(blob, second, given.source)
    target = env.locate(blob, Kind.BLOB, writable=True)
    skip = lifecycle_options.skips(env, given.if_exists)
    plan = copies.BlobCopy(
        target=target,
        source=copy_options.locate_source(env, target, given.source or "", given.source_sas),
        settings=given.check(),
        conditions=create_only(target) if skip else env.conditions(target),
        deadline=env.deadline,
        op=fresh_op(),
        has_lineage=not given.no_lineage,
    )
    copied = existence.create(lambda: copies.copy(plan), lambda: find_blob(target, plan.op, plan.deadline), skip=skip)
    if given.wait and isinstance(copied, copies.BlobCopied):
        copy_options.say_waiting(env, copied)
        patience = env.patience(env.shared.get("timeout"), copy_options.WAIT_SECONDS)
        with signals.heed(), env.out.progress_bar(f"copy {target}") as progress:
            copied = copies.await_copy(copied, target, patience, progress.at)
    copy_options.record(env, target, copied, plan)
    env.out.show(copied)


@app.command("abort-copy", spec=options.operation(operations.BLOB_ABORT_COPY))
def abort_copy(
    ctx: typer.Context,
    blob: _Destination,
    copy_id: Annotated[
        str | None, typer.Option("--copy-id", metavar="ID", help="Stop this copy; by default, the pending one.")
    ] = None,
) -> None:
    """Stop a copy that is pending. The destination is then an empty blob.

    If the copy was stopped before, the exit status is 0 and the outcome is unchanged. If it has ended otherwise, the
    exit status is 42: there is nothing to stop, and the destination stays as it is.

    Examples:
        azguard blob abort-copy site/copy.json
        azguard blob abort-copy site/copy.json --copy-id "$COPY_ID"

    Topics: copies
    """
    from azguard.blobs import copies

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    named = values.not_empty(copy_id, "--copy-id")
    done = copies.abort_copy(target, named, env.conditions(target), env.deadline)
    env.reads.forget(target)
    env.out.show(done)
