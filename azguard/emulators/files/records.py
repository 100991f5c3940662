"""What is kept of a share, a directory and a file."""

import json
from dataclasses import dataclass, field
from typing import Any, Self

from azguard.emulators.files.leases import FREE, EmulatedLease

DIRECTORY = "directory"
FILE = "file"
#: The largest file, in bytes: 4 TiB.
LARGEST_FILE = 4 * 1024**4


@dataclass
class ShareRecord:
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

    def to_json(self) -> str:
        """Return what the database keeps of it."""
        return json.dumps({**vars(self), "lease": vars(self.lease)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the share of a row."""
        found = json.loads(text)
        return cls(**{**found, "lease": EmulatedLease(**found["lease"])})


@dataclass
class Node:
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

    def to_json(self) -> str:
        """Return what the database keeps of it."""
        return json.dumps({**vars(self), "lease": vars(self.lease)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the node of a row."""
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


@dataclass(frozen=True)
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
