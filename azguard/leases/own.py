"""Which of the leases that this machine remembers are still held: the service is asked, where it can be.

A lease counts as over only by proof. A resource that was deleted has no lease, and never gets that lease back. Where
another lease is held, or none, the remembered id is worth nothing, because an id is never used again. These prove
nothing: an acquire whose answer was never seen, which may still arrive; an expired lease, which its holder can renew;
an answer that does not come from the service; and a clock.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Generic, Protocol, TypeVar

from azguard import address, ci_jobs, columns
from azguard.accounts.account import Account, Target
from azguard.errors import AzguardError, Locked, NotFound, Unavailable
from azguard.leases import state
from azguard.requests.deadline import Deadline
from azguard.times import iso

# The service answers each in a few milliseconds; more threads than this only wait for each other.
_PARALLEL = 8
# The codes by which the service says that the leased resource was deleted. A plain 404, or ResourceNotFound, is also
# its answer to a caller without permission.
_GONE = ("BlobNotFound", "ContainerNotFound")
# A term counts from before the request was sent, and the service may end it up to a minute late.
_MARGIN = timedelta(seconds=60)


class Standing(StrEnum):
    """What is known of a remembered lease."""

    HELD = "held"
    #: Its term is over; its holder can still renew it.
    EXPIRED = "expired"
    #: The resource was deleted.
    GONE = "gone"
    RELEASED = "released"
    BROKEN = "broken"
    #: Another lease has replaced it.
    TAKEN = "taken"
    UNKNOWN = "unknown"


# How a lease ended that is held no more, by the state of what it was on; what expired can be renewed.
_OVER = {
    "available": Standing.RELEASED,
    "broken": Standing.BROKEN,
    "breaking": Standing.BROKEN,
    "leased": Standing.TAKEN,
}


class RememberedLease(Protocol):
    """What is remembered of a lease that was asked for."""

    @property
    def account(self) -> str:
        """Return the endpoint of its service."""

    @property
    def address(self) -> str:
        """Return the address of the leased resource."""

    @property
    def lease_id(self) -> str:
        """Return its id."""

    @property
    def confirmed(self) -> bool:
        """Return whether the service's answer was seen."""

    @property
    def duration(self) -> int | None:
        """Return its term in seconds; None is infinite."""

    @property
    def time(self) -> str:
        """Return the moment before it was asked for."""

    @property
    def action(self) -> str:
        """Return the command that asked for it."""

    @property
    def scope(self) -> str:
        """Return the scope that holds it."""

    @property
    def job(self) -> str | None:
        """Return the CI job that asked for it: see ``ci_jobs``; None if that was none."""


L = TypeVar("L", bound=RememberedLease)


@dataclass(frozen=True)
class CheckedLease(Generic[L]):
    """A remembered lease, and what the service said of it."""

    lease: L
    standing: Standing

    @property
    def ended(self) -> bool:
        return self.standing in (Standing.GONE, *_OVER.values())


@dataclass(frozen=True)
class OwnLeaseStatus:
    """A lease this scope asked for and has not released."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.STATE, columns.LEASE_ID, columns.CONFIRMED, columns.UNTIL)

    address: str
    #: ``held`` or ``expired``, says the service. Where it could not be asked: ``ended`` if the term is over by this
    #: machine's clock, else ``unknown``.
    state: str
    lease_id: str
    #: False where the service's answer was not seen, so that it may or may not be held.
    confirmed: bool
    #: In seconds, or ``infinite``.
    duration: int | str
    since: str
    #: When a finite one ends at the latest if it was not renewed elsewhere.
    until: str | None
    action: str
    scope: str
    #: The CI job that took it; None if that was none.
    job: str | None
    account: str

    @classmethod
    def of(cls, known: CheckedLease[L], now: datetime) -> "OwnLeaseStatus":
        """Return the status of a remembered lease."""
        lease = known.lease
        until = None
        if lease.duration is not None:
            until = datetime.fromisoformat(lease.time) + timedelta(seconds=lease.duration)
        is_over = until is not None and until + _MARGIN < now
        return cls(
            address=lease.address,
            state="ended" if is_over and known.standing is Standing.UNKNOWN else known.standing.value,
            lease_id=lease.lease_id,
            confirmed=lease.confirmed,
            duration=lease.duration or "infinite",
            since=lease.time,
            until=iso(until),
            action=lease.action,
            scope=lease.scope,
            job=None if lease.job is None else ci_jobs.describe(lease.job),
            account=lease.account,
        )


def check_each(
    leases: Sequence[L],
    account: Account | None,
    deadline: Callable[[], Deadline],
    forget: Callable[[CheckedLease[L]], None],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[OwnLeaseStatus]:
    """Yield the status of each lease that is still held, or may be; ``forget`` is given those that certainly are not.

    Only leases of ``account`` are asked for; with None, none is.
    """
    for known in ask_each(leases, account, deadline):
        if known.ended:
            forget(known)
        else:
            yield OwnLeaseStatus.of(known, now())


def ask_each(
    leases: Sequence[L], account: Account | None, deadline: Callable[[], Deadline]
) -> Iterator[CheckedLease[L]]:
    """Yield each lease with what the service says of it, in the order given.

    Only leases of ``account`` are asked for. Where the service does not answer once, it is not asked again.
    """
    endpoints = set() if account is None else set(account.endpoints.values())
    silent = threading.Event()

    def look(lease: L) -> CheckedLease[L]:
        if account is None or lease.account not in endpoints or silent.is_set():
            return CheckedLease(lease, Standing.UNKNOWN)
        try:
            return CheckedLease(
                lease, _find_standing(Target(account, address.parse(lease.address).address), lease, deadline())
            )
        except Unavailable:
            silent.set()
        except AzguardError:
            pass  # Its state stays unknown: the list is of what is remembered.
        return CheckedLease(lease, Standing.UNKNOWN)

    with ThreadPoolExecutor(min(_PARALLEL, max(1, len(leases)))) as pool:
        yield from pool.map(look, leases)


def _find_standing(target: Target, lease: RememberedLease, deadline: Deadline) -> Standing:
    try:
        state.look(target, deadline, lease.lease_id)
    except NotFound as error:
        return Standing.GONE if error.service_code in _GONE and lease.confirmed else Standing.UNKNOWN
    except Locked as error:
        if not lease.confirmed or not (error.service_code or "").startswith("Lease"):
            return Standing.UNKNOWN
        return _OVER.get(state.look(target, deadline).state or "", Standing.EXPIRED)
    return Standing.HELD
