"""How far a run over a tree came, in files and bytes."""

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from azguard.errors import AzguardError
from azguard.frozen import frozen


@frozen
class Reached:
    """How far a run came at one moment."""

    files: int = 0
    #: Of the files that ended and of those in work.
    bytes: int = 0
    #: None while the files are not counted.
    total_files: int | None = None
    total_bytes: int = 0
    #: The address of the file that is in work for the longest time; None if none is.
    name: str | None = None


@dataclass
class Headway:
    """Counts what the jobs of a run have done. Threads may use it at the same time."""

    #: Of the files that ended.
    _files: int = 0
    _bytes: int = 0
    #: None while the files are not counted.
    _total_files: int | None = None
    _total_bytes: int = 0
    #: How many bytes of each file in work are moved, the oldest first.
    _in_work: dict[str, int] = field(default_factory=dict)
    _is_over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, address: str) -> None:
        self.move(address, 0)

    def move(self, address: str, done: int) -> None:
        """Note how many bytes of a file are moved; fewer than before if it is begun anew."""
        with self._lock:
            self._in_work[address] = done

    def end(self, address: str, size: int) -> None:
        """Note that a file of so many bytes is in work no more, however it ended."""
        with self._lock:
            self._in_work.pop(address, None)
            self._bytes += size

    def count_end(self) -> None:
        with self._lock:
            self._files += 1

    def look(self) -> Reached:
        with self._lock:
            return Reached(
                files=self._files,
                bytes=self._bytes + sum(self._in_work.values()),
                total_files=self._total_files,
                total_bytes=self._total_bytes,
                name=next(iter(self._in_work), None),
            )

    def count_all(self, sizes: Iterable[int]) -> None:
        """Count how many files and bytes there are, beside the run; if that fails, the numbers stay unknown."""
        files = length = 0
        with suppress(AzguardError):
            for size in sizes:
                if self._is_over:
                    return
                files += 1
                length += size
            with self._lock:
                self._total_files, self._total_bytes = files, length

    def close(self) -> None:
        self._is_over = True
