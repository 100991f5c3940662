"""Requests to the Table service about entities, one function each. The writes let the SDK's errors through.

Entities are read from the service's own JSON: the SDK replaces the types of properties by Python's. A delete of a
missing entity is an error here: the SDK hides it, so that two clients that claim an entity by deleting it would both
succeed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from azguard.accounts.exchanges import TRUNCATED
from azguard.accounts.target import Target
from azguard.requests.calls import page_timeouts, read, walk
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.tables import edm
from azguard.tables.edm import Entity

T = TypeVar("T")
# Without If-Match the service would create what is missing; this means any version.
ANY_VERSION = "*"


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
    client = target.account.table(target.address)
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


def pages(
    target: Target, deadline: Deadline, query: str | None, select: str | None = None, page: int | None = None
) -> Iterator[list[Stored]]:
    """Yield what a query finds, page by page, each asked for again on transient failures.

    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    client = target.account.table(target.address)
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
    client = target.account.table(target.address)
    return _etag(client.create_entity(edm.for_sdk(entity), **timeouts))


def write(target: Target, entity: Entity, etag: str, *, merge: bool, timeouts: Mapping[str, Any]) -> str:
    """Replace a version of an entity, or merge properties into it, and return the new ETag.

    Source: https://learn.microsoft.com/rest/api/storageservices/update-entity2 and /merge-entity
    """
    from azure.data.tables import UpdateMode

    client = target.account.table(target.address)
    mode = UpdateMode.MERGE if merge else UpdateMode.REPLACE
    return _etag(client.update_entity(edm.for_sdk(entity), mode, **to_condition(etag), **timeouts))


def upsert(target: Target, entity: Entity, *, merge: bool, timeouts: Mapping[str, Any]) -> str:
    """Write an entity over any version, or where there is none, and return its ETag.

    Source: https://learn.microsoft.com/rest/api/storageservices/insert-or-replace-entity and /insert-or-merge-entity
    """
    from azure.data.tables import UpdateMode

    client = target.account.table(target.address)
    mode = UpdateMode.MERGE if merge else UpdateMode.REPLACE
    return _etag(client.upsert_entity(edm.for_sdk(entity), mode, **timeouts))


def delete(target: Target, etag: str, timeouts: Mapping[str, Any]) -> None:
    """Delete a version of an entity; that there is none is an error.

    Source: https://learn.microsoft.com/rest/api/storageservices/delete-entity1
    """
    from azure.core.exceptions import ResourceNotFoundError

    client = target.account.table(target.address)
    _, partition, row = target.address.parts
    answers: list[Any] = []

    def keep(response: Any) -> None:
        answers.append(response.http_response)

    client.delete_entity(partition, row, **to_condition(etag), raw_response_hook=keep, **timeouts)
    if answers and answers[-1].status_code == HTTPStatus.NOT_FOUND:
        raise ResourceNotFoundError(response=answers[-1])


def _etag(answer: Mapping[str, Any]) -> str:
    """Return the ETag, which the answer to every write of an entity has; without it the answer was truncated."""
    from azure.core.exceptions import ServiceResponseError

    if not answer.get("etag"):
        raise ServiceResponseError(TRUNCATED)
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
