"""What is leased, and how: the kinds of resource that have leases, and the state of one.

Source: https://learn.microsoft.com/rest/api/storageservices/lease-blob and /lease-container
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, Locked, NotFound
from azguard.leases import other_holders, owners
from azguard.leases.kinds import kind_of
from azguard.leases.other_holders import OtherHolder
from azguard.leases.owners import Owner, PresentLease, TerraformLock
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import Answers

Holder = Owner | TerraformLock | OtherHolder
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


@dataclass(frozen=True)
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

    @property
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
    def _records(self) -> list[Holder]:
        others = other_holders.read(self.metadata, self.address, is_disk=self.is_vm_disk)
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
            and other_holders.looks_like_disk(self.metadata, self.address)
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
    read_properties = kind.properties(kind.client(target))
    answers = Answers()
    try:
        found = read(
            lambda timeouts: read_properties(headers=dict(headers), raw_response_hook=answers.hear, **timeouts),
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
        metadata=found.metadata or {},
        answered_at=answers.date,
        blob_type=read_blob_type(found),
        lease_id=lease_id,
    )


def add_holder(error: Locked, target: Target, deadline: Deadline) -> Locked:
    """Return a refusal with who holds the lease, by one look; as it is where the service does not tell."""
    try:
        return name_holder(error, look(target, deadline))
    except AzguardError:
        return error


def name_holder(error: Locked, found: LeaseState) -> Locked:
    """Return a refusal with the state of the lease, and with who holds it unless it is free by now."""
    told = error.but(lease_state=found.state)
    if found.free:
        return told
    holder, words = found.holder, found.describe_holder()
    if holder is not None:
        reason = holder.reason if isinstance(holder, Owner) else None
        told = told.but(facts={**error.facts, "holder": holder.name, "since": holder.since, "reason": reason})
    return told.but(detail=(*error.detail, "no record says who holds it" if words is None else f"held by {words}"))


def read_blob_type(found: Any) -> str | None:
    """Return the type of a blob as the service calls it, from the SDK's properties; None of what is no blob."""
    kind = getattr(found, "blob_type", None)
    return None if kind is None else str(getattr(kind, "value", kind))


def client(target: Target, lease_id: str | None) -> Any:
    """Return the SDK's client of one lease."""
    kind = kind_of(target)
    return kind.lease(kind.client(target), lease_id)


def _with_both_versions(error: Changed, target: Target, conditions: Conditions, deadline: Deadline) -> Changed:
    """Return the refusal of a conditional read with the version it was for and the one there is.

    Raises:
        NotFound: there is none, for which the emulator says that a condition failed as well.
    """
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
