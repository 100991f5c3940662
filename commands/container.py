"""``azguard container``: create, show, exists, list, delete."""

from typing import Annotated

import typer

from azguard import containers, operations
from azguard.address import Kind
from azguard.cli import context, options, values
from azguard.cli.groups import group

app = group("Containers: create, show, exists, list, delete.")


@app.command()
@options.operation(operations.CONTAINER_CREATE)
def create(
    ctx: typer.Context,
    container: options.Container,
    metadata: options.Metadata = None,
    public_access: Annotated[
        str | None,
        typer.Option("--public-access", metavar="blob|container", help="Who may read it; nobody by default."),
    ] = None,
) -> None:
    """Create a container; one that exists is left alone (exit 45).

    Example: azguard container create site
    """
    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    env.conditions(target)
    access = values.choice(public_access, "--public-access", ("blob", "container"))
    result = containers.create(target, values.metadata(metadata), access, env.deadline, env.new_op())
    env.remember(target, result)
    env.show(result)


@app.command()
@options.operation(operations.CONTAINER_GET_PROPERTIES)
def show(ctx: typer.Context, container: options.Container) -> None:
    """Show a container's properties and metadata.

    Example: azguard container show site
    """
    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    env.show(containers.show(target, env.conditions(target), env.deadline))


@app.command()
@options.operation(operations.CONTAINER_GET_PROPERTIES)
def exists(ctx: typer.Context, container: options.Container) -> None:
    """Exit 0 if the container exists, 44 if not.

    Example: azguard container exists site
    """
    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    conditions = env.conditions(target)
    env.answer_exists(target, lambda: containers.show(target, conditions, env.deadline))


@app.command(name="list")
@options.remote("List Containers honours no conditions")
def list_(ctx: typer.Context, prefix: options.Prefix = None, num_results: options.Limit = None) -> None:
    """List the account's containers.

    Example: azguard container list --prefix si
    """
    env = context.of(ctx)
    limit = values.count(num_results, "--num-results")
    env.show_each(containers.listed(env.account, env.deadline, prefix, limit))


@app.command()
@options.operation(operations.CONTAINER_DELETE)
def delete(ctx: typer.Context, container: options.Container) -> None:
    """Delete a container and all that is in it, if it is unchanged.

    The service honours no ETag here, so --etag is kept by a lease and a comparison; a change of its metadata within
    the same second as the one before can slip through. What is in the container is not part of its ETag.

    Example: azguard container delete site
    """
    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    result = containers.delete(target, env.conditions(target), env.deadline)
    env.forget(target)
    env.show(result)
