"""The cache's file when it is damaged, foreign, newer, in the way, read-only or full: said, never raised."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from tests.support.caches import CONFIG, Clock, etag_of, never
from tests.support.places import REPOSITORY

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


def filled(folder: Path, entries: int = 2000) -> None:
    cache = EtagCache.open(folder, "one", warn=never, now=Clock())
    cache.load(
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
    return etag_of(cache.last(CONFIG)) == '"0x2"'


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
    assert (run.cache.last(CONFIG), works(run.cache), len(run.warnings)) == (None, True, 1)
    assert "it is now etags.db.damaged-20261121T120000Z, and a new one has begun" in run.warnings[0]
    run.cache.close()
    again = Run(tmp_path)
    assert (etag_of(again.cache.last(CONFIG)), again.warnings) == ('"0x2"', [])
    assert (tmp_path / "etags.db.damaged-20261121T120000Z").exists()


def test_damage_deep_in_the_file_is_found_when_it_is_read(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "etags.db"
    content = path.read_bytes()
    # All pages but the first, which says how the rest is laid out.
    path.write_bytes(content[:4096] + b"\x0d" * (len(content) - 4096))
    run = Run(tmp_path)
    assert (len(run.warnings), run.cache.last(CONFIG), len(run.warnings), works(run.cache)) == (
        0,
        None,
        1,
        True,
    )


def test_damage_found_while_listing_ends_the_list(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "etags.db"
    content = path.read_bytes()
    path.write_bytes(content[:-8192] + b"\x0d" * 8192)
    run = Run(tmp_path)
    listed = list(run.cache.export())
    assert (len(listed) <= 2001, len(run.warnings), works(run.cache)) == (True, 1, True)


def test_the_log_of_a_deleted_database_is_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    killed = Run(tmp_path)
    killed.cache.record(CONFIG, etag='"0x1"', command="blob get")
    killed.path.unlink()
    run = Run(tmp_path)
    assert (run.cache.last(CONFIG), works(run.cache), run.warnings) == (None, True, [])
    assert works(killed.cache)
    assert (etag_of(run.cache.last(CONFIG)), killed.warnings) == ('"0x2"', [])


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
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    before = (tmp_path / "etags.db").read_bytes()
    run = Run(tmp_path)
    assert (run.cache.last(CONFIG), works(run.cache), len(list(run.cache.entries()))) == (
        None,
        True,
        1,
    )
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
        bound = run.cache.bound(CONFIG, copies.at(tmp_path / "copy"))
        held = run.cache.held(CONFIG)
        found = (etag_of(run.cache.last(CONFIG)), etag_of(bound.path), bound.inode, held is not None and held.lease_id)
        assert (found, run.warnings) == (('"0x2"', '"0x1"', None, "id"), [])
        run.cache.close()
    run.cache.record(CONFIG, etag='"0x3"', copy=copies.at(tmp_path / "copy"), command="blob put")
    bound = run.cache.bound(CONFIG, copies.at(tmp_path / "copy"))
    assert [etag_of(each) for each in bound] == ['"0x3"'] * 2
    with closing(sqlite3.connect(tmp_path / "etags.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_many_processes_convert_the_file_of_the_version_before_once(tmp_path: Path) -> None:
    of_version_1(tmp_path)
    code = textwrap.dedent("""
        import sys
        from pathlib import Path
        from azguard.cache.etag_cache import EtagCache, Key
        from tests.support.caches import CONFIG, Clock
        cache = EtagCache.open(Path(sys.argv[1]), "one", warn=print, now=Clock())
        print(cache.last(CONFIG).etag)
    """)
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    running = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, env=environ) for _ in range(8)
    ]
    assert [process.communicate(timeout=60)[0] for process in running] == [b'"0x2"\n'] * 8


def test_a_folder_that_cannot_be_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = Run(tmp_path / "file" / "cache")
    run.cache.hold(CONFIG, "lease", duration=None, action="lease acquire")
    assert (works(run.cache), run.cache.held(CONFIG) is not None) == (True, True)
    assert run.warnings == [
        f"the ETag cache {tmp_path}/file/cache/etags.db cannot be used: not a directory; "
        "what is read now will not guard later writes"
    ]


def test_a_cache_locked_by_another_is_said_and_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, entries=10)
    monkeypatch.setattr("azguard.cache.file.BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(tmp_path / "etags.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    run = Run(tmp_path)
    for _ in range(2):
        run.cache.record(CONFIG, etag='"0x3"', command="blob get")
    assert (etag_of(run.cache.last(CONFIG)), len(run.warnings)) == ('"0x1"', 1)
    assert "cannot be written: other processes have kept it locked" in run.warnings[0]
    holder.execute("COMMIT")
    holder.close()
    assert works(run.cache)


def _limited(folder: Path, *before: str) -> list[str]:
    """Return last, last after two records, the number of entries and the warnings of a process so limited."""
    code = f"""
        import os, resource, signal, sys
        sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from tests.unit.cache.test_file import CONFIG, Run, etag_of
        {"; ".join(before)}
        run = Run(Path({str(folder)!r}))
        found = etag_of(run.cache.last(CONFIG))
        for _ in range(2):
            run.cache.record(CONFIG, etag="0x2" * 50, command="blob get")
        print(found, etag_of(run.cache.last(CONFIG)), len(list(run.cache.entries())), *run.warnings, sep="|")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder.parent, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip().split("|")


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """Return the filled cache of a user whom permissions bind, which they do not root."""
    with TemporaryDirectory() as home:
        folder = Path(home, "cache")
        filled(folder, entries=10)
        if os.geteuid() == 0:
            for path in (Path(home), folder, *folder.iterdir()):
                os.chown(path, _NOBODY, _NOBODY)
        yield folder
        folder.chmod(0o700)


