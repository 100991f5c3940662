"""From the options of the commands that write entities to the core, and what is remembered of it."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cache import records
from azguard.cache.records import Key
from azguard.cli import creating, deliveries, inputs, lock_options
from azguard.cli.context import Environment
from azguard.cli.lock_options import TableLock
from azguard.conditions import etags
from azguard.conditions.seen import SeenVersion
from azguard.documents import text as json_text
from azguard.errors import UsageError
from azguard.requests import existing
from azguard.requests.lineage import KEY
from azguard.tables import edm, reads, typed_values, writes
from azguard.tables.calls import Stored
from azguard.tables.edm import Entity
from azguard.tables.existing import find_entity
from azguard.tables.write import EntityWrite, Verb

# What the service and azguard keep beside the properties; it is no part of what is written.
_NOT_WRITTEN = (edm.TIMESTAMP, KEY)
# az puts the ETag among the properties, where it is told from one of that name by its value.
_AZ_ETAG = "etag"


class EntityCopy(NamedTuple):
    """An entity to write, and the version that it was read as, if it says so."""

    entity: Entity
    version: SeenVersion | None


def read(target: Target, words: Sequence[str] | None, file: str | None) -> EntityCopy:
    """Return the entity to write, from words such as ``n:int64=5``, a file or stdin.

    Raises:
        UsageError: it is malformed, or is another entity than the address names.
    """
    if words and file is not None:
        raise UsageError(f"-f {file} and {words[0]!r} do not go together", hint="leave one of them out")
    if words:
        return keyed(target, typed_values.entity(words))
    with inputs.source(file) as stream:
        return keyed(target, parsed(stream.read(), file or "stdin", '{"status": "new"}'))


def keyed(target: Target, found: Entity) -> EntityCopy:
    """Return an entity with the keys of its address, and without what the service sets itself.

    Raises:
        UsageError: it has other keys, or its ETag is none.
    """
    keys = dict(zip(edm.KEYS, target.address.parts[1:], strict=True))
    for name, key in keys.items():
        if found.get(name, key) != key:
            raise UsageError(
                f"{name} is {found[name]!r} in the entity, and {key!r} in the address",
                address=str(target.address),
                hint="leave it out of the entity, or mend the address",
            )
    dropped = {*_NOT_WRITTEN, *edm.KEYS}
    kept = {
        name: value
        for name, value in found.items()
        if name.removesuffix(edm.ANNOTATION) not in dropped
        and not name.startswith("odata.")
        and not _is_az_etag(name, value)
    }
    return EntityCopy({**keys, **kept}, _version(found))


def _version(found: Entity) -> SeenVersion | None:
    """Return the version that an entity was read as: by azguard, by the service itself, or by az."""
    told = {name: value for name, value in found.items() if name == reads.ETAG or _is_az_etag(name, value)}
    for name, value in told.items():
        if not isinstance(value, str) or not etags.is_version(Kind.ENTITY, value):
            raise UsageError(
                f"{name} is {value!r}, which is not the ETag of an entity",
                hint="leave it as azguard entity get printed it; or take it out, and name the version with --etag",
            )
    if len(set(told.values())) > 1:
        raise UsageError(
            f"the entity has two versions: {reads.ETAG} is {told[reads.ETAG]}, {_AZ_ETAG} is {told[_AZ_ETAG]}",
            hint="take out the one that it was not read as",
        )
    return SeenVersion(next(iter(told.values()))) if told else None


def _is_az_etag(name: str, value: object) -> bool:
    return name == _AZ_ETAG and writes.modified(str(value)) is not None


def perform(
    env: Environment,
    address: str,
    verb: Verb,
    lock: TableLock,
    entity: tuple[Sequence[str] | None, str | None] = (None, None),
    *,
    stamps: bool = True,
    merges: bool = False,
    skip: bool = False,
) -> None:
    """Make one write, under the lock of its table if that is asked for, and show its result.

    ``skip`` leaves alone what an insert finds.
    """
    target = env.locate(address, Kind.ENTITY)
    copy = _to_delete(target, entity[1]) if verb is Verb.DELETE else read(target, *entity)
    conditions = env.conditions(target, copy.version, operation=verb.operation(merges=merges))
    made = EntityWrite(target, verb, copy.entity, conditions, env.new_op(), merges)
    made = made.stamped() if stamps else made
    writes.check(made)
    with lock_options.around_write(env, target, lock) as check:
        check()
        done = creating.create(
            lambda: writes.write(made, env.deadline.fresh()),
            lambda: find_entity(made, env.deadline),
            skip=skip,
        )
    if done.outcome != existing.EXISTS:
        remember(env, made, done)
    env.show(done)


def _to_delete(target: Target, file: str | None) -> EntityCopy:
    """Return what a delete needs of an entity: its keys, and the version that a copy of it was read as.

    Raises:
        UsageError: the copy is malformed, or tells no version.
    """
    if file is None:
        return keyed(target, {})
    return only_version(target, read(target, None, file), file)


def only_version(target: Target, copy: EntityCopy, name: str) -> EntityCopy:
    """Return what a delete needs of a copy.

    Raises:
        UsageError: it tells no version, and a delete has no use for anything else.
    """
    if copy.version is None:
        raise UsageError(
            f"a delete takes nothing from {name} but {reads.ETAG}, and there is none",
            hint="leave it out to be guarded by what you last read, or name the version with --etag",
        )
    return EntityCopy(keyed(target, {}).entity, copy.version)


def remember(env: Environment, made: EntityWrite, done: Any) -> None:
    """Record the version that was written, unless it has properties that were never read here."""
    if made.verb is Verb.DELETE or made.leaves_unseen:
        env.forget(made.target)
    else:
        before = env.last(made.target) if made.verb is Verb.MERGE else None
        env.remember(made.target, done, lineage=made.stamp, selected=None if before is None else before.selected)


def parsed(content: bytes, name: str, example: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        UsageError: it is none, or the same key is in it twice.
    """
    import json

    try:
        text = content.decode()
        json_text.parse(text)
        found = json.loads(text)
    except (UnicodeDecodeError, json_text.NotJson) as error:
        raise UsageError(f"{name} is not JSON: {error}", hint=f"write for example {example}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not a JSON object", hint=f"write for example {example}")
    return found


