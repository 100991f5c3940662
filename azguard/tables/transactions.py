"""Entity group transactions: up to a hundred writes in one partition, each under its own condition, all or nothing.

A transaction is given as JSON lines, one for each write.

Source: https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, NotFound, OutcomeUnknown, UsageError
from azguard.frozen import frozen
from azguard.guards import resolve
from azguard.guards.requested import RequestedConditions
from azguard.guards.versions import Remembered, SeenVersion
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.requests.service_codes import service_code, status
from azguard.requests.service_errors import translate
from azguard.requests.settle import NOTHING_THERE, Finding, Settled, WriteRequest, send_until_settled
from azguard.resources.lifecycles import look_before
from azguard.tables import edm, entities, entity_json, writes
from azguard.tables.writes import EntityWrite, ItemVerdict, Verb, fetch_current, judge_outcome, verdict_from_items
from azguard.wire import transactions as wire_transactions
from azguard.wire.failures import Broken, BrokenAnswer
from azguard.wire.operations.tables import TABLE_BATCH
from azguard.wire.rows import Operation
from azguard.wire.transactions import TransactionPart

if TYPE_CHECKING:
    from azguard.tables.entities import Stored


MOST_ITEMS = 100
MOST_BYTES = 4 * 1024 * 1024
_INDEX = re.compile(r"(\d+):")
_TEXTS = ("etag", "if_match")
_FLAGS = ("last_writer_wins",)
_KNOWN = ("op", "address", "entity", "mode", *_TEXTS, *_FLAGS)
EXAMPLE = '{"op": "merge", "address": "Orders/eu/1007", "entity": {"status": "shipped"}}'


@frozen
class Item:
    """One write of a transaction, and the line it came from."""

    line: int
    write: EntityWrite


@frozen(kw_only=True)
class ItemWritten(Written):
    """What one item did."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.LAST_MODIFIED, columns.ETAG)

    line: int
    op: str


@frozen
class ItemPlanned:
    """What one item would do."""

    COLUMNS: ClassVar = (columns.ADDRESS,)

    line: int
    op: str
    address: str
    guard: str
    #: The condition it would be sent with; None where there is none.
    if_match: str | None
    entity: Mapping[str, Any]
    outcome: str


def check(items: Sequence[Item]) -> None:
    """Refuse an operation that the service would refuse."""
    if not items:
        raise UsageError("there is nothing to write", reason="transaction_empty")
    if len(items) > MOST_ITEMS:
        raise UsageError(
            f"line {items[MOST_ITEMS].line}: a transaction has at most {MOST_ITEMS} items, and this is one more",
            reason="transaction_too_large",
        )
    first = items[0].write.target
    known: dict[object, int] = {}
    size = 0
    for item in items:
        target = item.write.target
        if (target.endpoint, target.address.parts[:2]) != (first.endpoint, first.address.parts[:2]):
            raise UsageError(
                f"line {item.line}: {target} is not in the partition of line {items[0].line}, {first}",
                reason="transaction_in_two_partitions",
            )
        if target.address in known:
            raise UsageError(
                f"line {item.line}: {target} is in line {known[target.address]} already",
                reason="transaction_entity_twice",
            )
        known[target.address] = item.line
        size += edm.estimate_part_bytes(target.address.parts, item.write.sent)
        if size > MOST_BYTES:
            raise UsageError(
                f"line {item.line}: up to here these are more than {MOST_BYTES:,} bytes, the most a transaction takes",
                reason="transaction_too_large",
            )


def preview(items: Sequence[Item]) -> list[ItemPlanned]:
    """Return the plan of each item; nothing is sent."""
    return [
        ItemPlanned(
            line=item.line,
            op=item.write.verb.value,
            address=str(item.write.target.address),
            guard=item.write.conditions.guard,
            if_match=item.write.conditions.headers.get("If-Match"),
            entity=item.write.entity,
            outcome="dry_run",
        )
        for item in items
    ]


def submit(items: Sequence[Item], deadline: Deadline) -> list[ItemWritten]:
    """Send the items as one transaction, which is done whole or not at all.

    Raises:
        UsageError: see ``check``.
        OutcomeUnknown: the answer was lost, and it cannot be known whether it was applied.
        AzguardError: what the item that failed means, with its line; nothing was written.
    """
    check(items)
    settled = _Transaction(items, deadline).run()
    return [_to_item_written(item, etag, settled.attempts) for item, etag in zip(items, settled.answer, strict=True)]


