"""From the options of the commands that write entities to the core, and what is remembered of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from azguard import json_text
from azguard.account import Target
from azguard.address import Kind
from azguard.cli import files, locking
from azguard.cli.context import PARTIAL, Environment
from azguard.cli.locking import TableLock
from azguard.entities import edm, reading, typed_text, writes
from azguard.entities.edm import Entity
from azguard.entities.requests import Stored
from azguard.entities.writes import EntityWrite, Verb
from azguard.errors import UsageError
from azguard.etag_cache import Key
from azguard.lineage import KEY

# What the service and azguard keep beside the properties; it is no part of what is written.
_NOT_WRITTEN = (edm.TIMESTAMP, KEY)
# az puts the ETag among the properties, where it is told from one of that name by its value.
_AZ_ETAG = "etag"


def read(target: Target, words: Sequence[str] | None, file: str | None) -> Entity:
    """Return the entity to write, from words such as ``n:int64=5``, a file or stdin.

    Raises:
        UsageError: it is malformed, or is another entity than the address names.
    """
    if words and file is not None:
        raise UsageError(f"-f {file} and {words[0]!r} do not go together", hint="leave one of them out")
    if words:
        return keyed(target, typed_text.entity(words))
    with files.source(file)[0] as stream:
        return keyed(target, parsed(stream.read(), file or "stdin", '{"status": "new"}'))


def keyed(target: Target, found: Entity) -> Entity:
    """Return an entity with the keys of its address, and without what the service sets itself.

    Raises:
        UsageError: it has other keys.
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
        and not (name == _AZ_ETAG and writes.modified(str(value)))
    }
    return {**keys, **kept}


def perform(
    env: Environment,
    address: str,
    verb: Verb,
    lock: TableLock,
    entity: tuple[Sequence[str] | None, str | None] = (None, None),
    *,
    stamps: bool = True,
    merges: bool = False,
) -> None:
    """Make one write, under the lock of its table if that is asked for, and show its result."""
    target = env.locate(address, Kind.ENTITY)
    conditions = env.conditions(target, operation=verb.operation(merges=merges))
    content = keyed(target, {}) if verb is Verb.DELETE else read(target, *entity)
    made = EntityWrite(target, verb, content, conditions, env.new_op(), merges)
    made = made.stamped() if stamps else made
    writes.check(made)
    with locking.around_write(env, target, lock) as check:
        check()
        done = writes.write(made, env.deadline.fresh())
    remember(env, made, done)
    env.show(done)


def remember(env: Environment, made: EntityWrite, done: Any) -> None:
    """Record the version that was written, unless it has properties that were never read here."""
    if made.verb is Verb.DELETE or made.leaves_unseen:
        env.forget(made.target)
    else:
        before = env.last(made.target) if made.verb is Verb.MERGE else None
        env.remember(made.target, done, lineage=made.stamp, partial=before is not None and before.partial)


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


def deliver(
    env: Environment,
    table: Target,
    pages: Iterable[Sequence[Stored]],
    shape: Callable[[Stored], Mapping[str, Any]],
    *,
    partial: bool,
) -> None:
    """Print the entities of a table and record the versions of those that were printed, and of no others.

    They go page by page, in one transaction each, where the format lets them.
    """
    batches = pages if env.out.streams else [[each for page in pages for each in page]]
    for page in batches:
        env.out.show_rows(map(shape, page))
        env.out.flush()
        remember_read(env, table, page, partial=partial)


def remember_read(env: Environment, table: Target, delivered: Iterable[Stored], *, partial: bool) -> None:
    """Record the versions of entities of one table that were just delivered, some properties of them or all."""
    found = ((reading.address(table, each), reading.seen(each)) for each in delivered)
    env.cache.record_all(
        ((Key(table.endpoint, str(address)), seen) for address, seen in found if address is not None),
        env.command + (PARTIAL if partial else ""),
    )
