"""The files of a worker: events, a JSON line for each thing that happened to a message; and its counts as OpenMetrics.

Workers may share one file: each line is appended whole, by one write. A file that was moved is begun anew. A line that
cannot be written is told once and counted, and the work goes on: messages matter more than the record of them. The file
of counts is replaced whole.

The format of counts: https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from azguard.atomic_files import write_atomically
from azguard.errors import UsageError
from azguard.times import iso
from azguard.worker.results import WorkCounts

_PERIOD_SECONDS = 5.0
_PREFIX = "azguard_queue"


class Events:
    """Appends events to a file; without a file they go nowhere."""

    def __init__(
        self, path: Path | None, warn: Callable[[str], None], now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Open the file.

        Raises:
            UsageError: it cannot be opened.
        """
        self._warn, self._now = warn, now
        self._lock = threading.Lock()
        self._path = path
        self._descriptor = None if path is None else _open(path)
        self._is_torn = False
        #: How many lines could not be written.
        self.lost = 0

    def note(self, event: str, **facts: Any) -> None:
        """Append an event."""
        if self._path is None or self._descriptor is None:
            return
        text = json.dumps({"time": iso(self._now()), "event": event, **facts}, ensure_ascii=False)
        # Half of a pair, which a key may hold, is written as JSON escapes it.
        line = text.encode(errors="backslashreplace")
        with self._lock:
            self._descriptor = self._follow(self._path, self._descriptor)
            self._append(self._descriptor, line)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _follow(self, path: Path, descriptor: int) -> int:
        """Open the file again if it was moved or deleted, as logrotate does; return its descriptor.

        As long as it cannot be opened again, the lines go where the file was moved to.
        """
        try:
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return descriptor
        except OSError:
            pass  # it is not there
        try:
            opened = _open(path)
        except UsageError:
            return descriptor
        os.close(descriptor)
        self._is_torn = False
        return opened

    def _append(self, descriptor: int, line: bytes) -> None:
        # After a line of which only a part was written, the next one begins a line of its own.
        content = (b"\n" if self._is_torn else b"") + line + b"\n"
        try:
            written = os.write(descriptor, content)
        except OSError as error:
            self._note_lost(error.strerror or "it failed")
            return
        self._is_torn = written < len(content)
        if self._is_torn:
            self._note_lost("only a part of a line was written")

    def _note_lost(self, why: str) -> None:
        self.lost += 1
        if self.lost == 1:
            self._warn(
                f"an event could not be written: {why}; the work goes on, and the lines that are lost are counted"
            )


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", reason="work_file_not_writable") from None


def build_metrics(queue: str, counts: WorkCounts) -> str:
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
        write_atomically(path, build_metrics(self._queue, counts).encode(), durable=False)


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
