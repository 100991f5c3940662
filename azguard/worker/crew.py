"""The threads that handle messages: one for each place where a command can run."""

import queue
import threading
from collections.abc import Callable, Sequence

from azguard.worker.inbox import Taken
from azguard.worker.places import Workplace

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
        """Return how many messages were given and are not handled yet."""
        with self._lock:
            return self._busy

    @property
    def free(self) -> int:
        """Return how many messages can be handled at once."""
        with self._lock:
            return max(0, self._alive - self._busy)

    @property
    def is_gone(self) -> bool:
        """Return whether no place is left."""
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
