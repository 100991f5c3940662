"""The counts of a worker, on one line of stderr that is drawn again and again."""

import time
from collections.abc import Callable

from azguard.cli.output import terminal
from azguard.cli.output.progress import LiveLine
from azguard.worker.results import Outcome, WorkCounts

_REDRAW_SECONDS = 0.5
# These are shown even while there are none.
_ALWAYS = (Outcome.DONE,)


class LiveCounts:
    """Draws one line on stderr, again and again; what commands print comes above it."""

    def __init__(self, queue: str, *, enabled: bool) -> None:
        self._queue, self._enabled = queue, enabled
        self._next = time.monotonic() + _REDRAW_SECONDS
        self._line = LiveLine()

    def show(self, counts: WorkCounts) -> None:
        """Draw the counts, unless that was a moment ago."""
        if not self._enabled or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _REDRAW_SECONDS
        # The blanks keep what a command prints apart from it.
        self._line.draw(f"{terminal.cut(describe(self._queue, counts), self._line.room() - 2)}  ")

    def print_above(self, tell: Callable[[str], None]) -> Callable[[str], None]:
        """Return a function that prints a message in place of the progress line, which is drawn again below."""

        def tell_above(text: str) -> None:
            self._line.erase()
            tell(text)

        return tell_above

    def close(self) -> None:
        """Erase the line, and draw it no more."""
        self._line.close()


def describe(queue: str, counts: WorkCounts) -> str:
    """Return the counts as one line; those that are zero are left out."""
    shown = [
        f"{number:,} {outcome.value}" for outcome, number in counts.outcomes.items() if number or outcome in _ALWAYS
    ]
    rate = counts.outcomes[Outcome.DONE] / counts.seconds if counts.seconds else 0.0
    return f"{queue}: {', '.join(shown)}; {counts.running} running; {rate:.1f}/s"
