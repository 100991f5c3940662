"""``azguard share``: create, show, exists, list, delete, undelete, snapshot, stats, quota, metadata, acl."""

from typing import Annotated, Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import nouns
from azguard.cli.context import Environment
from azguard.cli.input import addresses
from azguard.cli.nouns import Noun, declare_exists, declare_list, declare_show
from azguard.cli.options import common
from azguard.cli.options.types import choice, whole
from azguard.cli.parsing.rows import argument, option
from azguard.cli.parsing.tree import Group
from azguard.cli.parts import declare_metadata, declare_policies
from azguard.cli.rules import one_of
from azguard.files import shares
from azguard.guards.resolve import Conditions
from azguard.wire.operations.shares import (
    SHARE_CREATE,
    SHARE_DELETE,
    SHARE_GET_ACL,
    SHARE_GET_PROPERTIES,
    SHARE_GET_STATS,
    SHARE_SET_ACL,
    SHARE_SET_METADATA,
    SHARE_SET_PROPERTIES,
    SHARE_SNAPSHOT,
    SHARE_UNDELETE,
)

_TIERS = ("TransactionOptimized", "Hot", "Cool", "Premium")
_GIBIBYTES = whole(1, 262_144)
_LEASED = "The service does not compare the ETag here. So azguard takes a lease of 15 seconds, compares, writes."

app = Group()
_SHARE = Noun(Kind.SHARE, addresses.Share, "team", "files", describe=shares.describe)
declare_metadata(
    app,
    _SHARE,
    SHARE_GET_PROPERTIES,
    SHARE_SET_METADATA,
    _LEASED,
    first=" --last-writer-wins",
)


def _replace_policies(env: Environment, target: Target, wanted: Any, conditions: Conditions) -> Any:
    done = shares.replace_policies(target, wanted, conditions, addresses.guarding(env), env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    return done


declare_policies(
    app, _SHARE, SHARE_GET_ACL, SHARE_SET_ACL, replace=_replace_policies, guard=_LEASED, accept="--last-writer-wins"
)


@app.command(spec=common.operation(SHARE_CREATE))
def create(
    env: Environment,
    share: addresses.Share,
    metadata: common.Metadata = None,
    quota: Annotated[int | None, option("--quota", "GIB", "Limit the share to this many GiB.", _GIBIBYTES)] = None,
    access_tier: Annotated[
        str | None,
        option("--access-tier", "TIER", "TransactionOptimized, Hot, Cool or Premium.", choice("|".join(_TIERS))),
    ] = None,
    if_exists: common.IfExists = None,
    *,
    waiting: common.OptionalWaitOptions,
) -> None:
    """Create a share; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    The name of a share that was just deleted is refused for a while (exit 49). --wait waits for that.

    Examples:
        azguard share create team
        azguard share create team --if-exists skip
        azguard share create archive --quota 100 --metadata owner=ops

    Topics: files
    """
    target = env.locate(share, Kind.SHARE, writable=True)
    nouns.create(env, target, if_exists, metadata, waiting, quota=quota, access_tier=access_tier)


declare_show(app, _SHARE, SHARE_GET_PROPERTIES, _SHARE.look, "quota")
declare_exists(app, _SHARE, SHARE_GET_PROPERTIES, _SHARE.look)


declare_list(app, _SHARE, common.remote("List Shares honours no conditions"), _SHARE.find, "snapshots|deleted")
nouns.declare_undelete(app, _SHARE, SHARE_UNDELETE)


@app.command(spec=common.operation(SHARE_DELETE))
def delete(
    env: Environment,
    resource: addresses.Share,
    with_contents: common.WithContents = False,
    delete_snapshots: Annotated[
        str | None, option("--delete-snapshots", "include", "Delete its snapshots too.", choice)
    ] = None,
    dry_run: common.DryRun = False,
) -> None:
    """Delete a share, if it is empty and unchanged.

    A share with directories or files in it is not deleted (exit 42) unless you give --with-contents. On a terminal
    azguard asks. Not guaranteed: a file that is written between the count and the delete is deleted too. If that
    matters, stop the writers first. A share with snapshots is not deleted without --delete-snapshots include.

    The service does not compare the ETag here. So azguard takes a lease of 15 seconds, compares, deletes. Writes of
    the files in a share do not change its ETag.

    Examples:
        azguard share delete team
        azguard share delete team --with-contents
        azguard share delete team --last-writer-wins

    Topics: files
    """
    target = env.locate(resource, Kind.SHARE)
    conditions = env.conditions(target)
    snapshots = delete_snapshots is not None
    nouns.delete(
        env,
        target,
        conditions,
        lambda deadline: shares.delete(target, conditions, addresses.guarding(env), deadline, snapshots=snapshots),
        lambda: _SHARE.look(target, conditions, env.deadline),
        None if with_contents or target.address.snapshot is not None else shares.count_entries,
        dry_run=dry_run,
    )


@app.command(spec=common.operation(SHARE_SNAPSHOT))
def snapshot(env: Environment, share: addresses.Share, metadata: common.Metadata = None) -> None:
    """Keep all that is in a share as it is now, as a snapshot that never changes.

    The result names it. Each address of the share and of what is in it takes ?snapshot=TIME at its end, to read from
    the snapshot. If the answer is lost and the list has no such snapshot, it may still be made (exit 74).

    Examples:
        azguard share snapshot team
        azguard share snapshot team --query snapshot -o tsv

    Topics: files
    """
    target = env.locate(share, Kind.SHARE, writable=True)
    env.conditions(target)
    env.out.show(shares.take_snapshot(target, metadata or {}, env.deadline))


@app.command(spec=common.operation(SHARE_GET_STATS))
def stats(env: Environment, share: addresses.Share) -> None:
    """Show about how many bytes a share holds.

    Examples:
        azguard share stats team
        azguard share stats team --query usage_bytes -o tsv
    """
    target = env.locate(share, Kind.SHARE)
    env.out.show(shares.count_bytes(target, env.conditions(target), env.deadline))


@app.command(
    spec=common.operation(SHARE_SET_PROPERTIES),
    rules=(one_of("GIB --quota", "how many GiB it is to hold", "write it behind the share, as in: team 100"),),
)
def quota(
    env: Environment,
    share: addresses.Share,
    gibibytes: Annotated[int | None, argument("[GIB]", "The limit in GiB.", _GIBIBYTES)] = None,
    quota: Annotated[
        int | None, option("--quota", "GIB", "The limit in GiB, as another way to say it.", _GIBIBYTES)
    ] = None,
) -> None:
    """Set the quota of a share: how many GiB it can hold.

    The service does not compare the ETag here. So azguard takes a lease of 15 seconds, compares, writes.

    Examples:
        azguard share quota team 100 --last-writer-wins

    Topics: files
    """
    target = env.locate(share, Kind.SHARE, writable=True)
    wanted = quota if gibibytes is None else gibibytes
    assert wanted is not None  # says the rule
    conditions = env.conditions(target)
    done = shares.change_quota(target, wanted, conditions, addresses.guarding(env), env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, None)
    env.out.show(done)
