"""What a scope knows of a resource as one value, and what a run records of it: no command line is needed."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from azguard.accounts.account import Account, Auth, Target
from azguard.address import parse
from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from azguard.cache.reads import Reads
from azguard.cache.records import Key
from azguard.errors import Changed
from azguard.guards.requested import RequestedConditions
from azguard.guards.versions import Remembered, SeenVersion
from azguard.wire.operations.blobs import BLOB_GET, BLOB_PUT_BLOCK_BLOB
from azguard.wire.rows import Part
from tests.support.caches import ACCOUNT, NOON, Clock, never

FIRST, SECOND, OURS = '"0x1"', '"0x2"', '"0x3"'
LEASE = "11111111-1111-4111-8111-111111111111"
OUTER = "22222222-2222-4222-8222-222222222222"
BLOB = Target(Account("devstoreaccount1", {"blob": ACCOUNT}, Auth.ANONYMOUS), parse("blob:site/config.json").address)


@dataclass(frozen=True)
class Delivered:
    """A result, as far as it is recorded."""

    etag: str | None
    last_modified: datetime | None = NOON
    content_length: int | None = 2
    blob_type: str = "BlockBlob"


@dataclass
class Room:
    """One scope's reads, and how often its cache was opened."""

    folder: Path
    outer: str | None = None
    opened: int = 0
    cache: EtagCache = field(init=False)

    def __post_init__(self) -> None:
        self.cache = EtagCache.open(self.folder, "one", warn=never, now=Clock())

    def open(self) -> EtagCache:
        self.opened += 1
        return self.cache

    @property
    def reads(self) -> Reads:
        return Reads(open_cache=self.open, command="blob get", outer_lease=lambda target: self.outer)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path / "cache")


def seen(etag: str, lineage: str | None = None) -> SeenVersion:
    return SeenVersion(etag, lineage, "2026-11-21T12:00:00Z", 2)


def test_nothing_is_known_of_what_was_never_read(room: Room) -> None:
    assert room.reads.recall(BLOB) == Remembered()


def test_what_was_delivered_is_known_and_guards_the_next_write(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST), lineage="op.0x0")
    assert room.reads.recall(BLOB) == Remembered(last=seen(FIRST, "op.0x0"))
    sent = room.reads.resolve_conditions(BLOB_PUT_BLOCK_BLOB, RequestedConditions(), BLOB)
    assert (sent.guard, sent.expected_etag) == ("if-match", FIRST)


