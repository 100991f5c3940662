"""Messages between azguard and the guardian: one JSON object per line, over a pair of sockets."""

import json
import socket
import threading
from collections import deque
from typing import Any


class Channel:
    """One end. Sending is safe from several threads, and from signal handlers; receiving is for one thread."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._outgoing: deque[bytes] = deque()
        self._sending = threading.Lock()
        self._rest = b""

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

    def receive(self) -> list[dict[str, Any]] | None:
        """Wait for something to arrive and return the messages that are whole by then; None is the other's end."""
        try:
            arrived = self._end.recv(65536)
        except OSError:
            arrived = b""
        if not arrived:
            return None
        *lines, self._rest = (self._rest + arrived).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Close this end, which the other notices."""
        self._end.close()


def pair() -> tuple[Channel, Channel]:
    """Return two ends that are connected."""
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)
