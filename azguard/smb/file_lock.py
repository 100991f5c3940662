"""Which file to lock, on which server, and how; and the files that are locked around us.

``file lock run`` puts those into the environment of its command.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from enum import StrEnum
from urllib.parse import urlsplit

from azguard.accounts.account import Account, Auth, Target
from azguard.errors import ConfigError, LockLost, UsageError
from azguard.frozen import frozen
from azguard.locks.environment import FILE_LOCKS
from azguard.processes import identity
from azguard.processes.identity import KnownProcess

#: The variable that names another port than SMB's own, as the emulator needs it.
PORT = "AZGUARD_SMB_PORT"
# The only port of SMB on Azure.
_USUAL_PORT = 445
_HIGHEST_PORT = 65535
_PROOFS = {Auth.SAS: "a SAS", Auth.LOGIN: "a login", Auth.ANONYMOUS: "no credential"}
#: The addresses of the files, a line each, for scripts.
NAMES = "AZGUARD_FILE_LOCK"


@frozen
class SmbPlace:
    """A server, and the account that is known there by its name and key."""

    host: str
    port: int
    account: str
    key: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Share(StrEnum):
    """What others may do with the file while it is locked."""

    NONE = "none"
    READ = "read"


@frozen
class ByteRange:
    """Some bytes of a file; they need not exist."""

    offset: int
    length: int

    def overlaps(self, other: "ByteRange") -> bool:
        return self.offset < other.offset + other.length and other.offset < self.offset + self.length

    def __str__(self) -> str:
        return f"{self.offset}:{self.length}"


@frozen
class FileLock:
    """A file to lock: all of it, or some bytes of it."""

    target: Target
    place: SmbPlace
    share: Share = Share.NONE
    #: The bytes to lock; None is the whole file.
    byte_range: ByteRange | None = None
    #: Whether it is held as a reader: beside other readers, and by none that writes.
    is_shared: bool = False

    @property
    def name(self) -> str:
        return str(self.target.address)

    @property
    def path(self) -> str:
        """Return the path of the file in its share, as SMB writes it."""
        return self.target.address.name.strip("/").replace("/", "\\")

    def __str__(self) -> str:
        return self.name if self.byte_range is None else f"bytes {self.byte_range} of {self.name}"


@frozen
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


@frozen
class OuterFileLock:
    """A file that a process around us has locked."""

    name: str
    endpoint: str
    share: str
    #: As ``OFFSET:LEN``; None is the whole file.
    byte_range: str | None
    #: The azguard that holds it, and when that was started.
    pid: int
    birth: str
    is_shared: bool = False

    def is_of(self, lock: FileLock) -> bool:
        """Return whether it is the same file; SMB does not tell capitals from small letters."""
        return (self.name.lower(), self.endpoint) == (lock.name.lower(), lock.target.endpoint)

    def is_like(self, lock: FileLock) -> bool:
        """Return whether it is locked in the same way."""
        theirs = None if lock.byte_range is None else str(lock.byte_range)
        return (self.share, self.byte_range, self.is_shared) == (lock.share.value, theirs, lock.is_shared)

    def excludes(self, lock: FileLock) -> bool:
        """Return whether this lock keeps the other one out, or is the same."""
        if self.is_shared and lock.is_shared:
            return self.is_like(lock)
        if self.byte_range is None or lock.byte_range is None:
            return True
        offset, _, length = self.byte_range.partition(":")
        return lock.byte_range.overlaps(ByteRange(int(offset), int(length)))


def find_place(account: Account, port: int | None, environ: Mapping[str, str]) -> SmbPlace:
    """Find where the file service of an account answers to SMB.

    Raises:
        ConfigError: the caller has no account key, which is all that SMB takes; or the port of the environment is none.
    """
    if account.auth is not Auth.KEY or not account.secret:
        raise ConfigError(
            f"SMB takes the account key only, and {_PROOFS.get(account.auth, 'no key')} was given",
            reason="smb_needs_key",
        )
    host = urlsplit(account.endpoint("file")).hostname or ""
    return SmbPlace(host, _read_port(environ) if port is None else port, account.name, account.secret)


def _read_port(environ: Mapping[str, str]) -> int:
    text = environ.get(PORT, "")
    if not text:
        return _USUAL_PORT
    if text.isascii() and text.isdecimal() and 0 < int(text) <= _HIGHEST_PORT:
        return int(text)
    raise ConfigError(f"{PORT} is {text!r}, which is not a port", reason="smb_port_malformed")


def export_lock(lock: FileLock, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell a command of this lock, and of those around it."""
    pid = os.getpid()
    mine = OuterFileLock(
        name=lock.name,
        endpoint=lock.target.endpoint,
        share=lock.share.value,
        byte_range=None if lock.byte_range is None else str(lock.byte_range),
        pid=pid,
        birth=identity.find_birth(pid) or "",
        is_shared=lock.is_shared,
    )
    every = [*_read_outer_locks(environ), mine]
    return {NAMES: "\n".join(each.name for each in every), FILE_LOCKS: json.dumps([asdict(each) for each in every])}


def _read_outer_locks(environ: Mapping[str, str]) -> list[OuterFileLock]:
    """Return the locks that the variables tell of; none where they cannot be read."""
    try:
        return [OuterFileLock(**each) for each in json.loads(environ.get(FILE_LOCKS) or "[]")]
    except (TypeError, ValueError):
        return []


def find_outer_lock(lock: FileLock, environ: Mapping[str, str]) -> OuterFileLock | None:
    """Return the same lock, if a process around us holds it."""
    for outer in _read_outer_locks(environ):
        if not outer.is_of(lock) or not outer.excludes(lock):
            continue
        if not KnownProcess(outer.pid, outer.birth).lives:
            raise LockLost(
                "the lock around this command is lost: its azguard has ended",
                address=lock.name,
                reason="outer_file_lock_lost",
            )
        if outer.is_like(lock):
            return outer
        raise UsageError(
            f"the file lock run around this one has locked {lock.name} in another way",
            address=lock.name,
            reason="file_locked_around",
        )
    return None
