"""``azguard file put``."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, inputs, lifecycle_options, options
from azguard.cli.file_put_options import FilePutOptions
from azguard.cli.file_tree_options import FileTreePutOptions
from azguard.cli.groups import group
from azguard.conditions import operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from azguard.files.uploads import FileUpload

app = group("Write a file.")


@app.command(spec=options.operation(operations.FILE_RENAME))
def put(
    ctx: typer.Context,
    path: file_options.File,
    to: Annotated[
        str | None,
        typer.Argument(metavar="SHARE/PREFIX/", help="With --recursive: where the folder before it goes."),
    ] = None,
    *,
    given: FilePutOptions,
    tree: FileTreePutOptions,
) -> None:
    """Write a file, but only over the version you have seen, and whole or not at all.

    If you never read the file, put creates it; if it exists, the exit status is 45. If the file changed since you read
    it, the exit status is 42. The content goes to a temporary file in the same directory, which is then renamed. Until
    then readers see the old file. A temporary file that a crash leaves has a name that begins with .azguard-.

    The service does not compare the ETag. So azguard takes a lease, compares, renames. An unchanged ETag does not prove
    that no program has the file open over SMB; the lease does: it is not granted then (exit 49).

    A put replaces metadata and content headers. Attributes, the creation time and the permission stay, unless you
    set them. Under your own --lease-id the new version is leased as the old one was.

    Empty input is refused (exit 2), because the command before the pipe may have failed. --allow-empty accepts it. An
    empty file that -f names is accepted too. A file that changes while it is read is refused (exit 42), because it
    could be half old and half new.

    Examples:
        azguard file put team/new.txt -f config.json
        azguard file get team/plan.txt > plan.txt
        azguard file put team/plan.txt -f plan.txt
        azguard file put dist team/v1/ --recursive

    Topics: files, conditions, trees
    """
    from azguard.files import uploads
    from azguard.requests.lineage import fresh_op

    env = context.of(ctx)
    if tree.recursive:
        _put_tree(env, (path, to), given, tree)
        return
    tree.check(env, second=to)
    target = env.locate(path, Kind.FILE, writable=True)
    skip = lifecycle_options.skips(env, given.if_exists)
    headers, smb = given.check(target.address.name)
    with inputs.content(given.file, takes_folders=True) as stream:
        copy, size = inputs.copy(stream), inputs.size(stream)
        upload = uploads.FileUpload(
            target=target,
            headers=headers,
            smb=smb,
            metadata=given.read_metadata(),
            conditions=uploads.create_only(target) if skip else env.conditions(target, copy),
            deadline=env.deadline,
            op=fresh_op(),
        )
        guarding = file_options.guarding(env)
        with env.out.progress_bar(f"put {target}", size) as progress:
            written = _write(
                upload,
                lambda: uploads.put(upload, stream, size, guarding, progress.at, allow_empty=given.takes_empty),
                skip=skip,
            )
    lineage = getattr(written, "lineage", None)
    env.reads.follow_parts(target, upload.conditions.expected_etag, written.etag, lineage)
    # A file of another size was read from its middle, or changed meanwhile.
    whole = copy if size == getattr(written, "content_length", None) else None
    env.reads.record(target, written, whole, lineage)
    env.out.show(written)


def _put_tree(
    env: context.Environment, words: tuple[str, str | None], given: FilePutOptions, tree: FileTreePutOptions
) -> None:
    from azguard.cli import tree_plans, tree_stores
    from azguard.files.trees import FileSettings

    metadata = given.read_metadata()
    open_store = partial(tree_stores.files, env, settings=lambda name: FileSettings(*given.check(name), metadata))
    tree_plans.put(env, words, given, tree, open_store, keeps_folders=tree.keep_directories)


def _write(upload: "FileUpload", write: "Callable[[], Any]", *, skip: bool) -> Any:
    """Write, or tell of what is there already."""
    from azguard.files import writes
    from azguard.resources import existence

    return existence.create(write, lambda: writes.find_existing(upload.target, upload.op, upload.deadline), skip=skip)
