"""``azguard blob``: get, put, show, exists, list, delete. Its other commands have modules of their own.

Each command imports its part of ``azguard.blobs`` itself: most of a short run is imports.
"""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import completers, context, options, values
from azguard.cli.groups import group
from azguard.cli.put_options import PutOptions
from azguard.cli.tree_options import TreeGetOptions, TreeOptions, TreePutOptions
from azguard.cli.wait_options import ReadOptions
from azguard.conditions import operations
from azguard.errors import NotFound

app = group("Blobs: get, put, show, exists, list, delete, copy, snapshot, restore, metadata, tags, tier.")

_Blob = Annotated[
    str, typer.Argument(metavar="CONTAINER/NAME", help="The blob, or its URL.", autocompletion=completers.blobs)
]
_Container = Annotated[str, typer.Argument(metavar="NAME", help="The container, or its URL.")]


@app.command(spec=options.operation(operations.BLOB_GET))
def get(
    ctx: typer.Context,
    blob: _Blob,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Write to this file; by default, to stdout."),
    ] = None,
    result: Annotated[
        str | None,
        typer.Option("--result", metavar="FILE", help="Write the result here as JSON."),
    ] = None,
    *,
    given: ReadOptions,
    tree: TreeGetOptions,
) -> None:
    """Read a blob and remember its version, which guards the next put.

    azguard remembers which version a file has that you wrote with -f or with the shell's >, also after you move the
    file. Content that went to /dev/null was not read.

    --wait-changed waits for another version than the one that you last read, or than the ETag of --if-none-match. It
    asks every few seconds, in small requests. If the blob is deleted meanwhile, the exit status is 44.

    With --recursive all blobs below a prefix are read into a folder. Each has a line that says how it ended. If one
    fails, the others go on, and the exit status is 20.

    Examples:
        azguard blob get site/config.json -f config.json
        azguard blob get site/config.json > copy.json
        azguard blob get site/ -f copy --recursive

    Topics: scopes, trees
    """
    from azguard.blobs import downloads
    from azguard.cli import deliveries, inputs

    env = context.of(ctx)
    given.check(is_tree=tree.recursive)
    if tree.recursive:
        from azguard.cli import tree_plans

        tree_plans.get(env, blob, file, tree)
        return
    tree.check(env)
    target = env.locate(blob, Kind.BLOB)
    path, beside = inputs.output(file), inputs.check_result_file(result)
    conditions = given.conditions(env, target)
    with env.out.progress_bar(f"get {target}", is_beside_content=path is None) as progress:
        if path is None:
            got, lineage = downloads.to_stream(
                target, conditions, inputs.stdout(), env.deadline, progress.at, validates=given.validate_content
            )
            place = deliveries.to_stream(inputs.stdout(), got.content_length)
        else:
            got, lineage = downloads.to_file(
                target, conditions, path, env.deadline, progress.at, validates=given.validate_content
            )
            place = deliveries.to_file(path)
    if place.is_kept:
        env.reads.record(target, got, place.copy, lineage)
    if beside is not None:
        inputs.write_json(beside, got)
    # Without a file the content itself went to stdout.
    if path is not None:
        env.out.show(got)


