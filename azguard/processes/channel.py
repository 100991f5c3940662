"""Messages between azguard and the guardian: one JSON object per line, over a pair of sockets."""

import json
import os
import socket
import threading
from collections import deque
from typing import Any

# What goes with an open file, since a file alone cannot be sent. No reader sees it.
_HANDED_OVER = {"handed": "over"}
_MOST_FILES = 8


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
        """Return the file descriptor, for ``select``."""
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
