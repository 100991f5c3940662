"""Who holds what in a whole account: in order, with what is certain alone, and what changes between two listings."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any

import pytest

from azguard.errors import AzguardError, Forbidden, Partial, Unavailable
from azguard.leases import holdings
from azguard.leases.conventions import Holding
from azguard.leases.holdings import HoldingsList, ListingTally, Selection
from azguard.leases.owners import TICKET
from azguard.requests import calls
from azguard.requests.deadline import Deadline
from tests.support.cases import cases
from tests.support.listed_account import NOW, ListedAccount, item, refusal

HELD_LONG = item("b", "leased", metadata={"FunctionInstance": "A1"}, age_seconds=7200)
GONE = refusal(404, "ContainerNotFound")
DENIED = refusal(403, "AuthorizationPermissionMismatch")


def listed(account: ListedAccount, selection: Selection | None = None) -> tuple[list[Holding], HoldingsList, list[str]]:
    """Return what is found, the listing, and the containers that were reported."""
    reported: list[AzguardError] = []
    listing = HoldingsList(selection or Selection(), Deadline(1.0), reported.append)
    found = list(listing.of_account(account.account))
    return found, listing, [str(each.address) for each in reported]


def addresses(account: ListedAccount, selection: Selection | None = None) -> list[str]:
    return [each.address for each in listed(account, selection)[0]]


def test_what_is_held_comes_in_order_of_container_and_name() -> None:
    names = [f"c{number:02}" for number in range(30)]
    account = ListedAccount({name: [item("a", "leased"), item("free"), item("z", "breaking")] for name in names})
    assert addresses(account) == [f"blob:{name}/{blob}" for name in names for blob in "az"]


def test_a_container_that_may_not_be_listed_is_reported_and_the_others_are_listed() -> None:
    account = ListedAccount({name: [item("x", "leased")] for name in "abc"}, errors={"b": DENIED})
    found, listing, reported = listed(account)
    assert [each.address for each in found] == ["blob:a/x", "blob:c/x"]
    assert reported == ["container:b"]
    assert isinstance(listing.tally.failed[0], Forbidden)
    with pytest.raises(Partial, match="1 of 3 containers could not be listed"):
        listing.tally.check("container:")


def test_a_container_that_was_deleted_meanwhile_holds_nothing() -> None:
    account = ListedAccount({name: [item("x", "leased")] for name in "ab"}, errors={"a": GONE})
    found, listing, reported = listed(account)
    assert ([each.address for each in found], listing.tally.failed, reported) == (["blob:b/x"], [], [])


def test_a_service_that_fails_ends_the_listing() -> None:
    account = ListedAccount({name: [item("x", "leased")] for name in "ab"}, errors={"a": refusal(503, "ServerBusy")})
    with pytest.raises(Unavailable):
        listed(account)


def test_more_findings_than_are_read_ahead_come_whole() -> None:
    account = ListedAccount({"a": [item("x", "leased")], "b": [item(f"{n:05}", "leased") for n in range(3000)]})
    assert len(addresses(account)) == 3001


def test_no_more_is_read_ahead_than_a_page_and_some_findings() -> None:
    read = [0]

    def many() -> Iterator[Any]:
        while True:
            read[0] += 1
            yield item(f"{read[0]:09}", "leased")

    account = ListedAccount({"a": many()}).account
    found: Any = HoldingsList(Selection(), Deadline(1.0), lambda error: None).of_account(account)
    ahead = [read[0] - number for number, _ in enumerate(islice(found, 5_000))]
    found.close()
    assert max(ahead) <= 3000


def test_a_reader_that_stops_early_leaves_no_thread_waiting() -> None:
    account = ListedAccount({name: [item(f"{n:05}", "leased") for n in range(2000)] for name in "ab"}).account
    found: Any = HoldingsList(Selection(), Deadline(1.0), lambda error: None).of_account(account)
    assert next(found).address == "blob:a/00000"
    found.close()


def test_a_reader_that_stops_waits_for_no_listing_that_finds_nothing() -> None:
    looked: list[int] = []

    def free_for_ever() -> Iterator[Any]:
        yield from (item(f"{number:09}") for number in count())

    account = ListedAccount({"a": [item("x", "leased")], "b": free_for_ever()}).account
    found: Any = HoldingsList(Selection(), Deadline(1.0), lambda error: None, looked.append).of_account(account)
    assert next(found).address == "blob:a/x"
    found.close()
    assert looked == sorted(looked)


def test_the_lease_of_a_container_is_listed_before_its_blobs() -> None:
    account = ListedAccount({"a": [item("x", "leased")]}, leased_containers={"a": item("a", "leased")})
    assert addresses(account) == ["container:a", "blob:a/x"]


@cases(
    ("prefix", "found", "asked"),
    ("", ["blob:a/x", "blob:ab/x", "blob:ab/y"], ["a", "ab"]),
    ("ab", ["blob:ab/x", "blob:ab/y"], ["ab"]),
    ("a/", ["blob:a/x"], ["a"]),
    ("ab/y", ["blob:ab/y"], ["ab"]),
    ("none", [], []),
)
def test_a_prefix_is_of_container_and_name(prefix: str, found: list[str], asked: list[str]) -> None:
    account = ListedAccount({"a": [item("x", "leased")], "ab": [item("x", "leased"), item("y", "leased")]})
    assert addresses(account, Selection(prefix=prefix)) == found
    assert sorted(account.asked) == asked


def test_only_what_is_certainly_held_for_longer_is_stale_and_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "ask_service_time", lambda *_: NOW)
    young = item("c", "leased", metadata={"FunctionInstance": "A1"}, age_seconds=60)
    account = ListedAccount({"a": [item("a", "leased", age_seconds=9e6), HELD_LONG, young]})
    found, listing, _ = listed(account, Selection(stale_seconds=3600))
    assert ([each.address for each in found], listing.tally.undated) == (["blob:a/b"], 1)


def test_a_free_lock_is_listed_unless_only_held_ones_are_meant() -> None:
    account = ListedAccount({"locks": [item("free", metadata={"azguardfence": "7"})]})
    assert addresses(account) == ["blob:locks/free"]
    assert addresses(account, Selection(held_only=True)) == []


def test_the_ticket_of_a_waiter_holds_nothing() -> None:
    account = ListedAccount({"locks": [item("a!0000000007", "leased", metadata={TICKET: "me"})]})
    assert addresses(account) == []
    assert addresses(account, Selection(states=frozenset({"leased"}))) == []


def test_leases_alone_are_listed_by_their_state_and_locks_without_one_are_not() -> None:
    restic = item(f"locks/{'a' * 64}")
    account = ListedAccount({"a": [restic, item("x", "leased"), item("y", "expired")]})
    assert addresses(account, Selection(states=frozenset({"expired"}))) == ["blob:a/y"]
    assert addresses(account, Selection(states=frozenset({"leased", "breaking"}))) == ["blob:a/x"]
    assert addresses(account) == [f"blob:a/locks/{'a' * 64}", "blob:a/x"]


def test_a_lock_of_pulumi_says_what_is_in_its_file() -> None:
    name = ".pulumi/locks/prod/1.json"
    content = {f"state/{name}": b'{"username": "ann", "hostname": "laptop"}'}
    found, _, _ = listed(ListedAccount({"state": [item(name)]}, contents=content))
    assert [(each.kind, each.holder, each.state) for each in found] == [("pulumi", "ann@laptop", "held")]


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
