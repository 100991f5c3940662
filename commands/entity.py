"""``azguard entity``: get, query, insert, replace, merge, upsert, delete, transaction."""

from typing import Annotated

import typer

from azguard.address import Kind
from azguard.cli import context, creating, entities, options, transactions, values
from azguard.cli.groups import group
from azguard.cli.lock_options import TableLock
from azguard.conditions import operations
from azguard.tables import filters, reads
from azguard.tables.write import Verb

app = group("Entities of tables: get, query, insert, replace, merge, upsert, delete, transaction.")


@app.command(spec=options.operation(operations.TABLE_ENTITY_GET))
def get(ctx: typer.Context, entity: options.Entity, select: options.Select = None) -> None:
    """Read an entity and remember its version, which guards the next write.

    It is printed as the service's own JSON: each property, beside it its type where JSON does not tell it
    ("n@odata.type": "Edm.Int64"), and the ETag as "odata.etag". What was printed can be edited and written back as it
    is, ETag and Timestamp included; that ETag then guards it, whatever was read since.

    What was read with --select can be merged, but not replaced (exit 42). What went to /dev/null, or was not printed
    whole because of --query or -o none, was not read.

    Example: azguard entity get Orders/eu/1007
    """
    env = context.of(ctx)
    target = env.locate(entity, Kind.ENTITY)
    env.conditions(target)
    names = values.selected(select)
    entities.deliver_one(env, target, reads.get(target, names, env.deadline), names)


@app.command(spec=options.operation(operations.TABLE_ENTITY_QUERY))
def query(
    ctx: typer.Context,
    table: options.Table,
    filter_: Annotated[
        str | None, typer.Option("--filter", metavar="ODATA", help="Only these, e.g. 'PartitionKey eq @p and n gt @n'.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME[:TYPE]=VALUE", help="The value of @NAME in the filter; repeat for more."),
    ] = None,
    select: options.Select = None,
    top: Annotated[str | None, typer.Option("--top", metavar="N", help="At most so many; all by default.")] = None,
) -> None:
    """Read the entities that a filter finds, and remember their versions, which guard the next writes.

    JSON is one entity per line, each as entity get prints it. A parameter is a value and can be nothing else, whatever
    is in it: --param name="O'Brien" --param n:int64=5. The types are string, boolean, int32, int64, double, datetime,
    guid and binary (in base64); without one it is a string.

    Example: azguard entity query Orders --filter 'PartitionKey eq @p and n gt @n' --param p=eu --param n:int64=5
    """
    env = context.of(ctx)
    target = env.locate(table, Kind.TABLE)
    env.conditions(target)
    names, most = values.selected(select), values.count(top, "--top")
    bound = filters.bound(values.not_empty(filter_, "--filter"), param or ())
    pages = reads.query(target, bound, names, most, env.deadline)
    entities.deliver(env, target, pages, names)


@app.command(spec=options.operation(operations.TABLE_ENTITY_INSERT))
def insert(
    ctx: typer.Context,
    entity: options.Entity,
    properties: options.Properties = None,
    file: options.EntityFile = None,
    if_exists: creating.IfExists = None,
    no_lineage: options.NoEntityLineage = False,
    with_table_lock: options.WithTableLock = False,
    wait: options.LockWait = None,
    lock_container: options.LockContainer = None,
) -> None:
    """Create an entity; one that exists is left alone (exit 45, or 0 with --if-exists skip).

    An answer that was lost is settled by looking whose entity is there. Not guaranteed: an insert that the network
    delivers late can bring back an entity that somebody deleted meanwhile.

    Example: azguard entity insert Orders/eu/1008 status=new n:int64=5
    """
    lock = TableLock(with_table_lock, wait, lock_container)
    env = context.of(ctx)
    skip = creating.skips(env, if_exists)
    entities.perform(env, entity, Verb.INSERT, lock, (properties, file), stamps=not no_lineage, skip=skip)


@app.command(spec=options.operation(operations.TABLE_ENTITY_UPDATE))
def replace(
    ctx: typer.Context,
    entity: options.Entity,
    properties: options.Properties = None,
    file: options.EntityFile = None,
    no_lineage: options.NoEntityLineage = False,
    with_table_lock: options.WithTableLock = False,
    wait: options.LockWait = None,
    lock_container: options.LockContainer = None,
) -> None:
    """Replace an entity, but only the version you have seen; properties that are not named are gone.

    What azguard entity get prints can be edited and put back: its "odata.etag", or the "etag" that az prints, is the
    version it was made of, and guards it whatever was read since. --etag @last is what was read last instead.

    One never read here is refused before any request, and one that changed since too (exit 42); one that is missing is
    not created (exit 44). --last-writer-wins replaces whatever is there, and creates nothing either.

    Example: azguard entity replace Orders/eu/1007 -f order.json
    """
    lock = TableLock(with_table_lock, wait, lock_container)
    entities.perform(context.of(ctx), entity, Verb.REPLACE, lock, (properties, file), stamps=not no_lineage)


