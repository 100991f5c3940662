"""What a create finds where a blob or a container is already."""

from typing import Any, Protocol

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.conditions.resolve import Conditions
from azguard.errors import NotFound
from azguard.requests.deadline import Deadline
from azguard.requests.existing import judge_version, leave_alone
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.written import WriteResult


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
