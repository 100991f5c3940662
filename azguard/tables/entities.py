"""Entities read, one or many, and written by one request; the writes let the wire's errors through.

A delete of a missing entity is an error: two clients that claim an entity by deleting it do not both succeed.

A filter can have parameters, which are bound as values and never spliced in as text. See
https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.versions import SeenVersion
from azguard.requests.calls import follow, read
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.tables import edm
from azguard.tables.edm import ANNOTATION, KEYS, PARTITION_KEY, ROW_KEY, TIMESTAMP, Entity
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.failures import Broken, BrokenAnswer, Unreadable
from azguard.wire.operations.tables import (
    TABLE_ENTITY_DELETE,
    TABLE_ENTITY_GET,
    TABLE_ENTITY_INSERT,
    TABLE_ENTITY_QUERY,
    TABLE_ENTITY_UPDATE,
)
from azguard.wire.rows import Operation

T = TypeVar("T")
# The most that the service puts into one page.
_PAGE = 1000
# The service uses this name too; no property can have a dot in its name.
ETAG = "odata.etag"
# A literal with what belongs to it, a placeholder, or one character of anything else. In a literal '' is a quote.
_PIECE = r"(?s)(?P<literal>'(?:[^']|'')*')|@(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<other>.)"
# What may stand before a placeholder.
_BEFORE = " \t\r\n(,"
# What may stand after a placeholder.
_AFTER = " \t\r\n),"
_PARAMETER = "param"
_BARE = {edm.BOOLEAN: "{}", edm.INT32: "{}", edm.INT64: "{}L"}
_QUOTED = {edm.STRING: "'{}'", edm.DATETIME: "datetime'{}'", edm.GUID: "guid'{}'", edm.BINARY: "X'{}'"}


@frozen
class Stored:
    """An entity as it is stored: one version, with its ETag and azguard's lineage, which is no part of the entity."""

    entity: Entity
    etag: str
    lineage: Lineage

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Stored":
        """Read the JSON of an answer."""
        entity = edm.from_service(answer)
        found = entity.pop(KEY, None)
        # Of another type it is another's, and no history.
        is_foreign = entity.pop(KEY + edm.ANNOTATION, None) is not None or not isinstance(found, str)
        return cls(entity, str(answer["odata.etag"]), Lineage.parse(None if is_foreign else found))


