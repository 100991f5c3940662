"""The database of the ETag cache: statements in, rows out, never an exception of SQLite.

A damaged file is set aside, and the statement is run again on a new one. Any other failure is reported once, and the
statement does nothing. That is safe: an ETag that was not recorded leads to a refused write. The SQL that stands in
more than one place stands here; so does the database of a process's own rows, more of them than fit the memory.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from azguard.cache import file, records
from azguard.cache.file import MEMORY, Damaged, Identity, Newer
from azguard.cache.records import Row
from azguard.errors import ConfigError

if TYPE_CHECKING:
    from sqlite3 import Connection

# One statement, run for each row of parameters.
Step = tuple[str, Sequence[Row]]
Result = TypeVar("Result")

# How often to open a file that other processes replace or damage meanwhile: more often is no coincidence.
_OPENINGS = 4
# How long to wait for other processes after one wait in vain.
_SHORT_WAIT_MILLISECONDS = 100
# A transaction blocks other processes for some milliseconds.
_MOST_GATHERED = 500
_CONSEQUENCE = "what is read now will not guard later writes"

ENTRY = ", ".join(records.ENTRY_COLUMNS)
LEASE = ", ".join(records.LEASE_COLUMNS)
THIS = "scope = ? AND account = ? AND address = ?"
INSERT = (
    "INSERT {or_replace} INTO entries (scope, account, address, copy, etag, last_modified, length,"
    " content_hash, lineage, path, time, command) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
RECORD = INSERT.format(or_replace="OR REPLACE")
UPDATE = INSERT.format(or_replace="") + (
    " ON CONFLICT (scope, account, address, copy) DO UPDATE SET etag = excluded.etag,"
    " last_modified = excluded.last_modified, length = excluded.length, content_hash = excluded.content_hash,"
    " lineage = excluded.lineage, path = excluded.path, time = excluded.time, command = excluded.command WHERE "
)
# An import never replaces what was read since.
MERGE = UPDATE + "excluded.time >= entries.time"
# A part that was read replaces the entry of the same part only: the rest of a whole entry was not read again.
RECORD_SELECTED = UPDATE + (
    f"substr(entries.command, instr(entries.command, '{records.SELECTING}'))"
    f" = substr(excluded.command, instr(excluded.command, '{records.SELECTING}'))"
)
# Each get -f creates another inode: only the newest ones of a resource are kept.
INODES = 64
TRIM = (
    f"DELETE FROM entries WHERE {{this}} AND copy >= x'00' AND copy < x'01' AND time < (SELECT time FROM entries"
    f" WHERE {{this}} AND copy >= x'00' AND copy < x'01' ORDER BY time DESC LIMIT 1 OFFSET {INODES - 1})"
)
# Each get -f to a temporary file has another path. Only these are looked at, so that a read costs the same always.
OLDER_PATHS = f"SELECT copy FROM entries WHERE {THIS} AND copy >= x'02' ORDER BY time DESC LIMIT 100 OFFSET {INODES}"
# One scope, or all if it is null.
OF_SCOPE = "scope = coalesce(?, scope)"
LIST = (
    f"SELECT {ENTRY} FROM entries WHERE copy = x'' AND {OF_SCOPE}"
    " AND instr(address, coalesce(?, '')) = 1 ORDER BY time DESC"
)
# How many resources ``delete_entries`` forgets.
COUNT = "SELECT count(*) FROM (SELECT DISTINCT scope, account, address FROM entries WHERE {which})"
# The resources at an address of which anything is known, be it of a part or of a file alone.
KEYS = f"SELECT DISTINCT account, address FROM entries WHERE {OF_SCOPE} AND address = ?"
# All that is known of a resource but for one row, with which the resource itself goes.
_BESIDES = (
    "copy <> (SELECT min(kept.copy) FROM entries AS kept WHERE kept.scope = entries.scope AND"
    " kept.account = entries.account AND kept.address = entries.address)"
)
# An inode is of this machine. A part that was not read here cannot be written unseen, so that parts stay here too.
EXPORT = f"SELECT copy, {ENTRY} FROM entries WHERE {OF_SCOPE} AND (copy = x'' OR copy >= x'02')"
# A file's version is kept as long as its resource's entry: without it, a newer one would guard the file.
OLD = (
    "NOT EXISTS (SELECT 1 FROM entries AS newer WHERE newer.scope = entries.scope AND"
    " newer.account = entries.account AND newer.address = entries.address AND newer.time >= ?)"
)
IS_PART = "copy >= x'01' AND copy < x'02'"
# The version of tags begins with that of the blob: see ``blobs.tags``.
FOLLOW_TAGS = (
    f"UPDATE entries SET etag = ? || substr(etag, ?), time = ? WHERE {THIS} AND {IS_PART} AND substr(etag, 1, ?) = ?"
)
HOLD = (
    "INSERT INTO leases (scope, account, address, lease_id, duration, action, confirmed, time, job)"
    " VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT (scope, account, address, lease_id)"
    " DO UPDATE SET duration = excluded.duration, action = excluded.action, time = excluded.time, job = excluded.job"
)
MOVE_LEASES = "UPDATE leases SET address = ? || substr(address, ?) WHERE account = ? AND substr(address, 1, ?) = ?"


def delete_entries(which: str, values: tuple[object, ...]) -> tuple[Step, Step]:
    """Return the statements that delete all entries of the resources; the last statement changes one row of each."""
    return (
        (f"DELETE FROM entries WHERE {which} AND {_BESIDES}", [values]),
        (f"DELETE FROM entries WHERE {which}", [values]),
    )


class CacheDatabase:
    """One database, shared by the threads of this process and by any number of processes."""

    def __init__(self, path: Path, *, warn: Callable[[str], None], now: Callable[[], datetime]) -> None:
        self.path = path
        self._warn = warn
        self._now = now
        #: Why the file could not be used, or not be written: the first failure.
        self.failure: str | None = None
        self._lock = threading.RLock()
        #: Steps that are to be run in one transaction; None where each write is one.
        self._gathered: list[Step] | None = None
        self._connection: Connection | None = None
        self._uri = MEMORY
        self._identity: Identity | None = None

    def open(self) -> None:
        """Open the file now, creating it if there is none, and report what is wrong with it."""
        self._attempt(lambda connection: None, None)

    @property
    def is_in_memory(self) -> bool:
        """Return whether the file cannot even be read, so that what was recorded before is out of reach."""
        return self.failure is not None and self._uri == MEMORY

    def close(self) -> None:
        """Close the file; the next statement opens it again."""
        import sqlite3

        with self._lock:
            if self._connection is not None:
                # A failure here loses nothing: what was committed is in the log.
                with suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = None

    def read(self, query: str, parameters: Row = ()) -> list[Row]:
        """Return the rows; none if the file cannot be read."""
        return self._attempt(lambda connection: connection.execute(query, parameters).fetchall(), [])

    def write(self, *steps: Step, durable: bool = False) -> int:
        """Run all steps or none, and return how many rows the last one changed; 0 if they cannot run.

        ``durable`` waits until it is on the disk, so that it outlives a crash of the machine.
        """
        return self._attempt(lambda connection: _commit(connection, steps, durable=durable), 0)

    def write_soon(self, *steps: Step) -> None:
        """Run all steps or none, while writes are gathered together with others."""
        gathered = self._gathered
        if gathered is None:
            self.write(*steps)
            return
        gathered.extend(steps)
        if len(gathered) >= _MOST_GATHERED:
            self._write_gathered()

    @contextmanager
    def gathering(self) -> Iterator[Callable[[], None]]:
        """Gather what is to be written soon; what this yields writes it now, and so does the end of the block.

        A crash of azguard loses what is gathered.
        """
        self._gathered = []
        try:
            yield self._write_gathered
        finally:
            self._write_gathered()
            self._gathered = None

    def _write_gathered(self) -> None:
        with self._lock:
            if steps := list(self._gathered or ()):
                self.write(*steps)
                # Only now: if it is interrupted in between, it is written twice rather than never.
                del (self._gathered or [])[: len(steps)]

    def stream(self, query: str, parameters: Row = ()) -> Iterator[Row]:
        """Yield the rows as of the first one, in constant memory; a slow reader holds up no writer."""
        import sqlite3

        # A statement of its own connection: on the shared one, it would make writes fail while it is read.
        try:
            connection = self._attempt(self._open_another, None)
            if connection is None:
                return
            try:
                yield from connection.execute(query, parameters)
            finally:
                if connection is not self._connection:
                    connection.close()
        except sqlite3.Error as error:
            self._repair(error)

    def _open_another(self, shared: "Connection") -> "Connection":
        return shared if self._uri == MEMORY else file.connect_again(self._uri)

    def _attempt(self, work: "Callable[[Connection], Result]", otherwise: Result) -> Result:
        import sqlite3

        with self._lock:
            try:
                return work(self._connect())
            except (sqlite3.Error, OSError) as error:
                if not self._repair(error):
                    return otherwise
            try:
                return work(self._connect())
            except (sqlite3.Error, OSError) as error:
                self._warn_once(file.describe(error))
                return otherwise

    def _connect(self) -> "Connection":
        """Return the connection to the present file: other processes may have set aside or deleted the earlier one."""
        if self._connection is not None:
            if self._uri == MEMORY or file.find_identity(self.path) == self._identity:
                return self._connection
            self.close()
        self._connection = self._open() or self._open_memory()
        return self._connection

    def _open(self) -> "Connection | None":
        import sqlite3

        try:
            for _ in range(_OPENINGS):
                self._identity = file.find_identity(self.path)
                if self._identity is None:
                    file.create(self.path)
                    continue
                try:
                    connection, self._uri, trouble = file.open_existing(self.path)
                except Damaged as error:
                    self._set_aside(str(error))
                    continue
                except (sqlite3.Error, OSError):
                    if file.find_identity(self.path) == self._identity:
                        raise
                    continue
                if file.find_identity(self.path) == self._identity:
                    if trouble is not None:
                        self._warn_once(file.describe(trouble))
                    return connection
                connection.close()
            self._warn_once("other processes keep replacing it")
        except Newer:
            self._warn_once("it was made by a newer azguard; update this one", "used")
        except (sqlite3.Error, OSError) as error:
            self._warn_once(file.describe(error), "used")
        return None

    def _open_memory(self) -> "Connection":
        self._uri = MEMORY
        return file.open_in_memory()

    def _repair(self, error: Exception) -> bool:
        """Set a damaged file aside, and return whether to try again; report any other error."""
        import sqlite3

        if self._uri == MEMORY:
            return False
        if isinstance(error, sqlite3.Error) and file.is_damage(error):
            with self._lock:
                self.close()
                try:
                    self._set_aside("is damaged")
                except (sqlite3.Error, OSError) as refusal:
                    self._warn_once(file.describe(refusal), "used")
                    self._connection = self._open_memory()
            return True
        if file.is_busy(error) and self._connection is not None:
            # What keeps it locked for so long is stopped or stuck: a tree of files would wait for it at each of them.
            self._connection.execute(f"PRAGMA busy_timeout = {_SHORT_WAIT_MILLISECONDS}")
        self._warn_once(file.describe(error))
        return False

    def _set_aside(self, what: str) -> None:
        if self._identity is None:
            return
        moved = file.set_aside(self.path, self._identity, self._now())
        if moved is not None:
            self._warn(
                f"the ETag cache {self.path} {what}; it is now {moved.name}, and a new one has begun: "
                "read again before you write"
            )

    def _warn_once(self, reason: str, verb: str = "written") -> None:
        """Warn at the first failure only: a batch of a thousand must not warn a thousand times."""
        if self.failure is None:
            self.failure = reason
            self._warn(f"the ETag cache {self.path} cannot be {verb}: {reason}; {_CONSEQUENCE}")


def _commit(connection: "Connection", steps: Sequence[Step], *, durable: bool) -> int:
    changed = 0
    if durable:
        connection.execute("PRAGMA synchronous = FULL")
    try:
        # Taking the write lock first waits for other writers; taking it later would fail instead.
        connection.execute("BEGIN IMMEDIATE")
        for statement, rows in steps:
            changed = connection.executemany(statement, rows).rowcount
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if durable:
            connection.execute("PRAGMA synchronous = NORMAL")
    return changed


def connect_scratch(*statements: str) -> "Connection":
    """Return a new database without a name, in one transaction that never ends, after these statements.

    This process alone sees it; it is deleted when it is closed, or when the process ends.
    """
    import sqlite3

    connection = sqlite3.connect("", check_same_thread=False, isolation_level=None)
    for each in (*statements, "BEGIN"):
        connection.execute(each)
    return connection


@contextmanager
def explain_full_disk() -> Iterator[None]:
    """Say that a full disk keeps no rows, and is no fault of azguard.

    Raises:
        ConfigError: the rows cannot be kept.
    """
    import sqlite3

    try:
        yield
    except sqlite3.OperationalError as error:
        raise ConfigError(
            f"the folder of temporary files cannot be written: {error}", reason="temporary_folder_fails"
        ) from error
