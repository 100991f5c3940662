"""The file of the ETag cache: find it, create it, and set it aside if it is not a complete database of ours.

Every process finds either no file or a complete one: a new database is created under another name, and then renamed.
To create a file or to set one aside takes a lock; to open one takes none.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from azguard.folders import check_own, make_private
from azguard.processes import locked_file

if TYPE_CHECKING:
    from sqlite3 import Connection, Error


NAME = "etags.db"
# How long to wait for other processes before doing without the cache.
BUSY_SECONDS = 10.0
# A run ends without closing the file, so that the next one reads the log again: 1 ms at SQLite's own 1,000 pages.
_MOST_PAGES_OF_LOG = 250
MEMORY = ":memory:"
_SIDECARS = ("-wal", "-shm")
# SQLite's primary result codes, as numbers because the module is imported late. https://sqlite.org/rescode.html
_BUSY = 5
_READ_ONLY = 8
_INPUT_OUTPUT = 10
_FULL = 13
_CANNOT_OPEN = 14
_UNWRITABLE = (_READ_ONLY, _INPUT_OUTPUT, _FULL, _CANNOT_OPEN)
_REASONS = {
    _BUSY: f"other processes have kept it locked for {BUSY_SECONDS:g} seconds",
    _READ_ONLY: "it is read-only",
    _INPUT_OUTPUT: "the disk refuses",
    _FULL: "the disk is full",
    _CANNOT_OPEN: "it or its folder cannot be opened",
}

Identity = tuple[int, int]
# "azgd": a database with another number belongs to another program.
APPLICATION_ID = 0x617A6764
VERSION = 3
# The same tables, without the jobs of leases; in the first of them no copy was known by its inode.
WITHOUT_JOBS = (1, 2)
ADD_JOBS = "ALTER TABLE leases ADD COLUMN job TEXT"
# For a connection to such a file that can only be read: what it creates for itself stands before the table.
SHOW_JOBS = (
    "CREATE TEMP VIEW leases AS SELECT number, scope, account, address, lease_id, duration, action, confirmed, time,"
    " NULL AS job FROM main.leases"
)
# copy is the real path of a file with that version's content, or its inode, behind a byte that begins no path; empty is
# what the scope last read, from wherever.
TABLES = f"""
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
    duration INTEGER, action TEXT NOT NULL, confirmed INTEGER NOT NULL, time INTEGER NOT NULL, job TEXT,
    UNIQUE (scope, account, address, lease_id)
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
"""


class Damaged(Exception):
    """The file is not a whole database of ours; the message says what it is instead."""


class Newer(Exception):
    """The file was made by a newer azguard."""


def find_identity(path: Path) -> Identity | None:
    """Return which file is at ``path`` now, or None; another file has another identity."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class Opened(NamedTuple):
    """A connection to a database of ours."""

    connection: "Connection"
    #: The URI that opens further connections.
    uri: str
    #: Why it can only read; None if it can write.
    trouble: "Error | None"


def open_existing(path: Path) -> Opened:
    """Return a connection to a whole database of ours."""
    import sqlite3

    for each in (path.parent, path, *_list_sidecars(path)):
        check_own(each)
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise Damaged("is not a file")
    if status.st_mode & 0o077 and os.name == "posix":
        with suppress(OSError):
            os.chmod(path, 0o600)
    uri = f"{path.as_uri()}?mode=rw"
    try:
        return Opened(_upgrade(_require_ours(connect(uri))), uri, None)
    except sqlite3.Error as error:
        if is_damage(error) or any(_is_odd(sidecar) for sidecar in _list_sidecars(path)):
            raise Damaged("is damaged") from None
        if _find_code(error) not in _UNWRITABLE or _has_content(_list_sidecars(path)[0]):
            raise
        trouble = error
    # Where no log can be made, SQLite cannot follow other writers; without a log there are none to follow.
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    return Opened(_complete(_require_ours(connect(uri))), uri, trouble)


def connect_again(uri: str) -> "Connection":
    """Return another connection to the file of an ``Opened``."""
    return _complete(connect(uri))


def connect(uri: str) -> "Connection":
    """Return a connection whose commits survive a crash of azguard; the last ones not one of the machine."""
    import sqlite3

    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_MOST_PAGES_OF_LOG}")
    return connection


def open_in_memory() -> "Connection":
    """Return an empty cache that lives as long as this process."""
    connection = connect(MEMORY)
    connection.executescript(TABLES)
    return connection


