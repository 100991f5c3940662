"""The names of a tree that are taken, where the other side takes several names for one."""

import threading
from collections.abc import Callable
from hashlib import blake2b

#: Returns what two names have in common that are taken for one.
Fold = Callable[[str], str]
_DIGEST_BYTES = 8


class TakenNames:
    """Which names are taken. Threads may use it at the same time."""

    def __init__(self, fold: Fold | None) -> None:
        """Begin without a name; without ``fold`` each name is its own."""
        self._fold = fold
        self._lock = threading.Lock()
        #: Digests, for names of a large tree would not fit the memory.
        self._taken = set[bytes]()

    def take(self, name: str) -> bool:
        """Take a name, and return whether none before is taken for the same."""
        if self._fold is None:
            return True
        digest = blake2b(self._fold(name).encode(), digest_size=_DIGEST_BYTES).digest()
        with self._lock:
            if digest in self._taken:
                return False
            self._taken.add(digest)
            return True
