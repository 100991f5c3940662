"""The ETag cache: what was last read, per scope, resource and file; and the leases held."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Entry, HeldLease, Key
from azguard.errors import UsageError
from azguard.guards.versions import SeenVersion
from tests.support.caches import ACCOUNT, CONFIG, NOON, OTHER, Clock, etag_of, never

Open = Callable[..., EtagCache]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Open]:
    made: list[EtagCache] = []

    def open_(scope: str = "one") -> EtagCache:
        made.append(EtagCache.open(tmp_path / "cache", scope, warn=never, now=clock))
        return made[-1]

    yield open_
    for cache in made:
        cache.close()


def plain(etag: str, scope: str = "one", key: Key = CONFIG, **changes: str) -> Entry:
    entry = Entry(scope, *key, etag, None, None, None, None, None, "2026-11-21T12:00:00Z", "blob get")
    return replace(entry, **changes)  # type: ignore[arg-type]  # every change here is of a text field


def test_what_was_recorded_is_found_again_by_another_process(opened: Open) -> None:
    opened().record(
        CONFIG,
        etag='"0x1"',
        last_modified="2026-11-21T11:00:00Z",
        length=14,
        content_hash="sha256:" + "0" * 64,
        lineage="AAAAAAAAAAAAAAAA.0x0",
        command="blob get",
    )
    assert opened().find_last(CONFIG) == Entry(
        scope="one",
        account=ACCOUNT,
        address="blob:site/config.json",
        etag='"0x1"',
        last_modified="2026-11-21T11:00:00Z",
        length=14,
        content_hash="sha256:" + "0" * 64,
        lineage="AAAAAAAAAAAAAAAA.0x0",
        path=None,
        time="2026-11-21T12:00:00Z",
        command="blob get",
    )


def test_many_versions_are_recorded_in_one_transaction(opened: Open) -> None:
    cache = opened()
    keys = [Key(CONFIG.account, f"entity:Orders/eu/{number}") for number in range(3000)]
    cache.record_all(
        ((key, SeenVersion(f'"{key.address}"', "AAAAAAAAAAAAAAAA.-", "2026")) for key in keys), "entity query"
    )
    assert [etag_of(cache.find_last(key)) for key in keys] == [f'"{key.address}"' for key in keys]
    expected = plain(f'"{keys[0].address}"', lineage="AAAAAAAAAAAAAAAA.-")
    assert cache.find_last(keys[0]) == replace(
        expected, account=keys[0].account, address=keys[0].address, last_modified="2026", command="entity query"
    )


def test_of_many_versions_all_are_recorded_or_none(opened: Open) -> None:
    cache, bad = opened(), Key(CONFIG.account, "entity:Orders/eu/?sig=x")
    with pytest.raises(UsageError):
        cache.record_all([(CONFIG, SeenVersion('"0x1"')), (bad, SeenVersion('"0x2"'))], "entity query")
    with pytest.raises(UsageError):
        cache.record_all([(CONFIG, SeenVersion('"0x1"')), (CONFIG, SeenVersion(""))], "entity query")
    assert cache.find_last(CONFIG) is None


def test_scopes_do_not_see_each_others_reads(opened: Open) -> None:
    opened("one").record(CONFIG, etag='"0x1"', command="blob get")
    assert opened("two").find_last(CONFIG) is None


def test_a_file_keeps_the_version_it_is_a_copy_of(opened: Open, tmp_path: Path) -> None:
    cache, copy = opened(), tmp_path / "config.json"
    cache.record(CONFIG, etag='"0x1"', copy=copies.find_at(copy), command="blob get")
    cache.record(CONFIG, etag='"0x2"', command="blob get")
    assert (cache.find_last(CONFIG), cache.find_bound(CONFIG, copies.find_at(copy)).path) == (
        plain('"0x2"'),
        plain('"0x1"', path=str(copy)),
    )


def test_a_file_is_known_by_its_real_path(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    opened().record(CONFIG, etag='"0x1"', copy=copies.find_at(tmp_path / "link" / "config.json"), command="blob get")
    monkeypatch.chdir(tmp_path / "real")
    assert etag_of(opened().find_bound(CONFIG, copies.find_at(Path("config.json"))).path) == '"0x1"'


@pytest.mark.skipif(sys.platform != "linux", reason="file names are any bytes")
def test_a_path_that_is_not_text_is_kept(opened: Open, tmp_path: Path) -> None:
    copy = tmp_path / os.fsdecode(b"caf\xe9")
    opened().record(CONFIG, etag='"0x1"', copy=copies.find_at(copy), command="blob get")
    assert opened().find_bound(CONFIG, copies.find_at(copy)).path == plain('"0x1"', path=str(copy))


def test_of_the_inodes_of_a_resource_the_newest_stay_and_all_paths(opened: Open, clock: Clock, tmp_path: Path) -> None:
    cache, files = opened(), [tmp_path / str(number) for number in range(70)]
    for number, file in enumerate(files):
        file.write_text("x")
        clock.after(seconds=1)
        cache.record(CONFIG, etag=f'"{number}"', copy=copies.find_at(file), command="blob get")
    found = [cache.find_bound(CONFIG, copies.find_at(file)) for file in files]
    assert [etag_of(each.path) for each in found] == [f'"{number}"' for number in range(70)]
    assert [etag_of(each.inode) for each in found] == [None] * 6 + [f'"{number}"' for number in range(6, 70)]


def test_of_the_paths_of_a_resource_to_no_file_the_newest_stay(opened: Open, clock: Clock, tmp_path: Path) -> None:
    cache, files = opened(), [tmp_path / str(number) for number in range(70)]
    files[2].write_text("x")
    for file in files:
        clock.after(seconds=1)
        cache.record(CONFIG, etag='"1"', copy=copies.find_at(file), command="blob get")
    known = [cache.find_bound(CONFIG, copies.find_at(file)).path is not None for file in files]
    assert known == [False, False, True, False, False, False] + [True] * 64


def test_gathered_records_are_written_when_they_are_settled_and_at_the_end(opened: Open) -> None:
    cache, another = opened(), opened()
    with cache.gathering() as settle:
        cache.record(CONFIG, etag='"0x1"', command="blob get")
        before = another.find_last(CONFIG)
        settle()
        settled = etag_of(another.find_last(CONFIG))
        cache.record(CONFIG, etag='"0x2"', command="blob get")
    ended = etag_of(another.find_last(CONFIG))
    cache.record(CONFIG, etag='"0x3"', command="blob get")
    assert (before, settled, ended, etag_of(another.find_last(CONFIG))) == (None, '"0x1"', '"0x2"', '"0x3"')


def test_an_inode_is_not_exported(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    file.write_text("x")
    opened().record(CONFIG, etag='"0x1"', copy=copies.find_at(file), command="blob get")
    assert [each["copy"] for each in opened().export()] == [False, True]


def test_a_version_of_the_same_content_is_followed_by_the_files_that_have_it(opened: Open, tmp_path: Path) -> None:
    cache, old, new = opened(), tmp_path / "old", tmp_path / "new"
    cache.record(CONFIG, etag='"0x1"', copy=copies.find_at(old), command="blob get")
    cache.record(CONFIG, etag='"0x2"', copy=copies.find_at(new), command="blob get")
    opened("two").record(CONFIG, etag='"0x2"', command="blob get")
    cache.follow(CONFIG, '"0x2"', '"0x3"', "AAAAAAAAAAAAAAAA.0x2")
    found = (
        cache.find_last(CONFIG),
        cache.find_bound(CONFIG, copies.find_at(old)).path,
        cache.find_bound(CONFIG, copies.find_at(new)).path,
        opened("two").find_last(CONFIG),
    )
    assert [etag_of(entry) for entry in found] == ['"0x3"', '"0x1"', '"0x3"', '"0x2"']
    assert found[0] == plain('"0x3"', path=str(new), lineage="AAAAAAAAAAAAAAAA.0x2")


def test_forget_drops_the_entry_and_its_files_of_this_scope_only(opened: Open, tmp_path: Path) -> None:
    one, two, copy = opened("one"), opened("two"), tmp_path / "config.json"
    for cache in (one, two):
        cache.record(CONFIG, etag='"0x1"', copy=copies.find_at(copy), command="blob get")
    assert (one.forget(CONFIG), one.forget(CONFIG)) == (1, 0)
    assert (one.find_last(CONFIG), one.find_bound(CONFIG, copies.find_at(copy)).path) == (None, None)
    assert (etag_of(two.find_last(CONFIG)), etag_of(two.find_bound(CONFIG, copies.find_at(copy)).path)) == (
        '"0x1"',
        '"0x1"',
    )


def test_forget_in_all_scopes_drops_every_entry_of_the_resource(opened: Open) -> None:
    one, two = opened("one"), opened("two")
    for cache in (one, two):
        cache.record(CONFIG, etag='"0x1"', command="blob get")
        cache.record(OTHER, etag='"0x9"', command="blob get")
    assert one.forget(CONFIG, all_scopes=True) == 2
    assert [entry.key for entry in one.list_entries()] == [OTHER, OTHER]


def test_entries_are_listed_newest_first_and_narrowed(opened: Open, clock: Clock, tmp_path: Path) -> None:
    one, two = opened("one"), opened("two")
    for seconds, (cache, key) in enumerate([(one, CONFIG), (one, OTHER), (two, CONFIG), (one, CONFIG)]):
        # With and without a fraction of a second: as text, these would not sort.
        clock.moment = NOON + timedelta(seconds=seconds // 2, milliseconds=500 * (seconds % 2))
        cache.record(key, etag=f'"{seconds}"', copy=copies.find_at(tmp_path / "x"), command="blob get")
    assert [
        [entry.etag for entry in one.list_entries()],
        [entry.etag for entry in one.list_entries("one")],
        [entry.etag for entry in one.list_entries(prefix="blob:site/c")],
        [entry.etag for entry in one.list_entries("one", "blob:site/o")],
        [entry.etag for entry in one.list_entries("two", "blob:SITE")],
    ] == [['"3"', '"2"', '"1"'], ['"3"', '"1"'], ['"3"', '"2"'], ['"1"'], []]


def test_recording_while_listing_loses_nothing(opened: Open) -> None:
    here, elsewhere = opened(), opened()
    for number in range(50):
        here.record(Key(ACCOUNT, f"blob:site/{number}"), etag='"1"', command="blob get")
    for entry in here.list_entries():
        elsewhere.record(entry.key, etag='"2"', command="blob get")
        here.record(Key(ACCOUNT, entry.address + "x"), etag='"3"', command="blob get")
    found = [entry.etag for entry in elsewhere.list_entries()]
    assert (found.count('"2"'), found.count('"3"')) == (50, 50)


def test_clear_counts_entries_and_keeps_leases(opened: Open, tmp_path: Path) -> None:
    one, two = opened("one"), opened("two")
    one.record(CONFIG, etag='"1"', copy=copies.find_at(tmp_path / "x"), command="blob get")
    two.record(CONFIG, etag='"2"', command="blob get")
    one.record_lease(CONFIG, "lease", duration=None, action="lease acquire")
    assert (one.clear("one"), etag_of(two.find_last(CONFIG)), one.clear(None), two.find_last(CONFIG)) == (
        1,
        '"2"',
        1,
        None,
    )
    assert one.find_held(CONFIG) is not None
    assert one.find_bound(CONFIG, copies.find_at(tmp_path / "x")).path is None


def test_prune_keeps_a_file_as_long_as_its_resource(opened: Open, clock: Clock, tmp_path: Path) -> None:
    cache = opened()
    cache.record(CONFIG, etag='"1"', copy=copies.find_at(tmp_path / "x"), command="blob get")
    cache.record(OTHER, etag='"1"', copy=copies.find_at(tmp_path / "y"), command="blob get")
    clock.after(days=40)
    cache.record(CONFIG, etag='"2"', command="blob get")
    # Were the old copy's version dropped alone, the file would be guarded by the newer one it never saw.
    assert cache.prune(timedelta(days=30)) == 1
    assert [
        etag_of(entry)
        for entry in (
            cache.find_last(CONFIG),
            cache.find_bound(CONFIG, copies.find_at(tmp_path / "x")).path,
            cache.find_last(OTHER),
        )
    ] == ['"2"', '"1"', None]
    assert cache.find_bound(OTHER, copies.find_at(tmp_path / "y")).path is None


def test_prune_drops_leases_whose_term_ended_long_ago(opened: Open, clock: Clock) -> None:
    cache = opened()
    cache.record_lease(CONFIG, "finite", duration=60, action="lease acquire")
    cache.record_lease(CONFIG, "infinite", duration=None, action="lease acquire")
    clock.after(seconds=89)
    cache.prune(timedelta(seconds=30))
    kept = [lease.lease_id for lease in cache.list_held()]
    clock.after(seconds=2)
    cache.prune(timedelta(seconds=30))
    assert (kept, [lease.lease_id for lease in cache.list_held()]) == (["infinite", "finite"], ["infinite"])


@pytest.mark.parametrize(
    "key",
    [
        Key(ACCOUNT, "blob:site/a?sv=2024&sig=abc"),
        Key(ACCOUNT, "blob:site/a?sig=abc"),
        Key(ACCOUNT + "?sig=abc", "blob:site/a"),
        Key("https://user:abc@host", "blob:site/a"),
        Key(ACCOUNT, "AccountName=a;AccountKey=abc"),
    ],
)
def test_a_credential_is_never_written(opened: Open, key: Key) -> None:
    cache = opened()
    with pytest.raises(UsageError, match="never written") as recording:
        cache.record(key, etag='"1"', command="blob get")
    with pytest.raises(UsageError, match="never written") as holding:
        cache.record_lease(key, "lease", duration=60, action="lease acquire")
    said = str(recording.value) + str(holding.value)
    assert ("abc" in said, list(cache.list_entries()), list(cache.list_held())) == (False, [], [])


def test_a_command_with_a_credential_is_never_written(opened: Open) -> None:
    cache = opened()
    with pytest.raises(UsageError, match="never written"):
        cache.record(CONFIG, etag='"1"', command="blob get https://host/a?sv=2024&sig=abc")
    assert list(cache.list_entries()) == []


def test_a_name_that_merely_holds_the_letters_is_kept(opened: Open) -> None:
    key = Key(ACCOUNT, "blob:data/sig=3/part.parquet")
    opened().record(key, etag='"1"', command="blob get")
    assert etag_of(opened().find_last(key)) == '"1"'


def test_an_empty_etag_is_refused(opened: Open) -> None:
    with pytest.raises(UsageError, match="no ETag"):
        opened().record(CONFIG, etag="", command="blob get")


def test_the_newest_lease_not_released_is_held_until_dropped(opened: Open, clock: Clock) -> None:
    cache = opened()
    cache.record_lease(CONFIG, "first", duration=None, action="lease acquire")
    cache.confirm(CONFIG, "first")
    cache.record_lease(CONFIG, "second", duration=60, action="lock run")
    expected = HeldLease("one", *CONFIG, "second", 60, "lock run", False, "2026-11-21T12:00:00Z")
    assert cache.find_held(CONFIG) == expected
    clock.after(seconds=20)
    cache.confirm(CONFIG, "second", since=clock())
    renewed = replace(expected, confirmed=True, time="2026-11-21T12:00:20Z")
    assert (cache.find_held(CONFIG), opened("two").find_held(CONFIG), cache.find_held(OTHER)) == (renewed, None, None)
    cache.forget_lease(CONFIG, "second")
    first = HeldLease("one", *CONFIG, "first", None, "lease acquire", True, "2026-11-21T12:00:00Z")
    assert (cache.find_held(CONFIG), list(cache.list_held()), list(cache.list_held("two"))) == (first, [first], [])


def test_holding_the_same_lease_again_keeps_its_confirmation(opened: Open, clock: Clock) -> None:
    cache = opened()
    cache.record_lease(CONFIG, "id", duration=60, action="lease acquire")
    cache.confirm(CONFIG, "id")
    clock.after(seconds=5)
    cache.record_lease(CONFIG, "id", duration=15, action="lease renew")
    assert list(cache.list_held()) == [HeldLease("one", *CONFIG, "id", 15, "lease renew", True, "2026-11-21T12:00:05Z")]


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_only_the_user_may_read_the_cache(opened: Open, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = opened()
        cache.record(CONFIG, etag='"1"', command="blob get")
    finally:
        os.umask(before)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (tmp_path / "cache").iterdir()}
    assert (modes, oct((tmp_path / "cache").stat().st_mode & 0o777)) == (
        {"etags.db": "0o600", "etags.db-wal": "0o600", "etags.db-shm": "0o600", "etags.db.lock": "0o600"},
        "0o700",
    )


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_file_opened_up_to_others_is_closed_to_them(opened: Open) -> None:
    path = opened().path
    path.chmod(0o644)
    opened()
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_an_account_that_begins_anew_is_forgotten_in_every_scope(opened: Open) -> None:
    elsewhere = Key("https://contoso.blob.core.windows.net", CONFIG.address)
    opened("one").record(CONFIG, etag='"0x1"', copy=copies.find_at(Path("copy")), command="blob get")
    opened("two").record(CONFIG, etag='"0x1"', command="blob get")
    opened("one").record(elsewhere, etag='"0x9"', command="blob get")
    assert opened("one").forget_account(ACCOUNT) == 2
    assert [entry.account for entry in opened().list_entries(None)] == [elsewhere.account]
