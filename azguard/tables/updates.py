"""An entity as the update loop sees it: alone, or with a ledger; and the built-in edits of its properties.

A ledger has a row for each op, which is written in the same transaction as the entity.

The service writes both or neither. So the row's presence proves that our write was committed; and that it is not
there, read after the entity, proves that no attempt was committed over a version replaced by then. All attempts of an
op write the same row, which only one of them can: sent again, or delivered late, the others are refused.
When an op is given up, its row is written and marked as void; then no attempt of it can be committed.

Not guaranteed: once a row is deleted, its op is forgotten. Rows are never deleted by azguard.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.documents import edits
from azguard.documents.edits import Edit, Increment, Set, Unset
from azguard.documents.paths import Path, Step
from azguard.errors import NotFound, TransformFailed, UsageError
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, AppliedKey, Lineage
from azguard.tables import edm, entities, entity_json
from azguard.tables.edm import ANNOTATION, DATETIME, KEYS, PARTITION_KEY, ROW_KEY, Entity
from azguard.tables.entities import Stored
from azguard.tables.entity_json import parse
from azguard.times import iso
from azguard.updates.resource import Commit, CommittedVersion, CurrentVersion, FencingWrite, UpdatableResource
from azguard.wire import transactions
from azguard.wire.failures import Broken, BrokenAnswer
from azguard.wire.operations.tables import TABLE_ENTITY_INSERT, TABLE_ENTITY_MERGE, TABLE_ENTITY_UPDATE
from azguard.wire.transactions import TransactionPart

_WHOLE = (edm.INT32, edm.INT64)
# A missing entity is no error here; a missing table is.
_NO_TABLE = "TableNotFound"
# Sorts behind the usual row keys, and no user chooses it by chance.
PREFIX = "~op~"
# The row key of the entity.
_NAME = "entity"
_OUTCOME = "outcome"
_COMMITTED = "committed"
_VOID = "void"
_TIME = "time"
_CHANGE = "change"


@dataclass
class VersionedEntity(UpdatableResource):
    """An entity as JSON with OData annotations, compared by types and values; its lineage is one of its properties.

    The Table service has neither leases nor kept versions: if a writer drops the lineage, the outcome stays unknown.
    """

    target: Target
    #: Reads the entity.
    fetch: Callable[[Target, Deadline], Stored] = entities.get

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
        return self.read(deadline)

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the Update Entity, which replaces it, or the Insert Entity where there is none."""
        entity = add_lineage(content, state, lineage)
        return lambda _: CommittedVersion(entities.put(self.target, entity, state.etag, write_timeouts(deadline)))

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return a Merge Entity that changes nothing but the ETag and the lineage."""
        touch = self.fence(state, lineage, lease_id, deadline)
        return lambda _: touch()

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        return edm.count_room(json.loads(content), KEY)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return a Merge Entity that changes nothing but the ETag and the lineage."""
        touch: Entity = self.keys | _to_lineage_property(state, lineage)
        etag = str(state.etag)
        return lambda: CommittedVersion(
            entities.send(TABLE_ENTITY_MERGE, self.target, touch, write_timeouts(deadline), etag)
        )

    def canonicalize(self, content: bytes) -> bytes:
        return entity_json.canonicalize(content, self.target.address)

    @property
    def keys(self) -> Entity:
        return dict(zip(KEYS, self.target.address.parts[1:], strict=True))


def to_current_version(found: Stored) -> CurrentVersion:
    """Return an entity that was read as a version for the update loop."""
    return CurrentVersion(
        content=entity_json.encode_canonical(found.entity),
        etag=found.etag,
        lineage=found.lineage,
        last_modified=entities.read_timestamp(found),
        transform_input=entity_json.encode(found.entity),
    )


def add_lineage(content: bytes, state: CurrentVersion, lineage: Lineage | None) -> Entity:
    """Return the entity to send, with the lineage on it."""
    entity: Entity = json.loads(content)
    return entity | _to_lineage_property(state, lineage)


