"""What the services in memory have in common: values that a request turns into other values, their names and leases.

A version is named by the one before it and by the request that made it, not by a count: so two interleavings that lead
to the same end lead to the same names.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from hashlib import blake2b
from math import inf

from tests.explorer.player import EPOCH
from tests.explorer.wire import Answer, Asked

_BEGIN = datetime.fromtimestamp(EPOCH, UTC)


def moment(seconds: float) -> datetime:
    """Return a moment of a story."""
    return _BEGIN + timedelta(seconds=seconds)


def http_date(seconds: float) -> str:
    """Return a moment as a header has it."""
    return _spell_date(int(seconds))


@lru_cache(maxsize=10_000)
def _spell_date(seconds: int) -> str:
    return format_datetime(moment(seconds), usegmt=True)


def name_version(*parts: object) -> str:
    """Return the name of the version that these made."""
    return f'"0x0{blake2b(repr(parts).encode(), digest_size=7).hexdigest().upper()[1:]}"'


def accept(status: int, now: float, body: bytes = b"", /, **headers: str) -> Answer:
    """Return the answer to a request that was done; ``_`` in the name of a header stands for ``-``."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status, (*_common(now), *named), body)


def refuse(status: int, code: str, now: float) -> Answer:
    """Return the answer to a request that was refused."""
    text = f"{code}\nRequestId:0\nTime:{moment(now):%Y-%m-%dT%H:%M:%S.%f}Z"
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{text}</Message></Error>".encode()
    return Answer(status, (*_common(now), ("x-ms-error-code", code), ("Content-Type", "application/xml")), body)


def _common(now: float) -> tuple[tuple[str, str], ...]:
    return (("x-ms-request-id", "0"), ("x-ms-version", "2026-02-06"), ("Date", http_date(now)))


@dataclass(frozen=True)
class Lease:
    """A lease, and when it ends; ``inf`` is never."""

    id: str
    term: float
    ends: float
    #: When it is over, if it was broken.
    broken: float | None = None

    def state(self, now: float) -> str:
        """Return its state, in the service's words."""
        if self.broken is not None:
            return "broken" if now >= self.broken else "breaking"
        return "leased" if now < self.ends else "expired"


def lease_state(lease: Lease | None, now: float) -> str:
    """Return the state of a lease, in the service's words."""
    return "available" if lease is None else lease.state(now)


def is_locked(lease: Lease | None, now: float) -> bool:
    """Return whether a lease keeps others from writing."""
    return lease_state(lease, now) in ("leased", "breaking")


def lease_headers(lease: Lease | None, now: float) -> dict[str, str]:
    """Return what an answer says of a lease."""
    state = lease_state(lease, now)
    told = {"x_ms_lease_state": state, "x_ms_lease_status": "locked" if is_locked(lease, now) else "unlocked"}
    if state == "leased" and lease is not None:
        told["x_ms_lease_duration"] = "infinite" if lease.term == inf else "fixed"
    return told


def check_lease(lease: Lease | None, asked: Asked, now: float, *, writes: bool) -> Answer | None:
    """Return the refusal of a request because of a lease, if there is one."""
    given = asked.header("x-ms-lease-id")
    if given is None:
        return refuse(412, "LeaseIdMissing", now) if writes and is_locked(lease, now) else None
    if lease is None:
        return refuse(412, "LeaseNotPresentWithBlobOperation", now)
    if lease.id != given:
        return refuse(412, "LeaseIdMismatchWithBlobOperation", now)
    return None if is_locked(lease, now) else refuse(412, "LeaseLost", now)


def act_on_lease(lease: Lease | None, asked: Asked, now: float) -> tuple[Lease | None, Answer]:
    """Return the lease after an operation on it, with the answer."""
    action = asked.header("x-ms-lease-action") or ""
    return {"acquire": _acquire, "renew": _renew, "release": _release, "break": _break, "change": _change}[action](
        lease, asked, now
    )


def _acquire(lease: Lease | None, asked: Asked, now: float) -> tuple[Lease | None, Answer]:
    proposed = asked.header("x-ms-proposed-lease-id") or ""
    seconds = int(asked.header("x-ms-lease-duration") or 0)
    if lease is not None and is_locked(lease, now) and (lease.id != proposed or lease.broken is not None):
        return lease, refuse(409, "LeaseAlreadyPresent", now)
    term = inf if seconds == -1 else float(seconds)
    return Lease(proposed, term, now + term), accept(201, now, x_ms_lease_id=proposed)


def _renew(lease: Lease | None, asked: Asked, now: float) -> tuple[Lease | None, Answer]:
    if lease is None or lease.id != asked.header("x-ms-lease-id"):
        return lease, refuse(409, "LeaseIdMismatchWithLeaseOperation", now)
    if lease.broken is not None:
        return lease, refuse(409, "LeaseIsBrokenAndCannotBeRenewed", now)
    return replace(lease, ends=now + lease.term), accept(200, now, x_ms_lease_id=lease.id)


def _release(lease: Lease | None, asked: Asked, now: float) -> tuple[Lease | None, Answer]:
    if lease is None or lease.id != asked.header("x-ms-lease-id"):
        return lease, refuse(409, "LeaseIdMismatchWithLeaseOperation", now)
    return None, accept(200, now)


def _break(lease: Lease | None, asked: Asked, now: float) -> tuple[Lease | None, Answer]:
    if lease is None:
        return lease, refuse(409, "LeaseNotPresentWithLeaseOperation", now)
    period = asked.header("x-ms-lease-break-period")
    left = 0.0 if lease.term == inf else max(0.0, lease.ends - now)
    over = now + (left if period is None else min(left if lease.term != inf else inf, float(period)))
    return replace(lease, broken=over), accept(202, now, x_ms_lease_time=str(int(over - now)))


def _change(lease: Lease | None, asked: Asked, now: float) -> tuple[Lease | None, Answer]:
    proposed = asked.header("x-ms-proposed-lease-id") or ""
    if lease is None or not is_locked(lease, now):
        return lease, refuse(409, "LeaseNotPresentWithLeaseOperation", now)
    # A second copy finds the proposed id, and succeeds too.
    if lease.id not in (proposed, asked.header("x-ms-lease-id")):
        return lease, refuse(409, "LeaseIdMismatchWithLeaseOperation", now)
    return replace(lease, id=proposed), accept(200, now, x_ms_lease_id=proposed)
