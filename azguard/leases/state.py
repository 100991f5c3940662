"""What is leased, since when, and by which other program: the state of one lease, and of those on a container's blobs.

The service does not say when a lease was taken; a record in the metadata does. A record of azguard's has the service's
time. Terraform's, and those of earlier versions of azguard, have the time of the holder's machine, which may be wrong.
Such a record proves one thing: it was there when the resource was last written, which is by the service's clock.

Not guaranteed: a record of an earlier holder that is taken for one of the present lease tells that holder's age.

WebJobs and Functions: Azure/azure-webjobs-sdk, BlobLeaseDistributedLockManager.cs (``FunctionInstance``). Disks of
virtual machines (``MicrosoftAzureCompute_VMName``, ``_DiskName``, ``_DiskType``, ``_ResourceGroupName``):
https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/storage-resource-deletion-errors

Source: https://learn.microsoft.com/rest/api/storageservices/lease-blob and /lease-container
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, Changed, E, NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.leases import owners
from azguard.leases.kinds import kind_of
from azguard.leases.owners import (
    HOLDER_CLOCK,
    INFINITE,
    SERVICE_CLOCK,
    Owner,
    PresentLease,
    TerraformLock,
    escape,
    find_value,
)
from azguard.requests import calls
from azguard.requests.calls import read, walk_pages
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import Answers
from azguard.times import find_moment
from azguard.wire.call import call
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS
from azguard.wire.xml import Listed

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
# Bounded: this read only explains a refusal that is known already.
_EXPLAIN_SECONDS = 2.0
# Times are in whole seconds, and the clocks of the service's machines are not the same to the second.
_SLACK_SECONDS = 5.0
STATES = ("available", "leased", "breaking", "broken", "expired")
LOCKED = frozenset({"leased", "breaking"})
# The service has no filter by lease, so that every blob is read. A page of the largest size takes five times the memory
# and is hardly faster.
_PAGE = 1000


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


def _looks_like_disk(metadata: Mapping[str, str], address: str) -> bool:
    """Return whether a page blob with an infinite lease is the disk of a virtual machine, by its record or its name."""
    return address.lower().endswith(_DISK_ENDING) or any(key.lower().startswith(_COMPUTE) for key in metadata)


Holder = Owner | TerraformLock | OtherHolder


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
        """Return whether a virtual machine holds it: a disk that is attached is a page blob with an infinite lease."""
        return (
            self.blob_type == "PageBlob"
            and self.duration == "infinite"
            and _looks_like_disk(self.metadata, self.address)
        )


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
    answers = Answers()
    try:
        found = read(
            lambda timeouts: call(kind.read, target, timeouts, headers=headers, hear=answers.hear),
            target,
            deadline,
        )
    except Changed as error:
        if not conditions.headers:
            raise
        raise _with_both_versions(error, target, conditions, deadline) from error
    return LeaseState(
        address=str(target.address),
        state=str(found.lease.state),
        status=str(found.lease.status),
        duration=found.lease.duration,
        etag=found.etag,
        last_modified=found.last_modified,
        metadata=found.metadata,
        answered_at=answers.date,
        blob_type=found.get("blob_type"),
        lease_id=lease_id,
    )


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
        current = look(target, deadline.restart(seconds=min(_EXPLAIN_SECONDS, deadline.seconds)))
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


@frozen
class LeaseAge:
    """How long ago a lease was taken, in seconds."""

    #: The age by the record's time and the service's clock; None if the record's time cannot be right.
    seconds: float | None
    #: The lease was certainly taken at least so long ago; None if nothing is certain.
    at_least: float | None
    #: Why ``seconds`` is missing or not certain, in words; None if it is certain.
    doubt: str | None
    #: By whose clock the lease was taken; None if ``seconds`` is.
    clock: str | None = None

    @property
    def whole(self) -> int | None:
        return None if self.seconds is None else round(self.seconds)


_UNKNOWN_TIME = LeaseAge(None, None, "the service tells no time that can be trusted")


def ask_time(state: LeaseState, target: Target, deadline: Deadline) -> LeaseState:
    """Return the state of a lease with the service's own time instead of the Date of its answer.

    The Date may be that of a gateway: no lease is taken from its holder because of it.
    """
    return replace(state, answered_at=calls.ask_service_time(target.account, target.kind, deadline))


def measure(state: LeaseState) -> LeaseAge:
    """Return how long ago the lease was taken, from what one answer of the service says."""
    holder = state.holder
    now = state.answered_at
    if holder is None:
        return LeaseAge(None, None, "there is no record of who holds it")
    if now is None:
        return _UNKNOWN_TIME
    unwritten = max(0.0, (now - state.last_modified).total_seconds())
    claimed = _seconds_since(holder, now)
    if claimed is None:
        return LeaseAge(None, unwritten, "its record has no time that can be read")
    if claimed < -_SLACK_SECONDS:
        return LeaseAge(None, unwritten, f"its record says {holder.since}, which is still to come: that clock is wrong")
    if holder.clock == SERVICE_CLOCK:
        return LeaseAge(max(0.0, claimed), max(0.0, claimed), None, SERVICE_CLOCK)
    if claimed < unwritten - _SLACK_SECONDS:
        return LeaseAge(
            None, unwritten, f"its record says {holder.since}, and is older than that: the holder's clock is wrong"
        )
    return LeaseAge(
        max(0.0, claimed), unwritten, f"its record says {holder.since}, by the holder's own clock", HOLDER_CLOCK
    )


def measure_since_written(state: LeaseState) -> LeaseAge:
    """Return how long ago the resource was written last, for a holder whose own write is the last."""
    if state.answered_at is None:
        return _UNKNOWN_TIME
    seconds = max(0.0, (state.answered_at - state.last_modified).total_seconds())
    return LeaseAge(seconds, seconds, None, SERVICE_CLOCK)


def _seconds_since(holder: Holder, now: datetime) -> float | None:
    then = find_moment(holder.since)
    return None if then is None else (now - then).total_seconds()


def list_states(target: Target, deadline: Deadline, prefix: str | None, page: int = _PAGE) -> Iterator[LeaseState]:
    """Yield the state of the lease of every blob in a container, in order of name, in constant memory.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    answers = Answers()
    asked = {"prefix": prefix, "include": "metadata", "maxresults": page}
    pages = walk_pages(CONTAINER_LIST_BLOBS, target, deadline, "Blobs", "Blob", **asked, hear=answers.hear)
    try:
        for item in (item for found in pages for item in found.items):
            yield parse_state(item, Address(Kind.BLOB, (target.address.container, item.name)), answers.date)
    except NotFound as error:
        raise error.but(message=f"there is no container {target.address.container}") from error


def parse_state(item: Listed, address: Address, answered_at: datetime | None) -> LeaseState:
    """Return the state of a lease as an item of a listing tells it."""
    return LeaseState(
        address=str(address),
        state=str(item.lease.state),
        status=str(item.lease.status),
        duration=item.lease.duration,
        etag=quote_etag(item.etag),
        last_modified=item.last_modified,
        metadata=item.metadata,
        answered_at=answered_at,
        blob_type=item.blob_type,
        created_at=item.creation_time,
    )
