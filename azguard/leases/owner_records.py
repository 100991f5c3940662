"""The record of who holds a lease, written into the metadata of a blob, a share or a file under that lease.

The service compares the version of a blob. It compares none of a share or a file: there the lease alone keeps others
from writing between a look and a write.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import Changed, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import owners, state
from azguard.leases.owners import OWNER, SERVICE_CLOCK, Owner
from azguard.leases.state import Version
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, fresh_op, verdict_from_lineage, with_lineage
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.times import iso
from azguard.wire.catalogue import ALL

# Whose metadata no other writer can overwrite while the lease is held.
_CARRIERS = (Kind.BLOB, Kind.SHARE, Kind.FILE)
# A record is written soon after the answer by which it is dated.
_NEAR = timedelta(minutes=1)


@frozen
class Moved:
    """A change of metadata: the version it replaced, and the one with the same content that took its place."""

    before: str
    #: None where a lost answer was settled without learning the new version.
    after: str | None
    last_modified: datetime | None
    #: None where it has none.
    lineage: str | None
    #: How often it was sent: a copy that was sent before the last one may come late.
    attempts: int = 1


def can_carry(target: Target) -> bool:
    """Return whether the metadata of a resource can carry an owner record."""
    return target.kind in _CARRIERS and not target.address.snapshot


def check_kind(target: Target) -> None:
    """Refuse a resource whose metadata cannot carry an owner record.

    Raises:
        UsageError: its lease does not keep others from overwriting them, or nothing can be written to it.
    """
    if target.address.snapshot:
        raise UsageError(
            f"{target} cannot carry the record of its holder: a snapshot never changes",
            address=str(target.address),
            reason="record_on_snapshot",
        )
    if target.kind not in _CARRIERS:
        raise UsageError(
            f"a {target.kind} cannot carry the record of its holder: other writers can overwrite its metadata",
            address=str(target.address),
            values={"kind": target.kind.value},
            reason="record_needs_blob",
        )


def set_service_time(owner: Owner, version: Version) -> Owner:
    """Return the record with the service's time instead of the holder's, where the service told it."""
    if version.answered_at is None:
        return owner
    return replace(owner, since=iso(version.answered_at), clock=SERVICE_CLOCK)


def leave(target: Target, lease_id: str, owner: Owner, deadline: Deadline) -> Moved:
    """Write the record of who holds a lease, under that lease. Other metadata stays, and the content is not touched.

    Raises:
        Locked: the lease is not held any more.
        Changed: it is written, under the same lease, faster than it can be read before the deadline.
        OutcomeUnknown: it was sent, and whether it was applied cannot be known.
    """
    left: list[Owner] = []

    def add(version: Version) -> dict[str, str]:
        left.append(set_service_time(owner, version))
        return {OWNER: left[-1].as_metadata()}

    moved = change_under_lease(target, lease_id, add, deadline)
    assert moved is not None
    return correct_time(target, lease_id, left[-1], moved, deadline)[1]


def correct_time(target: Target, lease_id: str, owner: Owner, moved: Moved, deadline: Deadline) -> tuple[Owner, Moved]:
    """Return a record that was just written, with how that moved the version; first write it again if its time is off.

    Its time came from the Date of an answer, which a gateway may write. When it was written, the service tells itself.
    """
    if moved.last_modified is None or _is_about(owner, moved.last_modified):
        return owner, moved
    dated = replace(owner, since=iso(moved.last_modified), clock=SERVICE_CLOCK)
    again = change_under_lease(target, lease_id, lambda _: {OWNER: dated.as_metadata()}, deadline)
    assert again is not None
    is_next = again.before == moved.after
    return dated, replace(
        again,
        before=moved.before if is_next else again.before,
        attempts=max(moved.attempts, again.attempts),
    )


def _is_about(owner: Owner, moment: datetime) -> bool:
    """Return whether a record has the service's time, and one that is near a moment."""
    if owner.clock != SERVICE_CLOCK or owner.since is None:
        return False
    return abs(datetime.fromisoformat(owner.since) - moment) <= _NEAR


def remove(target: Target, lease_id: str, deadline: Deadline) -> Moved | None:
    """Remove the record of who holds a lease, as ``leave`` writes it; return None if there is none any more."""

    def choose(version: Version) -> dict[str, str | None]:
        return {OWNER: None} if owners.find_value(version.metadata, OWNER) else {}

    return change_under_lease(target, lease_id, choose, deadline)


