"""Writes of entities: insert, replace, merge, upsert and delete; each finds its outcome after a lost answer.

Every write but a delete stamps the lineage as one string property, by which a lost answer is settled.

Not guaranteed: an insert that the network delivers late. "Not there" can recur, so it can bring back an entity that
was deleted meanwhile. Where entities get deleted, keep an empty one instead.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

from azguard.accounts.account import Target
from azguard.errors import AzguardError, Changed, Exists, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, UNSEEN, Lineage, verdict_from_lineage
from azguard.requests.results import Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.tables import edm, entities
from azguard.tables.edm import ANNOTATION, Entity
from azguard.tables.entities import Stored
from azguard.wire.client import Limits
from azguard.wire.operations.tables import (
    TABLE_ENTITY_DELETE,
    TABLE_ENTITY_INSERT,
    TABLE_ENTITY_INSERT_OR_MERGE,
    TABLE_ENTITY_INSERT_OR_REPLACE,
    TABLE_ENTITY_MERGE,
    TABLE_ENTITY_UPDATE,
)
from azguard.wire.rows import Condition, Operation

if TYPE_CHECKING:
    from azguard.cache.reads import Reads


_MODIFIED = r"""(?i)W/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d)(?:\.(\d+))?Z'\""""


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
            return TABLE_ENTITY_INSERT_OR_MERGE
        return _OPERATIONS[self]


_OPERATIONS = {
    Verb.INSERT: TABLE_ENTITY_INSERT,
    Verb.REPLACE: TABLE_ENTITY_UPDATE,
    Verb.MERGE: TABLE_ENTITY_MERGE,
    Verb.UPSERT: TABLE_ENTITY_INSERT_OR_REPLACE,
    Verb.DELETE: TABLE_ENTITY_DELETE,
}


@frozen
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
    def operation(self) -> Operation:
        return self.verb.operation(merges=self.merges)

    @property
    def version(self) -> str | None:
        """Return the value of If-Match, without which a replace or a merge would create what is missing."""
        if self.verb in (Verb.INSERT, Verb.UPSERT):
            return None
        return self.conditions.headers[Condition.IF_MATCH.header]

    @property
    def inserts(self) -> bool:
        """Return whether the write is for an entity that does not exist yet."""
        return self.verb is Verb.INSERT

    @property
    def partial(self) -> bool:
        """Return whether properties that the write does not name stay as they are."""
        return self.verb is Verb.MERGE or self.merges

    @property
    def excludes_itself(self) -> bool:
        """Return whether of two transmissions only one can commit, so that sending again is safe."""
        return self.conditions.expected_etag is not None or self.inserts


def check(made: EntityWrite) -> None:
    """Refuse an entity that the service would refuse: once sent, it would look like a lost answer.

    Raises:
        UsageError: a property does not have its type, or the entity is beyond a limit.
    """
    edm.check_limits(made.entity)
    try:
        edm.check_limits(made.sent)
    except UsageError as error:
        raise error.but(
            message=f"with azguard's lineage in it {error.message}",
            reason="entity_too_large_with_lineage",
        ) from None


def write(made: EntityWrite, deadline: Deadline) -> Written:
    """Make the write, which ``check`` has found to be in order.

    Raises:
        Changed: it is no longer the version the condition names; nothing was written.
        Exists: an insert, and it exists.
        NotFound: there is no such entity, or no such table.
        OutcomeUnknown: the answer was lost, or a delete was refused, and it cannot be known whether it was applied.
    """
    try:
        before = _look_before(made, deadline) if made.verb is Verb.DELETE else None
        request = WriteRequest(
            operation=made.operation,
            target=made.target,
            send=lambda: _send(made, write_timeouts(deadline)),
            look=lambda patience: find_outcome(made, patience, before),
            expected_etag=made.conditions.expected_etag,
            op=made.op,
            resend=made.excludes_itself,
        )
        settled = send_until_settled(request, deadline)
    except (Changed, Exists, NotFound) as error:
        raise explain_refusal(error, made, deadline) from error
    return to_write_result(made, settled.answer, settled.attempts)


