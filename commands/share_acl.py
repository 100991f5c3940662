"""``azguard share acl``: get, set."""

import typer

from azguard.address import Kind
from azguard.cli import context, file_options, options, part_options
from azguard.cli.groups import group
from azguard.conditions import operations
from azguard.conditions.operations import Part

app = group("The access policies of a share: get, set.")


@app.command(spec=options.operation(operations.SHARE_GET_ACL))
def get(ctx: typer.Context, share: file_options.Share) -> None:
    """Read the access policies of a share and remember their version, which guards the next acl set.

    Examples:
        azguard share acl get team
        azguard share acl get team > policies.json

    Topics: files
    """
    from azguard.files import shares

    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE)
    part_options.deliver(env, target, Part.ACL, shares.get_policies(target, env.conditions(target), env.deadline))


@app.command(name="set", spec=options.operation(operations.SHARE_SET_ACL))
def set_(ctx: typer.Context, share: file_options.Share, file: part_options.File = None) -> None:
    """Replace all access policies of a share by those of a JSON file, as acl get prints them.

    The service does not compare the ETag here. So azguard takes a lease of 15 seconds, compares, writes. New policies
    take effect after up to 30 seconds.

    Examples:
        azguard share acl get team | azguard share acl set team --last-writer-wins

    Topics: files
    """
    from azguard.files.shares import POLICY_RULES, replace_policies

    env = context.of(ctx)
    target = env.locate(share, Kind.SHARE, writable=True)
    policies, seen = part_options.read_policies(file, POLICY_RULES)
    conditions = env.conditions(target, seen)
    done = replace_policies(target, policies, conditions, file_options.guarding(env), env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    env.reads.record_part(target, Part.ACL, done)
    env.out.show(done)
