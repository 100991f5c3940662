"""The outcome of an entity's write whose answer was lost, from the lineage."""

from typing import TYPE_CHECKING

from azguard.errors import NotFound
from azguard.requests.commits import Verdict, verdict_from_lineage
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, Finding
from azguard.tables import calls, edm
from azguard.tables.calls import Stored
from azguard.tables.edm import Entity

if TYPE_CHECKING:
    from azguard.tables.write import EntityWrite


def find_outcome(made: "EntityWrite", patience: Deadline, before: Stored | None = None) -> Finding[str | None]:
    """Return what is known about a write, with the ETag it made if that is known; ``before`` was there before it."""
    return to_finding(made, fetch_current(made, patience), before)


def to_finding(made: "EntityWrite", found: Stored | None, before: Stored | None = None) -> Finding[str | None]:
    """Return what is known about a write from what is there now, and that itself."""
    verdict = judge(made, found)
    # What was there before a delete, and is not there after it was refused, its first copy may have deleted.
    is_replaced = before is not None and (found is None or found.etag != before.etag)
    return Finding(
        verdict,
        find_etag(made, found) if verdict is Verdict.COMMITTED else None,
        seen=NOTHING_THERE if found is None else found,
        same=verdict is Verdict.UNKNOWN and (is_replaced or _equals(made, found)),
    )


def fetch_current(made: "EntityWrite", patience: Deadline) -> Stored | None:
    """Return what is there now, None if nothing is."""
    try:
        return calls.get(made.target, patience)
    except NotFound:
        return None


def judge(made: "EntityWrite", found: Stored | None) -> Verdict:
    """Return what is known about a write from what is there now."""
    if found is None:
        # A missing entity does not prove our delete: another writer could have deleted it.
        return Verdict.NOT_YET if made.inserts else Verdict.UNKNOWN
    return verdict_from_lineage(found.lineage, made.op, made.conditions.expected_etag, found.etag)


def find_etag(made: "EntityWrite", found: Stored | None) -> str | None:
    """Return the ETag that a write made, if what is there is known to be that very version.

    Another writer's merge keeps our lineage and makes another version. After a write of the whole entity, equal content
    shows that it is ours; after a merge nothing does, so its ETag is not known.
    """
    if found is None or made.partial or not found.lineage.entries or found.lineage.entries[0][0] != made.op:
        return None
    return found.etag if _content(found.entity) == _content(made.entity) else None


def _equals(made: "EntityWrite", found: Stored | None) -> bool:
    """Return whether the entity that is there equals ours, for a write without a lineage."""
    if found is None or made.leaves_lineage:
        return False
    ours = _content(made.entity)
    theirs = _content(found.entity)
    return ours.items() <= theirs.items() if made.partial else ours == theirs


def _content(entity: Entity) -> dict[str, tuple[str, object]]:
    return {name: (kind, value) for name, kind, value in edm.iterate_properties(entity)}
