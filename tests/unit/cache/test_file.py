"""The cache's file when it is damaged, foreign, newer, in the way, read-only or full: said, never raised."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from azguard.errors import ConfigError
from tests.support.caches import CONFIG, Clock, etag_of, never

posix = pytest.mark.skipif(os.name != "posix", reason="modes and limits are of POSIX")


@dataclass
class Run:
    """One azguard with a cache in ``folder``, and what it was warned of."""

    folder: Path
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache = EtagCache.open(self.folder, "one", warn=self.warnings.append, now=Clock())

    @property
    def path(self) -> Path:
        return self.folder / "etags.db"

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.suffix != ".lock")


def filled(folder: Path, entries: int = 200) -> None:
    cache = EtagCache.open(folder, "one", warn=never, now=Clock())
    cache.import_records(
        {
            "scope": "one", "account": CONFIG.account, "address": f"blob:site/{number}",
            "etag": f'"{number}"', "time": "2026-11-21T11:00:00Z", "command": "blob get",
        }
        for number in range(entries)
    )  # fmt: skip
    cache.record(CONFIG, etag='"0x1"', command="blob get")
    cache.close()


def works(cache: EtagCache) -> bool:
    cache.record(CONFIG, etag='"0x2"', command="blob get")
    return etag_of(cache.find_last(CONFIG)) == '"0x2"'


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_in_the_first_page(path: Path) -> None:
    os.truncate(path, 100)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def garbage(path: Path) -> None:
    path.write_bytes(b"\xde\xad\xbe\xef" * 5000)


def garbage_behind_the_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 8000)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def of_another_program(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()


def without_its_table(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE entries")
    connection.close()


def with_a_folder_for_a_log(path: Path) -> None:
    Path(f"{path}-wal").mkdir()


@posix
@pytest.mark.parametrize(
    "damage",
    [
        truncated, cut_in_the_first_page, emptied, garbage, garbage_behind_the_header, a_folder, a_pipe,
        of_another_program, without_its_table, with_a_folder_for_a_log,
    ],
)  # fmt: skip
def test_a_bad_file_is_moved_aside_and_a_new_one_works(damage: Callable[[Path], None], tmp_path: Path) -> None:
    filled(tmp_path)
    damage(tmp_path / "etags.db")
    run = Run(tmp_path)
    assert (run.cache.find_last(CONFIG), works(run.cache), len(run.warnings)) == (None, True, 1)
    assert "it is now etags.db.damaged-20261121T120000Z, and a new one has begun" in run.warnings[0]
    run.cache.close()
    again = Run(tmp_path)
    assert (etag_of(again.cache.find_last(CONFIG)), again.warnings) == ('"0x2"', [])
    assert (tmp_path / "etags.db.damaged-20261121T120000Z").exists()


def test_damage_deep_in_the_file_is_found_when_it_is_read(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "etags.db"
    content = path.read_bytes()
    # All pages but the first, which says how the rest is laid out.
    path.write_bytes(content[:4096] + b"\x0d" * (len(content) - 4096))
    run = Run(tmp_path)
    assert (len(run.warnings), run.cache.find_last(CONFIG), len(run.warnings), works(run.cache)) == (0, None, 1, True)


def test_damage_found_while_listing_ends_the_list(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "etags.db"
    content = path.read_bytes()
    path.write_bytes(content[:-8192] + b"\x0d" * 8192)
    run = Run(tmp_path)
    listed = list(run.cache.export())
    assert (len(listed) <= 201, len(run.warnings), works(run.cache)) == (True, 1, True)


def test_the_log_of_a_deleted_database_is_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    killed = Run(tmp_path)
    killed.cache.record(CONFIG, etag='"0x1"', command="blob get")
    killed.path.unlink()
    run = Run(tmp_path)
    assert (run.cache.find_last(CONFIG), works(run.cache), run.warnings) == (None, True, [])
    assert works(killed.cache)
    assert (etag_of(run.cache.find_last(CONFIG)), killed.warnings) == ('"0x2"', [])


def test_a_second_damaged_file_of_the_same_second_takes_no_ones_place(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        (tmp_path / "etags.db").write_bytes(content)
        Run(tmp_path).cache.close()
    name = "etags.db.damaged-20261121T120000Z"
    kept = ((tmp_path / name).read_bytes(), (tmp_path / f"{name}-2").read_bytes())
    assert (kept, Run(tmp_path).warnings) == ((b"first", b"second"), [])


def test_the_file_of_a_newer_azguard_is_left_alone(tmp_path: Path) -> None:
    filled(tmp_path, entries=10)
    with sqlite3.connect(tmp_path / "etags.db") as connection:
        connection.execute("PRAGMA user_version = 4")
    connection.close()
    before = (tmp_path / "etags.db").read_bytes()
    run = Run(tmp_path)
    assert (run.cache.find_last(CONFIG), works(run.cache), len(list(run.cache.list_entries()))) == (None, True, 1)
    run.cache.close()
    assert ((tmp_path / "etags.db").read_bytes() == before, run.names()) == (True, ["etags.db"])
    assert run.warnings == [
        f"the ETag cache {tmp_path}/etags.db cannot be used: it was made by a newer azguard; "
        "update this one; what is read now will not guard later writes"
    ]


# As the azguard before copies were known by their inodes made it.
_SCHEMA_1 = """
CREATE TABLE entries (
    scope TEXT NOT NULL, account TEXT NOT NULL, address TEXT NOT NULL, copy BLOB NOT NULL,
    etag TEXT NOT NULL, last_modified TEXT, length INTEGER, content_hash TEXT, lineage TEXT,
    path BLOB, time INTEGER NOT NULL, command TEXT NOT NULL,
    PRIMARY KEY (scope, account, address, copy)
) WITHOUT ROWID;
CREATE INDEX entries_by_time ON entries (time) WHERE copy = x'';
CREATE TABLE leases (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL, account TEXT NOT NULL, address TEXT NOT NULL, lease_id TEXT NOT NULL,
    duration INTEGER, action TEXT NOT NULL, confirmed INTEGER NOT NULL, time INTEGER NOT NULL,
    UNIQUE (scope, account, address, lease_id)
);
PRAGMA application_id = 1635411812;
PRAGMA user_version = 1;
"""


def of_version_1(folder: Path) -> None:
    """Make a cache of the version before, with one entry, one file and one lease."""
    this = ("one", *CONFIG)
    with closing(sqlite3.connect(folder / "etags.db")) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_SCHEMA_1)
        for copy, etag in ((b"", '"0x2"'), (os.fsencode(folder / "copy"), '"0x1"')):
            row = (*this, copy, etag, None, 1, None, None, copy or None, 1795262400000000, "blob get")
            connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("INSERT INTO leases VALUES (1, ?, ?, ?, 'id', NULL, 'lease acquire', 1, 1)", this)


def test_the_file_of_the_version_before_is_kept_with_all_that_is_in_it(tmp_path: Path) -> None:
    of_version_1(tmp_path)
    (tmp_path / "copy").write_text("x")
    for _ in range(2):
        run = Run(tmp_path)
        bound = run.cache.find_bound(CONFIG, copies.find_at(tmp_path / "copy"))
        held = run.cache.find_held(CONFIG)
        found = (
            etag_of(run.cache.find_last(CONFIG)),
            etag_of(bound.path),
            bound.inode,
            held is not None and held.lease_id,
        )
        assert (found, run.warnings) == (('"0x2"', '"0x1"', None, "id"), [])
        run.cache.close()
    run.cache.record(CONFIG, etag='"0x3"', copy=copies.find_at(tmp_path / "copy"), command="blob put")
    bound = run.cache.find_bound(CONFIG, copies.find_at(tmp_path / "copy"))
    assert [etag_of(each) for each in bound] == ['"0x3"'] * 2
    with closing(sqlite3.connect(tmp_path / "etags.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


def test_a_folder_that_cannot_be_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = Run(tmp_path / "file" / "cache")
    run.cache.record_lease(CONFIG, "lease", duration=None, action="lease acquire")
    assert (works(run.cache), run.cache.find_held(CONFIG) is not None) == (True, True)
    assert run.warnings == [
        f"the ETag cache {tmp_path}/file/cache/etags.db cannot be used: not a directory; "
        "what is read now will not guard later writes"
    ]


def test_an_import_that_fills_the_disk_says_how_far_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    monkeypatch.setattr("azguard.cache.etag_cache._BATCH", 20)
    (pages,) = run.cache._database.read("PRAGMA page_count")
    run.cache._database.read(f"PRAGMA max_page_count = {pages[0] + 6}")
    record = {"scope": "one", "account": CONFIG.account, "time": "2026-11-21T11:00:00Z", "command": "blob get"}
    with pytest.raises(ConfigError, match="took in 20 records, and not the rest"):
        run.cache.import_records(
            {**record, "address": f"blob:site/{'x' * 300}{number}", "etag": '"1"'} for number in range(100)
        )
    assert (len(list(run.cache.list_entries())), len(run.warnings)) == (20, 1)


def test_a_cache_locked_by_another_is_told_and_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, entries=10)
    monkeypatch.setattr("azguard.cache.file.BUSY_SECONDS", 0.2)
    holder = sqlite3.connect(tmp_path / "etags.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    run = Run(tmp_path)
    waits = []
    for _ in range(2):
        waits += run.cache._database.read("PRAGMA busy_timeout")
        run.cache.record(CONFIG, etag='"0x3"', command="blob get")
    # A tree of files would wait for it at each of them.
    assert waits == [(200,), (100,)]
    assert (etag_of(run.cache.find_last(CONFIG)), len(run.warnings)) == ('"0x1"', 1)
    assert "cannot be written: other processes have kept it locked" in run.warnings[0]
    holder.execute("COMMIT")
    holder.close()
    assert works(run.cache)