def end(target: Target, lease_id: str, deadline: Deadline, known: Version | None = None) -> Moved | None:
    """Let the record that is there speak for no lease any more, under the lease with this id.

    For a lease that leaves no record of its own, and for one that is about to be released: the next holder may be a
    program that leaves none. Return None if there is no record that speaks for a lease. ``known`` is the version that
    was just read.
    """
    return _rewrite(target, lease_id, lambda owner: owner.end() if owner.lease else None, deadline, known)


def move(target: Target, lease_id: str, proposed: str, deadline: Deadline) -> Moved | None:
    """Tie the record of a lease to the id that it is about to get; return None if that lease has no record."""
    digest = owners.make_digest(lease_id)

    def tie(owner: Owner) -> Owner | None:
        return owner.tie_to_lease(proposed, owner.term) if owner.lease == digest else None

    return _rewrite(target, lease_id, tie, deadline)


def _rewrite(
    target: Target,
    lease_id: str,
    change: Callable[[Owner], Owner | None],
    deadline: Deadline,
    known: Version | None = None,
) -> Moved | None:
    """Change the record that is there; ``change`` returns None where it is to stay."""

    def choose(version: Version) -> dict[str, str | None]:
        owner = owners.read_owner(version.metadata)
        changed = None if owner is None else change(owner)
        return {} if changed is None else {OWNER: changed.as_metadata()}

    return change_under_lease(target, lease_id, choose, deadline, known)


def change_under_lease(
    target: Target,
    lease_id: str,
    choose: Callable[[Version], Mapping[str, str | None]],
    deadline: Deadline,
    known: Version | None = None,
) -> Moved | None:
    """Change the metadata of the version that is there; ``choose`` returns nothing where all is to stay.

    What another writer has changed meanwhile is read again. ``known`` is the version that was just read.

    Raises:
        Locked, Changed, OutcomeUnknown: as ``leave``.
    """
    while True:
        version = known or state.look(target, deadline, lease_id).version
        if not (added := choose(version)):
            return None
        try:
            return change_metadata(target, version, added, _tie_to(target, lease_id, version), deadline)
        except Changed:
            if deadline.passed:
                raise
            known = None


def change_metadata(
    target: Target,
    version: Version,
    added: Mapping[str, str | None],
    conditions: Conditions,
    deadline: Deadline,
) -> Moved:
    """Change the metadata of one version; None removes a key. Like every write of azguard's it goes into the lineage.

    Raises:
        Changed: it is no longer that version.
        Locked: the lease that ``conditions`` names is not held.
        OutcomeUnknown: it was sent, and whether it was applied cannot be known.
    """
    op = fresh_op()
    others = {key: value for key, value in version.metadata.items() if key.lower() not in (*added, KEY)}
    lineage = Lineage.find(version.metadata).after(op, version.etag)
    metadata = with_lineage({**others, **{key: value for key, value in added.items() if value is not None}}, lineage)

    def look(patience: Deadline, lease_id: str | None = conditions.lease_id) -> Finding[Any]:
        found = state.look(target, patience, lease_id)
        history = Lineage.find(found.metadata)
        # Another write may have followed ours, also one that kept the lineage, unless our lease kept all others out.
        newest = lease_id is not None and bool(history.entries) and history.entries[0][0] == op
        verdict = verdict_from_lineage(history, op, version.etag, found.etag)
        return Finding(verdict, {"etag": found.etag if newest else None})

    request = WriteRequest(
        operation=ALL[f"{target.kind}.set_metadata"],
        target=target,
        given={"headers": conditions.request_headers, "metadata": metadata},
        look=look,
        expected_etag=version.etag,
        op=op,
        # The write may be refused because the lease is over: then a read under that lease is refused, too.
        look_after_refusal=lambda patience: look(patience, None),
    )
    settled = send_until_settled(request, deadline)
    answer: Mapping[str, Any] = settled.answer
    return Moved(version.etag, answer.get("etag"), answer.get("last_modified"), str(lineage), settled.attempts)


def _tie_to(target: Target, lease_id: str, version: Version) -> Conditions:
    """Return the conditions that bind a write to that version: the lease, and for a blob the ETag too."""
    if target.kind is not Kind.BLOB:
        return Conditions(lease_id=lease_id)
    return Conditions({"If-Match": version.etag}, lease_id=lease_id)
