"""What was last delivered to the user, per scope and resource, and which leases a scope holds.

A write is guarded by the version that its author has seen. The cache remembers that version for each scope, and for
each file the version of its content. A failure of the cache never fails a command, and is safe: an entry that is
missing or old leads to a refused write; a write without a guard never follows from it.

Not guaranteed: content delivered while the cache could not be written (a warning said so) is not tied to its
version; neither is a file that ``cp`` made, which is guarded by what the scope last read, nor one that was moved and is
older than the last ``database.INODES`` copies of its resource, nor an older one that was away when newer ones were
recorded.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from azguard.address import Location
from azguard.cache import database as sql
from azguard.cache import records as cache_records
from azguard.cache.copies import Copy
from azguard.cache.database import CacheDatabase, Step, connect_scratch, explain_full_disk
from azguard.cache.file import NAME
from azguard.cache.records import Entry, HeldLease, Key, Row, count_microseconds, find_selection, require_no_secrets
from azguard.cache.scope import is_own_job
from azguard.errors import ConfigError, NotFound, UsageError
from azguard.guards.versions import SeenVersion
from azguard.naming import same_host
from azguard.times import iso, say_count

#: What a scope read so long ago, `cache prune` forgets.
OLD_SECONDS = 30 * 86_400.0
# The empty copy: the version that the scope last read, into any file or none.
_LAST = b""
# How a mark begins of a part of a resource, such as its tags, that was read by itself. No path begins so.
_PART = b"\x01"
# The part under which the id of a lease is kept for which a release was sent.
_RELEASED_PART = "released"
_RELEASED = _PART + _RELEASED_PART.encode()
# ``prune`` counts days from the time at which a version was recorded.
_LATELY = timedelta(hours=1)
# One record in so many looks for copies that are gone, by the microsecond; each look forgets more than these add.
_LOOK_AT_COPIES = 8
# Rows of one transaction of an import: it blocks other processes for some milliseconds.
_BATCH = 2000


class EtagCache:
    """The cache as one scope sees it."""

    def __init__(
        self, database: CacheDatabase, scope: str, now: Callable[[], datetime], job: str | None = None
    ) -> None:
        self.scope = scope
        #: The CI job that this is, whose leases are its own: see ``scope``.
        self.job = job
        self._database = database
        #: Has the versions recorded that many threads read or write, many in one transaction.
        self.gathering = database.gathering
        self._now = now

    @classmethod
    def open(
        cls,
        folder: Path,
        scope: str,
        *,
        warn: Callable[[str], None],
        now: Callable[[], datetime],
        job: str | None = None,
    ) -> "EtagCache":
        """Open the cache in ``folder``, creating both if they are missing; a failure goes to ``warn`` and never raises.

        A damaged or foreign file is moved aside, and a new one is created. The file of a newer azguard stays. If the
        file cannot be opened, the cache lives in memory for this process; if it cannot be written, nothing is recorded.
        """
        database = CacheDatabase(Path(os.path.abspath(folder)) / NAME, warn=warn, now=now)
        database.open()
        return cls(database, scope, now, job)

    def for_scope(self, scope: str) -> "EtagCache":
        """Return the same cache as another scope sees it."""
        return EtagCache(self._database, scope, self._now, self.job)

    @property
    def path(self) -> Path:
        return self._database.path

    def require_readable(self) -> None:
        """See that what was recorded before can be read.

        Raises:
            ConfigError: it cannot, as ``warn`` was told.
        """
        if self._database.is_in_memory:
            raise ConfigError(f"the ETag cache {self.path} cannot be read", reason="cache_unusable")

    def require_written(self) -> None:
        """See that everything so far was written to the file.

        Raises:
            ConfigError: it was not, as ``warn`` was told.
        """
        if self._database.failure is not None:
            raise ConfigError(f"the ETag cache {self.path} was not changed", reason="cache_unusable")

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def find_last(self, key: Key) -> Entry | None:
        """Return the entry of the last read or write of a resource in this scope."""
        return self._find_entry(key, _LAST)

    def find_bound(self, key: Key, copy: Copy) -> cache_records.Bound:
        """Return the versions whose content this scope put into a file, even if a newer one was read since."""
        return self.find_known(key, copy)[1]

    def find_known(self, key: Key, copy: Copy) -> tuple[Entry | None, cache_records.Bound]:
        """Return the results of ``find_last`` and ``find_bound``, from one query."""
        query = f"SELECT copy, {sql.ENTRY} FROM entries WHERE {sql.THIS} AND copy IN (?, ?, ?)"
        rows = self._database.read(query, (*self._this(key), _LAST, copy.path, copy.inode))
        found = {row[0]: cache_records.parse_entry(row[1:]) for row in rows}
        return found.get(_LAST), cache_records.Bound(found.get(copy.path), found.get(copy.inode))

    def are_recorded(self, version: Entry, command: str, *entries: Entry | None) -> bool:
        """Return whether a command has recorded a version in all of these entries, and lately."""
        since = iso(self._now() - _LATELY) or ""
        return all(each is not None and each.repeats(version, command) and each.time >= since for each in entries)

    def record(
        self,
        key: Key,
        *,
        etag: str,
        last_modified: str | None = None,
        length: int | None = None,
        content_hash: str | None = None,
        lineage: str | None = None,
        copy: Copy | None = None,
        command: str,
    ) -> None:
        """Remember the version just delivered or written, for its resource and, if given, for the file with a copy.

        Raises:
            UsageError: there is no ETag, or the key or the command has a credential in it.
        """
        this = (self.scope, *require_no_secrets(key, command))
        if not etag:
            raise UsageError("there is no ETag to remember", address=key.address)
        copy = copy or Copy(None)
        moment = count_microseconds(self._now())
        known = (etag, last_modified, length, content_hash, lineage, copy.path, moment, command)
        trim = [] if copy.inode is None else [(sql.TRIM.format(this=sql.THIS), [(*this, *this)])]
        self._database.write_soon((sql.RECORD, [(*this, mark, *known) for mark in (_LAST, *copy.marks)]), *trim)
        if copy.path is not None and not moment % _LOOK_AT_COPIES:
            self._drop_gone_copies(this)

    def record_all(self, seen: Iterable[tuple[Key, SeenVersion]], command: str) -> None:
        """Remember many versions just delivered, in one transaction; parts of them, if the command says so.

        Raises:
            UsageError: as for ``record``; nothing was remembered.
        """
        moment = count_microseconds(self._now())
        rows = []
        for key, version in seen:
            if not version.etag:
                raise UsageError("there is no ETag to remember", address=key.address)
            known = (version.etag, version.last_modified, None, None, version.lineage, None, moment, command)
            rows.append((self.scope, *require_no_secrets(key, command), _LAST, *known))
        if rows:
            self._database.write((sql.RECORD if find_selection(command) is None else sql.RECORD_SELECTED, rows))

    def find_part(self, key: Key, part: str) -> Entry | None:
        """Return the version of a part of a resource that this scope last read by itself, or wrote."""
        return self._find_entry(key, _PART + part.encode())

    def record_part(
        self, key: Key, part: str, *, etag: str, last_modified: str | None, lineage: str | None, command: str
    ) -> None:
        """Remember the version of a part that was just delivered or written; what is known of the content stays.

        Raises:
            UsageError: the key or the command has a credential in it.
        """
        this = (self.scope, *require_no_secrets(key, command), _PART + part.encode())
        known = (etag, last_modified, None, None, lineage, None, count_microseconds(self._now()), command)
        self._database.write((sql.RECORD, [(*this, *known)]))

    def follow(self, key: Key, before: str, after: str, lineage: str | None, *, only_parts: bool = False) -> None:
        """Move what this scope knows of version ``before`` to ``after``, which has the same content.

        With ``only_parts`` the content is another, and what was read apart from it is known all the same.
        """
        which = f" AND {sql.IS_PART}" if only_parts else ""
        change = f"UPDATE entries SET etag = ?, lineage = ?, time = ? WHERE {sql.THIS} AND etag = ?{which}"
        moment, this = count_microseconds(self._now()), self._this(key)
        beginning = before.rstrip('"') + "+"
        of_tags = (after.rstrip('"'), len(beginning), moment, *this, len(beginning), beginning)
        self._database.write((change, [(after, lineage, moment, *this, before)]), (sql.FOLLOW_TAGS, [of_tags]))

    def forget(self, key: Key, *, all_scopes: bool = False) -> int:
        """Drop the entries of a resource, its parts and files, and return in how many scopes; leases stay."""
        this, values = ("account = ? AND address = ?", key) if all_scopes else (sql.THIS, self._this(key))
        return self._database.write(*sql.delete_entries(this, values))

    def list_known(self, location: Location, scope: str | None) -> list[Key]:
        """Return the resources at a location, in every account that it may be in, of one scope, or with None of all."""
        found = (Key(*row) for row in self._database.stream(sql.KEYS, (scope, str(location.address))))
        return [key for key in found if _is_at(key.account, location)]

    def list_entries(self, scope: str | None = None, prefix: str | None = None) -> Iterator[Entry]:
        """Yield entries, newest first, in constant memory; ``prefix`` is how their addresses begin."""
        return map(cache_records.parse_entry, self._database.stream(sql.LIST, (scope, prefix)))

    def forget_account(self, account: str) -> int:
        """Drop every scope's entries of an account that begins anew, such as an emulator's, with its leases."""
        return self._database.write(
            ("DELETE FROM leases WHERE account = ?", [(account,)]),
            *sql.delete_entries("account = ?", (account,)),
        )

    def clear(self, scope: str | None = None) -> int:
        """Drop all entries, of one scope or all, and return of how many resources; held leases stay."""
        return self._database.write(*sql.delete_entries(sql.OF_SCOPE, (scope,)))

    def prune(self, older_than: timedelta) -> int:
        """Drop entries not moved for so long, in every scope, and return of how many resources.

        Leases whose term ended so long ago go too; infinite ones stay until they are released.
        """
        before = count_microseconds(self._now() - older_than)
        return self._database.write(
            ("DELETE FROM leases WHERE time + duration * 1000000 < ?", [(before,)]),
            *sql.delete_entries(sql.OLD, (before,)),
        )

    def count_all(self, scope: str | None = None) -> int:
        """Return of how many resources ``clear`` drops what is known."""
        return int(self._database.read(sql.COUNT.format(which=sql.OF_SCOPE), (scope,))[0][0])

    def count_old(self, older_than: timedelta) -> int:
        """Return of how many resources ``prune`` drops what is known."""
        before = count_microseconds(self._now() - older_than)
        return int(self._database.read(sql.COUNT.format(which=sql.OLD), (before,))[0][0])

    def export(self, scope: str | None = None) -> Iterator[dict[str, object]]:
        """Yield records for ``import_records``, ties to files included, in constant memory; leases stay here."""
        for copy, *row in self._database.stream(sql.EXPORT, (scope,)):
            yield cache_records.export_entry(cache_records.parse_entry(tuple(row)), copy=bool(copy))

    def import_records(self, records: Iterable[Mapping[str, object]]) -> int:
        """Import exported records, and return how many; entries that are newer here stay.

        Raises:
            UsageError: a record is not one of ours; names its line and field. Nothing was imported.
            ConfigError: the disk takes none of it, or only a part, as ``warn`` was told.
        """
        # All are checked before the first is imported. Until then they are in a file of SQLite's own, not in memory.
        rows = connect_scratch("CREATE TABLE rows (r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12)")
        try:
            with explain_full_disk():
                rows.executemany(
                    "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", cache_records.parse_records(records)
                )
            waiting: Iterator[Row] = iter(rows.execute("SELECT * FROM rows"))
            loaded = 0
            while batch := list(islice(waiting, _BATCH)):
                loaded += self._database.write((sql.MERGE, batch))
                if loaded and self._database.failure is not None and not self._database.is_in_memory:
                    words = f"the ETag cache {self.path} took in {say_count(loaded, 'record')}, and not the rest"
                    raise ConfigError(words, reason="cache_unusable")
            return loaded
        finally:
            rows.close()

    def record_lease(self, key: Key, lease_id: str, *, duration: int | None, action: str) -> None:
        """Remember a lease that is about to be asked for, before the request is sent; it outlives a crash.

        ``duration`` is in seconds, None is infinite; ``action`` is what the lease is for.

        Raises:
            UsageError: the key has a credential in it.
        """
        row = (*self._this(key), lease_id, duration, action, count_microseconds(self._now()), self.job)
        self._database.write(self._forget_release(key), (sql.HOLD, [row]), durable=True)

    def record_release(self, key: Key, lease_id: str, command: str) -> None:
        """Remember that a release of this lease is about to be sent, until another lease is asked for."""
        self.record_part(key, _RELEASED_PART, etag=lease_id, last_modified=None, lineage=None, command=command)

    def forget_release(self, key: Key) -> None:
        """Remember that the release was refused."""
        self._database.write(self._forget_release(key))

    def _forget_release(self, key: Key) -> Step:
        return f"DELETE FROM entries WHERE {sql.THIS} AND copy = ?", [(*self._this(key), _RELEASED)]

    def find_released(self, key: Key) -> str | None:
        """Return the id of the lease for which a release was sent last, if no other was asked for since."""
        found = self.find_part(key, _RELEASED_PART)
        return None if found is None else found.etag

    def confirm(self, key: Key, lease_id: str, *, since: datetime | None = None) -> None:
        """Remember that the service granted it; ``since`` is the moment before a renewal was sent."""
        moment = None if since is None else count_microseconds(since)
        change = f"UPDATE leases SET confirmed = 1, time = coalesce(?, time) WHERE {sql.THIS} AND lease_id = ?"
        self._database.write((change, [(moment, *self._this(key), lease_id)]))

    def forget_lease(self, key: Key, lease_id: str) -> None:
        """Remember that a lease was released, refused or lost."""
        self._database.write((f"DELETE FROM leases WHERE {sql.THIS} AND lease_id = ?", [(*self._this(key), lease_id)]))

    def forget_lease_unless_renewed(self, lease: HeldLease) -> bool:
        """Forget a confirmed lease of any scope, unless it was asked for or renewed since ``lease`` was read.

        Return whether it is forgotten.
        """
        row = (lease.scope, *lease.key, lease.lease_id, count_microseconds(datetime.fromisoformat(lease.time)))
        change = f"DELETE FROM leases WHERE {sql.THIS} AND lease_id = ? AND time = ? AND confirmed"
        return bool(self._database.write((change, [row])))

    def move_leases(self, account: str, before: str, after: str) -> None:
        """Remember that all whose address begins with ``before`` begins with ``after`` now, in every scope."""
        rest = len(before) + 1
        self._database.write((sql.MOVE_LEASES, [(after, rest, account, len(before), before)]))

    def find_held(self, key: Key) -> HeldLease | None:
        """Return the newest lease this scope asked for in this job and has not released; its term may have ended.

        One that was given up is returned only if there is no other.
        """
        own = [lease for lease in self._list_held_on(key) if is_own_job(lease.job, self.job)]
        return next((lease for lease in own if not lease.is_given_up), next(iter(own), None))

    def find_held_by_others(self, key: Key) -> HeldLease | None:
        """Return the newest lease that another job with this scope asked for and has not released."""
        others = (lease for lease in self._list_held_on(key) if not is_own_job(lease.job, self.job))
        return next((lease for lease in others if not lease.is_given_up), None)

    def list_given_up(self, key: Key) -> list[HeldLease]:
        """Return the leases that any job with this scope gave up although a request for them may come late."""
        return [lease for lease in self._list_held_on(key) if lease.is_given_up]

    def list_held(self, scope: str | None = None) -> Iterator[HeldLease]:
        """Yield the leases not released, newest first: those of this job in a scope, or all of all scopes."""
        query = f"SELECT {sql.LEASE} FROM leases WHERE {sql.OF_SCOPE} ORDER BY number DESC"
        found = map(cache_records.parse_lease, self._database.stream(query, (scope,)))
        return (lease for lease in found if scope is None or is_own_job(lease.job, self.job))

    def _list_held_on(self, key: Key) -> Iterator[HeldLease]:
        query = f"SELECT {sql.LEASE} FROM leases WHERE {sql.THIS} ORDER BY number DESC"
        return map(cache_records.parse_lease, self._database.read(query, self._this(key)))

    def _drop_gone_copies(self, this: Row) -> None:
        """Forget older paths of a resource at which there is no file any more: each run may name a new one."""
        older = [path for (path,) in self._database.read(sql.OLDER_PATHS, this)]
        if gone := [(*this, path) for path in older if not os.path.lexists(path)]:
            self._database.write((f"DELETE FROM entries WHERE {sql.THIS} AND copy = ?", gone))

    def _find_entry(self, key: Key, copy: bytes) -> Entry | None:
        query = f"SELECT {sql.ENTRY} FROM entries WHERE {sql.THIS} AND copy = ?"
        return next(map(cache_records.parse_entry, self._database.read(query, (*self._this(key), copy))), None)

    def _this(self, key: Key) -> Row:
        return (self.scope, *require_no_secrets(key))


def find_entries(cache: EtagCache, location: Location, scope: str | None) -> list[Entry]:
    """Return the entries of an address in one scope, or with None in every scope; of a URL, in the account it names."""
    wanted = str(location.address)
    found = (entry for entry in cache.list_entries(scope, wanted) if entry.address == wanted)
    return [entry for entry in found if _is_at(entry.account, location)]


def require_entries(cache: EtagCache, location: Location, scope: str) -> list[Entry]:
    """Return the entries of an address in one scope.

    Raises:
        NotFound: the scope has no entry of the address.
    """
    found = find_entries(cache, location, scope)
    if not found:
        address = str(location.address)
        raise NotFound(f"{address} was never read here", address=address, reason="address_not_in_scope")
    return found


def _is_at(account: str, location: Location) -> bool:
    """Return whether an account may be the one of a location; an address alone is of any account."""
    return location.endpoint is None or same_host(account) == same_host(location.endpoint)