_NOBODY = 65534
# What is imported later may be in a folder that only root reads.
_AS_NOBODY = (
    "import fcntl, sqlite3",
    f"os.geteuid() or (os.setgroups([]), os.setgid({_NOBODY}), os.setuid({_NOBODY}))",
)


@posix
@pytest.mark.parametrize("version", [1, 2])
def test_a_read_only_file_is_read_and_said_once(nobodys: Path, version: int) -> None:
    with closing(sqlite3.connect(nobodys / "etags.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    (nobodys / "etags.db").chmod(0o400)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be written: it is read-only" in warning) == (['"0x1"', '"0x1"', "11"], True)


@posix
@pytest.mark.parametrize("version", [1, 2])
def test_a_file_in_a_read_only_folder_is_read_and_said_once(nobodys: Path, version: int) -> None:
    with closing(sqlite3.connect(nobodys / "etags.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be written" in warning) == (['"0x1"', '"0x1"', "11"], True)


@posix
def test_a_file_that_may_not_be_read_is_said_once_and_memory_serves(nobodys: Path) -> None:
    (nobodys / "etags.db").chmod(0)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be used" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
def test_a_damaged_file_that_cannot_be_moved_is_said_once(nobodys: Path) -> None:
    garbage(nobodys / "etags.db")
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be used: permission denied" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
def test_a_folder_that_may_not_be_written_is_said_once(nobodys: Path) -> None:
    (nobodys / "etags.db").unlink()
    nobodys.chmod(0o500)
    *found, warning = _limited(nobodys, *_AS_NOBODY)
    assert (found, "cannot be used: permission denied" in warning) == (["None", "0x2" * 50, "1"], True)


@posix
@pytest.mark.parametrize("size", [0, 4096])
def test_a_full_disk_is_said_once_and_what_was_there_is_read(nobodys: Path, size: int) -> None:
    # A limit on the size of files refuses growth the way a full disk does.
    *found, warning = _limited(nobodys, f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))")
    assert (found[:2], "cannot be" in warning) == (['"0x1"', '"0x1"'], True)


@posix
def test_a_disk_that_is_full_from_the_start_is_said_once_and_memory_serves(tmp_path: Path) -> None:
    *found, warning = _limited(tmp_path / "cache", "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))")
    assert (found, "cannot be used" in warning) == (["None", "0x2" * 50, "1"], True)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["etags.db.lock"]
