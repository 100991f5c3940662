"""``azguard blob delete``."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, options, values
from azguard.cli.groups import group
from azguard.cli.tree_options import TreeOptions
from azguard.conditions import operations
from azguard.requests.commits import WriteResult

app = group("Delete a blob.")


@app.command(spec=options.operation(operations.BLOB_DELETE))
def delete(
    ctx: typer.Context,
    blob: options.Blob,
    delete_snapshots: Annotated[
        str | None,
        typer.Option("--delete-snapshots", metavar="include|only", help="Delete its snapshots too, or only those."),
    ] = None,
    snapshot_first: options.NoSnapshotFirst = False,
    *,
    tree: TreeOptions,
) -> None:
    """Delete a blob, but only the version you have seen.

    With --fence the number of your lock guards the delete, not the version. The fence is deleted with the blob, so a
    holder with a lower number can create the blob again. If that matters, keep an empty blob.

    Examples:
        azguard blob delete site/config.json
        azguard blob delete site/config.json --etag @last
        azguard blob delete site/config.json --last-writer-wins

    Topics: conditions, fences, trees
    """
    from azguard.blobs import deletes
    from azguard.cli import snapshot_options

    env = context.of(ctx)
    snapshot_options.refuse_snapshot_first(blob, given=snapshot_first)
    snapshots = values.choice(delete_snapshots, "--delete-snapshots", ("include", "only"))
    if tree.recursive:
        from azguard.cli import tree_plans, tree_stores

        tree_plans.delete(env, lambda: tree_stores.blobs(env, blob, snapshots=snapshots), tree)
        return
    tree.check(env)
    target = env.locate(blob, Kind.BLOB)
    conditions = env.conditions(target)

    def send() -> WriteResult:
        return deletes.delete(target, conditions, snapshots, env.deadline)

    # Without its snapshots a blob is still there.
    env.out.show(send() if snapshots == "only" else env.reads.delete(target, conditions, send))
