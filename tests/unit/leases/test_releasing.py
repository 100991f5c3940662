"""A release tells a loss only where that is proved: by the state before it, the term, and the service's own time."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from azguard.address import Kind
from azguard.cache.records import HeldLease
from azguard.errors import AzguardError, Locked, OutcomeUnknown
from azguard.guards.resolve import Conditions
from azguard.leases import own
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.support.lease_script import Answer, it_is, now_is, scripted

A = "aaaaaaaa-0000-4000-8000-000000000000"
#: Acquired at noon by our clock, for 60 s; released at 12:10.
NOON, NOW = "2026-11-21T12:00:00Z", datetime(2026, 11, 21, 12, 10, tzinfo=UTC)
NOT_HELD: Answer = (412, "LeaseNotPresentWithBlobOperation", {})
SENT = Locked("not held", service_code="LeaseIdMismatchWithLeaseOperation")


@dataclass
class Known:
    """What the scope knows, and what it is told."""

    lease: HeldLease | None
    released: str | None = None
    etag: str | None = None
    notes: list[str] = field(default_factory=list)

    def find_held(self, target: Any) -> HeldLease | None:
        return self.lease

    def find_released(self, target: Any) -> str | None:
        return self.released

    def note_release(self, target: Any, lease_id: str) -> None:
        self.notes.append("sent")

    def forget_release(self, target: Any) -> None:
        self.notes.append("forgotten")

    def knows(self, target: Any, etag: str) -> bool:
        return self.etag is not None


@dataclass
class Lease:
    """A lease whose release ends so: with an error, or with an outcome."""

    target: Any
    end: Any
    deadline: Any = field(default_factory=lambda: Clock().deadline())
    warned: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def release(self, conditions: Conditions) -> Any:
        if isinstance(self.end, AzguardError):
            raise self.end
        done = own._build_gone(self.target, conditions)
        return replace(done, outcome=self.end)


def held(duration: int | None = 60, *, confirmed: bool = True, lease_id: str = A) -> HeldLease:
    return HeldLease("test", "https://acc", "blob:site/a", lease_id, duration, "lease acquire", confirmed, NOON)


def written(moment: str, state: str = "available") -> list[Answer]:
    """Return the looks before a release: the lease is not held, and the blob was written then."""
    return [NOT_HELD, now_is(state, None, **{"last-modified": f"Sat, 21 Nov 2026 {moment} GMT", "date": WRONG})]


# Two hours ahead of the service, as that of a gateway can be.
WRONG = "Sat, 21 Nov 2026 14:10:00 GMT"
TOLD = it_is("2026-11-21T12:10:00.0000000Z")
#: The service's clock is an hour behind ours.
BEHIND = it_is("2026-11-21T11:10:00.0000000Z")
SILENT: Answer = (404, "BlobNotFound", {})


@cases(
    ("answers", "known", "end", "outcome"),
    [
        ([now_is("leased")], Known(held()), "committed", "committed"),
        # It was held just before: a copy of this release was first.
        ([now_is("leased")], Known(held()), "gone", "gone"),
        ([now_is("leased")], Known(held()), SENT, "gone"),
        ([*written("12:05:00"), TOLD], Known(held()), "gone", "lock_lost"),
        ([*written("12:05:00", "expired"), TOLD], Known(held()), "committed", "lock_lost"),
        ([*written("12:00:30"), TOLD], Known(held()), "gone", "gone"),
        # At the very end of the term.
        ([*written("12:01:02"), TOLD], Known(held()), "gone", "gone"),
        ([*written("11:05:00"), BEHIND], Known(held()), "gone", "lock_lost"),
        ([*written("11:00:30"), BEHIND], Known(held()), "gone", "gone"),
        ([*written("12:05:00"), SILENT], Known(held()), "gone", "gone"),
        ([*written("12:05:00")], Known(held(None)), "gone", "gone"),
        ([*written("12:05:00")], Known(held(confirmed=False)), "gone", "gone"),
        ([*written("12:05:00")], Known(held(), etag="known"), "gone", "gone"),
        # An earlier release may have ended it, whose answer was lost.
        ([*written("12:05:00")], Known(held(), released=A), "gone", "gone"),
        ([*written("12:05:00")], Known(None, released=A), "gone", "already_released"),
        ([*written("12:05:00")], Known(held(lease_id="other")), "gone", "gone"),
        ([NOT_HELD, now_is("leased")], Known(held()), SENT, "lock_lost"),
        ([NOT_HELD, now_is("leased")], Known(None), SENT, "locked"),
        ([NOT_HELD, now_is("leased")], Known(None, released=A), SENT, "already_released"),
        ([NOT_HELD, now_is("broken")], Known(None), "committed", "lock_lost"),
        ([NOT_HELD, now_is("broken"), TOLD], Known(held()), "gone", "gone"),
        ([(403, "AuthorizationFailure", {})], Known(held()), "committed", "committed"),
        ([(403, "AuthorizationFailure", {})], Known(held()), "gone", "gone"),
        ([now_is("leased")], Known(held()), OutcomeUnknown("lost"), "unknown"),
    ],
)
def test_a_loss_is_told_where_it_is_proved(answers: list[Answer], known: Known, end: object, outcome: str) -> None:
    target, service = scripted(Kind.BLOB, *answers)
    lease: Any = Lease(target, end)
    try:
        found = own.release(lease, known, Conditions(lease_id=A), now=lambda: NOW).outcome
    except AzguardError as error:
        found = error.kind
    assert (found, service._answers, bool(lease.warned)) == (outcome, [], outcome == "gone")
    # A second release is told as such only after one that released the lease, or may have.
    is_kept = outcome in ("committed", "already_released", "unknown")
    assert known.notes == ["sent"] if is_kept else ["sent", "forgotten"]
