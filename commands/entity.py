"""``azguard entity``: get, query, insert, replace, merge, upsert, delete, transaction; and how entities are printed."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cache import records
from azguard.cache.records import Key
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common, resources
from azguard.cli.options.entities import Entity, EntityOptions, Select, TableLock, around_write
from azguard.cli.options.types import TEXT, choice
from azguard.cli.output.json_form import to_json_form
from azguard.cli.output.results import Output
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules.engine import checked
from azguard.requests.lineage import fresh_op
from azguard.resources import existence
from azguard.tables import edm, entities, entity_json, transactions, writes
from azguard.tables.entities import Stored
from azguard.tables.entity_json import EntityCopy
from azguard.tables.transaction_lines import LineReader
from azguard.tables.writes import EntityWrite, Verb, find_existing
from azguard.wire.operations.tables import (
    TABLE_BATCH,
    TABLE_ENTITY_DELETE,
    TABLE_ENTITY_GET,
    TABLE_ENTITY_INSERT,
    TABLE_ENTITY_INSERT_OR_REPLACE,
    TABLE_ENTITY_MERGE,
    TABLE_ENTITY_QUERY,
    TABLE_ENTITY_UPDATE,
)

app = Group("Entities of tables: get, query, insert, replace, merge, upsert, delete, transaction.")
_Row = Mapping[str, object]


@app.command(spec=common.operation(TABLE_ENTITY_GET))
def get(env: Environment, entity: Entity, select: Select = None) -> None:
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
    deliver_one(env, target, entities.get_selected(target, names, env.deadline), names)


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
    param: Annotated[
        list[str] | None,
        option("--param", "NAME[:TYPE]=VALUE", "Give @NAME in the filter this value."),
    ] = None,
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


@app.command(spec=common.operation(TABLE_ENTITY_INSERT))
def insert(env: Environment, entity: Entity, given: EntityOptions, if_exists: common.IfExists = None) -> None:
    """Create an entity; if it exists, it stays as it is (exit 45, or 0 with --if-exists skip).

    Not guaranteed: if the network delivers an insert late, it can create an entity again that was deleted meanwhile.

    Examples:
        azguard entity insert Orders/eu/1008 status=new n:int64=5
        azguard entity insert Orders/eu/1008 status=new --if-exists skip
        echo '{"status": "new"}' | azguard entity insert Orders/eu/1009

    Topics: tables
    """
    _write(env, entity, Verb.INSERT, given, skip=if_exists is not None)


@app.command(spec=common.operation(TABLE_ENTITY_UPDATE))
def replace(env: Environment, entity: Entity, given: EntityOptions) -> None:
    """Replace an entity, but only the version you have seen; properties that you do not name are removed.

    If the JSON has the "odata.etag" that azguard entity get prints, or the "etag" that az prints, that version guards
    the write. --etag @last uses the version that this scope read last instead.

    If you never read the entity, or it changed since, the exit status is 42. If it does not exist, it is 44.

    Examples:
        azguard entity replace Orders/eu/1007 -f order.json
        azguard entity replace Orders/eu/1007 status=packed n:int64=6
        azguard entity replace Orders/eu/1007 status=done --last-writer-wins

    Topics: tables, conditions
    """
    _write(env, entity, Verb.REPLACE, given)


@app.command(spec=common.operation(TABLE_ENTITY_MERGE))
def merge(env: Environment, entity: Entity, given: EntityOptions) -> None:
    """Set properties of an entity, but only of the version you have seen; the others stay as they are.

    A merge removes no property, even if its new value is null. If you never read the entity, or it changed since, the
    exit status is 42. If it does not exist, it is 44. After a merge, read the entity before you replace it.

    Examples:
        azguard entity merge Orders/eu/1007 status=shipped
        azguard entity merge Orders/eu/1007 n:int64=6 --etag @last
        azguard entity merge Orders/eu/1007 status=done --last-writer-wins

    Topics: tables, conditions
    """
    _write(env, entity, Verb.MERGE, given)


@app.command(spec=common.operation(TABLE_ENTITY_INSERT_OR_REPLACE))
def upsert(
    env: Environment,
    entity: Entity,
    given: EntityOptions,
    mode: Annotated[
        str,
        option(
            "--mode",
            "merge|replace",
            "Keep (merge) or remove the other properties.",
            choice,
        ),
    ] = "merge",
) -> None:
    """Write an entity, also if it does not exist; needs --last-writer-wins.

    The service takes no condition for an upsert, so nothing can guard it. If you need a guard, use insert for a new
    entity, and replace or merge for one that exists. azguard safe-update --create is right for both.

    Examples:
        azguard entity upsert Orders/eu/1007 status=new --last-writer-wins
        azguard entity upsert Orders/eu/1007 n:int64=1 --last-writer-wins
        azguard entity upsert Orders/eu/1010 n=1 --mode replace --last-writer-wins

    Topics: tables
    """
    _write(env, entity, Verb.UPSERT, given, merges=mode == "merge")


@app.command(
    spec=common.operation(TABLE_ENTITY_DELETE),
    rules=(checked("--version-of", "the copy names its version", "entity_json.for_delete"),),
)
def delete(
    env: Environment,
    entity: Entity,
    lock: TableLock,
    version_of: Annotated[
        str | None,
        option("--version-of", "FILE|-", "Delete only the version of this copy.", TEXT),
    ] = None,
    dry_run: resources.DryRun = False,
) -> None:
    """Delete an entity, but only the version you have seen.

    --version-of names a copy that azguard entity get printed. Its "odata.etag" then says which version is deleted.

    If the entity does not exist, the exit status is 44. So if several jobs delete one entity, only one of them gets 0.
    A job gets 74 if the entity was there a moment before: the network may have sent the delete twice.

    Examples:
        azguard entity delete Orders/eu/1007
        azguard entity delete Orders/eu/1007 --with-table-lock
        azguard entity delete Orders/eu/1007 --last-writer-wins

    Topics: tables, conditions
    """
    if dry_run:
        target = env.locate(entity, Kind.ENTITY)
        conditions = env.conditions(target, _copy_to_delete(target, version_of).version)
        resources.show_doomed(env, target, conditions, lambda: entities.get(target, env.deadline))
        return
    _write(env, entity, Verb.DELETE, EntityOptions(file=version_of, lock=lock))


@app.command(spec=common.operation(TABLE_BATCH))
def transaction(
    env: Environment,
    file: Annotated[str, argument("FILE|-", "The file: JSON lines, one write on each.", TEXT)],
    lock: TableLock,
    dry_run: Annotated[bool, flag("--dry-run", "Check everything; send nothing.")] = False,
    no_lineage: common.NoLineage = False,
) -> None:
    """Write up to 100 entities of one partition, all or none, each under its own condition.

    Each line is a JSON object. "op" is insert, replace, merge, upsert or delete. "address" is TABLE/PARTITION/ROW.
    "entity" is what azguard entity get prints. "etag", "if_match" or "last_writer_wins" is the condition of this line.
    "mode" of an upsert is merge or replace. A line without a condition is guarded as the single command would be.

    If one line fails, nothing is written. The error names the line, and the exit status is that of its error.

    Examples:
        azguard entity transaction orders.jsonl --dry-run
        azguard entity transaction orders.jsonl

    Topics: tables
    """
    lines = LineReader(
        fresh_op(),
        lambda text: env.locate(text, Kind.ENTITY),
        lambda target, _operation, _asked, version: env.reads.recall(target, version),
        stamps=not no_lineage,
    )
    with streams.source(file) as stream:
        items = lines.read(iter(lambda: stream.readline(entity_json.MOST_BYTES + 1), b""))
    if dry_run:
        env.out.show(transactions.preview(items))
        return
    with around_write(env, items[0].write.target, lock) as check:
        check()
        done = transactions.submit(items, env.deadline.fresh())
    for item, result in zip(items, done, strict=True):
        writes.record_write(env.reads, item.write, result)
    env.out.show(done)


def _write(
    env: Environment,
    address: str,
    verb: Verb,
    given: EntityOptions,
    *,
    merges: bool = False,
    skip: bool = False,
) -> None:
    """Make one write, under the lock of its table if that was asked for, and show its result.

    ``merges`` is about an upsert; ``skip`` leaves alone what an insert finds.
    """
    target = env.locate(address, Kind.ENTITY)
    copy = _copy_to_delete(target, given.file) if verb is Verb.DELETE else _copy(target, given)
    made = EntityWrite(
        target=target,
        verb=verb,
        entity=copy.entity,
        conditions=env.conditions(target, copy.version, operation=verb.operation(merges=merges)),
        op=fresh_op(),
        merges=merges,
    )
    made = made if given.no_lineage else made.add_lineage()
    writes.check(made)
    with around_write(env, target, given.lock) as check:
        check()
        with env.reads.explain_deleted(target, made.conditions):
            done = existence.create(
                lambda: writes.write(made, env.deadline.fresh()),
                lambda: find_existing(made, env.deadline),
                skip=skip,
            )
    writes.record_write(env.reads, made, done)
    env.out.show(done)


def _copy(target: Target, given: EntityOptions) -> EntityCopy:
    """Return the entity to write: of words such as ``n:int64=5``, of a file or of stdin."""
    if given.properties:
        return entity_json.with_keys_of(target, edm.parse_entity(given.properties))
    with streams.source(given.file, typed="properties such as status=new") as stream:
        found = entity_json.parse_input(
            stream.read(entity_json.MOST_BYTES + 1), streams.show_name(given.file), '{"status": "new"}'
        )
    return entity_json.with_keys_of(target, found)


def _copy_to_delete(target: Target, file: str | None) -> EntityCopy:
    """Return the keys of an entity, and the version that a copy of it was read as."""
    if file is None:
        return entity_json.with_keys_of(target, {})
    return entity_json.for_delete(target, _copy(target, EntityOptions(file=file)), file)


def deliver_one(env: Environment, target: Target, stored: Stored, select: Sequence[str]) -> None:
    """Print an entity and record its version, if all of it was delivered."""
    row = _row(env.out, entities.as_printed(stored, select))
    env.out.show(row)
    env.out.flush()
    if env.out.shows_whole(row) and streams.to_stream(sys.stdout).is_kept:
        _record_reads(env, target, [stored], select)


def deliver(env: Environment, table: Target, pages: Iterable[Sequence[Stored]], select: Sequence[str]) -> None:
    """Print the entities of a table and record the versions of those that were printed whole.

    They are printed and recorded page by page, where the format lets them.
    """
    batches = pages if _streams(env.out) else [[each for page in pages for each in page]]
    for page in batches:
        rows = [_row(env.out, entities.as_printed(each, select)) for each in page]
        _show(env.out, rows)
        env.out.flush()
        whole = _shows_whole(env.out, rows)
        if streams.to_stream(sys.stdout).is_kept:
            _record_reads(env, table, [each for each, is_whole in zip(page, whole, strict=True) if is_whole], select)


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
        out.show_each(rows)


def _shows_whole(out: Output, rows: Sequence[_Row]) -> list[bool]:
    """Return of each entity whether all of it is printed; --query can choose some and leave them whole."""
    if out.format == "none":
        return [False] * len(rows)
    values = [to_json_form(row) for row in rows]
    if out.query is not None:
        found = out.pick(values)
        printed = {id(each) for each in found} if isinstance(found, list) else {id(found)}
        return [id(value) in printed for value in values]
    if out.format == "table":
        from azguard.cli.output import rendering

        return [rendering.shows_all(values, rendering.of(rows))] * len(rows)
    return [True] * len(rows)


def _record_reads(env: Environment, table: Target, delivered: Iterable[Stored], select: Sequence[str]) -> None:
    """Record the versions of entities of one table that were just delivered, with all or only some properties."""
    found = ((entities.find_address(table, each), entities.to_seen_version(each)) for each in delivered)
    names = ",".join(sorted(set(select))) or None
    env.cache.record_all(
        ((Key(table.endpoint, str(address)), seen) for address, seen in found if address is not None),
        records.add_selection(env.command, names),
    )
