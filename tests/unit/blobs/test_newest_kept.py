"""Snapshots and versions of a blob in any order: Azurite keeps no versions, so here by a listing made up."""

import itertools
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.blobs import listing
from azguard.errors import NotFound, UsageError
from azguard.requests.deadline import Deadline
from tests.support.cases import cases

BLOB = Target(emulator(), Address(Kind.BLOB, ("site", "a")))
OLD, NEW, NOW = (f"2026-11-21T10:00:0{second}.0000000Z" for second in range(3))
# A fraction of a second can have fewer digits.
SOON = "2026-11-21T10:00:01.0000001Z"


@dataclass(frozen=True)
class Item:
    """One line of a listing."""

    name: str = "a"
    snapshot: str | None = None
    version_id: str | None = None
    is_current_version: bool | None = None
    hides_metadata: bool = False


def list_in(order: tuple[Item, ...]) -> Any:
    """Have the listing of the container have these items, in this order."""
    return patch.object(listing, "walk", lambda *_, **__: iter(order))


def newest(kind: str, *items: Item) -> str:
    with list_in(items):
        return listing.find_newest(BLOB, kind, Deadline()).short


@cases(
    ("kind", "found", "items"),
    # The version before the current one.
    ("version", NEW, (Item(version_id=OLD), Item(version_id=NEW), Item(version_id=NOW, is_current_version=True))),
    # Of a deleted blob the newest one.
    ("version", NOW, (Item(version_id=OLD), Item(version_id=NEW), Item(version_id=NOW))),
    ("snapshot", NEW, (Item(snapshot=OLD), Item(snapshot=NEW), Item())),
    ("snapshot", SOON, (Item(snapshot=NEW), Item(snapshot=SOON), Item(snapshot="2026-11-21T10:00:01Z"))),
)
def test_the_newest_is_found_in_whatever_order_a_listing_has(kind: str, found: str, items: tuple[Item, ...]) -> None:
    of_another = Item("ab", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z")
    field = "snapshot" if kind == "snapshot" else "versionid"
    orders = itertools.permutations((*items, of_another))
    assert {newest(kind, *order) for order in orders} == {f"site/a?{field}={found}"}


@cases("kind", "snapshot", "version")
def test_where_nothing_is_kept_there_is_no_newest(kind: str) -> None:
    with pytest.raises(NotFound):
        newest(kind, Item(version_id=NOW, is_current_version=True))


@cases(
    ("items", "found"),
    ((Item(snapshot=OLD), Item(version_id=NEW), Item(snapshot=NOW)), "site/a?versionid=" + NEW),
    ((Item(snapshot=NEW), Item(version_id=OLD)), "site/a?snapshot=" + NEW),
)
def test_an_id_is_that_of_a_snapshot_or_of_a_version(items: tuple[Item, ...], found: str) -> None:
    of_another = Item("ab", NEW, NEW)
    for order in itertools.permutations((*items, of_another)):
        with list_in(order):
            assert listing.find_by_id(BLOB, NEW, Deadline()).short == found


@cases(
    ("items", "error"),
    ((Item(snapshot=OLD), Item()), NotFound),
    ((Item(snapshot=NEW), Item(version_id=NEW)), UsageError),
)
def test_an_id_that_names_none_or_two_is_refused(items: tuple[Item, ...], error: type[Exception]) -> None:
    with list_in(items), pytest.raises(error):
        listing.find_by_id(BLOB, NEW, Deadline())


def test_what_is_kept_of_a_name_is_listed_in_order_of_time_and_the_current_version_last() -> None:
    current = Item(version_id=NOW, is_current_version=True)
    for order in itertools.permutations((current, Item(version_id=NEW), Item(snapshot=SOON), Item(snapshot=OLD))):
        found = sorted(order, key=listing.order_in_time)  # type: ignore[arg-type]  # has what is looked at
        assert [each.snapshot or each.version_id for each in found] == [OLD, NEW, SOON, NOW]
