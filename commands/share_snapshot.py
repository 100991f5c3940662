"""``azguard share``: snapshot, stats, quota."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations

_MOST_GIBIBYTES = 262_144

app = group("Shares: snapshot, stats, quota.")


@app.command(spec=options.operation(operations.SHARE_SNAPSHOT))
def snapshot(ctx: typer.Context, share: file_options.Share, metadata: options.Metadata = None) -> None:
    """Keep all that is in a share as it is now, as a snapshot that never changes.

    The result names it. Each address of the share and of what is in it takes ?snapshot=TIME at its end, to read from
    the snapshot. If the answer is lost and the list has no such snapshot, it may still be made (exit 74).

    Examples:
        azguard share snapshot team
        azguard share snapshot team --query snapshot -o tsv

    Topics: files
    """
    from azguard.files import shares

    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE, writable=True)
    env.conditions(target)
    env.out.show(shares.take_snapshot(target, values.metadata(metadata), env.deadline))


@app.command(spec=options.operation(operations.SHARE_GET_STATS))
def stats(ctx: typer.Context, share: file_options.Share) -> None:
    """Show about how many bytes a share holds.

    Examples:
        azguard share stats team
        azguard share stats team --query usage_bytes -o tsv
    """
    from azguard.files import properties

    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE)
    env.out.show(properties.count_bytes(target, env.conditions(target), env.deadline))


@app.command(spec=options.operation(operations.SHARE_SET_PROPERTIES))
def quota(
    ctx: typer.Context,
    share: file_options.Share,
    gibibytes: Annotated[str, typer.Argument(metavar="GIB", help="The limit in GiB.")],
) -> None:
    """Set the quota of a share: how many GiB it can hold.

    The service does not compare the ETag here. So azguard takes a lease of 15 seconds, compares, writes.

    Examples:
        azguard share quota team 100 --last-writer-wins

    Topics: files
    """
    from azguard.files import properties

    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE, writable=True)
    number = values.whole(gibibytes, "GIB", 1, _MOST_GIBIBYTES)
    conditions = env.conditions(target)
    done = properties.change_quota(target, number, conditions, file_options.guarding(env), env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    env.out.show(done)
