"""``azguard entity``: get, query; and how entities are printed."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cache import records
from azguard.cache.records import Key
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.types import NAMES, TEXT
from azguard.cli.output.json_form import to_json_form
from azguard.cli.output.results import CHUNK, Output
from azguard.cli.parsing.rows import option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked
from azguard.tables import entities
from azguard.tables.entities import Stored
from azguard.wire.operations.tables import (
    TABLE_ENTITY_GET,
    TABLE_ENTITY_QUERY,
)

app = Group()
Select = Annotated[
    list[str] | None,
    option("--select", "NAME,…", "Read only these properties, the keys, the ETag.", NAMES),
]
_Row = Mapping[str, object]


@app.command(spec=common.operation(TABLE_ENTITY_GET))
def get(env: Environment, entity: common.Entity, select: Select = None) -> None:
    """Read an entity and remember its version, which guards the next write.

    The entity is printed as the JSON of the service. You can save it, edit it and write it back. The "odata.etag" in it
    then guards the write, also if this scope has read a newer version since.

    After a read with --select you can merge the entity, but not replace it (exit 42).

    Examples:
        azguard entity get Orders/eu/1007
        azguard entity get Orders/eu/1007 -o json > order.json
        azguard entity get Orders/eu/1007 --select status

    Topics: tables, scopes
    """
    target = env.locate(entity, Kind.ENTITY)
    env.conditions(target)
    names = select or []
    stored = entities.get(target, env.deadline, names)
    row = _row(env.out, entities.as_printed(stored, names))
    env.out.show(row)
    env.out.flush()
    if env.out.shows_whole(row) and streams.to_stream(sys.stdout).is_kept:
        _record_reads(env, target, [stored], names)


@app.command(
    spec=common.operation(TABLE_ENTITY_QUERY),
    rules=(checked("--filter --param", "each @NAME has one value", "entities.bind_parameters"),),
)
def query(
    env: Environment,
    table: common.Table,
    filter_: Annotated[
        str | None, option("--filter", "ODATA", "Read only the entities that match this filter.", TEXT)
    ] = None,
    param: common.Param = None,
    select: Select = None,
    num_results: common.Limit = None,
) -> None:
    """Read the entities that a filter finds, and remember their versions, which guard the next writes.

    With -o json each entity is one line, in the form that entity get prints. A parameter has one of these types: string
    (the default), boolean, int32, int64, double, datetime, guid, binary (in base64).

    Examples:
        azguard entity query Orders --filter "PartitionKey eq 'eu'"
        azguard entity query Orders --filter 'n gt @n' --param n:int64=3
        azguard entity query Orders --select status --num-results 10

    Topics: tables
    """
    target = env.locate(table, Kind.TABLE)
    env.conditions(target)
    names, bound = select or [], entities.bind_parameters(filter_, param or ())
    pages = entities.query(target, bound, names, num_results, env.deadline)
    deliver(env, target, pages, names)


def deliver(env: Environment, table: Target, pages: Iterable[Sequence[Stored]], select: Sequence[str]) -> None:
    """Print the entities of a table and record the versions of those that were printed whole.

    They are printed and recorded page by page, where the format lets them.
    """
    if env.out.format == "table" and env.out.query is None:
        _deliver_table(env, table, chain.from_iterable(pages), select)
        return
    batches = pages if _streams(env.out) else [env.out.gather(chain.from_iterable(pages), "entities")]
    done = 0
    with env.out.progress_bar("read", unit="entities", is_beside_content=True) as progress:
        for page in batches:
            rows = [_row(env.out, entities.as_printed(each, select)) for each in page]
            _show(env.out, rows)
            env.out.flush()
            whole = _shows_whole(env.out, rows)
            if streams.to_stream(sys.stdout).is_kept:
                delivered = [each for each, is_whole in zip(page, whole, strict=True) if is_whole]
                _record_reads(env, table, delivered, select)
            progress.at(done := done + len(page))


def _deliver_table(env: Environment, table: Target, found: Iterator[Stored], select: Sequence[str]) -> None:
    """Print entities as a table, whose columns the first chunk says, and record each chunk once it is printed."""
    from azguard.cli.output import rendering

    first: list[Any] = []
    chunk: list[Stored] = []

    def record() -> None:
        env.out.flush()
        rows = [to_json_form(_row(env.out, entities.as_printed(each, select))) for each in chunk]
        first.extend([] if first else rows)
        if streams.to_stream(sys.stdout).is_kept and not rendering.find_left_out(rows, first, rendering.of(rows)):
            _record_reads(env, table, chunk, select)

    def list_rows() -> Iterator[_Row]:
        for each in found:
            # The table asks for the next one when it has printed those before.
            if len(chunk) == CHUNK:
                record()
                chunk.clear()
            chunk.append(each)
            yield _row(env.out, entities.as_printed(each, select))

    env.out.show_each(list_rows())
    record()


def _streams(out: Output) -> bool:
    return out.format not in ("table", "yaml") and out.query is None


def _row(out: Output, row: _Row) -> _Row:
    """Return an entity as this format shows it: for people and as TSV without its types and ETag."""
    return entities.drop_types(row) if out.query is None and out.format in ("table", "tsv") else row


def _show(out: Output, rows: Sequence[_Row]) -> None:
    """Print entities: JSON as one object per line."""
    if out.format == "json" and out.query is None:
        out.json_lines(rows)
    else:
        out.show_each(rows, counts=False)


def _shows_whole(out: Output, rows: Sequence[_Row]) -> list[bool]:
    """Return of each entity whether all of it is printed; --query can choose some and leave them whole."""
    if out.format == "none":
        return [False] * len(rows)
    values = [to_json_form(row) for row in rows]
    if out.query is not None:
        found = out.pick(values)
        printed = {id(each) for each in found} if isinstance(found, list) else {id(found)}
        return [id(value) in printed for value in values]
    return [True] * len(rows)


def _record_reads(env: Environment, table: Target, delivered: Iterable[Stored], select: Sequence[str]) -> None:
    """Record the versions of entities of one table that were just delivered, with all or only some properties."""
    found = ((entities.find_address(table, each), entities.to_seen_version(each)) for each in delivered)
    names = ",".join(sorted(set(select))) or None
    env.cache.record_all(
        ((Key(table.endpoint, str(address)), seen) for address, seen in found if address is not None),
        records.add_selection(env.command, names),
    )
