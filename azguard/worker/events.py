"""The file of events: a JSON line for each thing that happened to a message.

Workers may share one file: each line is appended whole, by one write. A file that was moved is begun anew. A line that
cannot be written is told once and counted, and the work goes on: messages matter more than the record of them.
"""

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from azguard.errors import UsageError
from azguard.times import iso


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