class _Transaction:
    """One transaction: what is sent, its outcome, and which item made it fail."""

    def __init__(self, items: Sequence[Item], deadline: Deadline) -> None:
        self._items = items
        self._deadline = deadline
        self._table = items[0].write.target
        self._parts = [_to_part(item.write) for item in items]
        self._found: dict[int, Stored | None] = {}
        self._superseded: Item | None = None
        self._error: BaseException | None = None
        # What only deletes leaves nothing to tell by: see ``look_before``.
        self._was_there = False

    def run(self) -> Settled[list[str | None]]:
        if all(item.write.verb is Verb.DELETE for item in self._items):
            self._look_before(self._items[0])
        request = WriteRequest(
            operation=TABLE_BATCH,
            target=self._table,
            send=self._send,
            look=self._look,
            resend=any(item.write.excludes_itself for item in self._items),
            look_after_refusal=self._look_after_refusal,
        )
        try:
            return send_until_settled(request, self._deadline)
        except AzguardError as error:
            raise self._name_item(error) from error

    def _look_before(self, item: Item) -> None:
        try:
            self._was_there = look_before(lambda: entities.get(item.write.target, self._deadline)) is not None
        except NotFound as error:
            raise self._explain(error, item) from error

    def _send(self) -> list[str | None]:
        try:
            answers = wire_transactions.send(self._table, self._parts, write_timeouts(self._deadline))
        except Exception as error:  # it is raised again
            self._error = error
            raise
        changed = [item.write.verb is not Verb.DELETE for item in self._items]
        etags = [answer.etag if has_etag else None for answer, has_etag in zip(answers, changed, strict=True)]
        if [bool(etag) for etag in etags] != changed:
            raise BrokenAnswer(Broken.TRUNCATED)
        return etags

    def _look(self, patience: Deadline) -> Finding[list[str | None]]:
        self._found.clear()
        verdict = verdict_from_items(self._judge_each(patience))
        return Finding(verdict, self._find_etags(patience) if verdict is Verdict.COMMITTED else None)

    def _judge_each(self, patience: Deadline) -> Iterator[ItemVerdict]:
        # Items with a lineage last: if the transaction is committed between two reads, their lineage shows it.
        for item in sorted(self._items, key=lambda item: item.write.stamp is not None):
            found = fetch_current(item.write, patience)
            self._found[item.line] = found
            verdict = judge_outcome(item.write, found)
            if verdict is Verdict.NEVER:
                self._superseded = item
            yield ItemVerdict.of(item.write, verdict)

    def _look_after_refusal(self, patience: Deadline) -> Finding[list[str | None]]:
        """Return one item's finding for all: the refused item's if it has a lineage; else, or if unclear, another's."""
        refused = self._find_refused_item(self._error)
        stamped = [item for item in self._items if item.write.stamp is not None]
        first = refused if refused in stamped else (stamped or [refused or self._items[0]])[0]
        look = self._look_at(first, patience)
        told = Finding[list[str | None]](
            look.verdict, seen=look.seen if first is refused else None, may_be_ours=look.may_be_ours
        )
        if look.seen is NOTHING_THERE and first.write.verb is Verb.DELETE:
            return replace(told, may_be_ours=self._is_perhaps_done(first, patience))
        others = sorted((item for item in stamped if item is not first), key=lambda item: item.write.inserts)
        if others and not ItemVerdict.of(first.write, look.verdict).holds_for_all:
            look = self._look_at(others[0], patience)
        return Finding(look.verdict, self._find_etags(patience)) if look.verdict is Verdict.COMMITTED else told

    def _is_perhaps_done(self, gone: Item, patience: Deadline) -> bool:
        """Return whether a copy of the transaction may be done of which a delete found nothing: another item tells.

        What is to be deleted is gone too, or what is to be written is there.
        """
        others = [item for item in self._items if item is not gone]
        if not others:
            return self._was_there
        other = min(others, key=lambda item: item.write.verb is Verb.DELETE)
        look = self._look_at(other, patience)
        return look.may_be_ours or (other.write.verb is Verb.DELETE and look.seen is NOTHING_THERE)

    def _look_at(self, item: Item, patience: Deadline) -> Finding[str | None]:
        found = self._found[item.line] = fetch_current(item.write, patience)
        return writes.to_finding(item.write, found)

    def _find_etags(self, patience: Deadline) -> list[str | None]:
        etags: list[str | None] = []
        for item in self._items:
            try:
                found = self._found[item.line] if item.line in self._found else fetch_current(item.write, patience)
            except AzguardError:
                found = None  # The transaction is committed, even if this item cannot be read.
            etags.append(writes.find_etag(item.write, found))
        return etags

    def _name_item(self, error: AzguardError) -> AzguardError:
        """Return the error of the item that failed, if the service or the lineage tells which."""
        if isinstance(error, OutcomeUnknown):
            return error.but(message="the transaction was sent, and whether it was applied cannot be known")
        item = self._find_refused_item(error.__cause__) if self._superseded is None else self._superseded
        if item is None:
            return error
        made = item.write
        if error.__cause__ is not None:
            refusal = translate(error.__cause__, made.target, expected_etag=made.conditions.expected_etag)
            refusal = refusal.but(seen=error.seen)
        else:  # by the lineage
            refusal = error.but(
                message=f"{made.target} changed since you read it",
                address=str(made.target.address),
                expected_etag=made.conditions.expected_etag,
            )
        return self._explain(refusal, item)

    def _explain(self, refusal: AzguardError, item: Item) -> AzguardError:
        found = writes.explain_refusal(refusal, item.write, self._deadline)
        found = found.but(message=f"{found.message}; nothing was written").at_line(item.line)
        return found.but(reason="transaction_item_changed") if isinstance(found, Changed) else found

    def _find_refused_item(self, cause: BaseException | None) -> Item | None:
        """Return the item that the service refused; it names none if there is only one, or if none is to blame."""
        if cause is None or status(cause) is None or service_code(cause) == "TableNotFound":
            return None
        index = _INDEX.match(str(cause))
        if index is not None and int(index[1]) < len(self._items):
            return self._items[int(index[1])]
        return self._items[0] if len(self._items) == 1 else None


def _to_part(made: EntityWrite) -> TransactionPart:
    """Return a write as it is sent; an invalid one fails here, before anything is sent."""
    body = None if made.verb is Verb.DELETE else edm.to_body(made.sent)
    return TransactionPart(made.operation, made.target, body, made.version)


def _to_item_written(item: Item, etag: str | None, attempts: int) -> ItemWritten:
    done = writes.to_write_result(item.write, etag, attempts)
    return ItemWritten(**vars(done), line=item.line, op=item.write.verb.value)


@frozen
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
            if len(items) > MOST_ITEMS:
                break
        check(items)
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
