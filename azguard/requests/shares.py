"""What the jobs of this process may have at the same time, such as content in memory, divided among them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# With one a job could not ask for more while it works on what it has.
_LEAST = 2


class Shares:
    """So many parts. A job takes what it can use of those that are free, once; it never waits while it holds some."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = count
        self._state = threading.Condition()

    @contextmanager
    def hold(self, wanted: int | None) -> Iterator[int]:
        """Yield how many parts the caller has until the block ends: all that are free, but no more than it wants.

        Waits until there are two, or as many as it wants. None is all of them.
        """
        most = self._count if wanted is None else max(1, min(wanted, self._count))
        least = min(most, _LEAST)
        with self._state:
            self._state.wait_for(lambda: self._free >= least)
            found = min(most, self._free)
            self._free -= found
        try:
            yield found
        finally:
            with self._state:
                self._free += found
                self._state.notify_all()
