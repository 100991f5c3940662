"""A host-local queue of writers, one per address, first come first served.

The queue avoids conflicts between writers of one machine; it protects nothing. Every waiter holds a lock on its own
ticket, so that a killed process leaves the queue at once. A stopped process is passed over. A writer that has waited
too long goes ahead; the condition on its write keeps it safe.

Read and write both inside the ``with`` block: what was read before it has been overwritten by then.
"""

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from azguard.folders import make_private
from azguard.processes import locked_file
from azguard.requests.deadline import Deadline

# The part of the deadline to wait at most: a writer that hangs at the head must not use up the deadlines of the others.
_PART_OF_DEADLINE = 0.5
# How often to see whether the process ahead was stopped. It costs 60 µs, and nothing else happens while waiting.
_LOOK_SECONDS = 0.5


class LocalQueue(AbstractContextManager["LocalQueue"]):
    """A place in the queue for one address, held during the ``with`` block. ``tell`` is called when it waits."""

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
