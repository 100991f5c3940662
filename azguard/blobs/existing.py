"""What a create finds where a blob or a container is already, and what must not create one."""

from typing import Any, Protocol

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, Locked, NotFound
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.resources.existence import judge_version, leave_alone


class Creation(Protocol):
    """A write that was to create a blob."""

    @property
    def target(self) -> Target:
        """Return what it was to create."""

    @property
    def deadline(self) -> Deadline:
        """Return how long it was to try."""

    @property
    def op(self) -> str:
        """Return its id, which its lineage would have."""


def find_blob(creation: Creation) -> WriteResult:
    """Return the blob that is there."""
    try:
        found = properties.fetch(creation.target, Conditions(), creation.deadline.fresh())
    except NotFound:  # deleted since
        return leave_alone(creation.target, None, None)
    return _judge(creation.target, found, creation.op)


def check_creatable(target: Target, conditions: Conditions, missing: NotFound) -> None:
    """Refuse to create a blob for a write whose conditions only a blob that exists could fulfil.

    Raises:
        Changed: they name a version, or what a blob must have.
        Locked: they name a lease.
    """
    if conditions.expected_etag is not None:
        raise properties.to_gone(target, conditions.expected_etag, missing) from missing
    if not conditions.need_existing:
        return
    nothing = f"there is no blob {target}, and none was created"
    if not conditions.headers:
        raise missing.as_kind(Locked, message=f"the lease is not held any more: {nothing}") from missing
    raise missing.as_kind(
        Changed, message=f"the condition did not hold: {nothing}", reason="created_for_condition"
    ) from missing


def find_container(target: Target, op: str, deadline: Deadline) -> WriteResult:
    """Return the container that is there."""
    from azguard.blobs import containers  # which needs leases; a blob does not

    try:
        found = containers.fetch(target, deadline.fresh())
    except NotFound:  # deleted since
        return leave_alone(target, None, None)
    return _judge(target, found, op)


def _judge(target: Target, found: Any, op: str) -> WriteResult:
    lineage = Lineage.parse((found.metadata or {}).get(KEY))
    return judge_version(target, found.etag, found.last_modified, lineage, op)
