"""How other programs say in Azure Storage who holds what: a function for each convention, and the rows of lists.

A function takes the state of one blob as a listing tells it, and returns a claim if the blob is of its convention. Some
programs lock without a lease: there the blob itself is the lock, for as long as it exists.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ClassVar

from azguard import columns
from azguard.columns import Column
from azguard.frozen import frozen
from azguard.leases import owners, shown
from azguard.leases.owners import FENCE, INFINITE, SERVICE_CLOCK, Owner, TerraformLock
from azguard.leases.shown import LeaseAge
from azguard.leases.state import LONGEST, VM_DISK, WEBJOBS, LeaseState, OtherHolder
from azguard.times import find_moment, iso

#: The end of a lease without a term.
NEVER = "never"
_HELD = ("held", "breaking")
_STATES = {"leased": "held", "breaking": "breaking", "broken": "broken"}
# The times of records and answers are in whole seconds.
_SLACK_SECONDS = 1.0
#: The kind of a lease that no convention explains.
UNKNOWN = "unknown"
UNKNOWN_AGE = LeaseAge(None, None, "there is no record of who holds it")
# Reads the content of a blob, of which the first few KiB suffice.
Read = Callable[[], bytes]
_OF_PULUMI = re.compile(r"(?:.*/)?\.pulumi/locks/(?P<stack>.+)/[^/]+\.json", re.DOTALL)
_OF_EVENT_HUBS = re.compile(r"[^/]+/(?P<hub>[^/]+)/(?P<group>[^/]+)/ownership/(?P<partition>[^/]+)")
_OF_RESTIC = re.compile(r"(?:(?P<repository>.+)/)?locks/[0-9a-f]{64}", re.DOTALL)


@frozen
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


@frozen
class Holding:
    """Something that is held, or was: who holds it, since when and why, and whether the holder is there."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        columns.ADDRESS,
        columns.HOLDING_STATE,
        columns.HOLDER,
        columns.HOLDING_SINCE,
        columns.HOLDING_REASON,
        columns.HOLDING_FENCE,
        columns.ALIVE,
        columns.ENDS,
        columns.KIND,
        columns.CLOCK,
    )

    address: str
    #: ``free``, ``held``, ``breaking`` or ``broken``; what is free or broken can be acquired.
    state: str
    #: Who says to hold it, such as ``user@host``.
    holder: str | None
    #: When it was taken, ISO 8601; None if that is not known.
    since: str | None
    #: What the holder says that it is for, or the program that runs under it.
    reason: str | None
    #: The number of the lock's last holder.
    fence: int | None
    #: ``yes``: held for longer than its term, so that a live process renews it; ``unknown``; None of what is not held.
    alive: str | None
    #: When it ends unless it is renewed, ISO 8601, or ``never``; None if that is not known.
    ends: str | None
    #: Whose convention it is: ``azguard``, ``terraform``, ``pulumi`` …, or ``unknown``.
    kind: str
    #: How many seconds ago it was taken, or renewed where only that is known.
    age: int | None
    #: By whose clock that is: ``service`` or ``holder``.
    clock: str | None
    #: The URL of a CI run.
    run: str | None
    #: The service's words for the lease; a lock without a lease has those of a blob that is not leased.
    lease_state: str
    lease_status: str
    lease_duration: str | None
    etag: str
    last_modified: datetime

    @property
    def is_held(self) -> bool:
        return self.state in _HELD


def build_holding(state: LeaseState, claim: Claim) -> Holding:
    """Return the holding that the state of a resource and the claim on the resource make together."""
    told = "held" if claim.is_leaseless else _STATES.get(state.state, "free")
    is_held = told in _HELD
    is_renewed = is_held and _is_renewed(state, claim)
    return Holding(
        address=state.address,
        state=told,
        holder=claim.who if is_held else None,
        since=claim.since if is_held else None,
        reason=claim.reason if is_held else None,
        fence=owners.read_number(state.metadata, FENCE),
        alive=("yes" if is_renewed else "unknown") if is_held else None,
        ends=_find_end(state, claim) if is_held and not is_renewed else None,
        kind=claim.kind,
        age=claim.age.whole if is_held else None,
        clock=claim.age.clock if is_held else None,
        run=claim.run if is_held else None,
        lease_state=state.state,
        lease_status=state.status,
        lease_duration=state.duration,
        etag=state.etag,
        last_modified=state.last_modified,
    )


def _is_renewed(state: LeaseState, claim: Claim) -> bool:
    """Return whether a lease with a term is held for longer: without a process that renews it, it would be over."""
    least = claim.age.at_least
    return state.duration == "fixed" and least is not None and least > (claim.term or LONGEST) + _SLACK_SECONDS


def _find_end(state: LeaseState, claim: Claim) -> str | None:
    if state.duration == INFINITE:
        return claim.until or NEVER
    since = find_moment(claim.since) if claim.age.clock == SERVICE_CLOCK else None
    if state.duration is None or since is None or claim.term is None:
        return None
    return iso(since + timedelta(seconds=claim.term))


def _find_vm_disk(state: LeaseState, _read: Read) -> Claim | None:
    """Find the disk of a virtual machine: see ``OtherHolder``. Its lease must never be broken by mistake.

    Since when it is held is not known, because each write of the disk moves its time.
    """
    holder = state.holder
    if not state.is_vm_disk or not isinstance(holder, OtherHolder):
        return None
    return Claim(VM_DISK, holder.name, UNKNOWN_AGE, reason=holder.why)


