"""Entity group transactions: up to a hundred writes in one partition, each under its own condition, all or nothing.

Source: https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from azguard.account import Target
from azguard.deadline import Deadline
from azguard.entities import edm, entity_doubt, writes
from azguard.entities.entity_doubt import judged, seen
from azguard.entities.requests import Stored
from azguard.entities.writes import EntityWrite, Verb
from azguard.errors import AzguardError, OutcomeUnknown, UsageError
from azguard.service_errors import status, translate
from azguard.settled import Look, Verdict
from azguard.settled import write as settled_write
from azguard.transmission import write_timeouts
from azguard.whole_answers import CUT_SHORT

MOST_ITEMS = 100
MOST_BYTES = 4 * 1024 * 1024
# What the headers and the boundary of one part take besides its path and its JSON; measured: 480 bytes.
_PART_BYTES = 640
_INDEX = re.compile(r"(\d+):")


@dataclass(frozen=True)
class Item:
    """One write of a transaction, and the line it came from."""

    line: int
    write: EntityWrite


@dataclass(frozen=True)
class ItemWritten:
    """What one item did; see ``writes.EntityWritten``."""

    line: int
    op: str
    address: str
    etag: str | None
    last_modified: datetime | None
    guard: str
    attempts: int
    conflicts: int
    outcome: str


@dataclass(frozen=True)
class ItemPlanned:
    """What one item would do. ``if_match`` is the condition it would be sent with, None where there is none."""

    line: int
    op: str
    address: str
    guard: str
    if_match: str | None
    entity: Mapping[str, Any]
    outcome: str


def check(items: Sequence[Item]) -> None:
    """Refuse what the service would refuse.

    Raises:
        UsageError: too many, too large, several tables or partitions, or an entity twice; names the line.
    """
    if not items:
        raise UsageError("there is nothing to write", hint='one JSON object on each line: {"op": "insert", ...}')
    if len(items) > MOST_ITEMS:
        raise UsageError(
            f"line {items[MOST_ITEMS].line}: a transaction has at most {MOST_ITEMS} items, and this is one more",
            hint="make several of it; each is all or nothing by itself",
        )
    first, known, size = items[0].write.target, dict[object, int](), 0
    for item in items:
        target = item.write.target
        if (target.endpoint, target.address.parts[:2]) != (first.endpoint, first.address.parts[:2]):
            raise UsageError(
                f"line {item.line}: {target} is not in the partition of line {items[0].line}, {first}",
                hint="a transaction is within one partition of one table",
            )
        if target.address in known:
            raise UsageError(
                f"line {item.line}: {target} is in line {known[target.address]} already",
                hint="an entity can be written once in a transaction",
            )
        known[target.address] = item.line
        size += _size(item)
        if size > MOST_BYTES:
            raise UsageError(
                f"line {item.line}: up to here these are more than {MOST_BYTES:,} bytes, the most a transaction takes",
                hint="make several of it; each is all or nothing by itself",
            )


def planned(items: Sequence[Item]) -> list[ItemPlanned]:
    """Return what would be sent."""
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
    table, operations = items[0].write.target, [_operation(item.write) for item in items]
    client = table.account.table(table.address)

    def once() -> list[str | None]:
        answers = client.submit_transaction(operations, **write_timeouts(deadline))
        if len(answers) != len(items):
            from azure.core.exceptions import ServiceResponseError

            raise ServiceResponseError(CUT_SHORT)
        return [answer.get("etag") for answer in answers]

    try:
        settled = settled_write(
            once,
            lambda patience: _landed(items, patience),
            table,
            deadline,
            resend=any(item.write.excludes_itself for item in items),
        )
    except AzguardError as error:
        raise _of_item(error, items, deadline) from error
    return [_written(item, etag, settled.attempts) for item, etag in zip(items, settled.answer, strict=True)]


def _operation(write: EntityWrite) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a write as the SDK takes it; whatever is wrong with it is found here, and not after it was sent."""
    from azure.core import MatchConditions
    from azure.data.tables import UpdateMode

    entity = edm.for_sdk(write.sent)
    if write.inserts:
        return "create", entity, {}
    mode = {"mode": UpdateMode.MERGE if write.partial else UpdateMode.REPLACE}
    if write.verb is Verb.UPSERT:
        return "upsert", entity, mode
    if write.version == "*":
        condition: dict[str, Any] = {"match_condition": MatchConditions.Unconditionally}
    else:
        condition = {"match_condition": MatchConditions.IfNotModified, "etag": write.version}
    if write.verb is Verb.DELETE:
        return "delete", entity, condition
    return "update", entity, {**mode, **condition}


def _landed(items: Sequence[Item], patience: Deadline) -> Look[list[str | None]]:
    """Return what is known about a transaction: whatever is certain of one of its items is so of all.

    An entity that is not there speaks for an insert only if nothing speaks against it: it may have been deleted.
    """
    found: dict[int, Stored | None] = {}
    verdicts: list[Verdict] = []
    for item in items:
        found[item.line] = seen(item.write, patience)
        verdict = judged(item.write, found[item.line])
        if verdict is Verdict.COMMITTED:
            return Look(verdict, _etags(items, found, patience))
        if verdict is Verdict.NEVER:
            return Look(verdict)
        if item.write.excludes_itself:
            certain = verdict is Verdict.NOT_YET and not item.write.inserts
            verdicts.append(Verdict.NOT_YET if certain else Verdict.UNKNOWN if verdict is Verdict.UNKNOWN else verdict)
    return Look(Verdict.UNKNOWN)


def _etags(items: Sequence[Item], found: Mapping[int, Stored | None], patience: Deadline) -> list[str | None]:
    """Return the ETags that a committed transaction made, where they can be learnt."""
    etags: list[str | None] = []
    for item in items:
        try:
            stored = found[item.line] if item.line in found else seen(item.write, patience)
        except AzguardError:
            stored = None  # It is committed, whatever keeps us from looking.
        etags.append(entity_doubt.etag(item.write, stored))
    return etags


def _of_item(error: AzguardError, items: Sequence[Item], deadline: Deadline) -> AzguardError:
    """Return the error of a transaction as that of the item that failed, if it says which."""
    return error


def _written(item: Item, etag: str | None, attempts: int) -> ItemWritten:
    done = writes.written(item.write, etag, attempts)
    return ItemWritten(
        line=item.line,
        op=item.write.verb.value,
        address=done.address,
        etag=done.etag,
        last_modified=done.last_modified,
        guard=done.guard,
        attempts=done.attempts,
        conflicts=done.conflicts,
        outcome=done.outcome,
    )


def _size(item: Item) -> int:
    """Return about how many bytes a write takes in the body of a transaction."""
    path = 3 * sum(len(part.encode()) for part in item.write.target.address.parts)
    return _PART_BYTES + path + len(json.dumps(item.write.sent, ensure_ascii=False).encode())
