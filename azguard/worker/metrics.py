"""The counts of a worker as OpenMetrics text, in a file that is replaced whole.

The format: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from azguard.atomic_files import write_atomically
from azguard.errors import UsageError
from azguard.worker.counts import WorkCounts

_PERIOD_SECONDS = 5.0
_PREFIX = "azguard_queue"


def build_text(queue: str, counts: WorkCounts) -> str:
    """Return the counts as OpenMetrics text."""
    return "\n".join([*_build_lines(_label("queue", queue), counts), "# EOF", ""])


class MetricsFile:
    """Writes the counts to a file every few seconds; without a file it does nothing."""

    def __init__(
        self,
        path: Path | None,
        queue: str,
        warn: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._queue, self._warn, self._now = path, queue, warn, now
        self._due = float("-inf")
        self._has_failed = False

    def begin(self, counts: WorkCounts) -> None:
        """Write it for the first time.

        Raises:
            UsageError: it cannot be written.
        """
        if self._path is None:
            return
        try:
            self._write(self._path, counts)
        except OSError as error:
            raise UsageError(f"{self._path}: {error.strerror}", reason="work_file_not_writable") from None

    def write_if_due(self, counts: Callable[[], WorkCounts]) -> None:
        """Write it if that was some seconds ago."""
        if self._path is not None and self._now() >= self._due:
            self.write(counts())

    def write(self, counts: WorkCounts) -> None:
        """Write it now; that this fails is told once."""
        if self._path is None:
            return
        try:
            self._write(self._path, counts)
        except OSError as error:
            if not self._has_failed:
                self._warn(f"the metrics could not be written: {error.strerror}; the work goes on")
            self._has_failed = True

    def _write(self, path: Path, counts: WorkCounts) -> None:
        self._due = self._now() + _PERIOD_SECONDS
        write_atomically(path, build_text(self._queue, counts).encode(), durable=False)


def _build_lines(queue: str, counts: WorkCounts) -> Iterator[str]:
    yield from _head("messages_received", "counter", "Messages that were received.")
    yield f"{_PREFIX}_messages_received_total{{{queue}}} {counts.received}"
    yield from _head("messages", "counter", "Messages that were handled, by outcome.")
    for outcome, number in counts.outcomes.items():
        yield f"{_PREFIX}_messages_total{{{queue},{_label('outcome', outcome.value)}}} {number}"
    yield from _head("receives_in_doubt", "counter", "Receives whose answers were lost.")
    yield f"{_PREFIX}_receives_in_doubt_total{{{queue}}} {counts.receives_in_doubt}"
    yield from _head("messages_running", "gauge", "Messages that are being handled.")
    yield f"{_PREFIX}_messages_running{{{queue}}} {counts.running}"
    yield from _head("command_seconds", "summary", "How long the commands ran.", unit="seconds")
    yield f"{_PREFIX}_command_seconds_count{{{queue}}} {counts.commands}"
    yield f"{_PREFIX}_command_seconds_sum{{{queue}}} {counts.command_seconds:.6f}"


def _head(name: str, kind: str, text: str, unit: str | None = None) -> Iterator[str]:
    yield f"# TYPE {_PREFIX}_{name} {kind}"
    if unit is not None:
        yield f"# UNIT {_PREFIX}_{name} {unit}"
    yield f"# HELP {_PREFIX}_{name} {text}"


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{escaped}"'