def _look_before(made: EntityWrite, deadline: Deadline) -> Stored | None:
    from azguard.resources.lifecycles import look_before  # which only a delete needs

    return look_before(lambda: entities.get(made.target, deadline))


def record_write(reads: "Reads", made: EntityWrite, done: Any) -> None:
    """Record the version that was written, unless it has properties that were never read here.

    Of a merge into a version that was not read here, only the properties that it set are known.
    """
    if made.verb is Verb.DELETE:
        reads.record_deleted(made.target, made.conditions.expected_etag)
        return
    if made.partial and made.conditions.expected_etag is None:
        reads.forget(made.target)
        return
    selected = None
    if made.verb is Verb.MERGE:
        before = reads.find_last(made.target)
        is_base = before is not None and before.etag == made.conditions.expected_etag
        named = ",".join(sorted(name for name in made.entity if not name.endswith(ANNOTATION)))
        selected = before.selected if before is not None and is_base else named
    reads.record(made.target, done, lineage=made.stamp, selected=selected)


def to_write_result(made: EntityWrite, etag: str | None, attempts: int) -> Written:
    """Return the result of a write that was committed."""
    return Written(
        address=str(made.target.address),
        etag=etag,
        last_modified=parse_timestamp(etag),
        guard=made.conditions.guard,
        attempts=attempts,
    )


def parse_timestamp(etag: str | None) -> datetime | None:
    """Return the Timestamp that an entity's ETag consists of, to the microsecond, if it does."""
    found = None if etag is None else re.fullmatch(_MODIFIED, etag)
    if found is None:
        return None
    seconds = datetime.fromisoformat(found[1].replace("%3A", ":").replace("%3a", ":"))
    return seconds.replace(microsecond=int((found[2] or "0").ljust(6, "0")[:6]), tzinfo=UTC)


def explain_refusal(error: AzguardError, made: EntityWrite, deadline: Deadline) -> AzguardError:
    """Add to a refusal what is there now, if that can be learnt quickly, or the way out."""
    if isinstance(error, Exists):
        return error if error.reason is not None else error.but(reason="entity_exists")
    if isinstance(error, NotFound):
        if error.service_code != "TableNotFound" and made.conditions.expected_etag is not None:
            return error.but(message=f"{made.target} is no longer there")
        return error
    if not isinstance(error, Changed):
        return error
    try:
        current = error.seen or entities.get(made.target, deadline.briefly())
    except Exception:  # noqa: BLE001  # the explanation is optional; report the conflict even if it fails
        return error
    if current is NOTHING_THERE:
        return error
    when = parse_timestamp(current.etag)
    now = () if when is None else (f"now: written {when:%Y-%m-%d %H:%M:%S} UTC",)
    return error.but(current_etag=current.etag, detail=(*error.detail, *now))


def _send(made: EntityWrite, timeouts: Limits) -> str | None:
    if made.verb is Verb.DELETE:
        entities.delete(made.target, str(made.version), timeouts)
        return None
    return entities.send(made.operation, made.target, made.sent, timeouts, made.version)


def find_outcome(made: EntityWrite, patience: Deadline, before: Stored | None = None) -> Finding[str | None]:
    """Return the finding on a write, with the ETag it made if known; ``before`` is the entity before the write."""
    return to_finding(made, fetch_current(made, patience), before)


def to_finding(made: EntityWrite, found: Stored | None, before: Stored | None = None) -> Finding[str | None]:
    """Return the finding on a write from the current entity, together with that entity."""
    verdict = judge_outcome(made, found)
    # What was there before a delete, and is not there after it was refused, its first copy may have deleted.
    is_replaced = before is not None and (found is None or found.etag != before.etag)
    return Finding(
        verdict,
        find_etag(made, found) if verdict is Verdict.COMMITTED else None,
        seen=NOTHING_THERE if found is None else found,
        may_be_ours=verdict is Verdict.UNKNOWN and (is_replaced or _equals(made, found)),
    )


def fetch_current(made: EntityWrite, patience: Deadline) -> Stored | None:
    """Return the current entity, or None if there is no entity."""
    try:
        return entities.get(made.target, patience)
    except NotFound:
        return None


