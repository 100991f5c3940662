"""The status of remembered leases: what is shown, and what is forgotten."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from azguard.cache.records import HeldLease
from azguard.leases import own
from azguard.leases.own import CheckedLease, OwnLeaseStatus, Standing
from azguard.requests.deadline import Deadline
from tests.support.cases import cases

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
def test_a_lease_that_is_certainly_over_is_forgotten_and_not_shown(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = CheckedLease(LEASE, standing)
    monkeypatch.setattr(own, "ask_each", lambda *given: iter([over]))
    forgotten: list[CheckedLease] = []
    assert (list(own.check_each([LEASE], None, Deadline, forgotten.append)), forgotten) == ([], [over])
