"""A file in reserve, which makes room for another where no more files can be opened.

What a command has started is read from ``/proc``. If a process has all the files open that it may have (EMFILE), or the
machine has (ENFILE), a command under a lock could not be ended with all that it started.
"""

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_FULL = (errno.EMFILE, errno.ENFILE)
# Another thread, or another process, can be faster to take the room.
_TRIES = 10
_PAUSE_SECONDS = 0.01
_reserve: list[int] = []


def keep() -> None:
    """Open the file in reserve, if this process has none yet and can open one."""
    if not _reserve:
        with suppress(OSError):
            _reserve.append(os.open(os.devnull, os.O_RDONLY))


def read_bytes(path: Path) -> bytes:
    """Return what is in a file.

    Raises:
        OSError: it cannot be read, or there is no room to open it.
    """
    return _make_room(path.read_bytes)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder.

    Raises:
        OSError: it cannot be read, or there is no room to open it.
    """
    return _make_room(lambda: os.listdir(folder))


def is_full(error: BaseException) -> bool:
    """Return whether an error says that there is no room to open a file."""
    return isinstance(error, OSError) and error.errno in _FULL


def _make_room(read: Callable[[], T]) -> T:
    is_kept = bool(_reserve)
    try:
        for _ in range(_TRIES):
            try:
                return read()
            except OSError as error:
                if not is_full(error):
                    raise
            if not _close_reserve():
                time.sleep(_PAUSE_SECONDS)
        return read()
    finally:
        if is_kept:
            keep()


def _close_reserve() -> bool:
    """Return whether there was a file in reserve, which no other thread was faster to close."""
    try:
        os.close(_reserve.pop())
    except IndexError:
        return False
    return True
