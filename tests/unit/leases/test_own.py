"""The status of remembered leases, and when a release tells a loss: only where that is proved."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from azguard.address import Kind
from azguard.cache.records import HeldLease
from azguard.errors import AzguardError, Locked, OutcomeUnknown
from azguard.guards.resolve import Conditions
from azguard.leases import own
from azguard.leases.own import CheckedLease, OwnLeaseStatus, Standing
from azguard.requests.deadline import Deadline
from tests.support.cases import cases
from tests.support.fake_resource import Clock
from tests.support.lease_script import Answer, it_is, now_is, scripted
from tests.support.no_records import NoRecords

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEASE = HeldLease(
    scope="mine",
    account="https://contoso.blob.core.windows.net",
    address="blob:site/a",
    lease_id="aaaaaaaa-0000-4000-8000-000000000000",
    duration=60,
    action="lease acquire",
    confirmed=True,
    time="2026-11-21T12:00:00Z",
    job="GITHUB_RUN_ID=71\nGITHUB_JOB=deploy",
)
INFINITE = replace(LEASE, duration=None)


def test_a_lease_is_shown_with_the_moment_its_term_ends() -> None:
    assert OwnLeaseStatus.of(CheckedLease(LEASE, Standing.HELD), NOON) == OwnLeaseStatus(
        address="blob:site/a",
        state="held",
        lease_id="aaaaaaaa-0000-4000-8000-000000000000",
        confirmed=True,
        duration=60,
        since="2026-11-21T12:00:00Z",
        until="2026-11-21T12:01:00Z",
        action="lease acquire",
        scope="mine",
        job="job deploy, run 71",
        account="https://contoso.blob.core.windows.net",
    )


@cases(
    ("duration", "standing", "minute", "state"),
    (60, Standing.UNKNOWN, 2, "unknown"),
    (60, Standing.UNKNOWN, 3, "ended"),
    (60, Standing.EXPIRED, 3, "expired"),
    (60, Standing.HELD, 3, "held"),
    (None, Standing.UNKNOWN, 59, "unknown"),
)
def test_only_a_clock_that_is_a_minute_past_the_term_says_ended(
    duration: int | None, standing: Standing, minute: int, state: str
) -> None:
    known = CheckedLease(replace(LEASE, duration=duration), standing)
    assert OwnLeaseStatus.of(known, NOON.replace(minute=minute)).state == state


def test_an_infinite_lease_has_no_end() -> None:
    found = OwnLeaseStatus.of(CheckedLease(INFINITE, Standing.HELD), NOON)
    assert (found.duration, found.until) == ("infinite", None)


def test_without_an_account_each_lease_is_shown_and_none_is_forgotten() -> None:
    forgotten: list[CheckedLease] = []
    shown = own.check_each([LEASE, INFINITE], None, Deadline, forgotten.append, lambda: NOON)
    assert ([each.state for each in shown], forgotten) == (["unknown", "unknown"], [])


@pytest.mark.parametrize("standing", [Standing.GONE, Standing.RELEASED, Standing.BROKEN, Standing.TAKEN])
def test_a_lease_that_is_surely_over_is_forgotten(standing: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    over = CheckedLease(LEASE, standing)
    monkeypatch.setattr(own, "ask_each", lambda *given: iter([over]))
    forgotten: list[CheckedLease] = []
    assert (list(own.check_each([LEASE], None, Deadline, forgotten.append)), forgotten) == ([], [over])


A = "aaaaaaaa-0000-4000-8000-000000000000"
#: Acquired at noon by our clock, for 60 s; released at 12:10.
SINCE, NOW = "2026-11-21T12:00:00Z", datetime(2026, 11, 21, 12, 10, tzinfo=UTC)
NOT_HELD: Answer = (412, "LeaseNotPresentWithBlobOperation", {})
SENT = Locked("not held", service_code="LeaseIdMismatchWithLeaseOperation")


@dataclass
class Known(NoRecords):
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
    records: Any
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
    return HeldLease("test", "https://acc", "blob:site/a", lease_id, duration, "lease acquire", confirmed, SINCE)


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
)
def test_a_loss_is_told_where_it_is_proved(answers: list[Answer], known: Known, end: object, outcome: str) -> None:
    target, service = scripted(Kind.BLOB, *answers)
    lease: Any = Lease(target, end, known)
    try:
        found = own.release(lease, Conditions(lease_id=A), now=lambda: NOW).outcome
    except AzguardError as error:
        found = error.kind
    is_doubted = outcome == "gone" or (outcome == "committed" and answers[0][0] == HTTPStatus.FORBIDDEN)
    assert (found, service._answers, bool(lease.warned)) == (outcome, [], is_doubted)
    # A second release is told as such only after one that released the lease, or may have.
    is_kept = outcome in ("committed", "already_released", "unknown")
    assert known.notes == ["sent"] if is_kept else ["sent", "forgotten"]
