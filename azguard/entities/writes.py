"""Entities written: insert, replace, merge, upsert and delete, each settling its own doubt.

Every write but a delete stamps the lineage as one string property, by which a lost answer is settled.

Not guaranteed: an insert that the network delivers late. "Not there" can recur, so it can bring back an entity that
somebody deleted meanwhile. Where entities get deleted, keep an empty one instead.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from azguard import operations
from azguard.account import Target
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.entities import entity_doubt, limits, requests
from azguard.entities.edm import Entity
from azguard.errors import AzguardError, Changed, Exists, NotFound, UsageError
from azguard.lineage import KEY, UNSEEN, Lineage
from azguard.operations import Condition, Operation
from azguard.settled import NOTHING_THERE, Written
from azguard.settled import write as settled_write
from azguard.transmission import write_timeouts

_MODIFIED = re.compile(r"""W/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d)(?:\.(\d+))?Z'\"""", re.IGNORECASE)


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
    """One write in the making. ``entity`` has its keys; of a delete it is nothing else. ``merges``: an upsert does."""

    target: Target
    verb: Verb
    entity: Entity
    conditions: Conditions
    op: str
    merges: bool = False
    stamp: str | None = None

    def stamped(self) -> "EntityWrite":
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
        """Return whether the entity then has properties that nobody here has read: no version to be guarded by."""
        return self.partial and self.conditions.expected_etag is None


def check(made: EntityWrite) -> None:
    """Refuse what the service or the SDK would refuse: after it was sent it would look like a lost answer.

    Raises:
        UsageError: a property does not have its type, or the entity is beyond a limit.
    """
    limits.check(made.entity)
    try:
        limits.check(made.sent)
    except UsageError as error:
        error.message = f"with azguard's lineage in it {error.message}"
        error.hint = "--no-lineage leaves it out; a lost answer can then end as exit 74"
        raise


def write(made: EntityWrite, deadline: Deadline) -> Written:
    """Make the write, which ``check`` has found to be in order.

    Raises:
        Changed: it is no longer the version the condition names; nothing was written.
        Exists: an insert, and it exists.
        NotFound: there is no such entity, or no such table.
        OutcomeUnknown: the answer was lost, and it cannot be known whether it was applied.
    """
    try:
        settled = settled_write(
            lambda: _send(made, write_timeouts(deadline)),
            lambda patience: entity_doubt.landed(made, patience),
            made.target,
            deadline,
            expected_etag=made.conditions.expected_etag,
            resend=made.excludes_itself,
        )
    except (Changed, Exists, NotFound) as error:
        raise explained(error, made, deadline) from error
    return written(made, settled.answer, settled.attempts)


def written(made: EntityWrite, etag: str | None, attempts: int) -> Written:
    """Return the result of a write that was committed."""
    guard = made.conditions.guard
    return Written(str(made.target.address), etag, modified(etag), guard, attempts)


def modified(etag: str | None) -> datetime | None:
    """Return the Timestamp that an entity's ETag consists of, to the microsecond, if it does."""
    found = None if etag is None else _MODIFIED.fullmatch(etag)
    if found is None:
        return None
    seconds = datetime.fromisoformat(found[1].replace("%3A", ":").replace("%3a", ":"))
    return seconds.replace(microsecond=int((found[2] or "0").ljust(6, "0")[:6]), tzinfo=UTC)


def explained(error: AzguardError, made: EntityWrite, deadline: Deadline) -> AzguardError:
    """Add to a refusal what is there now, if that can be learnt quickly, or the way out."""
    if isinstance(error, Exists):
        error.hint = error.hint or (
            f"read it: azguard entity get {made.target}, then replace or merge; "
            "or write it whatever is there: azguard entity upsert with --last-writer-wins"
        )
        return error
    if isinstance(error, NotFound):
        if error.service_code != "TableNotFound" and made.conditions.expected_etag is not None:
            error.message = f"{made.target} is no longer there"
        return error
    if not isinstance(error, Changed):
        return error
    try:
        current = error.seen or requests.get(made.target, deadline.lasting(min(2.0, deadline.seconds)))
    # Explaining is a courtesy; whatever goes wrong with it, the conflict itself is what must be told.
    except Exception:  # noqa: BLE001
        return error
    if current is NOTHING_THERE:
        return error
    error.current_etag = current.etag
    when = modified(current.etag)
    if when is not None:
        error.detail = (*error.detail, f"now: written {when:%Y-%m-%d %H:%M:%S} UTC")
    return error


def _send(made: EntityWrite, timeouts: Mapping[str, Any]) -> str | None:
    """Send the one request and return the new ETag."""
    if made.inserts:
        return requests.insert(made.target, made.sent, timeouts)
    if made.verb is Verb.UPSERT:
        return requests.upsert(made.target, made.sent, merge=made.merges, timeouts=timeouts)
    if made.verb is Verb.DELETE:
        requests.delete(made.target, made.version, timeouts)
        return None
    return requests.write(made.target, made.sent, made.version, merge=made.verb is Verb.MERGE, timeouts=timeouts)
