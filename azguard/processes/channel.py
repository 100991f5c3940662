"""Messages between azguard and the guardian, and files that are waited for so that no signal is missed.

A message is one JSON object per line, over a pair of sockets. Python runs the handler of a signal between two system
calls: a signal that comes just before a ``read`` that waits would be heeded only when that ``read`` ends.
"""

import io
import json
import math
import os
import select
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, TypeVar

# What goes with an open file, since a file alone cannot be sent. No reader sees it.
_HANDED_OVER = {"handed": "over"}
_MOST_FILES = 8
#: These ask a program to end.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: All that is passed on.
FORWARDED = (*ENDING, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP)


class Channel:
    """One end. Sending is safe from several threads, and from signal handlers; receiving is for one thread."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._outgoing: deque[bytes] = deque()
        self._sending = threading.Lock()
        self._rest = b""
        #: Open files that the other side has handed over.
        self.received: list[int] = []

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, **message: Any) -> None:
        """Send a message. That the other side is gone is no error here: the receiver notices it."""
        self._outgoing.append(json.dumps(message).encode() + b"\n")
        # A sender sends the messages of the others too, so none waits: a signal handler would for what it interrupted.
        while self._outgoing and self._sending.acquire(blocking=False):
            try:
                self._end.sendall(self._outgoing.popleft())
            except (OSError, IndexError):
                pass  # an IndexError: the one before us has sent it
            finally:
                self._sending.release()

    def hand_over(self, descriptor: int) -> None:
        """Send an open file, which the receiver keeps open in ``received``. To be called while no other sends."""
        try:
            socket.send_fds(self._end, [json.dumps(_HANDED_OVER).encode() + b"\n"], [descriptor])
        except OSError:
            pass  # the other side is gone, which the receiver of its messages notices

    def receive(self) -> list[dict[str, Any]] | None:
        """Wait for something to arrive and return the messages that are whole by then; None is the other's end."""
        try:
            arrived, descriptors, _, _ = socket.recv_fds(self._end, 65536, _MOST_FILES)
        except OSError:
            return None
        for each in descriptors:
            os.set_inheritable(each, False)  # noqa: FBT003  # it takes no keyword
            self.received.append(each)
        if not arrived:
            return None
        *lines, self._rest = (self._rest + arrived).split(b"\n")
        return [message for message in map(json.loads, lines) if message != _HANDED_OVER]

    def close(self) -> None:
        """Close this end, which the other notices."""
        self._end.close()


def pair() -> tuple[Channel, Channel]:
    """Return two ends that are connected."""
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)


class HasFileno(Protocol):
    """What has a file descriptor."""

    def fileno(self) -> int: ...


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
