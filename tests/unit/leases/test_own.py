"""The status of remembered leases: what is shown, and what is forgotten."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from azguard.leases import own
from azguard.leases.own import CheckedLease, OwnLeaseStatus, Standing
from azguard.requests.deadline import Deadline
from tests.support.cases import cases

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Lease:
    """What is remembered of a lease that was asked for at noon."""

    duration: int | None = 60
    account: str = "https://contoso.blob.core.windows.net"
    address: str = "blob:site/a"
    lease_id: str = "aaaaaaaa-0000-4000-8000-000000000000"
    confirmed: bool = True
    time: str = "2026-11-21T12:00:00Z"
    action: str = "lease acquire"
    scope: str = "mine"
    job: str | None = "GITHUB_RUN_ID=71\nGITHUB_JOB=deploy"


def test_a_lease_is_shown_with_the_moment_its_term_ends() -> None:
    assert OwnLeaseStatus.of(CheckedLease(Lease(), Standing.HELD), NOON) == OwnLeaseStatus(
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
    [
        (60, Standing.UNKNOWN, 2, "unknown"),
        (60, Standing.UNKNOWN, 3, "ended"),
        (60, Standing.EXPIRED, 3, "expired"),
        (60, Standing.HELD, 3, "held"),
        (None, Standing.UNKNOWN, 59, "unknown"),
    ],
)
def test_only_a_clock_that_is_a_minute_past_the_term_says_ended(
    duration: int | None, standing: Standing, minute: int, state: str
) -> None:
    assert OwnLeaseStatus.of(CheckedLease(Lease(duration), standing), NOON.replace(minute=minute)).state == state


def test_an_infinite_lease_has_no_end() -> None:
    found = OwnLeaseStatus.of(CheckedLease(Lease(None), Standing.HELD), NOON)
    assert (found.duration, found.until) == ("infinite", None)


def test_without_an_account_each_lease_is_shown_and_none_is_forgotten() -> None:
    forgotten: list[CheckedLease[Lease]] = []
    shown = own.check_each([Lease(), Lease(None)], None, Deadline, forgotten.append, lambda: NOON)
    assert ([each.state for each in shown], forgotten) == (["unknown", "unknown"], [])


@pytest.mark.parametrize("standing", [Standing.GONE, Standing.RELEASED, Standing.BROKEN, Standing.TAKEN])
def test_a_lease_that_is_certainly_over_is_forgotten_and_not_shown(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = CheckedLease(Lease(), standing)
    monkeypatch.setattr(own, "ask_each", lambda *given: iter([over]))
    forgotten: list[CheckedLease[Lease]] = []
    assert (list(own.check_each([Lease()], None, Deadline, forgotten.append)), forgotten) == ([], [over])
