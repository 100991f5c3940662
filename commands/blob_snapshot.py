"""``azguard blob snapshot``, ``blob undelete`` and ``blob restore``."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, copy_options, options, snapshot_options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.requests.lineage import fresh_op

if TYPE_CHECKING:
    from azguard.blobs.copies import BlobCopy

app = group("Blobs: snapshot, restore, undelete.")


@app.command(spec=options.operation(operations.BLOB_SNAPSHOT))
def snapshot(
    ctx: typer.Context, blob: options.Blob, metadata: options.Metadata = None, no_lineage: options.NoLineage = False
) -> None:
    """Keep a blob as it is now. The blob itself does not change.

    The snapshot_address of the result is taken by all commands that read a blob, and by blob restore. With --metadata
    the snapshot has this metadata and none of the blob's.

    azguard marks the snapshot in its metadata, so that it finds it after a lost answer. With --no-lineage, and with
    --if-tags, it cannot: then the exit status is 74, and the snapshot may be there.

    Examples:
        azguard blob snapshot site/config.json
        azguard blob snapshot site/config.json --etag @last
        azguard blob snapshot site/config.json --query snapshot_address -o tsv

    Topics: snapshots, conditions
    """
    from azguard.blobs import snapshots

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    given = snapshots.Snapshot(
        target=target,
        conditions=env.conditions(target),
        deadline=env.deadline,
        op=fresh_op(),
        metadata=None if metadata is None else values.metadata(metadata),
        has_lineage=not no_lineage,
    )
    env.out.show(snapshots.take_snapshot(given))


@app.command(spec=options.operation(operations.BLOB_COPY))
def restore(
    ctx: typer.Context,
    blob: options.Blob,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ID|snapshot|version",
            help="Restore the kept version with this id, or the newest one; always needed.",
            autocompletion=completers.kept_versions,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference; write nothing.")] = False,
    no_lineage: options.NoLineage = False,
) -> None:
    """Write a snapshot or an earlier version of a blob over the version you have seen.

    --from snapshot is the newest snapshot, and --from version the version before the current one. To name another, give
    the id that blob list --include snapshots,versions shows, also as snapshot=ID or versionid=ID; or its address.

    Content, headers, metadata and index tags are those that were kept. If the blob was deleted, it is created. If it
    exists and you never read it, the exit status is 45.

    --dry-run shows what would change in the content, the headers, the metadata and the tags, and says if the restore
    would be refused now.

    Examples:
        azguard blob restore site/config.json --from snapshot
        azguard blob restore site/config.json --from snapshot --dry-run
        azguard blob restore site/config.json --from snapshot --etag @last

    Topics: snapshots, conditions
    """
    from azguard.blobs import copies

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    plan = copies.BlobCopy(
        target=target,
        source=target,
        settings=copies.CopySettings(keeps_tags=True),
        conditions=env.conditions(target),
        deadline=env.deadline,
        op=fresh_op(),
        has_lineage=not no_lineage,
    )
    # Before the look for what was kept: a condition that cannot be is refused before any request.
    plan.check()
    plan = replace(plan, source=snapshot_options.locate_kept(env, target, from_))
    if dry_run:
        _show_preview(env, plan)
        return
    copied = copies.copy(plan)
    copy_options.record(env, target, copied, plan)
    env.out.show(copied)


def _show_preview(env: context.Environment, plan: "BlobCopy") -> None:
    from azguard.blobs import restores

    found = restores.preview(plan)
    env.out.show_preview(found, found.diff, f"{plan.target} would not change")
    if found.reason is not None:
        env.out.info(f"the restore would be refused now: {found.reason}")


@app.command(spec=options.operation(operations.BLOB_UNDELETE))
def undelete(ctx: typer.Context, blob: options.Blob) -> None:
    """Bring back a deleted blob and its snapshots, while the account still keeps them.

    The account must have soft delete. A blob that is there stays as it is. Where the account keeps versions, it may
    have no current version afterwards (exit 44): restore one. The emulator cannot do this (exit 40).

    Examples:
        azguard blob undelete site/config.json

    Topics: snapshots
    """
    from azguard.blobs import restores

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    env.conditions(target)
    env.out.show(restores.undelete(target, env.deadline))
