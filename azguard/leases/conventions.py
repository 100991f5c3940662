"""How other programs say in Azure Storage who holds what: one class for each convention, and the table of them.

A class takes the state of one blob as a listing tells it, and returns a claim if the blob is of its convention. Some
programs lock without a lease: there the blob itself is the lock, for as long as it exists.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from azguard.leases import owners
from azguard.leases import state as lease_age
from azguard.leases.owners import Owner, TerraformLock
from azguard.leases.state import VM_DISK, WEBJOBS, LeaseAge, LeaseState, OtherHolder
from azguard.times import iso

#: The kind of a lease that no convention explains.
UNKNOWN = "unknown"
UNKNOWN_AGE = LeaseAge(None, None, "there is no record of who holds it")


@dataclass(frozen=True)
class Claim:
    """Who holds something, as the record of one convention says; others wrote it."""

    kind: str
    who: str | None
    age: LeaseAge
    #: ISO 8601; by whose clock is in ``age``.
    since: str | None = None
    #: What the holder says that it is for.
    reason: str | None = None
    #: The URL of a CI run.
    run: str | None = None
    #: The term of the lease in seconds; None if it has none, or that is not known.
    term: int | None = None
    #: When the next one may take what is held without a process, ISO 8601; None if it may not.
    until: str | None = None
    #: Whether it is a lock by being there, without a lease.
    is_leaseless: bool = False


# Reads the content of a blob, of which the first few KiB suffice.
Read = Callable[[], bytes]


class Convention(Protocol):
    """One way to say who holds something."""

    def find(self, state: LeaseState, read: Read) -> Claim | None:
        """Return the claim on a blob; None if the blob is not of this convention."""


class VmDisk:
    """The disk of a virtual machine: see ``other_holders``. Its lease must never be broken by mistake."""

    def find(self, state: LeaseState, _read: Read) -> Claim | None:
        """Return the claim of the machine; since when is not known, because each write of the disk moves its time."""
        holder = state.holder
        if not state.is_vm_disk or not isinstance(holder, OtherHolder):
            return None
        return Claim(VM_DISK, holder.name, UNKNOWN_AGE, reason=holder.why)


class Azguard:
    """azguard's own record, and its locks, which are known by their fence or their slots also while they are free."""

    def find(self, state: LeaseState, _read: Read) -> Claim | None:
        """Return the claim of the owner record, if it is of the lease that is held."""
        owner = state.holder
        if not isinstance(owner, Owner):
            is_lock = owners.is_lock(state.metadata)
            return Claim("azguard", None, UNKNOWN_AGE, reason=_describe_earlier(state)) if is_lock else None
        return Claim(
            "azguard",
            owner.name,
            lease_age.measure(state),
            since=owner.since,
            reason=owner.reason or owner.command,
            run=owner.run,
            term=owner.term,
            until=owner.until,
        )


class Terraform:
    """Terraform's and OpenTofu's azurerm backend: an infinite lease, and lock info in the metadata.

    hashicorp/terraform, internal/backend/remote-state/azure/client.go.
    """

    def find(self, state: LeaseState, _read: Read) -> Claim | None:
        """Return the claim of the lock info, if it is of the lease that is held."""
        lock = state.holder
        if not isinstance(lock, TerraformLock):
            return None
        reason = " ".join(filter(None, (lock.operation, lock.info)))
        return Claim("terraform", lock.who, lease_age.measure(state), since=lock.since, reason=reason)


class WebJobs:
    """The locks of WebJobs and Functions hosts: see ``other_holders``.

    Azure/azure-webjobs-sdk, BlobLeaseDistributedLockManager.cs: ``azure-webjobs-hosts/locks/…``, whose metadata are
    written once, when the lease is acquired. Azure/azure-functions-host, PrimaryHostCoordinator.cs: ``…/host``.
    """

    def find(self, state: LeaseState, _read: Read) -> Claim | None:
        """Return the claim of the host."""
        holder = state.holder
        is_here = _split(state)[0] == "azure-webjobs-hosts" and _split(state)[1].startswith("locks/")
        if not isinstance(holder, OtherHolder) and not is_here:
            return None
        age = lease_age.measure_since_written(state)
        return Claim(WEBJOBS, holder.name if holder else None, age, iso(state.last_modified), _split(state)[1])


