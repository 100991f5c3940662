"""The adapter of safe-update for an entity."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from azguard.accounts.target import Target
from azguard.errors import NotFound
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.tables import calls, entity_json, limits, reads
from azguard.tables.calls import Stored
from azguard.tables.edm import KEYS, Entity
from azguard.updates.resource import CommittedVersion, CurrentVersion, KeptVersion

# A missing entity is no error here; a missing table is.
_NO_TABLE = "TableNotFound"


@dataclass
class VersionedEntity:
    """An entity as JSON with OData annotations, compared by types and values; its lineage is one of its properties.

    The Table service has neither leases nor kept versions: if a writer drops the lineage, the outcome stays unknown.
    """

    target: Target
    #: Reads the entity.
    fetch: Callable[[Target, Deadline], Stored] = calls.get

    @property
    def leases(self) -> None:
        """Return None: the service has no leases on entities."""
        return None

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read properties, ETag and lineage from one response.

        Raises:
            NotFound: there is no such table.
        """
        try:
            return to_current_version(self.fetch(self.target, deadline))
        except NotFound as error:
            if error.service_code == _NO_TABLE:
                raise
            return CurrentVersion(b"", None, Lineage())

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        """Read as ``read`` does, without the caller's lease id, whose lease may have ended."""
        return self.read(deadline)

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return the Update Entity, which replaces it, or the Insert Entity where there is none."""
        entity = add_lineage(content, state, lineage)
        return lambda _: self._write(entity, state, deadline)

    def mark(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        """Return a Merge Entity that changes nothing but the ETag and the lineage."""
        touch = self.fence(state, lineage, lease_id, deadline)
        return lambda _: touch()

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return how many characters the lineage may have beside the other properties."""
        return limits.count_room(json.loads(content), KEY)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[], CommittedVersion]:
        """Return a Merge Entity that changes nothing but the ETag and the lineage."""
        touch: Entity = self.keys | to_lineage_property(state, lineage)
        etag = str(state.etag)
        return lambda: CommittedVersion(
            calls.write(self.target, touch, etag, merge=True, timeouts=write_timeouts(deadline))
        )

    def list_versions(self, deadline: Deadline) -> list[KeptVersion]:
        """Return nothing: the service keeps no versions of entities."""
        return []

    def canonicalize(self, content: bytes) -> bytes:
        """Return what the transform gave in the canonical spelling."""
        return entity_json.canonicalize(content, self.target.address)

    @property
    def keys(self) -> Entity:
        """Return the two properties that name the entity."""
        return dict(zip(KEYS, self.target.address.parts[1:], strict=True))

    def _write(self, entity: Entity, state: CurrentVersion, deadline: Deadline) -> CommittedVersion:
        timeouts = write_timeouts(deadline)
        if state.etag is None:
            return CommittedVersion(calls.insert(self.target, entity, timeouts))
        return CommittedVersion(calls.write(self.target, entity, state.etag, merge=False, timeouts=timeouts))


def to_current_version(found: Stored) -> CurrentVersion:
    """Return an entity that was read as a version for the update loop."""
    return CurrentVersion(
        content=entity_json.encode_canonical(found.entity),
        etag=found.etag,
        lineage=found.lineage,
        last_modified=reads.read_timestamp(found),
        transform_input=entity_json.encode(found.entity),
    )


def add_lineage(content: bytes, state: CurrentVersion, lineage: Lineage | None) -> Entity:
    """Return the entity to send, with the lineage on it."""
    entity: Entity = json.loads(content)
    return entity | to_lineage_property(state, lineage)


def to_lineage_property(state: CurrentVersion, lineage: Lineage | None) -> Entity:
    """Return the property of the lineage: the new one, or the current one if ``lineage`` is None."""
    kept = str(state.carry_on(lineage))
    return {KEY: kept} if kept else {}
