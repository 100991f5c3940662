"""A file that is there, and fresh, as long as the lock is held: for a command's own checks, and for monitoring."""

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from azguard.atomic_files import write_atomically
from azguard.errors import ConfigError
from azguard.times import iso


class Heartbeat:
    """Writes the file at each renewal, and removes it when the lock is lost or released. None is no file."""

    def __init__(self, path: Path | None, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        #: What was written last; empty before the first time.
        self._written = ""
        self._stopped = False
        self._writing = threading.Lock()

    def beat(self, seconds: float) -> None:
        """Say that the lock is held, for so many seconds unless it is renewed.

        Raises:
            ConfigError: the file cannot be written, the first time; later that is only said.
        """
        if self._path is None:
            return
        now = datetime.now(UTC)
        record = {"renewed": iso(now), "held_until": iso(now + timedelta(seconds=seconds)), "pid": os.getpid()}
        with self._writing:
            if not self._stopped:
                self._write(self._path, json.dumps(record) + "\n")

    def stop(self) -> None:
        """Delete the file, unless another has written it; write it no more. One that cannot be deleted is only said."""
        with self._writing:
            is_there = self._written and not self._stopped
            self._stopped = True
            if self._path is not None and is_there:
                self._delete(self._path)

    def _delete(self, path: Path) -> None:
        try:
            # A lock that was broken may be held anew, by a run with the same file, before that is noticed here.
            if path.read_text() == self._written:
                path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            self._say(f"warning: {path} cannot be deleted: {error.strerror}; the lock is not held any more")

    def _write(self, path: Path, text: str) -> None:
        try:
            # Not durable: a slow disk must not hold up the renewal, and after a crash the lock is lost anyway.
            write_atomically(path, text.encode(), durable=False)
            self._written = text
        except OSError as error:
            words = f"{path} cannot be written: {error.strerror}"
            if not self._written:
                raise ConfigError(words) from error
            self._say(f"warning: {words}")
