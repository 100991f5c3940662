"""Reading entities: one, or all that a filter finds, with what a guarded write needs afterwards."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.seen import SeenVersion
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.tables import calls
from azguard.tables.calls import Stored
from azguard.tables.edm import ANNOTATION, KEYS, PARTITION_KEY, ROW_KEY, TIMESTAMP

# The most that the service puts into one page.
_PAGE = 1000
# The service uses this name too; no property can have a dot in its name.
ETAG = "odata.etag"


class PrintedEntity(dict[str, Any]):
    """An entity as it is printed."""

    #: Its properties have names of the user's own.
    IS_VERBATIM: ClassVar = True


def get(target: Target, select: Sequence[str], deadline: Deadline) -> Stored:
    """Read an entity, with all properties or those of ``select``.

    Raises:
        NotFound: there is no such entity, or no such table.
    """
    return calls.get(target, deadline, _select_properties(select))


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
    for found in calls.pages(target, deadline, filter_, _select_properties(select), page):
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


def without_types(row: Mapping[str, Any]) -> PrintedEntity:
    """Return an entity for people, or for columns: the values alone."""
    return PrintedEntity((name, value) for name, value in row.items() if name != ETAG and not name.endswith(ANNOTATION))


def to_seen_version(stored: Stored) -> SeenVersion:
    """Return what guards the next write of an entity that was read."""
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
