"""``azguard entity``: insert, replace, merge, upsert, delete, transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.cli import context
from azguard.cli.context import Environment
from azguard.cli.options import common
from azguard.cli.options.types import TEXT, choice
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, excludes, needs
from azguard.frozen import frozen
from azguard.requests.lineage import fresh_op
from azguard.requests.results import Written
from azguard.tables import edm, entities, entity_json, writes
from azguard.tables.entity_json import EntityCopy
from azguard.tables.writes import EntityWrite, Verb, find_existing
from azguard.wire.operations.tables import (
    TABLE_BATCH,
    TABLE_ENTITY_DELETE,
    TABLE_ENTITY_INSERT,
    TABLE_ENTITY_INSERT_OR_REPLACE,
    TABLE_ENTITY_MERGE,
    TABLE_ENTITY_UPDATE,
)

app = Group()


@frozen
class TableLock:
    """The options of a write under the lock of its table, as typed."""

    with_table_lock: Annotated[
        bool,
        flag("--with-table-lock", "Hold the lock of the table during the write."),
    ] = False
    waiting: common.WaitOptions = field(default_factory=common.WaitOptions)
    lock_container: common.LockContainer = None

    RULES: ClassVar = (
        needs("--wait --no-wait --lock-container", "--with-table-lock"),
        checked("--lock-container", "the name of a container", "addresses.locate_designated"),
    )


@frozen
class EntityOptions:
    """The options that insert, replace, merge, upsert and delete share, as typed."""

    properties: Annotated[
        list[str] | None,
        argument("NAME[:TYPE]=VALUE", "Its properties, such as status=shipped n:int64=5."),
    ] = None
    file: Annotated[
        str | None,
        option("--file, -f", "FILE|-", "Read JSON from this file.", TEXT, otherwise="stdin"),
    ] = None
    no_lineage: common.NoLineage = False
    lock: TableLock = field(default_factory=TableLock)

    RULES: ClassVar = (excludes("--file", "NAME[:TYPE]=VALUE"),)


@contextmanager
def around_write(env: Environment, target: Target, asked: TableLock) -> Iterator[Callable[[], None]]:
    """Hold the lock of an entity's table, if that was asked for; what is yielded sees that it is held still.

    Raises:
        GaveUp: others hold it, and the time for waiting is over; nothing was written.
    """
    if not asked.with_table_lock:
        yield lambda: None
        return
    from azguard.cli.input.addresses import locate_designated
    from azguard.cli.options import leases
    from azguard.cli.options.leases import acquire_settings
    from azguard.leases.state import DEFAULT_SECONDS
    from azguard.locks.run import hold_lock

    table = Target(target.account, Address(Kind.TABLE, target.address.parts[:1]))
    blob = locate_designated(env, table, asked.lock_container)
    wait = asked.waiting.wait_seconds
    settings = acquire_settings(env, leases.this_process(env, f"azguard {env.command}"), DEFAULT_SECONDS, create=True)
    context.warn_of_end(blob, wait + DEFAULT_SECONDS, env.out.warn_once)
    with hold_lock(blob, settings, wait, env.environ) as held:
        yield lambda: None if held is None else held.check()


@app.command(spec=common.operation(TABLE_ENTITY_INSERT))
def insert(env: Environment, entity: common.Entity, given: EntityOptions, if_exists: common.IfExists = None) -> None:
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
def replace(env: Environment, entity: common.Entity, given: EntityOptions) -> None:
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
def merge(env: Environment, entity: common.Entity, given: EntityOptions) -> None:
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
    entity: common.Entity,
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
    entity: common.Entity,
    lock: TableLock,
    version_of: Annotated[
        str | None,
        option("--version-of", "FILE|-", "Delete only the version of this copy.", TEXT),
    ] = None,
    dry_run: common.DryRun = False,
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
        from azguard.cli import nouns

        nouns.show_doomed(env, target, conditions, lambda: entities.get(target, env.deadline))
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
    from azguard.cli.input import streams
    from azguard.tables import transactions

    lines = transactions.LineReader(
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
            done = _insert_or_skip(env, made) if skip else writes.write(made, env.deadline.fresh())
    writes.record_write(env.reads, made, done)
    env.out.show(done)


def _insert_or_skip(env: Environment, made: EntityWrite) -> Written:
    from azguard.resources.lifecycles import create_unless_exists  # whose modules no other write needs

    return create_unless_exists(
        lambda: writes.write(made, env.deadline.fresh()), lambda: find_existing(made, env.deadline), skip=True
    )


def _copy(target: Target, given: EntityOptions) -> EntityCopy:
    """Return the entity to write: of words such as ``n:int64=5``, of a file or of stdin."""
    if given.properties:
        return entity_json.with_keys_of(target, edm.parse_entity(given.properties))
    from azguard.cli.input import streams  # which properties of the command line do not need

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
