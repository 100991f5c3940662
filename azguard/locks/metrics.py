"""What ``lock run`` and ``lock hold`` tell a scraper: waits, holds, losses and fences, as OpenMetrics.

The file is replaced whole when a lock is acquired, renewed, lost or released. Its times are of this machine's clock.
A process that was killed leaves the file as it was: ``azguard_lock_confirmed_timestamp_seconds`` is past then.
"""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from azguard import times
from azguard.frozen import mutable

if TYPE_CHECKING:
    from azguard.documents.open_metrics import MetricsFile, Sample

_PREFIX = "azguard_lock"


@mutable
class _LockTimes:
    """What happened to one lock; moments are on ``times.read_boot_clock``."""

    asked: float
    #: None until it is acquired.
    acquired: float | None = None
    #: None while it is held, or before.
    released: float | None = None
    #: Until then the lease was confirmed.
    ends: float | None = None
    fence: int | None = None
    losses: int = 0


class LockMetrics:
    """The file of one run or hold, for all its locks; without a path, nothing is written."""

    def __init__(
        self,
        path: Path | None,
        names: Iterable[str],
        warn: Callable[[str], None],
        now: Callable[[], float] = times.read_boot_clock,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._now, self._wall = now, wall
        self._locks = {name: _LockTimes(now()) for name in names}
        self._file = None if path is None else _open(path, self.build, warn)
        self._writing = threading.Lock()

    def begin(self) -> None:
        """Write the file before a lock is asked for.

        Raises:
            UsageError: it cannot be written.
        """
        if self._file is not None:
            self._file.begin()

    def note_held(self, name: str, ends: float, fence: int | None) -> None:
        lock = self._locks[name]
        lock.acquired, lock.ends, lock.fence = self._now(), ends, fence
        self._write()

    def note_renewal(self, name: str, ends: float) -> None:
        self._locks[name].ends = ends
        self._write()

    def note_loss(self, name: str) -> None:
        """Note that a lock is lost; it is lost once."""
        self._locks[name].losses = 1
        self.note_release(name)

    def note_release(self, name: str) -> None:
        lock = self._locks[name]
        if lock.released is None:
            lock.released = self._now()
        self._write()

    def build(self) -> str:
        """Return the text of the file."""
        from azguard.documents import open_metrics
        from azguard.documents.open_metrics import Metric, Sample

        now, since_epoch = self._now(), self._wall() - self._now()

        def sample(read: Callable[[_LockTimes], float | None], suffix: str = "") -> list["Sample"]:
            found = {name: read(lock) for name, lock in self._locks.items()}
            return [Sample(value, {"lock": name}, suffix) for name, value in found.items() if value is not None]

        def asked(lock: _LockTimes) -> float:
            return lock.asked + since_epoch

        def wait(lock: _LockTimes) -> float | None:
            return None if lock.acquired is None else lock.acquired - lock.asked

        def hold(lock: _LockTimes) -> float | None:
            ended = now if lock.released is None else lock.released
            return None if lock.acquired is None else ended - lock.acquired

        def is_held(lock: _LockTimes) -> int:
            return int(lock.acquired is not None and lock.released is None)

        def confirmed(lock: _LockTimes) -> float | None:
            return None if lock.ends is None else lock.ends + since_epoch

        rows = (
            ("asked_timestamp_seconds", "gauge", "When it was asked for, since 1970.", sample(asked)),
            ("wait_seconds", "gauge", "How long it was waited for.", sample(wait)),
            ("held", "gauge", "Whether it is held.", sample(is_held)),
            ("hold_seconds", "gauge", "How long it has been held.", sample(hold)),
            ("confirmed_timestamp_seconds", "gauge", "The end of its lease as renewed, since 1970.", sample(confirmed)),
            ("fence", "gauge", "The number of its holder.", sample(lambda lock: lock.fence)),
            ("losses", "counter", "How often it was lost.", sample(lambda lock: lock.losses, "_total")),
        )
        return open_metrics.build_text(
            Metric(f"{_PREFIX}_{name}", kind, text, samples, "seconds" if name.endswith("_seconds") else "")
            for name, kind, text, samples in rows
        )

    def _write(self) -> None:
        if self._file is not None:
            with self._writing:
                self._file.write()


def _open(path: Path, build: Callable[[], str], warn: Callable[[str], None]) -> "MetricsFile":
    from azguard.documents.open_metrics import MetricsFile

    return MetricsFile(path, build, warn)
