"""The outcome of an earlier update, as its resource tells it."""

from dataclasses import dataclass
from datetime import datetime

from azguard.errors import NotFound
from azguard.requests.deadline import Deadline
from azguard.updates.applied import Change, check_change, find_applied
from azguard.updates.op_ids import RAW_OP
from azguard.updates.resource import CurrentVersion, UpdatableResource

COMMITTED = "committed"
NOT_COMMITTED = "not_committed"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class UpdateStatus:
    """The outcome of an op: committed, not_committed or unknown."""

    address: str
    op_id: str
    outcome: str
    #: When it was committed, to the minute; None where that is not known.
    applied_at: datetime | None = None
    #: Whether another write followed; None where it was not committed.
    written_since: bool | None = None
    #: Of an unknown outcome: when the oldest key was applied that is remembered; older ones are forgotten.
    oldest_key: datetime | None = None


def find_status(
    resource: UpdatableResource, op: str, deadline: Deadline, *, is_keyed: bool = False, change: Change | None = None
) -> UpdateStatus:
    """Return the outcome of an op: not_committed if it is not in the history since the creation.

    ``is_keyed`` says that the op is that of a key, which is remembered longer.

    Raises:
        NotFound: there is nothing, or not any more, and no kept version tells.
        Exists: the key names another change than ``change``.
    """
    target = resource.target
    state = resource.read(deadline)
    address, op_id = str(target.address), f"{RAW_OP}{op}"
    applied = find_applied(state, op)
    if applied is not None:
        check_change(target, applied, change)
        return UpdateStatus(address, op_id, COMMITTED, applied.at, applied.written_since)
    if _is_never_forgotten(state, is_keyed=is_keyed):
        return UpdateStatus(address, op_id, NOT_COMMITTED)
    if _is_in_kept_versions(resource, state, op, deadline):
        return UpdateStatus(address, op_id, COMMITTED, written_since=True)
    if state.etag is None:
        raise NotFound(f"there is no {target.kind.noun} {target}", address=address, http_status=404)
    return UpdateStatus(address, op_id, UNKNOWN, oldest_key=state.lineage.keys.find_oldest())


def _is_never_forgotten(state: CurrentVersion, *, is_keyed: bool) -> bool:
    """Return whether the op would be known if it had been committed since the resource was created."""
    lineage = state.lineage
    has_key = is_keyed and lineage.binds and lineage.has_all_keys
    return lineage.reaches_creation or has_key or state.in_ledger is False


def _is_in_kept_versions(resource: UpdatableResource, state: CurrentVersion, op: str, deadline: Deadline) -> bool:
    if state.etag is not None and not state.version_id:
        return False
    return any(op in kept.lineage for kept in resource.list_versions(deadline))