def get(target: Target, deadline: Deadline, select: Sequence[str] = ()) -> Stored:
    """Read an entity, with all properties or those of ``select``; again on transient failures.

    Raises:
        NotFound: there is no such entity, or no such table.
    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    asked: dict[str, Any] = {"select": _select_properties(select)}
    return read(lambda timeouts: _parse(call(TABLE_ENTITY_GET, target, timeouts, **asked), Stored.of), target, deadline)


def walk_pages(
    target: Target, deadline: Deadline, query: str | None, select: str | None = None, page: int | None = None
) -> Iterator[tuple[list[Stored], bool]]:
    """Yield the entities that a query finds, page by page, each asked for again on transient failures.

    A page is told with whether another one follows.

    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """

    def ask(after: tuple[str | None, str | None] | None, timeouts: Limits) -> tuple[list[Stored], Any]:
        partition, row = after or (None, None)
        asked: dict[str, Any] = {"filter": query, "select": select, "top": page}
        answer = call(TABLE_ENTITY_QUERY, target, timeouts, **asked, next_partition=partition, next_row=row)
        marker = (answer.next_partition, answer.next_row)
        return _parse(answer, _list_stored), None if marker == (None, None) else marker

    return follow(ask, target, deadline)


def _list_stored(told: Any) -> list[Stored]:
    if not isinstance(told["value"], list):
        raise TypeError("the entities are no list")
    return [Stored.of(each) for each in told["value"]]


def _parse(answer: Answer, parse: Callable[[Any], T]) -> T:
    """Return the value of an answer's JSON; Unreadable if it is cut, or another's."""
    try:
        return parse(json.loads(answer.content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable("the answer is no entity") from error


def send(operation: Operation, target: Target, entity: Entity, timeouts: Limits, version: str | None = None) -> str:
    """Write an entity, whose keys say where it is in the table of ``target``, and return its ETag.

    ``version`` is the value of If-Match, for the operations that have one.

    Source: the pages Insert Entity, Update Entity, Merge Entity, Insert Or Replace Entity and Insert Or Merge Entity of
        https://learn.microsoft.com/rest/api/storageservices/
    """
    given: dict[str, Any] = {} if version is None else {"if_match": version}
    answer = call(operation, locate(target, entity), timeouts, body=edm.to_body(entity), **given)
    if not answer.etag:
        # The answer to every write of an entity has it.
        raise BrokenAnswer(Broken.TRUNCATED)
    return str(answer.etag)


def put(target: Target, entity: Entity, version: str | None, timeouts: Limits) -> str:
    """Replace a version of an entity, insert it where ``version`` is None, and return the new ETag."""
    return send(TABLE_ENTITY_INSERT if version is None else TABLE_ENTITY_UPDATE, target, entity, timeouts, version)


def delete(target: Target, etag: str, timeouts: Limits) -> None:
    """Delete a version of an entity; that there is none is an error.

    Source: https://learn.microsoft.com/rest/api/storageservices/delete-entity1
    """
    call(TABLE_ENTITY_DELETE, target, timeouts, if_match=etag)


def locate(target: Target, entity: Entity) -> Target:
    """Return the place of an entity that is written, in the table of ``target``: its keys say it."""
    keys = (target.address.container, str(entity[PARTITION_KEY]), str(entity[ROW_KEY]))
    return Target(target.account, Address(Kind.ENTITY, keys))


class PrintedEntity(dict[str, Any]):
    """An entity as it is printed."""

    #: Its properties have names of the user's own.
    IS_VERBATIM: ClassVar = True


def query(
    target: Target, filter_: str | None, select: Sequence[str], top: int | None, deadline: Deadline
) -> Iterator[Sequence[Stored]]:
    """Yield the entities of a table that a filter finds, page by page, in constant memory.

    Raises:
        NotFound: there is no such table.
        BadRequest: the service does not understand the filter.
    """
    left = top
    page = None if top is None else min(top, _PAGE)
    for found, _ in walk_pages(target, deadline, filter_, _select_properties(select), page):
        yield found if left is None else found[:left]
        if left is not None and (left := left - len(found)) <= 0:
            return


def as_printed(stored: Stored, select: Sequence[str]) -> PrintedEntity:
    """Return an entity as it is printed: its ETag beside its properties, so that it can be written back as it is.

    A property of ``select`` that this entity does not have is null. The lineage, which is none of the caller's, is
    printed only if it is named.
    """
    if not select:
        return PrintedEntity({ETAG: stored.etag, **stored.entity})
    found = PrintedEntity({ETAG: stored.etag})
    for name in dict.fromkeys((*KEYS, *select)):
        found[name] = str(stored.lineage) or None if name == KEY else stored.entity.get(name)
        if name + ANNOTATION in stored.entity:
            found[name + ANNOTATION] = stored.entity[name + ANNOTATION]
    return found


def drop_types(row: Mapping[str, Any]) -> PrintedEntity:
    """Return an entity for people, or for columns: the values alone."""
    return PrintedEntity((name, value) for name, value in row.items() if name != ETAG and not name.endswith(ANNOTATION))


def to_seen_version(stored: Stored) -> SeenVersion:
    """Return the version that guards the next write of an entity that was read."""
    return SeenVersion(stored.etag, str(stored.lineage) or None, stored.entity.get(TIMESTAMP))


def find_address(table: Target, stored: Stored) -> Address | None:
    """Return the address of an entity of a table, or None: an empty key is legal, but no part of an address."""
    keys = (stored.entity[PARTITION_KEY], stored.entity[ROW_KEY])
    return Address(Kind.ENTITY, (table.address.container, *keys)) if all(keys) else None


def read_timestamp(stored: Stored) -> datetime | None:
    """Return when an entity was last written, to the microsecond."""
    moment = stored.entity.get(TIMESTAMP)
    return None if moment is None else datetime.fromisoformat(moment).astimezone(UTC)


def _select_properties(select: Sequence[str]) -> str | None:
    # A write afterwards needs the keys, the time and the lineage, too.
    return ",".join(dict.fromkeys((*KEYS, TIMESTAMP, *select, KEY))) if select else None


def bind_parameters(text: str | None, parameters: Iterable[str] = (), argument: str = "filter") -> str | None:
    """Return a filter with every ``@name`` outside a literal replaced by its value; None is no filter.

    ``parameters`` are texts such as ``n:int64=5``: see ``edm.split_typed``; ``argument`` is where it was typed.

    Raises:
        UsageError: a parameter is missing, never used or given twice; a placeholder is not a whole word; a value does
            not have its type; a literal does not end.
    """
    literals = _parse_literals(parameters)
    if (text or "").count("'") % 2:
        raise UsageError("a literal in the filter does not end", argument=argument, reason="filter_literal_open")
    used: set[str] = set()
    pieces: list[str] = []
    for token in re.finditer(_PIECE, text or ""):
        name = _find_placeholder(token, literals, argument)
        if name is None:
            pieces.append(token[0])
        else:
            used.add(name)
            pieces.append(literals[name])
    unused = next((name for name in literals if name not in used), None)
    if unused is not None:
        raise UsageError(
            f"the parameter {unused} is not in the filter",
            argument=_PARAMETER,
            reason="filter_parameter_unused",
            values={"name": unused},
        )
    return None if text is None else "".join(pieces)


def _find_placeholder(token: re.Match[str], literals: Mapping[str, str], argument: str) -> str | None:
    """Return the name of the parameter that a token stands for, None if it is text of the filter itself."""
    name: str | None = token["name"]
    if name is None and token["other"] != "@":
        return None
    if name is None or not _stands_alone(token):
        raise UsageError(
            f"the @ at position {token.start() + 1} does not begin a parameter that stands alone",
            argument=argument,
            reason="filter_parameter_malformed",
        )
    if name not in literals:
        raise UsageError(
            f"the filter has @{name}, which has no value",
            argument=argument,
            reason="filter_parameter_without_value",
            values={"name": name},
        )
    return name


def _stands_alone(token: re.Match[str]) -> bool:
    before = token.string[: token.start()][-1:]
    after = token.string[token.end() :][:1]
    # Both are empty at the ends of the filter, and the empty string is in every string.
    return before in _BEFORE and after in _AFTER


def _to_literal(name: str, kind: str, value: Any) -> str:
    """Return a value of an entity's JSON as OData writes it in a filter."""
    sent = edm.check_value(name, kind, value)
    if kind == edm.DOUBLE:
        return _write_double(name, sent)
    if kind in _BARE:
        return _BARE[kind].format(str(sent).lower())
    return _QUOTED[kind].format(sent.hex() if kind == edm.BINARY else str(sent).replace("'", "''"))


def quote_text(text: str) -> str:
    """Return a text as a literal of a filter."""
    return "'" + text.replace("'", "''") + "'"


def _parse_literals(parameters: Iterable[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for text in parameters:
        name, kind, value = edm.split_typed(text)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"{name!r} is not a name", argument=_PARAMETER, reason="filter_parameter_name_malformed")
        if name in found:
            raise UsageError(
                f"the parameter {name} is given twice",
                argument=_PARAMETER,
                reason="filter_parameter_given_twice",
                values={"name": name},
            )
        kind = kind or edm.STRING
        found[name] = _to_literal(name, kind, edm.parse_value(name, kind, value))
    return found


def _write_double(name: str, number: float | str) -> str:
    """Return a double in full: not every server reads an exponent here."""
    if isinstance(number, str):
        raise UsageError(f"{name}: {number} cannot be compared with in a filter", reason="filter_number_not_finite")
    from decimal import Decimal

    text = f"{Decimal(repr(number)):f}"
    return text if "." in text else f"{text}.0"
