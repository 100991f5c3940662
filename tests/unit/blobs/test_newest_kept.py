"""Which snapshot or version of a blob is the newest: Azurite keeps no versions, so here by a listing made up."""

from dataclasses import dataclass
from unittest.mock import patch

import pytest

from azguard.accounts.account import emulator
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.blobs import snapshots
from azguard.errors import NotFound
from azguard.requests.deadline import Deadline

BLOB = Target(emulator(), Address(Kind.BLOB, ("site", "a")))
OLD, NEW, NOW = (f"2026-11-21T10:00:0{second}.0000000Z" for second in range(3))


@dataclass(frozen=True)
class Item:
    """One line of a listing."""

    snapshot: str | None = None
    version_id: str | None = None
    is_current_version: bool | None = None


def newest(kind: str, *items: Item) -> str:
    with patch.object(snapshots, "_list_kept", lambda *_: iter(items)):
        return snapshots.find_newest(BLOB, kind, Deadline()).short


def test_the_version_before_the_current_one_is_the_newest_that_is_kept() -> None:
    items = (Item(version_id=OLD), Item(version_id=NEW), Item(version_id=NOW, is_current_version=True))
    assert newest("version", *items) == f"site/a?versionid={NEW}"


def test_of_a_deleted_blob_the_newest_version_is_the_last_one() -> None:
    assert newest("version", Item(version_id=OLD), Item(version_id=NEW)) == f"site/a?versionid={NEW}"


def test_the_newest_snapshot_is_the_last_one() -> None:
    assert newest("snapshot", Item(snapshot=OLD), Item(snapshot=NEW), Item()) == f"site/a?snapshot={NEW}"


@pytest.mark.parametrize("kind", ["snapshot", "version"])
def test_where_nothing_is_kept_there_is_no_newest(kind: str) -> None:
    with pytest.raises(NotFound):
        newest(kind, Item(version_id=NOW, is_current_version=True))
