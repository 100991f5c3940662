"""What changes between two listings of all that is held."""

from dataclasses import replace
from datetime import UTC, datetime

from azguard.errors import Forbidden
from azguard.leases import holdings
from azguard.leases.holdings import ListingTally
from azguard.leases.shown import Holding

A = Holding(
    address="blob:a/x",
    state="held",
    holder="alice@build1",
    since="2026-11-22T11:00:00Z",
    reason=None,
    fence=1,
    alive="unknown",
    ends="2026-11-22T11:01:00Z",
    kind="azguard",
    age=60,
    clock="service",
    run=None,
    lease_state="leased",
    lease_status="locked",
    lease_duration="fixed",
    etag='"0x1"',
    last_modified=datetime(2026, 11, 22, 11, tzinfo=UTC),
)
B = replace(A, address="blob:b/x")


def changes(before: list[Holding], now: list[Holding]) -> list[tuple[str, str, str | None]]:
    found = holdings.compare(holdings.index(before), holdings.index(now))
    return [(each.change, each.address, each.holder) for each in found]


def test_what_is_taken_freed_and_handed_over_is_told_in_order() -> None:
    assert changes([A, B], [replace(A, holder="bob@build2"), replace(A, address="blob:c/x")]) == [
        ("changed", "blob:a/x", "bob@build2"),
        ("freed", "blob:b/x", "alice@build1"),
        ("taken", "blob:c/x", "alice@build1"),
    ]


def test_a_lease_that_grows_older_or_whose_blob_is_written_is_no_change() -> None:
    assert changes([A], [replace(A, age=65, etag='"0x2"', alive="yes", ends=None)]) == []


def test_a_break_and_another_end_of_a_lock_without_a_process_are_changes() -> None:
    frozen = replace(A, lease_duration="infinite", ends="2026-11-23T11:00:00Z")
    assert changes([A], [replace(A, state="breaking")]) == [("changed", "blob:a/x", "alice@build1")]
    assert changes([frozen], [replace(frozen, ends="never")]) == [("changed", "blob:a/x", "alice@build1")]


def test_a_lock_that_is_free_counts_as_gone() -> None:
    assert changes([A], [replace(A, state="free", holder=None)]) == [("freed", "blob:a/x", "alice@build1")]


def test_what_is_in_a_container_that_could_not_be_listed_is_not_called_freed() -> None:
    tally = ListingTally([Forbidden("no", address="container:a")])
    now = holdings.carry_over(holdings.index([A, B]), holdings.index([]), tally)
    assert list(now) == ["blob:a/x"]
