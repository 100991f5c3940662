"""From JSON lines to an entity group transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from azguard.address import Kind
from azguard.cli import entities, inputs, lock_options
from azguard.cli.context import Environment
from azguard.cli.lock_options import TableLock
from azguard.conditions import resolve
from azguard.conditions.resolve import RequestedConditions
from azguard.errors import AzguardError, UsageError
from azguard.tables import transactions as core
from azguard.tables import writes
from azguard.tables.transactions import Item
from azguard.tables.write import EntityWrite, Verb

_TEXTS, _FLAGS = ("etag", "if_match"), ("last_writer_wins",)
_KNOWN = ("op", "address", "entity", "mode", *_TEXTS, *_FLAGS)
_HINT = '{"op": "merge", "address": "Orders/eu/1007", "entity": {"status": "shipped"}}'


def perform(env: Environment, file: str, lock: TableLock, *, stamps: bool, dry_run: bool) -> None:
    """Send the lines of a file as one transaction, or show what would be sent."""
    items = read(env, file, stamps=stamps)
    if dry_run:
        env.show(core.planned(items))
        return
    with lock_options.around_write(env, items[0].write.target, lock) as check:
        check()
        done = core.submit(items, env.deadline.fresh())
    for item, result in zip(items, done, strict=True):
        entities.remember(env, item.write, result)
    env.show(done)


def read(env: Environment, file: str, *, stamps: bool) -> list[Item]:
    """Return the items, each with its own condition, once they are known to be what a transaction takes.

    Raises:
        UsageError: a line is malformed, or the service would refuse it; names the line.
        Changed: an item needs a version, and this scope has never read one; names the line.
    """
    op = env.new_op()
    items: list[Item] = []
    with inputs.source(file) as stream:
        for line, text in enumerate(stream, 1):
            try:
                made = _write(env, entities.parsed(text, "the line", _HINT), op)
            except AzguardError as error:
                error.message = f"line {line}: {error.message}"
                error.facts["line"] = line
                raise
            items.append(Item(line, made.stamped() if stamps else made))
            if len(items) > core.MOST_ITEMS:
                break
    core.check(items)
    return items


def _write(env: Environment, found: Mapping[str, Any], op: str) -> EntityWrite:
    _check(found)
    verb = Verb(found["op"])
    merges = verb is Verb.UPSERT and found.get("mode", "merge") == "merge"
    target = env.locate(found["address"], Kind.ENTITY)
    copy = entities.keyed(target, found.get("entity", {}))
    if verb is Verb.DELETE and "entity" in found:
        copy = entities.only_version(target, copy, '"entity"')
    asked = RequestedConditions(**{name: found[name] for name in (*_TEXTS, *_FLAGS) if name in found})
    operation = verb.operation(merges=merges)
    sent = resolve.resolve(operation, asked, target, env.known(target, operation, asked, copy.version))
    made = EntityWrite(target, verb, copy.entity, sent, op, merges)
    writes.check(made)
    return made


def _check(found: Mapping[str, Any]) -> None:  # noqa: C901
    """Refuse a line that says something unknown, or says it wrongly; what is ignored could be a condition."""
    unknown = [name for name in found if name not in _KNOWN]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not known", hint=" ".join(_KNOWN))
    verb = _one_of(found, "op", [verb.value for verb in Verb])
    if not isinstance(found.get("address"), str):
        raise UsageError('there is no "address"', hint=_HINT)
    if verb != Verb.DELETE and "entity" not in found:
        raise UsageError('there is no "entity"', hint=_HINT)
    if not isinstance(found.get("entity", {}), dict):
        raise UsageError('"entity" is not a JSON object', hint=_HINT)
    for name in _TEXTS:
        if name in found and not isinstance(found[name], str):
            raise UsageError(f'"{name}" is not a text', hint="leave it out to be guarded by what was read last")
    if "last_writer_wins" in found and found["last_writer_wins"] is not True:
        raise UsageError('"last_writer_wins" is true, or is left out')
    if verb == Verb.INSERT and "last_writer_wins" in found:
        raise UsageError("an insert never overwrites", hint='"op": "upsert" writes whatever is there')
    if "mode" in found:
        if verb != Verb.UPSERT:
            raise UsageError(f'"mode" is for an upsert, not for a {verb}', hint="leave it out")
        _one_of(found, "mode", ["merge", "replace"])


def _one_of(found: Mapping[str, Any], name: str, words: Sequence[str]) -> str:
    value = found.get(name)
    if value not in words:
        raise UsageError(f'"{name}" is {value!r}', hint=f'"{name}" is one of: ' + ", ".join(words))
    return str(value)