def deliver_one(env: Environment, target: Target, stored: Stored, select: Sequence[str]) -> None:
    """Print an entity and record its version, if all of it was delivered."""
    row = reads.as_printed(stored, select)
    env.out.show_row(row)
    env.out.flush()
    if env.out.shows_whole(row) and deliveries.to_stream(sys.stdout).is_kept:
        _remember_read(env, target, [stored], select)


def deliver(env: Environment, table: Target, pages: Iterable[Sequence[Stored]], select: Sequence[str]) -> None:
    """Print the entities of a table and record the versions of those that were printed whole, and of no others.

    They go page by page, in one transaction each, where the format lets them.
    """
    batches = pages if env.out.streams else [[each for page in pages for each in page]]
    for page in batches:
        rows = [reads.as_printed(each, select) for each in page]
        env.out.show_rows(rows)
        env.out.flush()
        whole = env.out.whole(rows)
        if deliveries.to_stream(sys.stdout).is_kept:
            _remember_read(env, table, [each for each, is_whole in zip(page, whole, strict=True) if is_whole], select)


def _remember_read(env: Environment, table: Target, delivered: Iterable[Stored], select: Sequence[str]) -> None:
    """Record the versions of entities of one table that were just delivered, some properties of them or all."""
    found = ((reads.address(table, each), reads.seen(each)) for each in delivered)
    names = ",".join(sorted(set(select))) or None
    env.cache.record_all(
        ((Key(table.endpoint, str(address)), seen) for address, seen in found if address is not None),
        records.selecting(env.command, names),
    )