def _to_lineage_property(state: CurrentVersion, lineage: Lineage | None) -> Entity:
    """Return the property of the lineage: the new one, or the current one if ``lineage`` is None."""
    kept = str(state.carry_on(lineage))
    return {KEY: kept} if kept else {}


def is_row(entity: Mapping[str, Any]) -> bool:
    """Return whether an entity is a row of a ledger."""
    return str(entity.get(ROW_KEY, "")).startswith(PREFIX)


@dataclass
class LedgeredEntity(VersionedEntity):
    """An entity that is written together with the row of one op."""

    op: str = field(kw_only=True)
    #: Whether a read asks for the row as well: where an earlier run may have written it, and after each attempt.
    asks: bool = field(kw_only=True)
    #: The digest of the change, with which another use of the key is compared.
    change: bytes | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    #: The ETag of the row, where it is void.
    _void: str | None = field(default=None, init=False)
    #: What the row tells, where it is not void.
    _key: AppliedKey | None = field(default=None, init=False)

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read the entity, then the row: only in this order is a missing row a proof."""
        state = super().read(deadline)
        if not self.asks:
            return state
        is_in_ledger = self._has_row(deadline)
        return replace(state, in_ledger=is_in_ledger, ledger_key=self._key)

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Return the transaction that writes the entity and the row."""
        return self._write_with_row(_change(self.target, add_lineage(content, state, lineage), state.etag), deadline)

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return the transaction that writes the row, and of the entity the ETag and the lineage alone."""
        touch: Entity = self.keys | _to_lineage_property(state, lineage)
        return self._write_with_row(_change(self.target, touch, state.etag, merges=True), deadline)

    def _write_with_row(self, change: TransactionPart, deadline: Deadline) -> Commit:
        changes = [change, _change(self.target, self._row(_COMMITTED), self._void)]
        self.asks = True
        return lambda _: CommittedVersion(_transact(self.target, changes, deadline))

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return the write of a void row, which makes every attempt of this op fail."""
        row = self._row(_VOID)
        void = self._void

        return lambda: CommittedVersion(entities.put(self.target, row, void, write_timeouts(deadline)))

    def _has_row(self, deadline: Deadline) -> bool:
        table, partition, _ = self.target.address.parts
        row = Target(self.target.account, Address(Kind.ENTITY, (table, partition, PREFIX + self.op)))
        try:
            found = entities.get(row, deadline)
        except NotFound:
            self._void = self._key = None
            return False
        self._require_own(found.entity)
        is_void = found.entity.get(_OUTCOME) == _VOID
        self._void = found.etag if is_void else None
        self._key = None if is_void else _read_key(found.entity)
        return not is_void

    def _require_own(self, row: Entity) -> None:
        """Refuse an op of another entity of the partition: the ledger has one row for both."""
        if row.get(_NAME) != self.target.address.name:
            raise UsageError(
                f"the id is that of an update of the entity {row.get(_NAME)}, and not of {self.target}",
                argument="op_id",
                address=str(self.target.address),
                reason="op_id_of_another_entity",
            )

    def _row(self, outcome: str) -> Entity:
        _, partition, name = self.target.address.parts
        return {
            PARTITION_KEY: partition,
            ROW_KEY: PREFIX + self.op,
            _NAME: name,
            _OUTCOME: outcome,
            _TIME: iso(self.now()),
            _TIME + ANNOTATION: DATETIME,
            **({_CHANGE: self.change.hex()} if self.change is not None and outcome == _COMMITTED else {}),
        }


def _read_key(row: Entity) -> AppliedKey | None:
    """Return the key in a row; None where another program has changed the row."""
    try:
        at = datetime.fromisoformat(str(row.get(_TIME)))
        change = row.get(_CHANGE)
        return AppliedKey(None if change is None else bytes.fromhex(change), at)
    except (ValueError, TypeError):
        return None


def _change(target: Target, entity: Entity, etag: str | None, *, merges: bool = False) -> TransactionPart:
    operation = TABLE_ENTITY_MERGE if merges else TABLE_ENTITY_UPDATE
    place = entities.locate(target, entity)
    return TransactionPart(TABLE_ENTITY_INSERT if etag is None else operation, place, edm.to_body(entity), etag)


