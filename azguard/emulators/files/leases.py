"""The states of a lease on a share, a snapshot or a file.

Sources: https://learn.microsoft.com/rest/api/storageservices/lease-share
https://learn.microsoft.com/rest/api/storageservices/lease-file
"""

import math
import uuid
from collections.abc import Mapping
from dataclasses import replace

from azguard.emulators.files.answers import ServiceError
from azguard.frozen import frozen

INFINITE = -1
_SHORTEST, _LONGEST = 15, 60
_LOCKED = ("leased", "breaking")
_FILE = "File"


@frozen
class EmulatedLease:
    """A lease, or what is left of it. All times are in seconds since 1970."""

    id: str = ""
    #: The term; -1 is infinite.
    seconds: int = INFINITE
    #: When it expires unless it is renewed; None for an infinite one.
    ends: float | None = None
    #: When it is broken; None while no one breaks it.
    broken_at: float | None = None

    def state(self, now: float) -> str:
        """Return available, leased, breaking, broken or expired."""
        if not self.id:
            return "available"
        if self.broken_at is not None:
            return "broken" if now >= self.broken_at else "breaking"
        if self.ends is not None and now >= self.ends:
            return "expired"
        return "leased"

    def headers(self, now: float) -> dict[str, str]:
        state = self.state(now)
        status = "locked" if state in _LOCKED else "unlocked"
        found = {"x-ms-lease-status": status, "x-ms-lease-state": state}
        if state == "leased":
            found["x-ms-lease-duration"] = "infinite" if self.seconds == INFINITE else "fixed"
        return found


FREE = EmulatedLease()
# The lease after an action, the status and the headers of the answer.
_Done = tuple[EmulatedLease, int, dict[str, str]]


def check_read(lease: EmulatedLease, given: str | None, now: float, noun: str = _FILE) -> None:
    """Refuse a lease id that is not that of the lease; a read needs none."""
    if given is None:
        return
    state = lease.state(now)
    if state in _LOCKED:
        if given.lower() != lease.id:
            raise ServiceError(f"LeaseIdMismatchWith{noun}Operation")
        return
    if state in ("broken", "expired") and given.lower() == lease.id:
        raise ServiceError("LeaseLost")
    raise ServiceError(f"LeaseNotPresentWith{noun}Operation")


def check_write(lease: EmulatedLease, given: str | None, now: float, noun: str = _FILE) -> EmulatedLease:
    """Refuse a write without the lease; return the lease after the write."""
    check_read(lease, given, now, noun)
    state = lease.state(now)
    if state in _LOCKED:
        if given is None:
            raise ServiceError("LeaseIdMissing")
        return lease
    # A write without an id ends what is left of a broken or expired lease.
    return FREE


def act(lease: EmulatedLease, headers: Mapping[str, str], now: float, *, timed: bool) -> _Done:
    """Do what ``x-ms-lease-action`` says; return the lease after it, the status and the headers of the answer.

    ``timed`` says whether leases with an end, renewals and break periods exist here: on shares, not on files.
    """
    action = headers.get("x-ms-lease-action", "").lower()
    if action == "acquire":
        return _acquire(lease, headers, now, timed=timed)
    if action == "break":
        return _break(lease, headers, now, timed=timed)
    given = _read_id(headers, "x-ms-lease-id")
    if action == "renew" and timed:
        return _renew(lease, given, now)
    if action == "change":
        return _change(lease, given, _read_id(headers, "x-ms-proposed-lease-id"), now)
    if action == "release":
        if given != lease.id:
            raise ServiceError("LeaseIdMismatchWithLeaseOperation")
        return FREE, 200, {}
    raise ServiceError("InvalidHeaderValue")


def _acquire(lease: EmulatedLease, headers: Mapping[str, str], now: float, *, timed: bool) -> _Done:
    seconds = _read_seconds(headers, timed=timed)
    proposed = _read_id(headers, "x-ms-proposed-lease-id") if "x-ms-proposed-lease-id" in headers else ""
    state = lease.state(now)
    if state == "breaking" and proposed == lease.id:
        raise ServiceError("LeaseIsBreakingAndCannotBeAcquired")
    if state in _LOCKED and proposed != lease.id:
        raise ServiceError("LeaseAlreadyPresent")
    ends = None if seconds == INFINITE else now + seconds
    new = EmulatedLease(proposed or str(uuid.uuid4()), seconds, ends)
    return new, 201, {"x-ms-lease-id": new.id}


def _renew(lease: EmulatedLease, given: str, now: float) -> _Done:
    if given != lease.id:
        raise ServiceError("LeaseIdMismatchWithLeaseOperation")
    if lease.state(now) in ("breaking", "broken"):
        raise ServiceError("LeaseIsBrokenAndCannotBeRenewed")
    ends = None if lease.seconds == INFINITE else now + lease.seconds
    return replace(lease, ends=ends), 200, {"x-ms-lease-id": lease.id}


def _change(lease: EmulatedLease, given: str, proposed: str, now: float) -> _Done:
    state = lease.state(now)
    if state == "breaking" and given == lease.id:
        raise ServiceError("LeaseIsBreakingAndCannotBeChanged")
    if state == "breaking":
        raise ServiceError("LeaseIdMismatchWithLeaseOperation")
    if state != "leased":
        raise ServiceError("LeaseNotPresentWithLeaseOperation")
    if lease.id not in (given, proposed):
        raise ServiceError("LeaseIdMismatchWithLeaseOperation")
    return replace(lease, id=proposed), 200, {"x-ms-lease-id": proposed}


def _break(lease: EmulatedLease, headers: Mapping[str, str], now: float, *, timed: bool) -> _Done:
    state = lease.state(now)
    if state == "available":
        raise ServiceError("LeaseNotPresentWithLeaseOperation")
    if state in ("broken", "expired"):
        return replace(lease, broken_at=min(now, lease.broken_at or now)), 202, {"x-ms-lease-time": "0"}
    left = _compute_time_left(lease, now)
    period = _read_period(headers) if timed else 0
    wait = left if period is None else min(period, left if left is not None else period)
    if wait is None:
        wait = 0.0
    return replace(lease, broken_at=now + wait), 202, {"x-ms-lease-time": str(math.ceil(wait))}


def _compute_time_left(lease: EmulatedLease, now: float) -> float | None:
    """Return how many seconds the lease lasts if no one touches it; None for ever."""
    ends = lease.broken_at if lease.broken_at is not None else lease.ends
    return None if ends is None else max(0.0, ends - now)


def _read_period(headers: Mapping[str, str]) -> float | None:
    text = headers.get("x-ms-lease-break-period")
    if text is None:
        return None
    if not text.isdecimal() or int(text) > _LONGEST:
        raise ServiceError("InvalidHeaderValue")
    return float(text)


def _read_seconds(headers: Mapping[str, str], *, timed: bool) -> int:
    text = headers.get("x-ms-lease-duration")
    if text is None:
        raise ServiceError("MissingRequiredHeader")
    try:
        seconds = int(text)
    except ValueError:
        raise ServiceError("InvalidHeaderValue") from None
    if seconds != INFINITE and not (timed and _SHORTEST <= seconds <= _LONGEST):
        raise ServiceError("InvalidHeaderValue")
    return seconds


def _read_id(headers: Mapping[str, str], name: str) -> str:
    text = headers.get(name)
    if not text:
        raise ServiceError("MissingRequiredHeader")
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise ServiceError("InvalidHeaderValue") from None
