"""One write of an entity: its verb, its content and its conditions."""

from dataclasses import dataclass, replace
from enum import StrEnum

from azguard.accounts.target import Target
from azguard.conditions import operations
from azguard.conditions.operations import Condition, Operation
from azguard.conditions.resolve import Conditions
from azguard.requests.lineage import KEY, UNSEEN, Lineage
from azguard.tables.edm import Entity


class Verb(StrEnum):
    """What a write does to an entity; the value is the command's name."""

    INSERT = "insert"
    REPLACE = "replace"
    MERGE = "merge"
    UPSERT = "upsert"
    DELETE = "delete"

    def operation(self, *, merges: bool = False) -> Operation:
        """Return its row in the table of operations; ``merges`` is about an upsert."""
        if self is Verb.UPSERT and merges:
            return operations.TABLE_ENTITY_INSERT_OR_MERGE
        return _OPERATIONS[self]


_OPERATIONS = {
    Verb.INSERT: operations.TABLE_ENTITY_INSERT,
    Verb.REPLACE: operations.TABLE_ENTITY_UPDATE,
    Verb.MERGE: operations.TABLE_ENTITY_MERGE,
    Verb.UPSERT: operations.TABLE_ENTITY_INSERT_OR_REPLACE,
    Verb.DELETE: operations.TABLE_ENTITY_DELETE,
}


@dataclass(frozen=True)
class EntityWrite:
    """One write that is not sent yet."""

    target: Target
    verb: Verb
    #: With its keys; for a delete only they.
    entity: Entity
    conditions: Conditions
    op: str
    #: Whether an upsert merges.
    merges: bool = False
    #: The lineage that it carries; None without one.
    stamp: str | None = None

    def add_lineage(self) -> "EntityWrite":
        """Return the write with the lineage of the version it is guarded by, carried on; a delete leaves none."""
        if self.verb is Verb.DELETE:
            return self
        parent = self.conditions.expected_etag
        if parent is None and not self.inserts:
            parent = UNSEEN
        return replace(self, stamp=str(Lineage.parse(self.conditions.lineage).after(self.op, parent)))

    @property
    def sent(self) -> Entity:
        """Return the entity as it is sent, the lineage included."""
        return {**self.entity, **({KEY: self.stamp} if self.stamp else {})}

    @property
    def leaves_lineage(self) -> bool:
        """Return whether its lineage tells of it afterwards; a delete leaves nothing that could be taken for it."""
        return self.stamp is not None or self.verb is Verb.DELETE

    @property
    def version(self) -> str:
        """Return the value of If-Match, without which a replace or a merge would create what is missing."""
        return self.conditions.headers[Condition.IF_MATCH.header]

    @property
    def inserts(self) -> bool:
        """Return whether it is for an entity that does not exist yet."""
        return self.verb is Verb.INSERT

    @property
    def partial(self) -> bool:
        """Return whether properties that it does not name stay as they are."""
        return self.verb is Verb.MERGE or self.merges

    @property
    def excludes_itself(self) -> bool:
        """Return whether of two transmissions only one can commit, so that sending again is safe."""
        return self.conditions.expected_etag is not None or self.inserts

    @property
    def leaves_unseen(self) -> bool:
        """Return whether the entity then has properties that were never read here: no version to be guarded by."""
        return self.partial and self.conditions.expected_etag is None