@app.command(spec=options.operation(operations.TABLE_ENTITY_MERGE))
def merge(
    ctx: typer.Context,
    entity: options.Entity,
    properties: options.Properties = None,
    file: options.EntityFile = None,
    no_lineage: options.NoEntityLineage = False,
    with_table_lock: options.WithTableLock = False,
    wait: options.LockWait = None,
    lock_container: options.LockContainer = None,
) -> None:
    """Set properties of an entity, but only of the version you have seen; the others stay.

    A merge removes nothing: what is null in it stays as it is.

    One never read here is refused before any request, and one that changed since too (exit 42). --last-writer-wins
    merges into whatever is there, but creates nothing (exit 44). After that its version is not known here, because
    you have not seen the other properties: read it before you replace it.

    Example: azguard entity merge Orders/eu/1007 status=shipped
    """
    lock = TableLock(with_table_lock, wait, lock_container)
    entities.perform(context.of(ctx), entity, Verb.MERGE, lock, (properties, file), stamps=not no_lineage)


@app.command(spec=options.operation(operations.TABLE_ENTITY_INSERT_OR_REPLACE))
def upsert(
    ctx: typer.Context,
    entity: options.Entity,
    properties: options.Properties = None,
    file: options.EntityFile = None,
    mode: Annotated[
        str, typer.Option("--mode", metavar="merge|replace", help="What becomes of the other properties of one there.")
    ] = "merge",
    no_lineage: options.NoEntityLineage = False,
    with_table_lock: options.WithTableLock = False,
    wait: options.LockWait = None,
    lock_container: options.LockContainer = None,
) -> None:
    """Write an entity whatever is there, nothing included; needs --last-writer-wins.

    To the service an upsert is a write without a condition: it overwrites what others wrote since you read, and nothing
    can guard it. That is why it has to be said. With a guard, use insert for a new entity, and replace or merge for one
    that is there; azguard safe-update --create does what is needed of both.

    Example: azguard entity upsert Orders/eu/1007 status=new --last-writer-wins
    """
    merges = values.choice(mode, "--mode", ("merge", "replace")) == "merge"
    lock = TableLock(with_table_lock, wait, lock_container)
    entities.perform(
        context.of(ctx), entity, Verb.UPSERT, lock, (properties, file), stamps=not no_lineage, merges=merges
    )


@app.command(spec=options.operation(operations.TABLE_ENTITY_DELETE))
def delete(
    ctx: typer.Context,
    entity: options.Entity,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE|-", help="Only the version that this copy was read as, as JSON."),
    ] = None,
    with_table_lock: options.WithTableLock = False,
    wait: options.LockWait = None,
    lock_container: options.LockContainer = None,
) -> None:
    """Delete an entity, but only the version you have seen.

    With -f that is the "odata.etag" of a copy that azguard entity get printed, whatever was read since.

    One that is missing is exit 44, not success: so of several who claim an entity by deleting it, one gets 0.

    Example: azguard entity delete Orders/eu/1007
    """
    lock = TableLock(with_table_lock, wait, lock_container)
    entities.perform(context.of(ctx), entity, Verb.DELETE, lock, (None, file))


@app.command(spec=options.operation(operations.TABLE_BATCH))
def transaction(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON lines, one write on each.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and send nothing.")] = False,
    no_lineage: options.NoEntityLineage = False,
    with_table_lock: options.WithTableLock = False,
    wait: options.LockWait = None,
    lock_container: options.LockContainer = None,
) -> None:
    """Write up to 100 entities of one partition, all or none, each under its own condition.

    Each line is a JSON object: "op" is insert, replace, merge, upsert or delete, "address" is TABLE/PARTITION/ROW,
    "entity" is what azguard entity get prints. "etag", "if_match" and "last_writer_wins" are that item's condition, and
    "mode" is merge or replace, for an upsert. Without a condition the rules and defaults of the single commands hold:
    the "odata.etag" of the entity guards a replace, merge or delete, else what was read last; an insert only creates;
    an upsert needs last_writer_wins.

    If one item fails nothing is written; the error names its line, and the exit status is that item's.

    Example: azguard entity transaction orders.jsonl
    """
    lock = TableLock(with_table_lock, wait, lock_container)
    transactions.perform(context.of(ctx), file, lock, stamps=not no_lineage, dry_run=dry_run)