@app.command(spec=options.operation(operations.BLOB_PUT_BLOCK_BLOB))
def put(
    ctx: typer.Context,
    blob: _Blob,
    to: Annotated[
        str | None,
        typer.Argument(metavar="CONTAINER/PREFIX/", help="With --recursive: where the folder before it goes."),
    ] = None,
    *,
    given: PutOptions,
    tree: TreePutOptions,
) -> None:
    """Write a blob, but only over the version you have seen.

    If you never read the blob, put creates it; if it exists, the exit status is 45. If the blob changed since you read
    it, the exit status is 42. A put replaces metadata, tags and headers too. azguard safe-update keeps them.

    A put does not replace an append or page blob (exit 40) unless you give --blob-type block. azguard knows the type
    from your read, else it asks the service.

    If the blob is leased, the exit status is 49, also if you never read it. On the emulator it is then 45.

    Empty input is refused (exit 2), because the command before the pipe may have failed. --allow-empty accepts it. An
    empty file that -f names is accepted too. azguard cannot see that the command failed after its first byte: use set
    -o pipefail.

    With --fence the number of your lock guards the write, not the version. The write is refused if a holder with a
    higher number has written. This works only if every writer of the blob gives a fence, because a write without one
    can remove the tag.

    Examples:
        azguard blob put site/config.json -f config.json
        echo '{"replicas": 3}' | azguard blob put site/config.json
        azguard blob put dist site/v1/ --recursive

    Topics: conditions, fences, trees
    """
    from azguard.blobs import uploads
    from azguard.blobs.existing import find_blob
    from azguard.blobs.upload import Upload, create_only
    from azguard.cli import inputs, lifecycle_options
    from azguard.requests import existing
    from azguard.requests.lineage import fresh_op

    env = context.of(ctx)
    if tree.recursive:
        from azguard.cli import tree_plans

        tree_plans.put(env, blob, to, given, tree)
        return
    tree.check(env, second=to)
    target = env.locate(blob, Kind.BLOB, writable=True)
    skip = lifecycle_options.skips(env, given.if_exists)
    with inputs.source(given.file) as stream:
        copy, size = inputs.copy(stream), inputs.size(stream)
        upload = Upload(
            target=target,
            settings=given.check(target.address.name),
            conditions=create_only(target) if skip else env.conditions(target, copy),
            deadline=env.deadline,
            op=fresh_op(),
            any_type=given.blob_type is not None,
        ).add_lineage(wanted=not given.no_lineage)
        with env.out.progress_bar(f"put {target}", size) as progress:
            written = given.keep_and_write(
                upload,
                lambda ready: existing.create(
                    lambda: uploads.put(ready, stream, progress.at, allow_empty=given.takes_empty),
                    lambda: find_blob(ready),
                    skip=skip,
                ),
            )
    env.reads.follow_parts(target, upload.conditions.expected_etag, written.etag, upload.stamp)
    # A file of another size was read from its middle, or changed meanwhile.
    whole = copy if size == getattr(written, "content_length", None) else None
    env.reads.record(target, written, whole, upload.stamp)
    env.out.show(written)


@app.command(spec=options.operation(operations.BLOB_GET_PROPERTIES))
def show(ctx: typer.Context, blob: _Blob) -> None:
    """Show a blob's properties, without its content.

    Examples:
        azguard blob show site/config.json
        azguard blob show site/config.json --query etag -o tsv
        azguard blob show site/config.json -o json > properties.json

    Topics: conditions
    """
    from azguard.blobs import properties

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    env.out.show(properties.show(target, env.conditions(target), env.deadline))


@app.command(spec=options.operation(operations.BLOB_GET_PROPERTIES))
def exists(ctx: typer.Context, blob: _Blob) -> None:
    """Exit 0 if the blob exists, 44 if not.

    Examples:
        azguard blob exists site/config.json
        azguard blob exists site/config.json -o none && echo "it is there"

    Topics: conditions
    """
    from azguard.blobs import properties
    from azguard.requests import existing

    env = context.of(ctx)
    target = env.locate(blob, Kind.BLOB)
    conditions = env.conditions(target)
    found = existing.ask_whether_exists(target, lambda: properties.show(target, conditions, env.deadline))
    env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(name="list", spec=options.operation(operations.CONTAINER_LIST_BLOBS))
def list_(
    ctx: typer.Context,
    container: _Container,
    prefix: options.Prefix = None,
    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", metavar="TEXT", help="Show one line for names that are equal up to it."),
    ] = None,
    include: Annotated[
        str | None,
        typer.Option(
            "--include",
            metavar="LIST",
            help="Show also metadata, snapshots, versions, deleted, tags, uncommittedblobs.",
        ),
    ] = None,
    num_results: options.Limit = None,
) -> None:
    """List a container's blobs.

    Examples:
        azguard blob list site
        azguard blob list site --prefix conf
        azguard blob list site --query '[].name' -o tsv
    """
    from azguard.blobs.listing import list_blobs

    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    env.conditions(target)
    env.out.show_each(
        list_blobs(
            target,
            env.deadline,
            prefix=prefix,
            delimiter=values.not_empty(delimiter, "--delimiter"),
            include=values.parse_included(include),
            limit=values.count(num_results, "--num-results"),
        )
    )


@app.command(spec=options.operation(operations.BLOB_DELETE))
def delete(
    ctx: typer.Context,
    blob: _Blob,
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
        from azguard.cli import tree_plans

        tree_plans.delete(env, blob, snapshots, tree)
        return
    tree.check(env)
    target = env.locate(blob, Kind.BLOB)
    result = deletes.delete(target, env.conditions(target), snapshots, env.deadline)
    if snapshots != "only":
        env.reads.forget(target)
    env.out.show(result)
