"""OpenMetrics text, and the file that a scraper reads, such as the textfile collector of a Prometheus node exporter.

https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from azguard.atomic_files import write_atomically
from azguard.errors import UsageError

_PERIOD_SECONDS = 5.0


class Sample(NamedTuple):
    """A value of a metric: its labels, and the end of its name, such as ``_total`` of a counter."""

    value: float
    labels: Mapping[str, str]
    suffix: str = ""


class Metric(NamedTuple):
    """A metric with its samples."""

    name: str
    kind: str
    text: str
    samples: Sequence[Sample]
    #: Ends the name; empty for a plain number.
    unit: str = ""


def build_text(metrics: Iterable[Metric]) -> str:
    """Return metrics as OpenMetrics text."""
    return "\n".join([*(line for each in metrics for line in _build_lines(each)), "# EOF", ""])


class MetricsFile:
    """Replaces a file by what ``build`` returns; without a path, nothing is written."""

    def __init__(
        self,
        path: Path | None,
        build: Callable[[], str],
        warn: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._build, self._warn, self._now = path, build, warn, now
        self._due = float("-inf")
        self._has_failed = False

    def begin(self) -> None:
        """Write it for the first time.

        Raises:
            UsageError: it cannot be written.
        """
        if self._path is None:
            return
        try:
            self._write(self._path)
        except OSError as error:
            raise UsageError(f"{self._path}: {error.strerror}", reason="work_file_not_writable") from None

    def write_if_due(self) -> None:
        """Write it if the last time is 5 s ago."""
        if self._path is not None and self._now() >= self._due:
            self.write()

    def write(self) -> None:
        """Write it now; a failure is told once."""
        if self._path is None:
            return
        try:
            self._write(self._path)
        except OSError as error:
            if not self._has_failed:
                self._warn(f"the metrics could not be written: {error.strerror}; the work goes on")
            self._has_failed = True

    def _write(self, path: Path) -> None:
        self._due = self._now() + _PERIOD_SECONDS
        # Not durable: a slow disk must not hold up the work, and after a crash the metrics are old anyway.
        write_atomically(path, self._build().encode(), durable=False)


def _build_lines(metric: Metric) -> Iterator[str]:
    yield f"# TYPE {metric.name} {metric.kind}"
    if metric.unit:
        yield f"# UNIT {metric.name} {metric.unit}"
    yield f"# HELP {metric.name} {metric.text}"
    for value, labels, suffix in metric.samples:
        said = ",".join(f'{name}="{_escape(text)}"' for name, text in labels.items())
        yield f"{metric.name}{suffix}{{{said}}} {value if isinstance(value, int) else f'{value:.6f}'}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
