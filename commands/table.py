"""``azguard table``: create, list, delete, and acl get, set."""

import sys

from azguard.address import Kind
from azguard.cli import nouns
from azguard.cli.context import Environment
from azguard.cli.input import parts, streams
from azguard.cli.nouns import Noun, declare_list
from azguard.cli.options import common
from azguard.cli.parsing.tree import Group
from azguard.resources import access_policies, lifecycles
from azguard.resources.lifecycles import require_empty
from azguard.tables import tables
from azguard.wire.operations.tables import TABLE_CREATE, TABLE_DELETE, TABLE_GET_ACL, TABLE_QUERY_TABLES, TABLE_SET_ACL

app = Group("Tables: create, list, delete, and their access policies.")
_TABLE = Noun(Kind.TABLE, "table", common.Table, "Orders", "tables")
policies = Group("The access policies of a table: get, set.")
app.add("acl", policies)


@app.command(spec=common.operation(TABLE_CREATE))
def create(env: Environment, table: common.Table, if_exists: common.IfExists = None) -> None:
    """Create a table; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    A table has no metadata that could say who created it. If the answer gets lost and the table exists afterwards, it
    cannot be known whether this command created it (exit 74).

    Examples:
        azguard table create Orders
        azguard table create Orders --if-exists skip
    """
    target = env.locate(table, Kind.TABLE)
    env.conditions(target)
    skip = if_exists is not None
    env.out.show(
        lifecycles.create_unless_exists(
            lambda: tables.create(target, env.deadline), lambda: lifecycles.leave_alone(target, None, None), skip=skip
        )
    )


declare_list(app, _TABLE, common.operation(TABLE_QUERY_TABLES), tables.list_tables)


@app.command(spec=common.operation(TABLE_DELETE))
def delete(
    env: Environment,
    table: common.Table,
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
    target = env.locate(table, Kind.TABLE)
    conditions = env.conditions(target)
    if dry_run:
        # A table has no other properties.
        look = lambda: access_policies.get(target, conditions, env.deadline)  # noqa: E731
        nouns.show_doomed(env, target, conditions, look, None if with_contents else tables.count_entities)
        return
    if not with_contents:
        require_empty(tables.count_entities, target, env.deadline.fresh(), nouns.confirm_delete(target))
    env.out.show(tables.delete(target, conditions, env.deadline.fresh()))
    env.reads.forget(target)


@policies.command(spec=common.operation(TABLE_GET_ACL))
def get(env: Environment, table: common.Table) -> None:
    """Read a table's access policies and remember their version.

    The service gives them no ETag; azguard makes the one it shows from their content.

    Examples:
        azguard table acl get Orders
        azguard table acl get Orders -o json > policies.json
    """
    target = env.locate(table, Kind.TABLE)
    found = access_policies.get(target, env.conditions(target), env.deadline)
    env.out.show(found)
    env.out.flush()
    # What was shown in part, or went to /dev/null, was not read.
    if env.out.shows_whole(found) and streams.to_stream(sys.stdout).is_kept:
        env.reads.record(target, found)


@policies.command(name="set", spec=common.operation(TABLE_SET_ACL))
def set_(
    env: Environment,
    table: common.Table,
    file: common.InputFile = None,
) -> None:
    """Replace all access policies of a table by those of a JSON file, as acl get prints them.

    The service cannot guard this write. With --allow-race azguard compares the policies with those that you read
    last, or with --etag. Another writer can still come in between. New policies take effect after up to 30 seconds.

    Examples:
        azguard table acl get Orders | azguard table acl set Orders --allow-race

    Topics: tables
    """
    target = env.locate(table, Kind.TABLE)
    # Read first: where acl get is at the other end of the pipe, what guards this is recorded only then.
    wanted, seen = parts.read_policies(file, Kind.TABLE)
    written = access_policies.replace(target, wanted, env.conditions(target, seen), env.deadline)
    env.reads.record(target, written)
    env.out.show(written)
