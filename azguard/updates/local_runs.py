"""What the runs on this machine tell each other: which write one of them left in doubt, and whose turn it is.

**The journal.** The lineage forgets an op after sixteen more writes, and at once if another tool removes it. A run that
is killed while a write is under way, or before it has told its end, leaves here the version that the write was sent
for. The next run with the same key settles that write first, and so never writes twice what may have been committed.
The run keeps the file locked, which tells the cache that it is in use. Two runs of one key have one file, which the
first of them locks.

Not guaranteed: on another machine, or with another cache folder, only the lineage is known. The file is not forced to
the disk: it outlives the process, not a power failure.

**The queue.** One per address, first come first served. It avoids conflicts between writers of one machine; it protects
nothing. Every waiter holds a lock on its own ticket, so that a killed process leaves the queue at once. A stopped
process is passed over. A writer that has waited too long goes ahead; the condition on its write keeps it safe.
"""

import hashlib
import os
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from azguard.folders import make_private
from azguard.processes import locked_file
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import bare

# Behind the version, where the write was one that a ledger tells of; behind both stands the digest of the change.
_IN_LEDGER = "ledger"
_CHANGE = "change:"
# The part of the deadline to wait at most: a writer that hangs at the head must not use up the deadlines of the others.
_PART_OF_DEADLINE = 0.5
# How often to see whether the process ahead was stopped. It costs 60 µs, and nothing else happens while waiting.
_LOOK_SECONDS = 0.5


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
        self._keep(text)

    def _keep(self, text: str) -> None:
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

    def leave(self) -> bool:
        """Let go of the file, whose write is known to this run, until ``forget``; return whether there is one.

        Its change is deleted there: a run with the key of another change then asks the resource, which tells.
        """
        if self._kept is None:
            return False
        self._keep(" ".join(word for word in self._kept.split() if not word.startswith(_CHANGE)))
        self.close()
        return True

    def forget(self) -> None:
        """Delete the record, because the outcome of every write is known, and let go of the file."""
        if self._kept is not None or self._descriptor is not None:
            # If it stays, the next run with this key settles it again.
            with suppress(OSError):
                self._path.unlink()
        self._kept = None
        self.close()

    def close(self) -> None:
        """Let go of the file, which stays as it is."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class LocalQueue(AbstractContextManager["LocalQueue"]):
    """A place in the queue for one address, held during the ``with`` block. ``tell`` is called when it waits.

    Read and write both inside the block: what was read before it has been overwritten by then.
    """

    def __init__(
        self, folder: Path, key: str, deadline: Deadline, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        self._folder = folder / hashlib.sha256(key.encode()).hexdigest()[:24]
        self._deadline = deadline
        self._tell = tell
        self._ticket: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        patience = self._deadline.restart(seconds=self._deadline.remaining * _PART_OF_DEADLINE)
        try:
            self._ticket = self._take(patience)
            if self._ticket is not None:
                self._wait(self._ticket[0], patience)
        except OSError:
            pass  # No folder to queue in: conflicts are then settled by the service alone.
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._ticket is None:
            return
        number, handle = self._ticket
        self._ticket = None
        # Deleted before it is unlocked, so that the next waiter finds no ticket ahead of its own. One that stays is
        # passed over.
        with suppress(OSError):
            self._path(number).unlink(missing_ok=True)
        os.close(handle)

    def _take(self, patience: Deadline) -> tuple[int, int] | None:
        if not locked_file.IS_SUPPORTED:
            return None
        make_private(self._folder)
        with locked_file.hold(self._folder / "next", patience.remaining) as counter:
            number = self._next(os.read(counter, 20))
            # Written first: a full disk then leaves no ticket behind, and an unused number does no harm.
            os.pwrite(counter, b"%019d" % (number + 1), 0)
            handle = locked_file.create_locked(self._path(number))
        # Where the disk is full, others cannot see whether we were stopped.
        with suppress(OSError):
            os.write(handle, b"%d" % os.getpid())
        return number, handle

    def _next(self, counted: bytes) -> int:
        """Return the next number; where the counter is damaged, one after every ticket there is."""
        return int(counted) if counted.isdigit() else max(self._numbers(), default=-1) + 1

    def _wait(self, mine: int, patience: Deadline) -> None:
        began = patience.clock()
        waited = False
        while ahead := [number for number in self._numbers() if number < mine]:
            if not waited:
                waited = True
                self._tell(f"local queue: waiting behind {len(ahead)} on this machine")
            # The ticket just before ours; when it goes, the one before that is looked at.
            if not self._wait_for(max(ahead), patience):
                self._tell("local queue: waited long enough, going ahead without")
                return
        if waited:
            self._tell(f"local queue: ours after {patience.clock() - began:.3f} s")

    def _wait_for(self, number: int, patience: Deadline) -> bool:
        try:
            handle = os.open(self._path(number), os.O_RDWR)
        except FileNotFoundError:
            return True
        if not locked_file.try_lock(handle):
            return self._block(number, handle, patience)
        # Unlocked, yet there: its owner was killed.
        self._path(number).unlink(missing_ok=True)
        os.close(handle)
        return True

    def _block(self, number: int, handle: int, patience: Deadline) -> bool:
        """Sleep in the kernel, in a thread, because flock has no timeout; an abandoned thread ends with its lock."""
        unlocked = threading.Event()

        def wait() -> None:
            locked_file.lock(handle)
            os.close(handle)
            unlocked.set()

        threading.Thread(target=wait, daemon=True).start()
        while not unlocked.wait(min(_LOOK_SECONDS, patience.remaining)):
            if patience.passed:
                return False
            if self._is_stopped(number):
                # Delete its ticket at once. If it goes on later, the condition on its write protects the content.
                self._path(number).unlink(missing_ok=True)
                self._tell("local queue: passed over a process that is stopped")
                return True
        return True

    def _is_stopped(self, number: int) -> bool:
        from azguard.processes import identity

        try:
            owner = identity.find(int(self._path(number).read_bytes()))
        except (OSError, ValueError):
            return False  # It has just ended, or cannot be found.
        return owner is not None and owner.is_stopped

    def _numbers(self) -> list[int]:
        return [int(name) for name in os.listdir(self._folder) if name.isdecimal()]

    def _path(self, number: int) -> Path:
        return self._folder / str(number)
