"""Wait until one of several files can be read."""

import math
import select
import sys
from collections.abc import Iterable
from typing import Protocol, TypeVar


class HasFileno(Protocol):
    """What has a file descriptor."""

    def fileno(self) -> int:
        """Return the descriptor."""
        ...


Readable = TypeVar("Readable", bound=int | HasFileno)


def wait_readable(files: Iterable[Readable], seconds: float | None) -> list[Readable]:
    """Return those that can be read or have ended, after so many seconds at most; None waits for ever.

    On Linux any descriptor will do. ``select`` refuses those from 1024 on, and a program that starts us may have left
    that many open; elsewhere it is used all the same, since ``poll`` does not know all terminals there.
    """
    files = list(files)
    if sys.platform != "linux":
        return select.select(files, [], [], seconds)[0]
    poll = select.poll()
    by_number = {each if isinstance(each, int) else each.fileno(): each for each in files}
    for number in by_number:
        poll.register(number, select.POLLIN)
    milliseconds = None if seconds is None else max(0, math.ceil(seconds * 1000))
    return [by_number[number] for number, _ in poll.poll(milliseconds)]
