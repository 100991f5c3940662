"""The kinds of resources that have leases, one row for each."""

from collections.abc import Mapping
from enum import StrEnum

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Operation

# The terms that the service accepts for a finite lease, in seconds.
SHORTEST = 15
LONGEST = 60
# A holder that dies blocks others no longer than this.
DEFAULT_SECONDS = 60
LONGEST_BREAK = 60  # seconds


class Action(StrEnum):
    """What can be done to a lease."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


@frozen
class LeaseKind:
    """How one kind of resource is leased: its operations."""

    #: The operations of the actions that this kind has.
    actions: Mapping[Action, Operation]
    #: The operation that reads the state of the lease.
    read: Operation
    #: Whether a lease can have a term at all.
    finite: bool = True


def _build_kind(noun: str, *, is_finite: bool = True) -> LeaseKind:
    rows = {action: ALL.get(f"{noun}.lease_{action}") for action in Action}
    found = {action: row for action, row in rows.items() if row is not None}
    return LeaseKind(found, ALL[f"{noun}.get_properties"], finite=is_finite)


# One row for each kind of resource; all else is the same for every kind.
KINDS = {
    Kind.BLOB: _build_kind("blob"),
    Kind.CONTAINER: _build_kind("container"),
    Kind.SHARE: _build_kind("share"),
    # The lease of a file has no term, so that it cannot be renewed.
    Kind.FILE: _build_kind("file", is_finite=False),
}


def operation_of(target: Target, action: Action | None = None) -> Operation:
    """Return the row of the operations table; without an action, the row that reads the lease.

    Raises:
        UsageError: this kind of resource has no leases, or no such action.
    """
    kind = kind_of(target)
    if action is None:
        return kind.read
    if action not in kind.actions:
        raise UsageError(
            f"the lease of a {target.kind} cannot be {action}ed: it has no term",
            address=str(target.address),
            reason="lease_lasts_until_released",
        )
    return kind.actions[action]


def kind_of(target: Target) -> LeaseKind:
    """Return how this kind of resource is leased.

    Raises:
        UsageError: it has no leases, or none that azguard knows.
    """
    kind = KINDS.get(target.kind)
    if kind is None:
        raise UsageError(
            f"{target.kind.one} cannot be leased with azguard",
            address=str(target.address),
            reason="kind_without_lease",
        )
    return kind
