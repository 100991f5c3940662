"""What can be leased, and what is: the kinds of resources, the state of one lease, and of those on a container's blobs.

WebJobs and Functions: Azure/azure-webjobs-sdk, BlobLeaseDistributedLockManager.cs (``FunctionInstance``). Disks of
virtual machines (``MicrosoftAzureCompute_VMName``, ``_DiskName``, ``_DiskType``, ``_ResourceGroupName``):
https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/storage-resource-deletion-errors

Source: https://learn.microsoft.com/rest/api/storageservices/lease-blob and /lease-container
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Changed, E, NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import owners
from azguard.leases.owners import (
    HOLDER_CLOCK,
    INFINITE,
    Owner,
    PresentLease,
    TerraformLock,
    escape,
    find_value,
)
from azguard.requests.calls import read, walk_pages
from azguard.requests.deadline import Deadline
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS
from azguard.wire.rows import Operation
from azguard.wire.xml import Listed

# The terms that the service accepts for a finite lease, in seconds.
SHORTEST = 15
LONGEST = 60
# A holder that dies blocks others no longer than this.
DEFAULT_SECONDS = 60
LONGEST_BREAK = 60  # seconds
WEBJOBS = "webjobs"
VM_DISK = "vm-disk"
_FUNCTION_INSTANCE = "functioninstance"
_COMPUTE = "microsoftazurecompute_"
_DISK_ENDING = ".vhd"
_TITLES = {WEBJOBS: "the WebJobs host", VM_DISK: "the virtual machine"}
# The codes of the service for what is refused because another holds a lease.
IN_THE_WAY = (
    "LeaseIdMissing",
    "LeaseAlreadyPresent",
    "LeaseIdMismatchWithBlobOperation",
    "LeaseIdMismatchWithContainerOperation",
    "LeaseIdMismatchWithShareOperation",
    "LeaseIdMismatchWithFileOperation",
)
STATES = ("available", "leased", "breaking", "broken", "expired")
LOCKED = frozenset({"leased", "breaking"})
# The service has no filter by lease, so that every blob is read. A page of the largest size takes five times the memory
# and is hardly faster.
_PAGE = 1000


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

    @property
    def finite(self) -> bool:
        """Return whether a lease can have a term at all: one without a term, as that of a file, is never renewed."""
        return Action.RENEW in self.actions


def _build_kind(noun: str) -> LeaseKind:
    rows = {action: ALL.get(f"{noun}.lease_{action}") for action in Action}
    found = {action: row for action, row in rows.items() if row is not None}
    return LeaseKind(found, ALL[f"{noun}.get_properties"])


# All else is the same for every kind.
KINDS = {kind: _build_kind(kind) for kind in (Kind.BLOB, Kind.CONTAINER, Kind.SHARE, Kind.FILE)}


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


@frozen
class OtherHolder:
    """A holder whose record has a name, and no time."""

    #: ``webjobs`` or ``vm-disk``.
    kind: str
    name: str
    why: str | None = None
    since: str | None = None
    clock: str = HOLDER_CLOCK

    def __str__(self) -> str:
        return f"{_TITLES[self.kind]} {self.name}" + (f" ({self.why})" if self.why else "")

    def is_named(self, name: str) -> bool:
        return name == self.name

    def find_doubt(self, held: PresentLease) -> str | None:
        """Return why the record is not believed to be of the lease that is held; None if it is believed."""
        is_endless = held.duration == INFINITE
        return "that lease had a term, and this one has none" if self.kind == WEBJOBS and is_endless else None


def _read_other_holder(metadata: Mapping[str, str], address: str, *, is_disk: bool) -> OtherHolder | None:
    """Return who holds a lease by such a record, or None where there is none.

    A disk without a record is held by a machine that is known by the name of its file alone.
    """
    if is_disk:
        machine = find_value(metadata, f"{_COMPUTE}vmname") or address.rpartition("/")[2]
        words = [find_value(metadata, f"{_COMPUTE}{name}") for name in ("disktype", "diskname")]
        return OtherHolder(VM_DISK, escape(machine), escape(" ".join(filter(None, words))) or None)
    if instance := find_value(metadata, _FUNCTION_INSTANCE):
        return OtherHolder(WEBJOBS, escape(instance))
    return None


Holder = Owner | TerraformLock | OtherHolder


@frozen
class Version:
    """A version of a resource: its ETag, and the metadata that came with it."""

    etag: str
    metadata: Mapping[str, str]
    #: The service's clock when it answered; None if the answer did not say.
    answered_at: datetime | None = None


@frozen
class LeaseState:
    """A lease as the service describes it: neither its id nor its remaining time can be read."""

    address: str
    #: Available, leased, breaking, broken or expired.
    state: str
    #: Locked or unlocked.
    status: str
    #: Infinite or fixed; None where there is no lease.
    duration: str | None
    etag: str
    last_modified: datetime
    metadata: Mapping[str, str]
    #: The service's clock when it answered; None if the answer did not say.
    answered_at: datetime | None = None
    #: As the service calls it, such as PageBlob; None of what is no blob.
    blob_type: str | None = None
    #: When the blob was made; None if that is not told.
    created_at: datetime | None = None
    #: The id of the lease, where the service was asked about that one and confirmed it.
    lease_id: str | None = None

    @property
    def version(self) -> Version:
        return Version(self.etag, self.metadata, self.answered_at)

    @property
    def free(self) -> bool:
        """Return whether it can be acquired: it was never held, was released, has ended or is broken."""
        return self.status != "locked"

    # A listing asks for it many times of each of 100,000 blobs.
    @cached_property
    def holder(self) -> Holder | None:
        """Return whose record is believed to be of this lease, or of the last one where it is free."""
        return next((each for each in self._records if self._find_doubt(each) is None), None)

    @property
    def earlier_holder(self) -> Holder | None:
        """Return whose record is there, and is not believed to be of this lease; None if there is none."""
        return None if self.holder is not None else next(iter(self._records), None)

    def describe_holder(self) -> str | None:
        """Return in words who holds it, or held it last where it is free; None if no record says so."""
        if (holder := self.holder) is not None:
            return str(holder)
        if (earlier := self.earlier_holder) is None:
            return None
        return str(earlier) if self.free else f"an unknown holder; before: {earlier} – {self._find_doubt(earlier)}"

    @property
    def held_by(self) -> tuple[str, ...]:
        """Return the line of a refusal that says who holds it; none where no record does."""
        holder = self.describe_holder()
        return () if holder is None else (f"held by {holder}",)

    @cached_property
    def _records(self) -> list[Holder]:
        others = _read_other_holder(self.metadata, self.address, is_disk=self.is_vm_disk)
        found = (owners.read_owner(self.metadata), owners.read_terraform(self.metadata), others)
        return [each for each in found if each is not None]

    def _find_doubt(self, record: Holder) -> str | None:
        return record.find_doubt(PresentLease(self.duration, self.answered_at, self.lease_id))

    @property
    def is_vm_disk(self) -> bool:
        """Return whether a virtual machine holds it, by its record or its name.

        A disk that is attached is a page blob with an infinite lease.
        """
        if self.blob_type != "PageBlob" or self.duration != INFINITE:
            return False
        is_recorded = any(key.lower().startswith(_COMPUTE) for key in self.metadata)
        return is_recorded or self.address.lower().endswith(_DISK_ENDING)


def look(
    target: Target, deadline: Deadline, lease_id: str | None = None, conditions: Conditions | None = None
) -> LeaseState:
    """Return the state of a lease; with ``lease_id`` only if that is the one held now.

    Raises:
        Locked: ``lease_id`` is not held.
        NotFound: there is no such resource.
    """
    kind = kind_of(target)
    conditions = conditions or Conditions()
    headers = dict(conditions.headers)
    if lease_id is not None:
        headers["x-ms-lease-id"] = lease_id
    try:
        found = read(lambda timeouts: call(kind.read, target, timeouts, headers=headers), target, deadline)
    except Changed as error:
        if not conditions.headers:
            raise
        raise _with_both_versions(error, target, conditions, deadline) from error
    return parse_state(found, target.address, found.date, lease_id)


def add_holder(error: E, target: Target, deadline: Deadline) -> E:
    """Return a refusal with who holds the lease, by one look; as it is where the service does not tell."""
    try:
        return name_holder(error, look(target, deadline))
    except AzguardError:
        return error


def name_holder(error: E, found: LeaseState) -> E:
    """Return a refusal with the state of the lease, and with who holds it unless it is free by now."""
    told = error.but(lease_state=found.state)
    if found.free:
        return told
    if (holder := found.holder) is not None:
        reason = holder.reason if isinstance(holder, Owner) else None
        told = told.but(facts={**error.facts, "holder": holder.name, "since": holder.since, "reason": reason})
    return told.but(detail=(*error.detail, *(found.held_by or ("no record says who holds it",))))


def _with_both_versions(error: Changed, target: Target, conditions: Conditions, deadline: Deadline) -> Changed:
    """Return the refusal of a conditional read with the version it was for and the one there is."""
    try:
        current = look(target, deadline.briefly())
    except NotFound:
        raise
    except AzguardError:
        return replace(error, expected_etag=conditions.expected_etag)
    written = f"now: written {current.last_modified:%Y-%m-%d %H:%M:%S} UTC"
    return replace(
        error,
        expected_etag=conditions.expected_etag,
        current_etag=current.etag,
        lease_state=current.state,
        detail=(*error.detail, written),
    )


def list_states(target: Target, deadline: Deadline, prefix: str | None, page: int = _PAGE) -> Iterator[LeaseState]:
    """Yield the state of the lease of every blob in a container, in order of name, in constant memory.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    asked = {"prefix": prefix, "include": "metadata", "maxresults": page}
    pages = walk_pages(CONTAINER_LIST_BLOBS, target, deadline, "Blobs", "Blob", **asked)
    try:
        for found in pages:
            answered_at = found.answer.date
            for item in found.items:
                yield parse_state(item, Address(Kind.BLOB, (target.address.container, item.name)), answered_at)
    except NotFound as error:
        raise error.but(message=f"there is no container {target.address.container}") from error


def parse_state(
    found: Answer | Listed, address: Address, answered_at: datetime | None, lease_id: str | None = None
) -> LeaseState:
    """Return the state of a lease as an answer, or an item of a listing, tells it."""
    return LeaseState(
        address=str(address),
        state=str(found.lease.state),
        status=str(found.lease.status),
        duration=found.lease.duration,
        etag=found.etag,
        last_modified=found.last_modified,
        metadata=found.metadata,
        answered_at=answered_at,
        # Of a blob alone.
        blob_type=getattr(found, "blob_type", None),
        created_at=getattr(found, "creation_time", None),
        lease_id=lease_id,
    )
