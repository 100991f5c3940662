"""The threads that handle messages, one for each place where a command can run; and what wakes a thread that waits."""

import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from azguard.processes.channel import wait_readable
from azguard.processes.command_place import CommandEnd, CommandOrder
from azguard.worker.order import Taken

_MANY = 4096


class CommandRunner(Protocol):
    """Where a command runs: ``CommandPlace``."""

    def start(self, order: CommandOrder) -> None:
        """Run a command."""
        ...

    def wait(self, seconds: float) -> CommandEnd | None:
        """Wait for its end, at most so long."""
        ...

    def extend(self, ends: float) -> None:
        """Say until when it may run."""
        ...

    def end(self) -> None:
        """End it."""
        ...


class Workplace(CommandRunner, Protocol):
    """A place that may be gone: ``CommandPlace``."""

    is_gone: bool


#: Handles a message at a place.
Handle = Callable[[Taken, Workplace], None]


class Crew:
    """Threads that handle messages; ``on_end`` is called by them when one is through."""

    def __init__(self, places: Sequence[Workplace], handle: Handle, on_end: Callable[[], None]) -> None:
        self._handle, self._on_end = handle, on_end
        self._given: queue.SimpleQueue[Taken | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy = 0
        self._alive = len(places)
        #: What no one foresaw in one of them; None if there was nothing.
        self.failure: BaseException | None = None
        self._threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in places]

    def start(self) -> None:
        """Let them begin."""
        for thread in self._threads:
            thread.start()

    @property
    def busy(self) -> int:
        with self._lock:
            return self._busy

    @property
    def free(self) -> int:
        with self._lock:
            return max(0, self._alive - self._busy)

    @property
    def is_gone(self) -> bool:
        with self._lock:
            return self._alive == 0

    def give(self, taken: Taken) -> None:
        """Have a message handled."""
        with self._lock:
            self._busy += 1
        self._given.put(taken)

    def stop(self) -> None:
        """Wait until all that was given is handled."""
        for _ in self._threads:
            self._given.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self, place: Workplace) -> None:
        while not place.is_gone and (taken := self._given.get()) is not None:
            try:
                self._handle(taken, place)
            except BaseException as failure:  # noqa: BLE001  # raised by the thread that waits for all of them
                self.failure = self.failure or failure
            finally:
                with self._lock:
                    self._busy -= 1
                    if place.is_gone:
                        self._alive -= 1
                self._on_end()


class Bell:
    """Wakes the one thread that waits for it. Ringing takes no lock, so that a signal handler may do it."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(self._rung, False)

    def ring(self) -> None:
        """Wake the waiting thread, or let its next wait end at once."""
        try:
            os.write(self._rung, b".")
        except BlockingIOError:
            return  # it was rung many times already

    def wait(self, seconds: float) -> None:
        """Wait until it is rung, at most so long."""
        if wait_readable([self._heard], max(0.0, seconds)):
            os.read(self._heard, _MANY)

    def close(self) -> None:
        """Let it go."""
        os.close(self._heard)
        os.close(self._rung)
