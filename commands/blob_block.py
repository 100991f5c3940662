"""``azguard blob block``: stage, commit, list."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, inputs, options, values
from azguard.cli.block_options import CommitOptions
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("Blocks of a block blob: stage, commit, list.")


@app.command(spec=options.operation(operations.BLOB_PUT_BLOCK))
def stage(
    ctx: typer.Context,
    blob: options.Blob,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE|-", help="Stage this file; by default, stdin.")
    ] = None,
    block_id: Annotated[
        str | None, typer.Option("--block-id", metavar="BASE64", help="Stage one block under this id.")
    ] = None,
) -> None:
    """Stage blocks of a blob, which no reader sees until they are committed.

    Without --block-id the content is staged as blocks of 4 MiB, whose ids no other writer has. The ids of one blob must
    have one length. The service keeps staged blocks for a week. A commit of any writer discards those that it does not
    name.

    Examples:
        azguard blob block stage site/big -f config.json
        azguard blob block stage site/big -f config.json --query '[].block_id' -o tsv

    Topics: conditions
    """
    from azguard.blobs.content import blocks

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    if values.not_empty(block_id, "--block-id") is not None:
        blocks.decode_id(str(block_id))
    lease_id = env.conditions(target).lease_id
    with inputs.content(file) as source, env.out.progress_bar(f"stage {target}", inputs.size(source)) as progress:
        staged = list(blocks.stage(target, source, block_id, lease_id, env.deadline, progress.at))
    env.out.show(staged)


@app.command(spec=options.operation(operations.BLOB_PUT_BLOCK_LIST))
def commit(ctx: typer.Context, blob: options.Blob, given: CommitOptions) -> None:
    """Make a blob of staged or committed blocks, but only of the version you have seen.

    The blocks stand in the order in which they are named. A block that was staged again is taken as staged. Blocks that
    are not named are discarded, also those of other writers: the result says how many.

    Headers, metadata, tags and tier of the version that is replaced stay. If you never read the blob, commit creates
    it; if it exists, the exit status is 45.

    Examples:
        azguard blob block commit site/big --block-id cGFydC0wMDAx
        azguard blob block commit site/big -f ids

    Topics: conditions, fences
    """
    from azguard.blobs.content import blocks

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB, writable=True)
    upload = given.to_upload(env, target)
    done, stamp = blocks.commit(upload, given.read_ids())
    env.reads.record(target, done, lineage=stamp)
    if done.discarded_blocks:
        env.out.warn(f"{done.discarded_blocks} staged blocks of {target} that were not named are discarded")
    env.out.show(done)


@app.command(name="list", spec=options.operation(operations.BLOB_GET_BLOCK_LIST))
def list_(
    ctx: typer.Context,
    blob: options.Blob,
    state: Annotated[
        str, typer.Option("--state", metavar="committed|uncommitted|all", help="Show the blocks in this state.")
    ] = "all",
) -> None:
    """List the blocks of a blob: the committed ones in their order, then those that are staged.

    Examples:
        azguard blob block list site/big
        azguard blob block list site/big --state uncommitted

    Topics: conditions
    """
    from azguard.blobs.content import blocks

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    kind = values.choice(state, "--state", ("committed", "uncommitted", "all")) or "all"
    env.out.show(blocks.list_blocks(target, env.conditions(target), kind, env.deadline))
