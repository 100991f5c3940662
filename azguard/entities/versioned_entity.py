"""The adapter of safe-update for an entity."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from azguard.account import Target
from azguard.deadline import Deadline
from azguard.entities import reading, requests, texts
from azguard.entities.edm import KEYS, Entity
from azguard.entities.requests import Stored
from azguard.errors import NotFound
from azguard.lineage import KEY, Lineage
from azguard.transmission import write_timeouts
from azguard.versioned import Landed, State, Version

# An entity of its own that is missing is no error here; that of its table is.
_NO_TABLE = "TableNotFound"


@dataclass
class VersionedEntity:
    """An entity as JSON with OData annotations, compared by types and values; its lineage is one of its properties.

    The Table service knows neither leases nor kept versions: what a writer that keeps no lineage hides stays unknown.
    ``fetch`` reads the entity.
    """

    target: Target
    fetch: Callable[[Target, Deadline], Stored] = requests.get

    @property
    def leases(self) -> None:
        """Return None: the service has no leases on entities."""
        return None

    def read(self, deadline: Deadline) -> State:
        """Read properties, ETag and lineage from one response.

        Raises:
            NotFound: there is no such table.
        """
        try:
            return state_of(self.fetch(self.target, deadline))
        except NotFound as error:
            if error.service_code == _NO_TABLE:
                raise
            return State(b"", None, Lineage())

    def prepare(
        self, state: State, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], Landed]:
        """Return the Update Entity, which replaces it, or the Insert Entity where there is none."""
        entity = stamped(content, state, lineage)
        return lambda _: self._written(entity, state, deadline)

    def fence(
        self, state: State, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], Landed]:
        """Return a Merge Entity that changes nothing but the ETag and the lineage."""
        touch: Entity = self.keys | stamp(state, lineage)
        etag = str(state.etag)
        return lambda: Landed(requests.write(self.target, touch, etag, merge=True, timeouts=write_timeouts(deadline)))

    def versions(self, deadline: Deadline) -> list[Version]:
        """Return nothing: the service keeps no versions of entities."""
        return []

    def checked(self, content: bytes) -> bytes:
        """Return what the transform gave in the canonical spelling."""
        return texts.checked(content, self.target.address)

    @property
    def keys(self) -> Entity:
        """Return the two properties that name the entity."""
        return dict(zip(KEYS, self.target.address.parts[1:], strict=True))

    def _written(self, entity: Entity, state: State, deadline: Deadline) -> Landed:
        timeouts = write_timeouts(deadline)
        if state.etag is None:
            return Landed(requests.insert(self.target, entity, timeouts))
        return Landed(requests.write(self.target, entity, state.etag, merge=False, timeouts=timeouts))


def state_of(found: Stored) -> State:
    """Return an entity that was read as the loop knows it."""
    return State(
        content=texts.canonical(found.entity),
        etag=found.etag,
        lineage=found.lineage,
        last_modified=reading.written(found),
        shown=texts.shown(found.entity),
    )


def stamped(content: bytes, state: State, lineage: Lineage | None) -> Entity:
    """Return the entity to send, with the lineage on it."""
    entity: Entity = json.loads(content)
    return entity | stamp(state, lineage)


def stamp(state: State, lineage: Lineage | None) -> Entity:
    """Return the property to carry: the new lineage, or, with --no-lineage, the one that is there."""
    kept = str(state.lineage if lineage is None else lineage)
    return {KEY: kept} if kept else {}
