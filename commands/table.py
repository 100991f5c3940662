"""``azguard table``: create, exists, list, delete, and acl get, set."""

from typing import Any

from azguard.address import Kind
from azguard.cli import nouns
from azguard.cli.context import Environment
from azguard.cli.nouns import Noun, declare_exists, declare_list
from azguard.cli.options import common
from azguard.cli.parsing.tree import Group
from azguard.cli.parts import NO_ETAG, declare_policies
from azguard.resources import lifecycles, parts
from azguard.resources.lifecycles import require_empty
from azguard.tables import tables
from azguard.wire.operations.tables import (
    TABLE_CREATE,
    TABLE_DELETE,
    TABLE_ENTITY_QUERY,
    TABLE_GET_ACL,
    TABLE_QUERY_TABLES,
    TABLE_SET_ACL,
)

app = Group()
_TABLE = Noun(Kind.TABLE, common.Table, "Orders", "tables")
declare_policies(app, _TABLE, TABLE_GET_ACL, TABLE_SET_ACL, note=NO_ETAG)


@app.command(spec=common.operation(TABLE_CREATE))
def create(
    env: Environment, table: common.Table, if_exists: common.IfExists = None, *, waiting: common.OptionalWaitOptions
) -> None:
    """Create a table; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    A table has no metadata that could say who created it. If the answer gets lost and the table exists afterwards, it
    cannot be known whether this command created it (exit 74).

    The name of a table that was just deleted is refused for a while (exit 49). --wait waits for that.

    Examples:
        azguard table create Orders
        azguard table create Orders --if-exists skip
    """
    target = env.locate(table, Kind.TABLE)
    env.conditions(target)
    skip = if_exists is not None

    def make() -> Any:
        return lifecycles.create_unless_exists(
            lambda: tables.create(target, env.deadline.fresh()),
            lambda: lifecycles.describe_existing(target),
            skip=skip,
        )

    env.out.show(nouns.wait_for_name(env, make, waiting))


declare_exists(app, _TABLE, TABLE_ENTITY_QUERY, lambda target, _, deadline: tables.require(target, deadline))
declare_list(app, _TABLE, common.operation(TABLE_QUERY_TABLES), tables.list_tables)


@app.command(spec=common.operation(TABLE_DELETE))
def delete(
    env: Environment,
    resource: common.Table,
    with_contents: common.WithContents = False,
    dry_run: common.DryRun = False,
) -> None:
    """Delete a table, if it is empty. Nothing can guard that, so it has to be said: --last-writer-wins.

    A table with entities in it is not deleted (exit 42) unless you give --with-contents. On a terminal azguard asks.
    Not guaranteed: an entity that is written between the count and the delete is deleted too. If that matters, stop
    the writers first.

    If there is no such table, the exit status is 44. The name is free again after 40 seconds or more. Until then a
    create ends with 49.

    Examples:
        azguard table delete Orders --last-writer-wins
        azguard table delete Orders --last-writer-wins --with-contents

    Topics: tables
    """
    target = env.locate(resource, Kind.TABLE)
    conditions = env.conditions(target)
    if dry_run:
        # A table has no other properties.
        look = lambda: parts.get_policies(target, conditions, env.deadline)  # noqa: E731  # asked again after a doubt
        nouns.show_doomed(env, target, conditions, look, None if with_contents else tables.count_entities)
        return
    if not with_contents:
        require_empty(tables.count_entities, target, env.deadline.fresh(), nouns.confirm_contents(target))
    env.out.show(tables.delete(target, conditions, env.deadline.fresh()))
    env.reads.forget(target)
