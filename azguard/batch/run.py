"""Lines at work, a few at a time, and how each ended."""

from collections.abc import Callable, Iterable

from azguard.batch.lines import DONE
from azguard.batch.order import OrderedJobs, PreparedLine
from azguard.frozen import frozen
from azguard.requests import pool
from azguard.requests.pool import DEFAULT_JOBS, Done, PoolEnd


@frozen
class BatchSettings:
    """How lines are run."""

    jobs: int = DEFAULT_JOBS
    #: Whether the ends are told in the order of the lines.
    is_ordered: bool = False
    stops_on_error: bool = False


def run(
    works: Iterable[PreparedLine], settings: BatchSettings, tell: Callable[[Done], None], stop: Callable[[], None]
) -> PoolEnd:
    """Run each line when it may begin, and tell how it ended; see ``pool.run_phases``."""
    jobs = OrderedJobs(works, lambda ended: settings.stops_on_error and ended.outcome != DONE)
    sequence = _Sequence(tell)

    def stop_all() -> None:
        jobs.stop()
        stop()

    found = pool.run_phases([jobs], settings.jobs, sequence.add if settings.is_ordered else tell, stop_all)
    sequence.finish()
    return found


class _Sequence:
    """Tells ends in the order of their lines."""

    def __init__(self, tell: Callable[[Done], None]) -> None:
        self._tell = tell
        self._next = 0
        #: Those that came before one of an earlier line.
        self._early: dict[int, Done] = {}

    def add(self, done: Done) -> None:
        """Tell an end once all before it are told."""
        self._early[done.result.position] = done
        while self._next in self._early:
            self._tell(self._early.pop(self._next))
            self._next += 1

    def finish(self) -> None:
        """Tell those that are left: lines before them never ended."""
        for position in sorted(self._early):
            self._tell(self._early.pop(position))
