"""The tables behind the emulator, and the records in them: shares, directories, files, open handles."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from azguard.emulators.files import answers
from azguard.emulators.files.leases import FREE, EmulatedLease
from azguard.frozen import frozen

DIRECTORY = "directory"
FILE = "file"
#: The largest file, in bytes: 4 TiB.
LARGEST_FILE = 4 * 1024**4
_SCHEMA = """
CREATE TABLE IF NOT EXISTS share (
    root INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL, snapshot TEXT NOT NULL, version TEXT NOT NULL, facts TEXT NOT NULL,
    UNIQUE (name, snapshot, version)
);
CREATE TABLE IF NOT EXISTS node (
    root INTEGER NOT NULL, key TEXT NOT NULL, parent TEXT NOT NULL, facts TEXT NOT NULL,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS children ON node (root, parent);
CREATE TABLE IF NOT EXISTS permission (key TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS document (name TEXT PRIMARY KEY, text TEXT NOT NULL);
"""


class _Record:
    """What a share, a directory and a file have in common."""

    etag: str
    modified: float
    lease: EmulatedLease

    @property
    def version_headers(self) -> dict[str, str]:
        """Return the headers that name its version."""
        return {"ETag": self.etag, "Last-Modified": answers.format_date(self.modified)}

    def to_json(self) -> str:
        return json.dumps({**vars(self), "lease": vars(self.lease)})


@dataclass
class ShareRecord(_Record):
    """A share, a snapshot of one, or one that was deleted and can be restored."""

    name: str
    #: Its row, and the name of its folder.
    root: int
    etag: str
    #: When it was last changed, in seconds since 1970.
    modified: float
    #: The time of the snapshot as addresses name it; empty for the share itself.
    snapshot: str = ""
    #: When it was deleted; None if it was not.
    deleted: float | None = None
    #: The version by which a deleted share is restored; empty for others.
    version: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    #: Headers that set properties, and are answered as they were set.
    settings: dict[str, str] = field(default_factory=dict)
    #: The access policies, as the XML that was sent; empty for none.
    policies: str = ""
    lease: EmulatedLease = FREE

    @classmethod
    def from_json(cls, text: str) -> Self:
        found = json.loads(text)
        return cls(**{**found, "lease": EmulatedLease(**found["lease"])})


@dataclass
class Node(_Record):
    """A directory or a file of a share."""

    root: int
    #: Its path as it was written first.
    path: str
    kind: str
    id: int
    etag: str
    modified: float
    size: int = 0
    attributes: str = "None"
    created: str = ""
    written: str = ""
    changed: str = ""
    permission_key: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    #: Content-Type and its siblings, by their names in answers.
    content: dict[str, str] = field(default_factory=dict)
    lease: EmulatedLease = FREE
    #: Headers that tell of the copy by which it was last written.
    copy: dict[str, str] = field(default_factory=dict)
    #: What was written, as pairs of offsets, the second one past the end.
    ranges: list[tuple[int, int]] = field(default_factory=list)
    #: What was written or cleared since the file was created, as offsets with the number of the share or snapshot that
    #: was made last before; None if that was not all noted, because another program wrote, or the file was copied.
    changes: list[tuple[int, int, int]] | None = None
    #: What the disk said after our last change: time, length and inode. Another value means a change past us.
    stamp: list[int] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Return the path by which it is found: names differ by more than their case."""
        return make_key(self.path)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_read_only(self) -> bool:
        return "readonly" in self.attributes.lower()

    @classmethod
    def from_json(cls, text: str) -> Self:
        found: dict[str, Any] = json.loads(text)
        ranges = [(start, end) for start, end in found["ranges"]]
        changes = found.get("changes")
        noted = None if changes is None else [(start, end, number) for start, end, number in changes]
        return cls(**{**found, "lease": EmulatedLease(**found["lease"]), "ranges": ranges, "changes": noted})


@dataclass
class PendingCopy:
    """A copy from another server that is not done."""

    #: The number of the share that its file is in.
    root: int
    size: int
    #: How many bytes are copied.
    done: int = 0
    #: Whether what is copied is not wanted any more.
    is_stopped: bool = False


@frozen
class OpenHandle:
    """A file or directory that an SMB client has open."""

    #: Its number in Samba.
    id: int
    #: From the folder of the share, with slashes; empty for the root.
    path: str
    session: str
    #: Address and port of the client.
    client: str
    #: When it was opened, in seconds since 1970.
    opened: float
    #: Read, Write, Delete.
    access: tuple[str, ...]


def make_key(path: str) -> str:
    """Return the path by which a directory or file is found."""
    return path.lower()


def parent_of(path: str) -> str:
    """Return the path of the directory above; empty for the root."""
    return path.rpartition("/")[0]


class Database:
    """One file of SQLite, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        # What is written to the system survives the end of this process; only power loss would need more.
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.executescript(_SCHEMA)
        #: Held by the thread that works with the database or the disk.
        self.lock = threading.RLock()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Apply all of a block, or nothing of it if it raises."""
        with self.lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()

    def count_up(self, name: str, least: int = 1) -> int:
        """Return the next number of a counter, at least ``least``."""
        row = self._connection.execute(
            "INSERT INTO counter VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = max(value + 1, ?) RETURNING value",
            (name, least, least),
        ).fetchone()
        return int(row[0])

    def find_share(self, name: str, snapshot: str = "") -> ShareRecord | None:
        row = self._connection.execute(
            "SELECT facts FROM share WHERE name = ? AND snapshot = ? AND version = ''", (name, snapshot)
        ).fetchone()
        return ShareRecord.from_json(row[0]) if row else None

    def list_shares(self, name: str | None = None) -> list[ShareRecord]:
        """Return all shares, snapshots and deleted ones; those of one name if that is given."""
        rows = self._connection.execute("SELECT facts FROM share WHERE ? IS NULL OR name = ?", (name, name)).fetchall()
        return [ShareRecord.from_json(row[0]) for row in rows]

    def add_share(self, share: ShareRecord) -> None:
        """Add a share, and give it its number."""
        cursor = self._connection.execute(
            "INSERT INTO share (name, snapshot, version, facts) VALUES (?, ?, ?, '')",
            (share.name, share.snapshot, share.version),
        )
        share.root = cursor.lastrowid or 0
        self.save_share(share)

    def find_last_root(self) -> int:
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'share'").fetchone()
        return int(row[0]) if row else 0

    def save_share(self, share: ShareRecord) -> None:
        self._connection.execute(
            "UPDATE share SET name = ?, snapshot = ?, version = ?, facts = ? WHERE root = ?",
            (share.name, share.snapshot, share.version, share.to_json(), share.root),
        )

    def remove_share(self, root: int) -> None:
        self._connection.execute("DELETE FROM node WHERE root = ?", (root,))
        self._connection.execute("DELETE FROM share WHERE root = ?", (root,))

    def find_node(self, root: int, path: str) -> Node | None:
        row = self._connection.execute(
            "SELECT facts FROM node WHERE root = ? AND key = ?", (root, make_key(path))
        ).fetchone()
        return Node.from_json(row[0]) if row else None

    def list_nodes(self, root: int, directory: str) -> dict[str, Node]:
        """Return the known nodes in a directory, by key."""
        rows = self._connection.execute(
            "SELECT key, facts FROM node WHERE root = ? AND parent = ? AND key != ''", (root, make_key(directory))
        )
        return {key: Node.from_json(facts) for key, facts in rows}

    def list_all_nodes(self, root: int) -> list[Node]:
        return [
            Node.from_json(row[0]) for row in self._connection.execute("SELECT facts FROM node WHERE root = ?", (root,))
        ]

    def save_node(self, node: Node) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?)",
            (node.root, node.key, make_key(parent_of(node.path)), node.to_json()),
        )

    def remove_node(self, root: int, path: str) -> None:
        self._connection.execute("DELETE FROM node WHERE root = ? AND key = ?", (root, make_key(path)))

    def list_below(self, root: int, path: str) -> list[Node]:
        """Return the known nodes below a directory, at any depth."""
        start = make_key(path) + "/"
        rows = self._connection.execute(
            "SELECT facts FROM node WHERE root = ? AND substr(key, 1, ?) = ?", (root, len(start), start)
        )
        return [Node.from_json(row[0]) for row in rows.fetchall()]

    def save_permission(self, key: str, text: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO permission VALUES (?, ?)", (key, text))

    def find_permission(self, key: str) -> str | None:
        row = self._connection.execute("SELECT text FROM permission WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else None

    def save_document(self, name: str, text: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO document VALUES (?, ?)", (name, text))

    def find_document(self, name: str) -> str | None:
        row = self._connection.execute("SELECT text FROM document WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None
