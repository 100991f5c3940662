"""``azguard container``: create, show, exists, list, delete."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.blobs import containers
from azguard.cli import completers, context, lifecycle_options, options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.errors import NotFound
from azguard.requests.commits import WriteResult
from azguard.requests.lineage import fresh_op
from azguard.resources import existence
from azguard.resources.contents import require_empty

_Container = Annotated[
    str, typer.Argument(metavar="NAME", help="The container, or its URL.", autocompletion=completers.containers)
]

app = group("Containers: create, show, exists, list, delete, metadata, acl.")


@app.command(spec=options.operation(operations.CONTAINER_CREATE))
def create(
    ctx: typer.Context,
    container: _Container,
    metadata: options.Metadata = None,
    public_access: Annotated[
        str | None,
        typer.Option("--public-access", metavar="off|blob|container", help="Let others read it; by default, off."),
    ] = None,
    if_exists: options.IfExists = None,
) -> None:
    """Create a container; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    Examples:
        azguard container create site
        azguard container create site --if-exists skip
        azguard container create backups --metadata owner=ops
    """
    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    env.conditions(target)
    chosen = values.choice(public_access, "--public-access", ("off", "blob", "container"))
    access = None if chosen == "off" else chosen
    stamps = values.metadata(metadata)
    op = fresh_op()
    result = existence.create(
        lambda: containers.create(target, stamps, access, env.deadline, op),
        lambda: containers.find_existing(target, op, env.deadline),
        skip=lifecycle_options.skips(env, if_exists),
    )
    env.reads.record(target, result)
    env.out.show(result)


@app.command(spec=options.operation(operations.CONTAINER_GET_PROPERTIES))
def show(ctx: typer.Context, container: _Container) -> None:
    """Show a container's properties and metadata.

    Examples:
        azguard container show site
        azguard container show site --query etag -o tsv
    """
    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    env.out.show(containers.show(target, env.conditions(target), env.deadline))


@app.command(spec=options.operation(operations.CONTAINER_GET_PROPERTIES))
def exists(ctx: typer.Context, container: _Container) -> None:
    """Exit 0 if the container exists, 44 if not.

    Examples:
        azguard container exists site
        azguard container exists site -o none && echo "it is there"
    """
    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    conditions = env.conditions(target)
    found = existence.ask_whether_exists(target, lambda: containers.show(target, conditions, env.deadline))
    env.out.answer(found, 0 if found.exists else NotFound.exit_code)


@app.command(name="list", spec=options.remote("List Containers honours no conditions"))
def list_(ctx: typer.Context, prefix: options.Prefix = None, num_results: options.Limit = None) -> None:
    """List the account's containers.

    Examples:
        azguard container list
        azguard container list --prefix si
        azguard container list --query '[].name' -o tsv
    """
    env = context.of(ctx)
    limit = values.count(num_results, "--num-results")
    env.out.show_each(containers.list_containers(env.account, env.deadline, prefix, limit))


@app.command(spec=options.operation(operations.CONTAINER_DELETE))
def delete(ctx: typer.Context, container: _Container, with_contents: options.WithContents = False) -> None:
    """Delete a container, if it is empty and unchanged.

    A container with blobs in it is not deleted (exit 42) unless you give --with-contents. On a terminal azguard asks.
    Uncommitted uploads count as blobs. Snapshots, old versions and soft-deleted blobs do not. Not guaranteed: a blob
    that is written between the count and the delete is deleted too. If that matters, stop the writers first.

    The service does not compare the ETag here. So --etag takes a lease, compares, deletes. Two changes of the
    metadata within one second can look like one.

    Examples:
        azguard container delete site
        azguard container delete site --with-contents
        azguard container delete site --last-writer-wins

    Topics: conditions
    """
    from azguard.cli.lease_options import CacheRecords

    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    conditions = env.conditions(target)

    def send() -> WriteResult:
        if not with_contents:
            require_empty(
                containers.count_blobs, target, env.deadline.fresh(), lifecycle_options.confirm_delete(target)
            )
        return containers.delete(target, conditions, CacheRecords(env), env.deadline.fresh())

    env.out.show(env.reads.delete(target, conditions, send))
