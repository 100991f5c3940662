"""``azguard blob``: set-properties, tier."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, options, values
from azguard.cli.groups import group
from azguard.cli.property_options import PropertyOptions
from azguard.conditions import operations

app = group("Blobs: set-properties, tier.")


@app.command(name="set-properties", spec=options.operation(operations.BLOB_SET_PROPERTIES))
def set_properties(ctx: typer.Context, blob: options.Blob, given: PropertyOptions) -> None:
    """Change content headers of a blob, but only of the version you have seen. The others stay.

    The service clears each header that is not sent. So azguard first reads the headers and sends them all, guarded by
    the ETag of that read. With a condition other than --if-match it takes a lease meanwhile. --clear-content-settings
    clears the headers that you do not name.

    The ETag of the blob changes, its content does not. So a file that you read with blob get can still be put.

    If the answer is lost, it cannot be known whether the headers are yours (exit 74), unless you hold a lease.

    Examples:
        azguard blob set-properties site/config.json --content-type application/json
        azguard blob set-properties site/config.json --content-cache no-store

    Topics: conditions
    """
    from azguard.blobs import headers
    from azguard.cli.lease_options import CacheRecords

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    wanted = given.check()
    done = headers.change_headers(
        target,
        wanted,
        env.conditions(target),
        CacheRecords(env),
        env.deadline,
        clear_others=given.clear_content_settings,
    )
    env.reads.follow(target, done.before, done.written.etag, done.lineage)
    env.out.show(done.written)


@app.command(spec=options.operation(operations.BLOB_SET_TIER))
def tier(
    ctx: typer.Context,
    blob: options.Blob,
    tier: Annotated[
        str | None,
        typer.Option("--tier", metavar="Hot|Cool|Cold|Archive", help="The tier; of a premium page blob, P4 to P80."),
    ] = None,
    rehydrate_priority: Annotated[
        str | None,
        typer.Option(
            "--rehydrate-priority",
            metavar="Standard|High",
            help="Choose how fast it leaves the archive.",
        ),
    ] = None,
) -> None:
    """Change the access tier of a blob, but only of the version you have seen.

    The service compares no version here, and a change of the tier makes none. So azguard takes a lease of 15 seconds,
    compares the ETag, changes the tier and releases it. With --lease-id it uses yours. Another writer's change of the
    tier is not noticed: it makes no version.

    A blob that leaves the archive cannot be read for hours; the result then says "rehydrating".

    A snapshot or version never changes, so its address is guard enough.

    Examples:
        azguard blob tier site/config.json --tier Cool
        azguard blob tier site/config.json --tier Hot --rehydrate-priority High

    Topics: conditions
    """
    from azguard.blobs.tiers import PRIORITIES, TIERS, TierChange
    from azguard.cli.lease_options import CacheRecords

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    change = TierChange(
        target=target,
        tier=values.named(tier, "--tier", TIERS),
        priority=values.chosen(rehydrate_priority, "--rehydrate-priority", PRIORITIES),
        conditions=env.conditions(target),
        deadline=env.deadline,
    )
    env.out.show(change.make(CacheRecords(env)))