def _transact(target: Target, changes: Sequence[TransactionPart], deadline: Deadline) -> str:
    """Make all changes or none, and return the ETag that the first made.

    Source: https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
    """
    answers = transactions.send(target, changes, write_timeouts(deadline))
    if not answers[0].etag:
        raise BrokenAnswer(Broken.TRUNCATED)
    return str(answers[0].etag)


def apply_edits(chosen: Sequence[Edit], content: bytes) -> bytes:
    """Return the entity with the edits applied in order.

    An entity is flat, so a path is the name of a property, or of its annotation. Whether a value fits its type is
    checked when all edits are done, and so is that the keys stay.

    Raises:
        TransformFailed: an edit does not fit.
    """
    after = content
    for edit in chosen:
        after = _apply_one(edit, after)
    _require_kept_types(chosen, parse(content), parse(after))
    return after


def property_path(path: Path) -> Path:
    """Return a path of one step. ``count@odata.type`` is one name, though its dot looks like two.

    Raises:
        UsageError: it leads to no property.
    """
    whole = _find_property(path)
    if whole is None or whole.removesuffix(ANNOTATION) in ("", KEY):
        raise UsageError(f"{path.text!r} is not a property: an entity is flat", reason="property_path_malformed")
    return Path(path.text, (Step(whole),))


def _find_property(path: Path) -> str | None:
    """Return the name of the property, or of its annotation, that a path consists of; None if it is neither."""
    if len(path.steps) == 1:
        return path.steps[0].name
    return path.text if path.text.endswith(ANNOTATION) else None


def _apply_one(edit: Edit, content: bytes) -> bytes:
    if isinstance(edit, Increment):
        edit = _resolve_increment(edit, parse(content))
    after = edits.apply([edit], content)
    if isinstance(edit, Unset):
        after = edits.apply([edit._replace(path=Path("", (Step(f"{edit.path.steps[0].name}{ANNOTATION}"),)))], after)
    return after


def _require_kept_types(chosen: Sequence[Edit], before: Entity, after: Entity) -> None:
    """Refuse a value of another type where no annotation would: it would give the property that type.

    A property that is unset has none to keep.
    """
    free = {edit.path.steps[0].name for edit in chosen if isinstance(edit, Unset)}
    for name in before:
        old, new = (_find_implied_type(entity, name) for entity in (before, after))
        if old is not None and new not in (None, old) and name not in free:
            failed = TransformFailed(f"{name} is an {old}, and its new value an {new}", values={"path": name})
            if old == edm.STRING:
                raise failed.but(reason="property_is_string")
            raise failed.but(reason="property_of_other_type")


def _find_implied_type(entity: Entity, name: str) -> str | None:
    """Return the type of a property that has no annotation; None if it has one, or is not there."""
    if entity.get(name) is None or name + ANNOTATION in entity:
        return None
    try:
        return edm.kind_of(entity, name)
    except UsageError as error:
        raise error.as_kind(TransformFailed) from None


def _resolve_increment(edit: Increment, entity: Entity) -> Increment | Set:
    """Return an increment of an integer as the sum to set; any other as it is. Edm.Int64 is a string in JSON."""
    name = edit.path.steps[0].name or ""
    kind, value = _map_properties(entity).get(name, ("", None))
    if kind not in _WHOLE or value is None:
        return edit  # A double is a number in JSON too, and anything else is refused by its name.
    if not isinstance(edit.by, int):
        raise TransformFailed(
            f"{name} is an {kind}, and {edit.by.text} is no whole number",
            reason="increment_of_whole_number",
            values={"path": f"{name}{ANNOTATION}", "type": edm.DOUBLE},
        )
    total = int(value) + edit.by
    return Set(edit.path, str(total) if kind == edm.INT64 else total)


def _map_properties(entity: Entity) -> dict[str, tuple[str, Any]]:
    try:
        return {name: (kind, value) for name, kind, value in edm.iterate_properties(entity)}
    except UsageError as error:
        raise error.as_kind(TransformFailed) from None
