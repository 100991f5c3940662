"""The SQL of the ETag cache, except what stands in one place only."""

from azguard.cache import remarks
from azguard.cache.database import Step

ENTRY = "scope, account, address, etag, last_modified, length, content_hash, lineage, path, time, command"
LEASE = "scope, account, address, lease_id, duration, action, confirmed, time, job"
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
    f"substr(entries.command, instr(entries.command, '{remarks.SELECTING}'))"
    f" = substr(excluded.command, instr(excluded.command, '{remarks.SELECTING}'))"
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
# A file's version is kept as long as its resource's entry: without it, the file would be guarded by a newer
# one.
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
    """Return what deletes all that is known of the resources; the last step changes one row of each."""
    return (
        (f"DELETE FROM entries WHERE {which} AND {_BESIDES}", [values]),
        (f"DELETE FROM entries WHERE {which}", [values]),
    )
