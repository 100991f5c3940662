"""``azguard container acl``: get, set."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, options, part_options, values
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The access policies of a container: get, set.")


@app.command(spec=options.operation(operations.CONTAINER_GET_ACL))
def get(ctx: typer.Context, container: options.Container) -> None:
    """Read the access policies of a container and remember their version, which guards the next acl set.

    Examples:
        azguard container acl get site
        azguard container acl get site > policies.json

    Topics: conditions
    """
    from azguard.blobs import container_acl

    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    part_options.deliver(env, target, Part.ACL, container_acl.get(target, env.conditions(target), env.deadline))


@app.command(name="set", spec=options.operation(operations.CONTAINER_SET_ACL))
def set_(
    ctx: typer.Context,
    container: options.Container,
    file: part_options.File = None,
    public_access: Annotated[
        str | None,
        typer.Option("--public-access", metavar="off|blob|container", help="Choose who may read it without a SAS."),
    ] = None,
) -> None:
    """Replace all access policies of a container by those of a JSON file, as acl get prints them.

    Who may read without a SAS stays, unless you give --public-access. With --public-access and no --file the policies
    stay.

    The service cannot guard this write, and a lease on a container does not keep other writers out. With --allow-race
    azguard compares the version with the one that you read last, or with --etag. Another writer can still come in
    between. New policies take effect after up to 30 seconds.

    Examples:
        azguard container acl set site --public-access off --allow-race
        azguard container acl get site > policies.json
        azguard container acl set site -f policies.json --allow-race

    Topics: conditions
    """
    from azguard.blobs.container_acl import ACCESS, RULES, replace

    env = context.of(ctx)
    target = env.locate(container, Kind.CONTAINER)
    access = values.choice(public_access, "--public-access", ACCESS)
    stays = file is None and access is not None
    policies, seen = (None, None) if stays else part_options.read_policies(file, RULES)
    done = replace(target, policies, access, env.conditions(target, seen), env.deadline)
    env.reads.follow(target, done.before, done.written.etag, None)
    env.reads.record_part(target, Part.ACL, done.written)
    env.out.show(done.written)
