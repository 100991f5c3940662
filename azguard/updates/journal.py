"""The write that an update had sent when it ended without knowing its outcome, kept for the next run of the same key.

The lineage forgets an op after sixteen more writes, and at once if another tool removes it. A run that is killed while
a write is under way leaves here the version that the write was sent for. The next run with the same key settles that
write first, and so never writes twice what may have been committed.

The run keeps the file locked, which tells the cache that it is in use. Two runs of one key have one file, which the
first of them locks.

Not guaranteed: on another machine, or with another cache folder, only the lineage is known. The file is not forced to
the disk: it outlives the process, not a power failure.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from azguard.folders import make_private
from azguard.processes import locked_file
from azguard.requests.lineage import bare

# Behind the version, where the write was one that a ledger tells of; behind both stands the digest of the change.
_IN_LEDGER = "ledger"
_CHANGE = "change:"


class WriteJournal:
    """The version that the latest write of one op was sent for, which is enough: see ``lineage``."""

    def __init__(self, folder: Path, op: str, *, keyed: bool) -> None:
        self._path = folder / op
        #: Whether the op has a key that a run after a kill uses again. Without a key only an unknown outcome is
        #: recorded, because its message names the op.
        self._keyed = keyed
        #: What the file holds, as far as this run knows; None is no file.
        self._kept: str | None = None
        #: The open file.
        self._descriptor: int | None = None

    def read_pending(self) -> str | None:
        """Return the ETag, without quotes, that the write without a recorded outcome was sent over.

        ``-`` is a write over nothing, and None is no such write.
        """
        try:
            # Behind the first line may stand the end of a longer one that was there before.
            self._kept = self._path.read_text("ascii").partition("\n")[0].strip() or None
        except (OSError, ValueError):
            return None
        if self._kept is None:
            return None
        with suppress(OSError):
            self._open(os.O_RDWR)
        return self._kept.split()[0]

    @property
    def is_in_ledger(self) -> bool:
        """Return whether a ledger tells of the write that is recorded."""
        return _IN_LEDGER in self._words

    @property
    def change(self) -> bytes | None:
        """Return the digest of the change that was sent, if it is recorded."""
        found = next((word.removeprefix(_CHANGE) for word in self._words if word.startswith(_CHANGE)), "")
        return bytes.fromhex(found) if re.fullmatch("([0-9a-f]{2})+", found) else None

    @property
    def _words(self) -> list[str]:
        return (self._kept or "").split()[1:]

    def record_sending(self, etag: str | None, change: bytes | None = None, *, in_ledger: bool = False) -> None:
        """Record that a write is about to be sent over this version; ``in_ledger`` says that a ledger tells of it."""
        if self._keyed:
            self.record_unknown(etag, change, in_ledger=in_ledger)

    def record_unknown(self, etag: str | None, change: bytes | None = None, *, in_ledger: bool = False) -> None:
        """Record that a write over this version was sent, and that its outcome is not known."""
        text = bare(etag)
        if in_ledger:
            text += f" {_IN_LEDGER}"
        if change is not None:
            text += f" {_CHANGE}{change.hex()}"
        try:
            self._write(f"{text}\n".encode("ascii"))
        except OSError:
            return  # The folder cannot be written: then only the lineage shows the write.
        self._kept = text

    def _write(self, line: bytes) -> None:
        """Write the line over the one before, which a kill leaves whole, too: it is one short write."""
        if self._descriptor is None or not os.fstat(self._descriptor).st_nlink:
            make_private(self._path.parent)
            self._open(os.O_RDWR | os.O_CREAT)
        if self._descriptor is not None:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, line)

    def _open(self, flags: int) -> None:
        self.close()
        self._descriptor = locked_file.open_and_try(self._path, flags | getattr(os, "O_NOFOLLOW", 0))

    def forget(self) -> None:
        """Delete the record, because the outcome of every write is known."""
        if self._kept is not None or self._descriptor is not None:
            # If it stays, the next run with this key settles it again.
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._kept = None

    def close(self) -> None:
        """Let go of the file, which stays as it is."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