def judge_outcome(made: EntityWrite, found: Stored | None) -> Verdict:
    """Return the verdict on a write from the current entity."""
    if found is None:
        # A missing entity does not prove our delete: another writer could have deleted it.
        return Verdict.NOT_YET if made.inserts else Verdict.UNKNOWN
    return verdict_from_lineage(found.lineage, made.op, made.conditions.expected_etag, found.etag)


def find_etag(made: EntityWrite, found: Stored | None) -> str | None:
    """Return the ETag that a write made, if what is there is known to be that very version.

    Another writer's merge keeps our lineage and makes another version. After a write of the whole entity, equal content
    shows that it is ours; after a merge nothing does, so its ETag is not known.
    """
    if found is None or made.partial or not found.lineage.entries or found.lineage.entries[0][0] != made.op:
        return None
    return found.etag if _to_values(found.entity) == _to_values(made.entity) else None


def _equals(made: EntityWrite, found: Stored | None) -> bool:
    # Its lineage would tell; and a delete leaves nothing that could be taken for it.
    if found is None or made.stamp is not None or made.verb is Verb.DELETE:
        return False
    ours = _to_values(made.entity)
    theirs = _to_values(found.entity)
    return ours.items() <= theirs.items() if made.partial else ours == theirs


def _to_values(entity: Entity) -> dict[str, tuple[str, object]]:
    return {name: (kind, value) for name, kind, value in edm.iterate_properties(entity)}


def find_existing(made: EntityWrite, deadline: Deadline) -> Written:
    """Return the entity that is there."""
    from azguard.resources import lifecycles

    try:
        found = entities.get(made.target, deadline.fresh())
    except NotFound:  # deleted since
        return lifecycles.describe_existing(made.target)
    if made.op not in found.lineage:
        return lifecycles.describe_existing(made.target, found.etag, parse_timestamp(found.etag))
    etag = find_etag(made, found)
    return lifecycles.describe_existing(made.target, etag, parse_timestamp(etag), outcome="committed")


class _Evidence(Enum):
    """What one write of a transaction tells of all where nothing is certain."""

    UNTOUCHED = "the version that it would replace is still there"
    ABSENT = "the entity that it would insert is not there"
    REPLACED = "another version is there, and nothing tells whose"
    NONE = "it has no condition, so that what is there tells nothing"


@frozen
class ItemVerdict:
    """What a look says about one item."""

    verdict: Verdict
    #: Whether it makes the entity.
    inserts: bool
    #: Whether of two transmissions of it only one can commit.
    excludes_itself: bool

    @classmethod
    def of(cls, write: EntityWrite, verdict: Verdict) -> "ItemVerdict":
        """Return a verdict on one write."""
        return cls(verdict, inserts=write.inserts, excludes_itself=write.excludes_itself)

    @property
    def holds_for_all(self) -> bool:
        """Return whether the verdict on an item that was refused is one on all.

        That what it would insert is not there does not tell: our insert may have been committed, and deleted since.
        """
        return not self.inserts if self.verdict is Verdict.NOT_YET else self.verdict is not Verdict.UNKNOWN

    @property
    def evidence(self) -> _Evidence:
        """Return the evidence of an item whose verdict is not certain."""
        if not self.excludes_itself:
            return _Evidence.NONE
        if self.verdict is Verdict.UNKNOWN:
            return _Evidence.REPLACED
        return _Evidence.ABSENT if self.inserts else _Evidence.UNTOUCHED


def verdict_from_items(items: Iterable[ItemVerdict]) -> Verdict:
    """Return the verdict on a whole transaction: a certain verdict on one item holds for all items.

    An insert never proves that it was not applied, because its entity may have been deleted since. So the evidence of
    an insert counts only where no other item is against it. Items after the first certain one are not asked for.
    """
    found = set()
    for item in items:
        if item.verdict in (Verdict.COMMITTED, Verdict.NEVER):
            return item.verdict
        found.add(item.evidence)
    if _Evidence.UNTOUCHED in found or (_Evidence.ABSENT in found and _Evidence.REPLACED not in found):
        return Verdict.NOT_YET
    return Verdict.UNKNOWN
