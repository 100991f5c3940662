"""The outcome of an earlier update, as its resource tells it."""

from dataclasses import dataclass

from azguard.errors import NotFound
from azguard.requests.deadline import Deadline
from azguard.requests.verdicts import Verdict
from azguard.updates.op_ids import RAW_OP
from azguard.updates.resource import UpdatableResource

_OUTCOMES = {Verdict.COMMITTED: "committed", Verdict.NOT_YET: "not_committed"}


@dataclass(frozen=True)
class UpdateStatus:
    """The outcome of an op: committed, not_committed or unknown."""

    address: str
    op_id: str
    outcome: str


def find_status(resource: UpdatableResource, op: str, deadline: Deadline) -> UpdateStatus:
    """Return the outcome of an op.

    Raises:
        NotFound: there is nothing, or not any more, and no kept version tells.
    """
    verdict = find_outcome(resource, op, deadline)
    return UpdateStatus(str(resource.target.address), f"{RAW_OP}{op}", _OUTCOMES.get(verdict, "unknown"))


def find_outcome(resource: UpdatableResource, op: str, deadline: Deadline) -> Verdict:
    """Return the outcome of an op: COMMITTED, NOT_YET (not in the history since the creation), or UNKNOWN.

    Raises:
        NotFound: there is nothing, or not any more, and no kept version tells.
    """
    state = resource.read(deadline)
    if op in state.lineage or state.in_ledger:
        return Verdict.COMMITTED
    if state.lineage.reaches_creation or state.in_ledger is False:
        return Verdict.NOT_YET
    if (state.etag is None or state.version_id) and any(
        op in kept.lineage for kept in resource.list_versions(deadline)
    ):
        return Verdict.COMMITTED
    if state.etag is None:
        target = resource.target
        raise NotFound(f"there is no {target.kind.noun} {target}", address=str(target.address), http_status=404)
    return Verdict.UNKNOWN
