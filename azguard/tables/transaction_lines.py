"""The JSON lines of a transaction: each is one write with its own condition."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from azguard.accounts.account import Target
from azguard.errors import AzguardError, UsageError
from azguard.guards import resolve
from azguard.guards.requested import RequestedConditions
from azguard.guards.versions import Remembered, SeenVersion
from azguard.tables import entity_json, transactions, writes
from azguard.tables.transactions import Item
from azguard.tables.writes import EntityWrite, Verb
from azguard.wire.rows import Operation

_TEXTS = ("etag", "if_match")
_FLAGS = ("last_writer_wins",)
_KNOWN = ("op", "address", "entity", "mode", *_TEXTS, *_FLAGS)
EXAMPLE = '{"op": "merge", "address": "Orders/eu/1007", "entity": {"status": "shipped"}}'


@dataclass(frozen=True)
class LineReader:
    """Reads the lines of one transaction."""

    #: The op id of the transaction, which each of its writes carries in its lineage.
    op: str
    #: Returns the entity that an address names.
    locate: Callable[[str], Target]
    #: Returns what the scope knows of an entity, given the version that the line itself has.
    recall: Callable[[Target, Operation, RequestedConditions, SeenVersion | None], Remembered]
    #: Whether the writes carry a lineage.
    stamps: bool = True

    def read(self, lines: Iterable[bytes]) -> list[Item]:
        """Return the items, each with its own condition, after the limits of a transaction were checked.

        Raises:
            UsageError: a line is malformed, or the service would refuse it; names the line.
            Changed: an item needs a version, and this scope has never read one; names the line.
        """
        items: list[Item] = []
        for line, text in enumerate(lines, 1):
            try:
                made = self._write(entity_json.parse_input(text, "the line", EXAMPLE))
            except AzguardError as error:
                raise error.at_line(line) from error
            items.append(Item(line, made.add_lineage() if self.stamps else made))
            # One more than the limit is enough for the check to name its line.
            if len(items) > transactions.MOST_ITEMS:
                break
        transactions.check(items)
        return items

    def _write(self, found: Mapping[str, Any]) -> EntityWrite:
        _check_line(found)
        verb = Verb(found["op"])
        merges = verb is Verb.UPSERT and found.get("mode", "merge") == "merge"
        target = self.locate(found["address"])
        copy = entity_json.with_keys_of(target, found.get("entity", {}))
        if verb is Verb.DELETE and "entity" in found:
            copy = entity_json.for_delete(target, copy, '"entity"')
        asked = RequestedConditions(**{name: found[name] for name in (*_TEXTS, *_FLAGS) if name in found})
        operation = verb.operation(merges=merges)
        known = self.recall(target, operation, asked, copy.version)
        made = EntityWrite(
            target=target,
            verb=verb,
            entity=copy.entity,
            conditions=resolve.resolve(operation, asked, target, known),
            op=self.op,
            merges=merges,
        )
        writes.check(made)
        return made


def _check_line(found: Mapping[str, Any]) -> None:
    """Refuse a line with an unknown key or a wrong value: a key that is ignored could be a condition."""
    unknown = next((name for name in found if name not in _KNOWN), None)
    if unknown is not None:
        raise UsageError(f"{unknown!r} is not known", reason="line_unknown_key", values={"known": " ".join(_KNOWN)})
    verb = _one_of(found, "op", [verb.value for verb in Verb])
    _check_content(found, verb)
    _check_conditions(found, verb)
    if "mode" in found:
        if verb != Verb.UPSERT:
            raise UsageError(f'"mode" is for an upsert, not for a {verb}', reason="line_mode_not_upsert")
        _one_of(found, "mode", ["merge", "replace"])


def _check_content(found: Mapping[str, Any], verb: str) -> None:
    if not isinstance(found.get("address"), str):
        raise _incomplete('there is no "address"')
    if verb != Verb.DELETE and "entity" not in found:
        raise _incomplete('there is no "entity"')
    if not isinstance(found.get("entity", {}), dict):
        raise _incomplete('"entity" is not a JSON object')


def _check_conditions(found: Mapping[str, Any], verb: str) -> None:
    for name in _TEXTS:
        if name in found and not isinstance(found[name], str):
            raise UsageError(f'"{name}" is not a text', reason="line_condition_not_text")
    if "last_writer_wins" not in found:
        return
    if found["last_writer_wins"] is not True:
        raise UsageError('"last_writer_wins" is true, or is left out')
    if verb == Verb.INSERT:
        raise UsageError("an insert never overwrites", reason="line_insert_overwrites")


def _incomplete(message: str) -> UsageError:
    return UsageError(message, reason="line_incomplete", values={"example": EXAMPLE})


def _one_of(found: Mapping[str, Any], name: str, words: Sequence[str]) -> str:
    value = found.get(name)
    if value not in words:
        raise UsageError(
            f'"{name}" is {json.dumps(value)}' if name in found else f'there is no "{name}"',
            reason="line_word",
            values={"name": name, "words": ", ".join(words)},
        )
    return str(value)