class Pulumi:
    """Pulumi's DIY backend: a file for each lock, without a lease, deleted when the lock is released.

    pulumi/pulumi, pkg/backend/diy/lock.go: ``.pulumi/locks/<stack>/<id>.json``.
    """

    _NAME = re.compile(r"(?:.*/)?\.pulumi/locks/(?P<stack>.+)/[^/]+\.json", re.DOTALL)

    def find(self, state: LeaseState, read: Read) -> Claim | None:
        """Return the claim of the file's content."""
        found = self._NAME.fullmatch(_split(state)[1])
        if found is None:
            return None
        content = owners.parse_object(read().decode(errors="replace"))
        who = _join_name(content)
        age = lease_age.measure_since_written(state)
        reason = f"stack {owners.escape(found['stack'])}"
        return Claim("pulumi", who, age, iso(state.last_modified), reason, is_leaseless=True)


class EventHubs:
    """The ownership of Event Hubs processors: metadata that its owner writes anew every few seconds, without a lease.

    Azure/azure-sdk-for-python, azure-eventhub-checkpointstoreblob, _blobstoragecs.py:
    ``<namespace>/<hub>/<consumer group>/ownership/<partition>``. An owner that gives it up leaves its id empty.
    """

    _NAME = re.compile(r"[^/]+/(?P<hub>[^/]+)/(?P<group>[^/]+)/ownership/(?P<partition>[^/]+)")

    def find(self, state: LeaseState, _read: Read) -> Claim | None:
        """Return the claim of the owner; its age is that of the last renewal."""
        found = self._NAME.fullmatch(_split(state)[1])
        owner = owners.find_value(state.metadata, "ownerid")
        if found is None or not owner:
            return None
        reason = owners.escape(f"partition {found['partition']} of {found['hub']}, group {found['group']}")
        return Claim(
            "event-hubs",
            owners.escape(owner),
            lease_age.measure_since_written(state),
            reason=reason,
            is_leaseless=True,
        )


class Restic:
    """restic's locks: encrypted files, whose holder cannot be read; a new one takes the place of each every 5 minutes.

    restic/restic, internal/restic/lock.go: ``locks/<id>``, stale after 30 minutes.
    """

    _NAME = re.compile(r"(?:(?P<repository>.+)/)?locks/[0-9a-f]{64}", re.DOTALL)

    def find(self, state: LeaseState, _read: Read) -> Claim | None:
        """Return the claim of the file, which says since when and no more."""
        found = self._NAME.fullmatch(_split(state)[1])
        if found is None:
            return None
        repository = owners.escape(found["repository"] or _split(state)[0])
        age = lease_age.measure_since_written(state)
        return Claim("restic", None, age, iso(state.last_modified), f"repository {repository}", is_leaseless=True)


# The first that knows a blob tells what it is. Another convention is another row.
CONVENTIONS: tuple[Convention, ...] = (
    VmDisk(),
    Azguard(),
    Terraform(),
    WebJobs(),
    Pulumi(),
    EventHubs(),
    Restic(),
)


def find(state: LeaseState, read: Read) -> Claim | None:
    """Return who claims a blob; None if it is neither leased nor a lock of any convention."""
    for each in CONVENTIONS:
        if (claim := each.find(state, read)) is not None:
            return claim
    return None if state.free else Claim(UNKNOWN, None, UNKNOWN_AGE, reason=_describe_earlier(state))


def _describe_earlier(state: LeaseState) -> str | None:
    return None if state.earlier_holder is None else f"unknown; before: {state.earlier_holder}"


def _split(state: LeaseState) -> tuple[str, str]:
    container, _, name = state.address.partition(":")[2].partition("/")
    return container, name


def _join_name(content: Mapping[str, Any]) -> str | None:
    """Return ``user@host``, as far as a record has it."""
    user, host = (owners.escape(content.get(name) or "") for name in ("username", "hostname"))
    return "@".join(filter(None, (user, host))) or None
