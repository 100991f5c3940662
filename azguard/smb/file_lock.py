"""Which file to lock, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from azguard.accounts.target import Target
from azguard.smb.place import SmbPlace


class Share(StrEnum):
    """What others may do with the file while it is locked."""

    NONE = "none"
    READ = "read"


@dataclass(frozen=True)
class ByteRange:
    """Some bytes of a file; they need not exist."""

    offset: int
    length: int

    def overlaps(self, other: "ByteRange") -> bool:
        """Return whether they have a byte in common."""
        return self.offset < other.offset + other.length and other.offset < self.offset + self.length

    def __str__(self) -> str:
        return f"{self.offset}:{self.length}"


@dataclass(frozen=True)
class FileLock:
    """A file to lock: all of it, or some bytes of it."""

    target: Target
    place: SmbPlace
    share: Share = Share.NONE
    #: The bytes to lock; None is the whole file.
    byte_range: ByteRange | None = None

    @property
    def name(self) -> str:
        """Return the address of the file."""
        return str(self.target.address)

    @property
    def path(self) -> str:
        """Return the path of the file in its share, as SMB writes it."""
        return self.target.address.name.strip("/").replace("/", "\\")

    def __str__(self) -> str:
        return self.name if self.byte_range is None else f"bytes {self.byte_range} of {self.name}"


@dataclass(frozen=True)
class FileLockSettings:
    """How to acquire a lock, and how to keep it."""

    #: How many seconds to wait for other holders.
    wait: float
    #: How many seconds the server may take to accept the connection, and to answer.
    patience: float
    #: After how many seconds without an answer the lock counts as lost.
    lost_after: float
    #: Whether to create a file that is missing, and the directories it is in.
    create: bool
    #: Called with each line that people must see.
    say: Callable[[str], None]
    #: Called with each line for ``--verbose``.
    tell: Callable[[str], None]
    #: Draws a random number between two others.
    uniform: Callable[[float, float], float]
