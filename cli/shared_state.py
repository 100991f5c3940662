"""What the runs in one process have in common: the lines of a batch, each in a thread; else there is one run."""

import threading
import time
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeVar

from azguard.frozen import frozen

T = TypeVar("T")


@frozen
class SharedState:
    """A clock, and what is made once for all runs."""

    clock: Callable[[], float] = time.monotonic
    #: What is made once, such as an account with its connections, by what it is made of.
    _kept: dict[Any, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def keep(self, made_of: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return the thing of this key; the first call makes it."""
        with self._lock:
            if made_of not in self._kept:
                self._kept[made_of] = make()
            found: T = self._kept[made_of]
            return found
