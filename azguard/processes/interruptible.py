"""A pipe that is read so that no signal is missed.

Python runs the handler of a signal between two system calls. A signal that comes just before a ``read`` that waits is
therefore heeded only when that ``read`` ends, which may be never.
"""

import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from azguard.processes.readiness import wait_readable


@contextmanager
def read_interruptibly(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a reader of what ``stream`` is open on, whose waiting ends with the handler of a signal.

    It is for pipes and terminals on the main thread, where handlers run; any other stream is yielded as it is.
    """
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield stream
        return
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    before = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    try:
        yield io.BufferedReader(_Reader(stream.fileno(), woken))  # type: ignore[type-var]  # its readinto is wider
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wakes)


class _Reader(io.RawIOBase):
    """Waits for data and for signals at once; each signal writes a byte to the pipe ``woken``."""

    def __init__(self, descriptor: int, woken: int) -> None:
        self._descriptor = descriptor
        self._woken = woken

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # the buffer is any writable one
        while True:
            ready = wait_readable([self._descriptor, self._woken], None)
            if self._woken in ready:
                os.read(self._woken, 4096)
            if self._descriptor in ready:
                return os.readv(self._descriptor, [buffer])
