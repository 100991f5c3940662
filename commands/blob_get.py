"""``azguard blob get``."""

from functools import partial
from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, deliveries, inputs, options
from azguard.cli.groups import group
from azguard.cli.tree_get_options import TreeGetOptions
from azguard.cli.wait_options import ReadOptions
from azguard.conditions import operations

app = group("Read a blob.")


@app.command(spec=options.operation(operations.BLOB_GET))
def get(
    ctx: typer.Context,
    blob: options.Blob,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Write to this file; by default, to stdout."),
    ] = None,
    result: Annotated[
        str | None,
        typer.Option("--result", metavar="FILE", help="Write the result here as JSON."),
    ] = None,
    *,
    overwrite: deliveries.Overwrite = False,
    given: ReadOptions,
    tree: TreeGetOptions,
) -> None:
    """Read a blob and remember its version, which guards the next put.

    azguard remembers the version of a file that you wrote with -f or with the shell's >, also after you move the file.
    Content sent to /dev/null does not count as read.

    A local file that you changed since you got it is not replaced (exit 42); --overwrite replaces it. The shell's >
    empties a file before azguard can look at it.

    --wait-changed waits for another version than the one that you last read, or than the ETag of --if-none-match. It
    asks every few seconds, in small requests. If the blob is deleted meanwhile, the exit status is 44.

    With --recursive all blobs below a prefix are read into a folder. Each has a line that says how it ended. If one
    fails, the others go on, and the exit status is 20, or 42 if all that failed are conflicts.

    Examples:
        azguard blob get site/config.json -f config.json
        azguard blob get site/config.json > copy.json
        azguard blob get site/ -f copy --recursive

    Topics: scopes, trees
    """
    from azguard.blobs.content import download

    env = context.of(ctx)
    deliveries.check_overwrite(file, tree.if_exists, overwrite=overwrite)
    given.check(is_tree=tree.recursive)
    if tree.recursive:
        from azguard.cli import tree_plans, tree_stores

        tree_plans.get(env, lambda: tree_stores.blobs(env, blob), file, tree, overwrites=overwrite)
        return
    tree.check(env)
    target = env.locate(blob, Kind.BLOB)
    path, beside = inputs.choose_places(file, result, env.out.query)
    conditions = given.conditions(env, target)
    with env.out.progress_bar(f"get {target}", is_beside_content=path is None) as progress:
        if path is None:
            got, lineage = download.to_stream(
                target, conditions, inputs.stdout(), env.deadline, progress.at, validates=given.validate_content
            )
            place = deliveries.to_stream(inputs.stdout(), got.content_length)
        else:
            got, lineage = download.to_file(
                target,
                conditions,
                path,
                env.deadline,
                progress.at,
                partial(env.reads.check_copy, target, path, overwrites=overwrite),
                validates=given.validate_content,
            )
            place = deliveries.to_file(path, got.inode)
    if place.is_kept:
        env.reads.record(target, got, place.copy, lineage)
    if beside is not None:
        inputs.write_json(beside, got)
    # Without a file the content itself went to stdout.
    if path is not None:
        env.out.show(got)
