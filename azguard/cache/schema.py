"""The schema of the ETag cache: its tables, its version, and the mark that its files carry."""

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