def test_a_file_is_known_by_the_version_whose_content_it_holds(room: Room, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    room.reads.record(BLOB, Delivered(FIRST), copies.find_at(file))
    room.reads.record(BLOB, Delivered(SECOND))
    assert room.reads.recall(BLOB, copies.find_at(file)) == Remembered(last=seen(SECOND), copy=seen(FIRST))


def test_a_file_moved_over_another_copy_has_two_versions(room: Room, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.write_text("{}")
    there.write_text("{ }")
    room.reads.record(BLOB, Delivered(FIRST), copies.find_at(here))
    room.reads.record(BLOB, Delivered(SECOND), copies.find_at(there))
    there.replace(here)
    found = room.reads.recall(BLOB, copies.find_at(here))
    assert found == Remembered(last=seen(SECOND), copy=seen(FIRST), other=seen(SECOND))
    with pytest.raises(Changed, match="two versions"):
        room.reads.resolve_conditions(BLOB_PUT_BLOCK_BLOB, RequestedConditions(), BLOB, copies.find_at(here))


def test_a_version_that_the_content_names_comes_with_what_is_known_of_it(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST), lineage="op.0x0")
    assert room.reads.recall(BLOB, SeenVersion(FIRST)).copy == seen(FIRST, "op.0x0")
    assert room.reads.recall(BLOB, SeenVersion(SECOND)).copy == SeenVersion(SECOND)


def test_a_write_whose_etag_was_not_learnt_leaves_nothing_known(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.record(BLOB, Delivered(None))
    assert room.reads.find_last(BLOB) is None


def test_content_is_recorded_with_its_length_and_its_hash(room: Room) -> None:
    room.reads.record_content(BLOB, Delivered(OURS), b"[1]", "op.0x1")
    entry = room.cache.find_last(Key.of(BLOB))
    assert entry is not None
    assert (entry.etag, entry.length, entry.content_hash, entry.lineage) == (
        OURS,
        3,
        f"sha256:{hashlib.sha256(b'[1]').hexdigest()}",
        "op.0x1",
    )


def test_content_whose_etag_was_not_learnt_leaves_nothing_known(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.record_content(BLOB, Delivered(None), b"[1]", None)
    assert room.reads.find_last(BLOB) is None


@pytest.mark.parametrize(("before", "after"), [(None, SECOND), (FIRST, None), (OURS, SECOND)])
def test_another_version_than_the_one_read_is_not_followed(room: Room, before: str | None, after: str | None) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.follow(BLOB, before, after, None)
    assert room.reads.find_last(BLOB) == seen(FIRST)


def test_our_own_write_of_the_same_content_is_followed(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.follow(BLOB, FIRST, SECOND, "op.0x1")
    assert room.reads.find_last(BLOB) == seen(SECOND, "op.0x1")


def test_what_was_deleted_from_here_is_forgotten(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.forget(BLOB)
    assert room.reads.recall(BLOB) == Remembered()


def test_what_was_deleted_from_here_is_known_until_it_is_seen_again(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.record_deleted(BLOB, None)
    deleted = room.reads.recall(BLOB).deleted
    assert (deleted and deleted.etag, room.reads.recall(BLOB).last, list(room.cache.list_entries())) == (
        FIRST,
        None,
        [],
    )
    room.reads.record(BLOB, Delivered(SECOND))
    assert (room.reads.recall(BLOB).deleted, room.reads.recall(BLOB, part=Part.TAGS).deleted) == (None, None)


def test_a_delete_of_what_no_version_is_known_of_leaves_nothing_known(room: Room) -> None:
    room.reads.record_deleted(BLOB, None)
    assert room.reads.recall(BLOB) == Remembered()


def test_a_read_without_a_condition_opens_no_cache(room: Room) -> None:
    room.reads.resolve_conditions(BLOB_GET, RequestedConditions(), BLOB)
    assert room.opened == 0


def test_a_read_of_the_last_version_asks_the_cache(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    sent = room.reads.resolve_conditions(BLOB_GET, RequestedConditions(if_none_match="@last"), BLOB)
    assert sent.headers == {"If-None-Match": FIRST}


def test_the_lease_of_this_scope_is_named_by_held(room: Room) -> None:
    room.cache.record_lease(Key.of(BLOB), LEASE, duration=60, action="lease acquire")
    assert room.reads.choose_lease_id(BLOB, "@held") == LEASE
    assert room.reads.resolve_conditions(BLOB_GET, RequestedConditions(lease_id="@held"), BLOB).lease_id == LEASE


def test_the_lease_of_the_lock_run_around_us_comes_first(room: Room) -> None:
    room.cache.record_lease(Key.of(BLOB), LEASE, duration=60, action="lease acquire")
    room.outer = OUTER
    assert (room.reads.choose_lease_id(BLOB, None), room.reads.choose_lease_id(BLOB, "@held")) == (OUTER, OUTER)
    assert room.reads.choose_lease_id(BLOB, LEASE) == LEASE


def test_a_write_inside_a_lock_run_carries_its_lease_and_keeps_its_guard(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.outer = OUTER
    guarded = room.reads.resolve_conditions(BLOB_PUT_BLOCK_BLOB, RequestedConditions(), BLOB)
    assert (guarded.guard, guarded.expected_etag, guarded.lease_id) == ("if-match", FIRST, OUTER)
    bare = room.reads.resolve_conditions(BLOB_PUT_BLOCK_BLOB, RequestedConditions(last_writer_wins=True), BLOB)
    assert (bare.guard, bare.lease_id) == ("lease", OUTER)


def test_a_read_inside_a_lock_run_needs_no_lease(room: Room) -> None:
    room.outer = OUTER
    assert room.reads.resolve_conditions(BLOB_GET, RequestedConditions(), BLOB).lease_id is None


def test_a_part_that_was_read_by_itself_guards_only_that_part(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.record_part(BLOB, Part.METADATA, Delivered(SECOND))
    assert [known_of(room, part) for part in (Part.WHOLE, Part.METADATA, Part.TAGS)] == [FIRST, SECOND, None]


def test_what_was_read_whole_guards_its_metadata_too(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    assert known_of(room, Part.METADATA) == FIRST


def test_our_own_write_of_the_content_is_followed_by_the_parts_alone(room: Room) -> None:
    room.reads.record(BLOB, Delivered(FIRST))
    room.reads.record_part(BLOB, Part.METADATA, Delivered(FIRST))
    room.reads.record_part(BLOB, Part.TAGS, Delivered('"0x1+tags"'))
    room.reads.follow_parts(BLOB, FIRST, SECOND, None)
    found = [known_of(room, part) for part in (Part.WHOLE, Part.METADATA, Part.TAGS)]
    assert found == [FIRST, SECOND, '"0x2+tags"']


def test_the_tags_of_another_version_are_not_followed(room: Room) -> None:
    room.reads.record_part(BLOB, Part.TAGS, Delivered('"0x11+tags"'))
    room.reads.follow(BLOB, FIRST, SECOND, None)
    assert known_of(room, Part.TAGS) == '"0x11+tags"'


def test_parts_are_forgotten_with_their_resource_and_not_exported(room: Room) -> None:
    room.reads.record_part(BLOB, Part.TAGS, Delivered('"0x1+tags"'))
    exported = list(room.cache.export())
    room.reads.forget(BLOB)
    assert (exported, known_of(room, Part.TAGS)) == ([], None)


def known_of(room: Room, part: Part) -> str | None:
    last = room.reads.recall(BLOB, part=part).last
    return None if last is None else last.etag
