"""Writes of entities: insert, replace, merge, upsert and delete; each finds its outcome after a lost answer.

Every write but a delete stamps the lineage as one string property, by which a lost answer is settled.

Not guaranteed: an insert that the network delivers late. "Not there" can recur, so it can bring back an entity that
was deleted meanwhile. Where entities get deleted, keep an empty one instead.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from azguard.errors import AzguardError, Changed, Exists, NotFound, UsageError
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.settle import NOTHING_THERE, WriteRequest, send_until_settled
from azguard.resources.existence import look_before
from azguard.tables import calls, limits, write_outcome
from azguard.tables.edm import ANNOTATION
from azguard.tables.write import EntityWrite, Verb

if TYPE_CHECKING:
    from azguard.cache.reads import Reads

_MODIFIED = re.compile(r"""W/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d)(?:\.(\d+))?Z'\"""", re.IGNORECASE)


def check(made: EntityWrite) -> None:
    """Refuse what the service or the SDK would refuse: after it was sent it would look like a lost answer.

    Raises:
        UsageError: a property does not have its type, or the entity is beyond a limit.
    """
    limits.check(made.entity)
    try:
        limits.check(made.sent)
    except UsageError as error:
        raise error.but(
            message=f"with azguard's lineage in it {error.message}",
            reason="entity_too_large_with_lineage",
        ) from None


def write(made: EntityWrite, deadline: Deadline) -> WriteResult:
    """Make the write, which ``check`` has found to be in order.

    Raises:
        Changed: it is no longer the version the condition names; nothing was written.
        Exists: an insert, and it exists.
        NotFound: there is no such entity, or no such table.
        OutcomeUnknown: the answer was lost, or a delete was refused, and it cannot be known whether it was applied.
    """
    try:
        before = look_before(lambda: calls.get(made.target, deadline)) if made.verb is Verb.DELETE else None
        request = WriteRequest(
            target=made.target,
            send=lambda: _send(made, write_timeouts(deadline)),
            look=lambda patience: write_outcome.find_outcome(made, patience, before),
            expected_etag=made.conditions.expected_etag,
            resend=made.excludes_itself,
        )
        settled = send_until_settled(request, deadline)
    except (Changed, Exists, NotFound) as error:
        raise explain_refusal(error, made, deadline) from error
    return to_write_result(made, settled.answer, settled.attempts)


def record_write(reads: "Reads", made: EntityWrite, done: Any) -> None:
    """Record the version that was written, unless it has properties that were never read here.

    Of a merge into a version that was not read here, only the properties that it set are known.
    """
    if made.verb is Verb.DELETE:
        reads.record_deleted(made.target, made.conditions.expected_etag)
        return
    if made.leaves_unseen:
        reads.forget(made.target)
        return
    selected = None
    if made.verb is Verb.MERGE:
        before = reads.find_last(made.target)
        is_base = before is not None and before.etag == made.conditions.expected_etag
        selected = before.selected if before is not None and is_base else _list_properties(made)
    reads.record(made.target, done, lineage=made.stamp, selected=selected)


def to_write_result(made: EntityWrite, etag: str | None, attempts: int) -> WriteResult:
    """Return the result of a write that was committed."""
    return WriteResult(
        address=str(made.target.address),
        etag=etag,
        last_modified=parse_timestamp(etag),
        guard=made.conditions.guard,
        attempts=attempts,
    )


def parse_timestamp(etag: str | None) -> datetime | None:
    """Return the Timestamp that an entity's ETag consists of, to the microsecond, if it does."""
    found = None if etag is None else _MODIFIED.fullmatch(etag)
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
        current = error.seen or calls.get(made.target, deadline.restart(seconds=min(2.0, deadline.seconds)))
    except Exception:  # noqa: BLE001  # the explanation is optional; report the conflict even if it fails
        return error
    if current is NOTHING_THERE:
        return error
    when = parse_timestamp(current.etag)
    now = () if when is None else (f"now: written {when:%Y-%m-%d %H:%M:%S} UTC",)
    return error.but(current_etag=current.etag, detail=(*error.detail, *now))


def _list_properties(made: EntityWrite) -> str:
    return ",".join(sorted(name for name in made.entity if not name.endswith(ANNOTATION)))


def _send(made: EntityWrite, timeouts: Mapping[str, Any]) -> str | None:
    """Send the one request and return the new ETag."""
    if made.inserts:
        return calls.insert(made.target, made.sent, timeouts)
    if made.verb is Verb.UPSERT:
        return calls.upsert(made.target, made.sent, merge=made.merges, timeouts=timeouts)
    if made.verb is Verb.DELETE:
        calls.delete(made.target, made.version, timeouts)
        return None
    return calls.write(made.target, made.sent, made.version, merge=made.verb is Verb.MERGE, timeouts=timeouts)
