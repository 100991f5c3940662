"""``azguard share``: create, show, exists, list, delete."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, lifecycle_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import NotFound
from azguard.files import shares, writes
from azguard.requests.commits import WriteResult
from azguard.requests.lineage import fresh_op
from azguard.resources.contents import require_empty
from azguard.resources.existence import ask_whether_exists
from azguard.resources.existence import create as create_unless_exists

_TIERS = ("TransactionOptimized", "Hot", "Cool", "Premium")

app = group("File shares: create, show, exists, list, delete, snapshot, stats, quota, metadata, acl.")


@app.command(spec=options.operation(operations.SHARE_CREATE))
def create(
    ctx: typer.Context,
    share: file_options.Share,
    metadata: options.Metadata = None,
    quota: Annotated[
        str | None, typer.Option("--quota", metavar="GIB", help="Limit the share to this many GiB.")
    ] = None,
    access_tier: Annotated[
        str | None, typer.Option("--access-tier", metavar="TIER", help="TransactionOptimized, Hot, Cool or Premium.")
    ] = None,
    if_exists: options.IfExists = None,
) -> None:
    """Create a share; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    Examples:
        azguard share create team
        azguard share create team --if-exists skip
        azguard share create archive --quota 100 --metadata owner=ops

    Topics: files
    """
    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE, writable=True)
    env.conditions(target)
    settings = shares.ShareSettings(
        values.metadata(metadata),
        values.count(quota, "--quota"),
        values.choice(access_tier, "--access-tier", _TIERS),
    )
    op = fresh_op()
    result = create_unless_exists(
        lambda: shares.create(target, settings, env.deadline, op),
        lambda: writes.find_existing(target, op, env.deadline),
        skip=lifecycle_options.skips(env, if_exists),
    )
    env.reads.record(target, result)
    env.out.show(result)


@app.command(spec=options.operation(operations.SHARE_GET_PROPERTIES))
def show(ctx: typer.Context, share: file_options.Share) -> None:
    """Show a share's properties and metadata.

    Examples:
        azguard share show team
        azguard share show team --query quota -o tsv

    Topics: files
    """
    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE)
    env.out.show(shares.show(target, env.conditions(target), env.deadline))


@app.command(spec=options.operation(operations.SHARE_GET_PROPERTIES))
def exists(ctx: typer.Context, share: file_options.Share) -> None:
    """Exit 0 if the share exists, 44 if not.

    Examples:
        azguard share exists team
        azguard share exists team -o none && echo "it is there"
    """
    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE)
    conditions = env.conditions(target)
    found = ask_whether_exists(target, lambda: shares.show(target, conditions, env.deadline))
    env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(name="list", spec=options.remote("List Shares honours no conditions"))
def list_(
    ctx: typer.Context,
    prefix: options.Prefix = None,
    num_results: options.Limit = None,
    include_snapshots: Annotated[bool, typer.Option("--include-snapshots", help="Show their snapshots too.")] = False,
) -> None:
    """List the account's shares.

    Examples:
        azguard share list
        azguard share list --prefix te
        azguard share list --query '[].name' -o tsv
    """
    env = context.of(ctx)
    limit = values.count(num_results, "--num-results")
    env.out.show_each(
        shares.list_shares(env.account, env.deadline, prefix=prefix, limit=limit, snapshots=include_snapshots)
    )


@app.command(spec=options.operation(operations.SHARE_DELETE))
def delete(
    ctx: typer.Context,
    share: file_options.Share,
    with_contents: options.WithContents = False,
    delete_snapshots: Annotated[
        str | None, typer.Option("--delete-snapshots", metavar="include", help="Delete its snapshots too.")
    ] = None,
) -> None:
    """Delete a share, if it is empty and unchanged.

    A share with directories or files in it is not deleted (exit 42) unless you give --with-contents. On a terminal
    azguard asks. Not guaranteed: a file that is written between the count and the delete is deleted too. If that
    matters, stop the writers first. A share with snapshots is not deleted without --delete-snapshots include.

    The service does not compare the ETag here. So azguard takes a lease of 15 seconds, compares, deletes. Writes of
    the files in a share do not change its ETag.

    Examples:
        azguard share delete team
        azguard share delete team --with-contents
        azguard share delete team --last-writer-wins

    Topics: files
    """
    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE)
    conditions = env.conditions(target)
    snapshots = values.choice(delete_snapshots, "--delete-snapshots", ("include",)) is not None

    def send() -> WriteResult:
        if not with_contents and target.address.snapshot is None:
            require_empty(shares.count_entries, target, env.deadline.fresh(), lifecycle_options.confirm_delete(target))
        guarding = file_options.guarding(env)
        return shares.delete(target, conditions, guarding, env.deadline.fresh(), snapshots=snapshots)

    env.out.show(env.reads.delete(target, conditions, send))