def is_damage(error: "Error") -> bool:
    """Return whether an error of SQLite says that the file, not the moment, is bad."""
    import sqlite3

    if _find_code(error) == sqlite3.SQLITE_ERROR:
        # Our statements fit our tables: another program has changed these.
        return any(words in str(error) for words in ("no such table", "no such column", "has no column"))
    return _find_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_busy(error: Exception) -> bool:
    """Return whether other processes have kept the file locked for as long as a statement waits."""
    return _find_code(error) == _BUSY


def describe(error: Exception) -> str:
    """Return the reason why the file cannot be used, for people."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return _REASONS.get(_find_code(error), str(error))


def create(path: Path) -> None:
    """Create an empty database of ours at ``path``, unless another process has created one meanwhile.

    Raises:
        OSError, sqlite3.Error: it cannot be made.
    """
    make_private(path.parent)
    with _lock_folder(path):
        if not path.exists():
            _write_empty(path)


def set_aside(path: Path, damaged: Identity, now: datetime) -> Path | None:
    """Move a damaged file away with its log, and create a new one; return None if another process has done so."""
    with _lock_folder(path):
        if find_identity(path) != damaged:
            return None
        target = _choose_unused(path.with_name(f"{path.name}.damaged-{now:%Y%m%dT%H%M%SZ}"))
        # The database goes first: a process that finds none waits for the lock and never pairs a new one with the
        # old log.
        os.rename(path, target)
        for sidecar in _list_sidecars(path):
            with suppress(FileNotFoundError):
                os.rename(sidecar, target.with_name(target.name + sidecar.name.removeprefix(path.name)))
        _write_empty(path)
        return target


def _find_code(error: Exception) -> int:
    # The upper bytes say more than is needed here.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _upgrade(connection: "Connection") -> "Connection":
    """Return the connection to a database of this version, converted if it was of an earlier one."""
    try:
        if _is_of_this_version(connection):
            return connection
        # Other processes may upgrade it at the same time: who has the write lock looks again.
        connection.execute("BEGIN IMMEDIATE")
        if not _is_of_this_version(connection):
            connection.execute(ADD_JOBS)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _complete(connection: "Connection") -> "Connection":
    if not _is_of_this_version(connection):
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(SHOW_JOBS)
    return connection


def _is_of_this_version(connection: "Connection") -> bool:
    return bool(connection.execute("PRAGMA user_version").fetchone() == (VERSION,))


def _require_ours(connection: "Connection") -> "Connection":
    known = [(APPLICATION_ID, version) for version in (*WITHOUT_JOBS, VERSION)]
    found = None
    try:
        found = connection.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone()
    finally:
        if found not in known:
            connection.close()
    if found in known:
        return connection
    if found[0] == APPLICATION_ID and found[1] > VERSION:
        raise Newer
    raise Damaged("is not an ETag cache")


def _write_empty(path: Path) -> None:
    fresh = path.with_name(f"{path.name}.new-{os.getpid()}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        connection = connect(f"{fresh.as_uri()}?mode=rw")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(f"BEGIN; {TABLES} COMMIT;")
        finally:
            connection.close()
        for orphan in _list_sidecars(path):
            # A log without its database: the new database must not read it as its own.
            with suppress(FileNotFoundError):
                os.rename(orphan, _choose_unused(orphan.with_name(f"{orphan.name}.damaged")))
        os.rename(fresh, path)
    finally:
        for leftover in (fresh, *_list_sidecars(fresh)):
            with suppress(FileNotFoundError):
                leftover.unlink()


@contextmanager
def _lock_folder(path: Path) -> Iterator[None]:
    """Let one process at a time create the file or set it aside."""
    if not locked_file.IS_SUPPORTED:
        # Such a system cannot rename an open file, or rename over one, so that two processes cannot conflict.
        yield
        return
    with locked_file.hold(path.with_name(f"{path.name}.lock"), BUSY_SECONDS):
        yield


def _list_sidecars(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + suffix) for suffix in _SIDECARS)


def _is_odd(sidecar: Path) -> bool:
    return sidecar.exists() and not sidecar.is_file()


def _has_content(sidecar: Path) -> bool:
    return sidecar.exists() and sidecar.stat().st_size > 0


def _choose_unused(path: Path) -> Path:
    number = 1
    found = path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found
