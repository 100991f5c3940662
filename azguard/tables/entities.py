"""Requests to the Table service about entities, one function each. The writes let the SDK's errors through.

Entities are read from the service's own JSON: the SDK replaces the types of properties by Python's. A delete of a
missing entity is an error here: the SDK hides it, so that two clients that claim an entity by deleting it would both
succeed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, ClassVar, TypeVar

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.guards.versions import SeenVersion
from azguard.requests.calls import page_timeouts, read, walk
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.tables import edm
from azguard.tables.edm import ANNOTATION, KEYS, PARTITION_KEY, ROW_KEY, TIMESTAMP, Entity
from azguard.wire import sdk
from azguard.wire.failures import Broken, BrokenAnswer

T = TypeVar("T")
# Without If-Match the service would create what is missing; this means any version.
ANY_VERSION = "*"
# The most that the service puts into one page.
_PAGE = 1000
# The service uses this name too; no property can have a dot in its name.
ETAG = "odata.etag"


@dataclass(frozen=True)
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


def get(
    target: Target, deadline: Deadline, select: str | None = None, hear: Callable[[Any], None] = lambda response: None
) -> Stored:
    """Read an entity, again on transient failures; ``hear`` is called with each answer of the SDK's.

    Raises:
        NotFound: there is no such entity, or no such table.
    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    client = sdk.table(target.account, target.address)
    _, partition, row = target.address.parts
    answers: list[Stored] = []
    keep = _keep(answers, Stored.of)

    def note(response: Any) -> None:
        hear(response)
        keep(response)

    def once(timeouts: Mapping[str, Any]) -> None:
        client.get_entity(partition, row, select=select, raw_response_hook=note, **timeouts)

    read(once, target, deadline)
    return answers[-1]


def read_pages(
    target: Target, deadline: Deadline, query: str | None, select: str | None = None, page: int | None = None
) -> Iterator[list[Stored]]:
    """Yield what a query finds, page by page, each asked for again on transient failures.

    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    client = sdk.table(target.account, target.address)
    answers: list[list[Stored]] = []
    keep = _keep(answers, lambda answer: [Stored.of(each) for each in answer["value"]])
    asked = {"select": select, "results_per_page": page, "raw_response_hook": keep, **page_timeouts(deadline)}
    found = client.list_entities(**asked) if query is None else client.query_entities(query, **asked)
    for found_page in walk(found.by_page(), lambda _: answers[-1], target, deadline):
        yield found_page
        answers.clear()


def insert(target: Target, entity: Entity, timeouts: Mapping[str, Any]) -> str:
    """Insert an entity, which must not be there, and return its ETag.

    Source: https://learn.microsoft.com/rest/api/storageservices/insert-entity
    """
    client = sdk.table(target.account, target.address)
    return _etag(client.create_entity(edm.for_sdk(entity), **timeouts))


def write(target: Target, entity: Entity, etag: str, *, merge: bool, timeouts: Mapping[str, Any]) -> str:
    """Replace a version of an entity, or merge properties into it, and return the new ETag.

    Source: https://learn.microsoft.com/rest/api/storageservices/update-entity2 and /merge-entity
    """
    from azure.data.tables import UpdateMode

    client = sdk.table(target.account, target.address)
    mode = UpdateMode.MERGE if merge else UpdateMode.REPLACE
    return _etag(client.update_entity(edm.for_sdk(entity), mode, **to_condition(etag), **timeouts))


def upsert(target: Target, entity: Entity, *, merge: bool, timeouts: Mapping[str, Any]) -> str:
    """Write an entity over any version, or where there is none, and return its ETag.

    Source: https://learn.microsoft.com/rest/api/storageservices/insert-or-replace-entity and /insert-or-merge-entity
    """
    from azure.data.tables import UpdateMode

    client = sdk.table(target.account, target.address)
    mode = UpdateMode.MERGE if merge else UpdateMode.REPLACE
    return _etag(client.upsert_entity(edm.for_sdk(entity), mode, **timeouts))


def delete(target: Target, etag: str, timeouts: Mapping[str, Any]) -> None:
    """Delete a version of an entity; that there is none is an error.

    Source: https://learn.microsoft.com/rest/api/storageservices/delete-entity1
    """
    from azure.core.exceptions import ResourceNotFoundError

    client = sdk.table(target.account, target.address)
    _, partition, row = target.address.parts
    answers: list[Any] = []

    def keep(response: Any) -> None:
        answers.append(response.http_response)

    client.delete_entity(partition, row, **to_condition(etag), raw_response_hook=keep, **timeouts)
    if answers and answers[-1].status_code == HTTPStatus.NOT_FOUND:
        raise ResourceNotFoundError(response=answers[-1])


def _etag(answer: Mapping[str, Any]) -> str:
    """Return the ETag, which the answer to every write of an entity has; without it the answer was truncated."""
    if not answer.get("etag"):
        raise BrokenAnswer(Broken.TRUNCATED)
    return str(answer["etag"])


def to_condition(etag: str) -> dict[str, Any]:
    """Return the SDK's arguments for a write over one version, or over any."""
    from azure.core import MatchConditions

    if etag == ANY_VERSION:
        return {"match_condition": MatchConditions.Unconditionally}
    return {"match_condition": MatchConditions.IfNotModified, "etag": etag}


def _keep(answers: list[T], parse: Callable[[Any], T]) -> Any:
    """Return a hook of the SDK's that keeps what an answer says; one that it cannot parse is asked for again."""

    def keep(response: Any) -> None:
        if response.http_response.status_code == HTTPStatus.OK:
            answers.append(parse(response.http_response.json()))

    return keep


class PrintedEntity(dict[str, Any]):
    """An entity as it is printed."""

    #: Its properties have names of the user's own.
    IS_VERBATIM: ClassVar = True


def get_selected(target: Target, select: Sequence[str], deadline: Deadline) -> Stored:
    """Read an entity, with all properties or those of ``select``.

    Raises:
        NotFound: there is no such entity, or no such table.
    """
    return get(target, deadline, _select_properties(select))


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
    for found in read_pages(target, deadline, filter_, _select_properties(select), page):
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
    """Return the value of $select: also the keys, the time and the lineage, which a write afterwards needs."""
    return ",".join(dict.fromkeys((*KEYS, TIMESTAMP, *select, KEY))) if select else None
