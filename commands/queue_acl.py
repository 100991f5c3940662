"""``azguard queue acl``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The access policies of a queue: get, set.")


@app.command(spec=options.operation(operations.QUEUE_GET_ACL))
def get(ctx: typer.Context, queue: options.Queue) -> None:
    """Read the access policies of a queue and remember their version, which guards the next acl set.

    The service gives them no ETag; azguard makes the one it shows from their content.

    Examples:
        azguard queue acl get jobs
        azguard queue acl get jobs > policies.json

    Topics: queues
    """
    from azguard.queues import acl

    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    env.conditions(target)
    part_options.deliver(env, target, Part.ACL, acl.get(target, env.deadline))


@app.command(name="set", spec=options.operation(operations.QUEUE_SET_ACL))
def set_(ctx: typer.Context, queue: options.Queue, file: part_options.File = None) -> None:
    """Replace all access policies of a queue by those of a JSON file, as acl get prints them.

    The service cannot guard this write. With --allow-race azguard compares the policies with those that you read
    last, or with --etag. Another writer can still come in between. New policies take effect after up to 30 seconds.

    Examples:
        azguard queue acl get jobs | azguard queue acl set jobs --allow-race

    Topics: queues
    """
    from azguard.queues.acl import RULES, replace

    env = context.of(ctx)
    target = env.locate(queue, Kind.QUEUE)
    policies, seen = part_options.read_policies(file, RULES)
    done = replace(target, policies, env.conditions(target, seen), env.deadline)
    env.reads.record_part(target, Part.ACL, done)
    env.out.show(done)
