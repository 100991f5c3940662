"""``azguard entity``: get, query."""

from typing import Annotated

import typer

from azguard import operations
from azguard.address import Kind
from azguard.cli import context, options, values
from azguard.cli.groups import group
from azguard.entities import filters, reading

app = group("Entities of tables: get, query.")


@app.command()
@options.operation(operations.TABLE_ENTITY_GET)
def get(ctx: typer.Context, entity: options.Entity, select: options.Select = None) -> None:
    """Read an entity and remember its version, which guards the next write.

    It is printed as the service's own JSON: each property, beside it its type where JSON does not tell it
    ("n@odata.type": "Edm.Int64"), and the ETag as "odata.etag". What was printed can be edited and written back as it
    is, ETag and Timestamp included. With --select only a merge writes it back whole.

    Example: azguard entity get Orders/eu/1007
    """
    env = context.of(ctx)
    target = env.locate(entity, Kind.ENTITY)
    env.conditions(target)
    names = values.selected(select)
    stored = reading.get(target, names, env.deadline)
    env.remember_entities(target, [stored])
    env.out.show_row(reading.shown(stored, names))


@app.command()
@options.operation(operations.TABLE_ENTITY_QUERY)
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
    pages = reading.query(target, bound, names, most, env.deadline)
    env.deliver(target, pages, lambda each: reading.shown(each, names))
