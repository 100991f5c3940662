"""A host-local queue of writers, one per address, first come first served.

It is a courtesy, not a guard: writers on one machine would only conflict with each other. Every waiter holds a lock on
its own ticket, so a killed process leaves the queue at once, and a writer that waits too long goes ahead without
its turn; the condition on its write keeps it safe.
"""

import hashlib
import os
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from azguard.deadline import Deadline

# A stopped process at the head must not eat the whole deadline of those behind it.
_PATIENCE = 0.5
_COUNTER_PAUSE = 0.002


class Turn(AbstractContextManager["Turn"]):
    """A place in the queue for one address, held while in the ``with`` block."""

    def __init__(self, folder: Path, key: str, deadline: Deadline) -> None:
        self._folder = folder / hashlib.sha256(key.encode()).hexdigest()[:24]
        self._deadline = deadline
        self._ticket: tuple[int, int] | None = None

    def __enter__(self) -> "Turn":
        patience = self._deadline.lasting(self._deadline.remaining * _PATIENCE)
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
        # Removed before it is unlocked: whoever waits on it then finds nothing between itself and the head.
        try:
            self._path(number).unlink(missing_ok=True)
        except OSError:
            pass  # The next writer finds it unlocked and passes it over.
        os.close(handle)

    def _take(self, patience: Deadline) -> tuple[int, int] | None:
        """Return the next number and the locked ticket of that number."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            return None
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        counter = os.open(self._folder / "next", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._lock(counter, patience)
            number = self._next(os.read(counter, 20))
            # Written first: a full disk then leaves no ticket behind, and a number that nobody took is no harm.
            os.pwrite(counter, b"%019d" % (number + 1), 0)
            handle = os.open(self._path(number), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(counter)
        return number, handle

    def _lock(self, counter: int, patience: Deadline) -> None:
        """Lock the counter. It is held for microseconds, unless its holder was stopped right there.

        Raises:
            TimeoutError: the holder keeps it.
        """
        import fcntl

        while True:
            try:
                return fcntl.flock(counter, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if patience.passed:
                    raise TimeoutError from None
            patience.pause(_COUNTER_PAUSE)

    def _next(self, counted: bytes) -> int:
        """Return the next number; where the counter is damaged, one after every ticket there is."""
        return int(counted) if counted.isdigit() else max(self._numbers(), default=-1) + 1

    def _wait(self, mine: int, patience: Deadline) -> None:
        while not patience.passed:
            ahead = [number for number in self._numbers() if number < mine]
            if not ahead:
                return
            # The one just before; when it leaves, whoever is before that one is looked at in turn.
            if not self._wait_for(max(ahead), patience):
                return

    def _wait_for(self, number: int, patience: Deadline) -> bool:
        """Wait until a ticket is unlocked; return False when patience ended first."""
        import fcntl

        try:
            handle = os.open(self._path(number), os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._block(handle, patience)
        # Unlocked, yet there: its owner was killed.
        self._path(number).unlink(missing_ok=True)
        os.close(handle)
        return True

    def _block(self, handle: int, patience: Deadline) -> bool:
        """Sleep in the kernel, in a thread, because flock has no timeout; an abandoned thread ends with its lock."""
        import fcntl

        unlocked = threading.Event()

        def wait() -> None:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.close(handle)
            unlocked.set()

        threading.Thread(target=wait, daemon=True).start()
        return unlocked.wait(patience.remaining)

    def _numbers(self) -> list[int]:
        return [int(name) for name in os.listdir(self._folder) if name.isdecimal()]

    def _path(self, number: int) -> Path:
        return self._folder / str(number)
