"""When to ask an empty queue again, and how long to bear a service that does not answer."""

from collections.abc import Callable

from azguard.errors import AzguardError, Unavailable

_FIRST_PAUSE_SECONDS = 0.1
# As everything in azguard waits.
_PATIENCE_SECONDS = 60.0


class Polling:
    """The pauses between receives: each empty one doubles the pause, up to a longest; a message ends it."""

    def __init__(
        self,
        longest: float,
        now: Callable[[], float],
        uniform: Callable[[float, float], float],
        patience: float | None = None,
    ) -> None:
        self._longest, self._now, self._uniform, self._patience = longest, now, uniform, patience
        self._pause = _FIRST_PAUSE_SECONDS
        self._due = float("-inf")
        self._failing_since: float | None = None
        self._has_answered = False

    @property
    def seconds_left(self) -> float:
        """Return for how long the queue is left alone."""
        return max(0.0, self._due - self._now())

    def ask_soon(self) -> None:
        """Ask as soon as possible."""
        self._due = float("-inf")

    def note_answer(self, number: int) -> None:
        """Note how many messages a receive has brought."""
        self._has_answered, self._failing_since = True, None
        if number:
            self._pause = _FIRST_PAUSE_SECONDS
            self.ask_soon()
        else:
            self._wait()

    def note_failure(self, error: AzguardError, *, bears_all: bool, asked: float = 0.0) -> bool:
        """Note a receive that failed for now; return whether to go on.

        ``asked`` is for how many seconds the service asks to be left alone.
        ``bears_all`` is of a worker that goes on for ever once it had an answer. One that never had an answer ends
        soon, since its settings may be wrong, unless there is a patience of its own.
        """
        if self._failing_since is None:
            self._failing_since = self._now()
        self._wait(asked)
        if self._has_answered and bears_all:
            return True
        if self._patience is None and isinstance(error, Unavailable) and not self._has_answered:
            return False
        patience = _PATIENCE_SECONDS if self._patience is None else self._patience
        return self._now() + asked - self._failing_since < patience

    @property
    def is_failing(self) -> bool:
        """Return whether the last receive failed."""
        return self._failing_since is not None

    def _wait(self, asked: float = 0.0) -> None:
        # At least half of it, at most all: workers do not ask at the same moment.
        self._due = self._now() + max(asked, self._uniform(self._pause / 2, self._pause))
        self._pause = min(self._longest, self._pause * 2)
