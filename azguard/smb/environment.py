"""The files that are locked around us: what ``file lock run`` puts into its command's environment."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from azguard.errors import LockLost, UsageError
from azguard.locks.environment import FILE_LOCKS
from azguard.processes import identity
from azguard.processes.identity import KnownProcess
from azguard.smb.file_lock import ByteRange, FileLock

#: The addresses of the files, a line each, for scripts.
NAMES = "AZGUARD_FILE_LOCK"


@dataclass(frozen=True)
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

    def is_of(self, lock: FileLock) -> bool:
        """Return whether it is the same file; SMB does not tell capitals from small letters."""
        return (self.name.lower(), self.endpoint) == (lock.name.lower(), lock.target.endpoint)

    def is_like(self, lock: FileLock) -> bool:
        """Return whether it is locked in the same way."""
        theirs = None if lock.byte_range is None else str(lock.byte_range)
        return (self.share, self.byte_range) == (lock.share.value, theirs)

    def excludes(self, lock: FileLock) -> bool:
        """Return whether this lock keeps the other one out."""
        if self.byte_range is None or lock.byte_range is None:
            return True
        offset, _, length = self.byte_range.partition(":")
        return lock.byte_range.overlaps(ByteRange(int(offset), int(length)))


def export(lock: FileLock, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell a command of this lock, and of those around it."""
    pid = os.getpid()
    mine = OuterFileLock(
        name=lock.name,
        endpoint=lock.target.endpoint,
        share=lock.share.value,
        byte_range=None if lock.byte_range is None else str(lock.byte_range),
        pid=pid,
        birth=identity.find_birth(pid) or "",
    )
    every = [*read(environ), mine]
    return {NAMES: "\n".join(each.name for each in every), FILE_LOCKS: json.dumps([asdict(each) for each in every])}


def read(environ: Mapping[str, str]) -> list[OuterFileLock]:
    """Return the locks that the variables tell of; none where they cannot be read."""
    try:
        return [OuterFileLock(**each) for each in json.loads(environ.get(FILE_LOCKS) or "[]")]
    except (TypeError, ValueError):
        return []


def find(lock: FileLock, environ: Mapping[str, str]) -> OuterFileLock | None:
    """Return the same lock, if a process around us holds it.

    Raises:
        UsageError: it holds the file in another way, so that this would wait for its own end.
        LockLost: the process that held it is gone.
    """
    for outer in read(environ):
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