def _find_azguard(state: LeaseState, _read: Read) -> Claim | None:
    """Find azguard's own record, and its locks, which are known by their fence or their slots also while they are free.

    The record claims the lease that is held, if it is of that one.
    """
    owner = state.holder
    if not isinstance(owner, Owner):
        is_lock = owners.is_lock(state.metadata)
        return Claim("azguard", None, UNKNOWN_AGE, reason=_describe_earlier(state)) if is_lock else None
    return Claim(
        "azguard",
        owner.name,
        shown.measure(state),
        since=owner.since,
        reason=owner.reason or owner.command,
        run=owner.run,
        term=owner.term,
        until=owner.until,
    )


def _find_terraform(state: LeaseState, _read: Read) -> Claim | None:
    """Find Terraform's and OpenTofu's azurerm backend: an infinite lease, and lock info in the metadata.

    hashicorp/terraform, internal/backend/remote-state/azure/client.go.
    """
    lock = state.holder
    if not isinstance(lock, TerraformLock):
        return None
    reason = " ".join(filter(None, (lock.operation, lock.info)))
    return Claim("terraform", lock.who, shown.measure(state), since=lock.since, reason=reason)


def _find_webjobs(state: LeaseState, _read: Read) -> Claim | None:
    """Find the locks of WebJobs and Functions hosts: see ``OtherHolder``.

    Azure/azure-webjobs-sdk, BlobLeaseDistributedLockManager.cs: ``azure-webjobs-hosts/locks/…``, whose metadata are
    written once, when the lease is acquired. Azure/azure-functions-host, PrimaryHostCoordinator.cs: ``…/host``.
    """
    holder = state.holder
    container, name = split_address(state.address)
    is_here = container == "azure-webjobs-hosts" and name.startswith("locks/")
    if not isinstance(holder, OtherHolder) and not is_here:
        return None
    age = shown.measure_since_written(state)
    return Claim(WEBJOBS, holder.name if holder else None, age, iso(state.last_modified), name)


def _find_pulumi(state: LeaseState, read: Read) -> Claim | None:
    """Find Pulumi's DIY backend: a file for each lock, without a lease, deleted when the lock is released.

    pulumi/pulumi, pkg/backend/diy/lock.go: ``.pulumi/locks/<stack>/<id>.json``.
    """
    found = _OF_PULUMI.fullmatch(split_address(state.address)[1])
    if found is None:
        return None
    content = owners.parse_object(read().decode(errors="replace"))
    # ``user@host``, as far as the file has it.
    who = "@".join(filter(None, (owners.escape(content.get(name) or "") for name in ("username", "hostname"))))
    age = shown.measure_since_written(state)
    reason = f"stack {owners.escape(found['stack'])}"
    return Claim("pulumi", who or None, age, iso(state.last_modified), reason, is_leaseless=True)


def _find_event_hubs(state: LeaseState, _read: Read) -> Claim | None:
    """Find the ownership of Event Hubs processors: metadata that its owner writes anew every few seconds, no lease.

    Azure/azure-sdk-for-python, azure-eventhub-checkpointstoreblob, _blobstoragecs.py:
    ``<namespace>/<hub>/<consumer group>/ownership/<partition>``. An owner that gives it up leaves its id empty.
    """
    found = _OF_EVENT_HUBS.fullmatch(split_address(state.address)[1])
    owner = owners.find_value(state.metadata, "ownerid")
    if found is None or not owner:
        return None
    reason = owners.escape(f"partition {found['partition']} of {found['hub']}, group {found['group']}")
    age = shown.measure_since_written(state)
    return Claim("event-hubs", owners.escape(owner), age, reason=reason, is_leaseless=True)


def _find_restic(state: LeaseState, _read: Read) -> Claim | None:
    """Find restic's locks: encrypted files, which do not tell their holder; every 5 minutes a new one replaces each.

    restic/restic, internal/restic/lock.go: ``locks/<id>``, stale after 30 minutes.
    """
    container, name = split_address(state.address)
    found = _OF_RESTIC.fullmatch(name)
    if found is None:
        return None
    repository = owners.escape(found["repository"] or container)
    age = shown.measure_since_written(state)
    return Claim("restic", None, age, iso(state.last_modified), f"repository {repository}", is_leaseless=True)


# The first that knows a blob tells what it is. Another convention is another row.
_CONVENTIONS: tuple[Callable[[LeaseState, Read], Claim | None], ...] = (
    _find_vm_disk,
    _find_azguard,
    _find_terraform,
    _find_webjobs,
    _find_pulumi,
    _find_event_hubs,
    _find_restic,
)


def find_claim(state: LeaseState, read: Read) -> Claim | None:
    """Return who claims a blob; None if it is neither leased nor a lock of any convention."""
    for each in _CONVENTIONS:
        if (claim := each(state, read)) is not None:
            return claim
    return None if state.free else Claim(UNKNOWN, None, UNKNOWN_AGE, reason=_describe_earlier(state))


def _describe_earlier(state: LeaseState) -> str | None:
    return None if state.earlier_holder is None else f"unknown; before: {state.earlier_holder}"


def split_address(address: str) -> tuple[str, str]:
    """Return the container of an address, and the name in it; empty where it has none."""
    container, _, name = address.partition(":")[2].partition("/")
    return container, name
