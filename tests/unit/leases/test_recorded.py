"""A lease and its record on this machine: the record comes first, and goes only when the lease is known to be over."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from azguard.cache.records import HeldLease
from azguard.errors import AzguardError, GaveUp, Locked, NotFound, OutcomeUnknown, Unavailable
from azguard.guards.resolve import Conditions
from azguard.leases import actions, owner_records, recorded
from azguard.leases.actions import LeaseDone
from azguard.leases.owner_records import Moved
from azguard.leases.recorded import LeaseRequest, RecordedLease
from azguard.requests.deadline import Deadline
from tests.support.fake_resource import TARGET, Clock
from tests.support.no_records import NoRecords

A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")
NAMED = Conditions(lease_id=A)


def record(lease_id: str, duration: int | None = 30) -> HeldLease:
    """Return what is written down of a lease."""
    return HeldLease(
        "test", "https://acc", "blob:c/a", lease_id, duration, "", confirmed=True, time="2026-01-01T00:00:00Z"
    )


@dataclass
class Records(NoRecords):
    """Records that note in order what is done to them."""

    known: HeldLease | None = None
    notes: list[str] = field(default_factory=list)

    def find_held(self, target: Any) -> HeldLease | None:
        return self.known

    def add(self, target: Any, lease_id: str, seconds: int | None, *, has_reason: bool = False) -> None:
        self.notes.append(f"hold {lease_id[0]} {seconds}")

    def confirm(self, target: Any, lease_id: str, since: datetime | None = None) -> None:
        self.notes.append(f"confirm {lease_id[0]}")

    def remove(self, target: Any, lease_id: str) -> None:
        self.notes.append(f"drop {lease_id[0]}")

    def record_move(self, target: Any, moved: Moved) -> None:
        self.notes.append("follow")

    def record_creation(self, target: Any, made: Any) -> None:
        self.notes.append("made")


def done(lease_id: str = A) -> LeaseDone:
    return LeaseDone(
        address=str(TARGET.address), lease_id=lease_id, etag='"1"', last_modified=None, action="acquire", duration=30,
        lease_time=None, guard="none", attempts=1, conflicts=0, outcome="committed",
    )  # fmt: skip


def kept(records: Records, deadline: Deadline | None = None) -> RecordedLease:
    """Return a lease with these records."""
    return RecordedLease(TARGET, records, deadline or Clock().deadline(), lambda text: None, lambda state: None)


def answering(records: Records, end: object) -> Callable[..., LeaseDone]:
    """Return an operation that notes that it was sent, and ends so."""

    def send(*arguments: object) -> LeaseDone:
        records.notes.append("send")
        if isinstance(end, BaseException):
            raise end
        return done()

    return send


OTHERS = Locked("leased", service_code="LeaseAlreadyPresent")
WRONG = Locked("another id", service_code="LeaseIdMismatchWithLeaseOperation")
BREAKING = Locked("breaking", service_code="LeaseIsBreakingAndCannotBeChanged")


@pytest.fixture(autouse=True)
def no_earlier_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no record of an earlier holder be there."""
    monkeypatch.setattr(owner_records, "end", lambda *_: None)


@pytest.mark.parametrize(
    ("end", "after"),
    [
        (None, ["confirm a"]),
        (OTHERS, ["drop a"]),
        (Unavailable("no"), ["drop a"]),
        (OutcomeUnknown("lost"), []),
        (KeyboardInterrupt(), []),
    ],
)
def test_a_lease_is_written_down_before_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, end: BaseException | None, after: list[str]
) -> None:
    records = Records()
    monkeypatch.setattr(actions, "acquire", answering(records, end))
    # Refused, as it is before a request that is under way arrives.
    monkeypatch.setattr(actions, "give_back", lambda *arguments, was_acquired: was_acquired)
    try:
        kept(records).acquire(LeaseRequest(A, 30, Conditions()))
    except (AzguardError, KeyboardInterrupt) as error:
        assert error is end  # noqa: PT017  # the one that was raised
    assert records.notes == ["hold a 30", "send", *after]


@pytest.mark.parametrize("end", [Unavailable("no"), KeyboardInterrupt()])
def test_a_failed_second_acquire_keeps_the_first_record(monkeypatch: pytest.MonkeyPatch, end: BaseException) -> None:
    records = Records(record(A))
    monkeypatch.setattr(actions, "acquire", answering(records, end))
    with pytest.raises(type(end)):
        kept(records).acquire(LeaseRequest(A, 30, Conditions()))
    assert records.notes == ["hold a 30", "send"]


def test_a_refusal_because_of_our_own_lease_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(record(B))
    monkeypatch.setattr(actions, "acquire", answering(records, OTHERS))
    with pytest.raises(Locked) as caught:
        kept(records).acquire(LeaseRequest(A, 30, Conditions()))
    assert (caught.value.reason, caught.value.hint, records.notes[-1]) == ("lease_is_own", None, "drop a")


@pytest.mark.parametrize(
    ("end", "after"),
    [(None, ["drop a"]), (WRONG, ["drop a"]), (NotFound("gone"), ["drop a"]), (BREAKING, []), (Unavailable("no"), [])],
)
def test_a_release_forgets_a_lease_that_is_over_and_no_other(
    monkeypatch: pytest.MonkeyPatch, end: BaseException | None, after: list[str]
) -> None:
    records = Records(record(A))
    monkeypatch.setattr(actions, "release", answering(records, end))
    try:
        kept(records).release(NAMED)
    except AzguardError as error:
        assert error is end  # noqa: PT017  # the one that was raised
    assert records.notes == ["send", *after]


@pytest.mark.parametrize(
    ("end", "after"),
    [
        (None, ["confirm b", "drop a"]),
        (OutcomeUnknown("lost"), []),
        (WRONG, ["drop a", "drop b"]),
        (BREAKING, ["drop b"]),
        (KeyboardInterrupt(), ["drop b"]),
    ],
)
def test_a_change_keeps_both_ids_until_it_is_known_which_one_holds(
    monkeypatch: pytest.MonkeyPatch, end: BaseException | None, after: list[str]
) -> None:
    records = Records(record(A))
    monkeypatch.setattr(actions, "change", answering(records, end))
    try:
        kept(records).change(NAMED, B)
    except (AzguardError, KeyboardInterrupt) as error:
        assert error is end  # noqa: PT017  # the one that was raised
    assert records.notes == ["hold b 30", "send", *after]


def test_a_renewal_tells_the_term_that_was_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(record(A, duration=None))
    monkeypatch.setattr(actions, "renew", answering(records, None))
    assert (kept(records).renew(NAMED).duration, records.notes) == ("infinite", ["send", "confirm a"])


def test_waiting_for_a_lease_ends_with_the_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    records, clock = Records(), Clock()
    monkeypatch.setattr(actions, "acquire", answering(records, OTHERS))
    monkeypatch.setattr(recorded, "wait_until_free", lambda target, patience, tell, uniform: clock.sleep(4))
    with pytest.raises(GaveUp):
        kept(records).acquire_when_free(LeaseRequest(A, 30, Conditions()), clock.deadline(10))
    assert records.notes.count("send") == 4
