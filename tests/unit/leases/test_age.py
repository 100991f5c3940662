"""How long a lease has been held: by the service's clock, whatever the clocks of the two machines say."""

from datetime import UTC, datetime, timedelta

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.errors import Changed
from azguard.leases import shown
from azguard.leases import state as lease_state
from azguard.leases.breaking import Safeguards
from azguard.leases.owners import HOLDER_CLOCK, OWNER, SERVICE_CLOCK, Owner
from azguard.leases.shown import LeaseAge
from azguard.leases.state import LeaseState
from azguard.requests.deadline import Deadline
from tests.support.cases import cases
from tests.support.lease_script import now_is, scripted

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TARGET = Target(emulator(), Address(Kind.BLOB, ("site", "a")))
HOUR = 3600.0


def leased(since: str | None, clock: str, written_hours_ago: float, answered_at: datetime | None = NOW) -> LeaseState:
    """Return a lease with a record, on a blob that was written so long ago."""
    record = Owner("alice", "build1", 7, "deploy.sh", since, clock=clock).tie_to_lease("id", 60).as_metadata()
    written = NOW - timedelta(hours=written_hours_ago)
    return LeaseState("blob:site/a", "leased", "locked", "fixed", '"0x1"', written, {OWNER: record}, answered_at)


def hours_ago(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).isoformat()


@cases(
    ("state", "seconds", "at_least", "clock"),
    # The service's time is certain, also where the holder has written since.
    (leased(hours_ago(3), SERVICE_CLOCK, 3), 3 * HOUR, 3 * HOUR, "service"),
    (leased(hours_ago(3), SERVICE_CLOCK, 0), 3 * HOUR, 3 * HOUR, "service"),
    # The clocks of two machines of the service, and whole seconds.
    (leased(hours_ago(-0.001), SERVICE_CLOCK, 0), 0, 0, "service"),
    # A holder's time may be right, and proves nothing.
    (leased(hours_ago(3), HOLDER_CLOCK, 3), 3 * HOUR, 3 * HOUR, "holder"),
    (leased(hours_ago(9), HOLDER_CLOCK, 0), 9 * HOUR, 0, "holder"),
    # A holder's time that cannot be: later than now, or than the write that put it there.
    (leased(hours_ago(-9), HOLDER_CLOCK, 1), None, HOUR, None),
    (leased(hours_ago(1), HOLDER_CLOCK, 5), None, 5 * HOUR, None),
    (leased(hours_ago(-9), SERVICE_CLOCK, 1), None, HOUR, None),
    # No time at all, on either side.
    (leased("yesterday", SERVICE_CLOCK, 2), None, 2 * HOUR, None),
    (leased(None, SERVICE_CLOCK, 2), None, 2 * HOUR, None),
    (leased(hours_ago(3), SERVICE_CLOCK, 3, None), None, None, None),
    (LeaseState("blob:site/a", "leased", "locked", "fixed", '"0x1"', NOW, {}, NOW), None, None, None),
    # Every record is in UTC, also one that does not say so.
    (leased("2026-11-21T09:00:00", SERVICE_CLOCK, 3), 3 * HOUR, 3 * HOUR, "service"),
)
def test_an_age_is_what_the_service_can_vouch_for(
    state: LeaseState, seconds: float | None, at_least: float | None, clock: str | None
) -> None:
    age = shown.measure(state)
    assert age == LeaseAge(seconds, at_least, age.doubt, clock)
    assert (age.doubt is None) == (clock == "service")


@cases(
    ("state", "reason"),
    (leased(hours_ago(1), SERVICE_CLOCK, 1), "was taken 1h ago, which is not long enough"),
    (leased(hours_ago(9), HOLDER_CLOCK, 1), "by the holder's own clock"),
    (leased(hours_ago(-9), HOLDER_CLOCK, 1), "which is still to come: that clock is wrong"),
    (leased(hours_ago(3), SERVICE_CLOCK, 3, None), "the service tells no time that can be trusted"),
    (leased(None, SERVICE_CLOCK, 1), "its record has no time that can be read"),
)
def test_a_break_by_age_is_refused_with_the_reason_unless_the_age_is_certain(state: LeaseState, reason: str) -> None:
    with pytest.raises(Changed, match=reason):
        Safeguards(older_than=2 * HOUR).check(state, TARGET)


@cases(
    "state",
    leased(hours_ago(3), SERVICE_CLOCK, 0), leased(hours_ago(3), HOLDER_CLOCK, 3),
    leased(hours_ago(-9), HOLDER_CLOCK, 3), leased(None, HOLDER_CLOCK, 3),
)  # fmt: skip
def test_a_break_by_age_is_let_through_where_the_age_is_certain(state: LeaseState) -> None:
    Safeguards(older_than=2 * HOUR).check(state, TARGET)


@cases("kind", Kind.BLOB, Kind.CONTAINER)
@cases("date", "Sat, 21 Nov 2026 12:00:00 GMT", None)
def test_the_time_is_that_of_the_very_answer(kind: Kind, date: str | None) -> None:
    record = Owner("alice", "build1", 7, "deploy.sh", hours_ago(3), clock=SERVICE_CLOCK).tie_to_lease("id", 60)
    status, code, headers = now_is("leased")
    told = {**headers, f"x-ms-meta-{OWNER}": record.as_metadata(), **({"Date": date} if date else {})}
    target, _ = scripted(kind, (status, code, told))
    state = lease_state.look(target, Deadline(0))
    assert (state.answered_at, shown.measure(state).seconds) == ((NOW, 3 * HOUR) if date else (None, None))
