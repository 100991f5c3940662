"""Requests over a connection that is open already, past the layers that open one.

requests, urllib3 and http.client take a thousand calls for one exchange, most of them for what the first request over a
connection has settled: the proxy, the certificate, where it leads. The first request goes through them. Those after it
go straight to the socket, within the same limit, and their answers count only if they are as whole: see ``exchanges``.
"""

import queue
import re
import weakref
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import IncompleteRead, RemoteDisconnected
from typing import Any, NamedTuple

from azguard.accounts.exchanges import LONGEST_HEAD, PIECE, Exchange, spell

# A line may end without the carriage return.
_ENDS_OF_HEAD = (b"\n\r\n", b"\n\n")
_ENDS_OF_LINE = (b"\n",)
_CONTINUED = re.compile(r"\n[ \t]+")
# Below the size from which the C library asks the system for each block.
_RECEIVED_BYTES = 64 * 1024
_CONTINUE = range(100, 200)
# These have no body whatever their head says.
_NO_BODY = (204, 304)


class Headers(Mapping[str, str]):
    """The headers of an answer, by their names in any case; those that came twice are joined."""

    def __init__(self, lines: list[str]) -> None:
        self._found: dict[str, tuple[str, str]] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise IncompleteRead(line.encode())
            key, value = name.lower(), value.strip()
            self._found[key] = (spell(name), f"{self._found[key][1]}, {value}" if key in self._found else value)

    def __getitem__(self, name: str) -> str:
        return self._found[name.lower()][1]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def discard(self, name: str) -> None:
        """Leave a header out, if it is there."""
        self._found.pop(name.lower(), None)

    def items(self) -> ItemsView[str, str]:
        """Return the names, as they came, with their values."""
        return dict(self._found.values()).items()


class Reply(NamedTuple):
    """A whole answer."""

    status_code: int
    reason: str
    headers: Headers
    content: bytes


class OpenConnections:
    """The connections to one host that no request uses now. Threads take them and give them back."""

    def __init__(self, pool: Any, host: str) -> None:
        self._pool = pool
        self._host = host
        self._idle: list[OpenConnection] = []
        # As urllib3 closes those that it keeps.
        weakref.finalize(self, _close_all, self._idle)

    def take(self) -> "OpenConnection | None":
        """Return one that is open; None if there is none."""
        while self._idle:
            with suppress(IndexError):  # Another thread was faster.
                found = self._idle.pop()
                if not found.is_dropped():
                    return found
                found.close()
        return self._take_from_pool()

    def give(self, connection: "OpenConnection") -> None:
        """Keep one for the next request, if it can be used again."""
        if connection.is_reusable:
            self._idle.append(connection)
        else:
            connection.close()

    def write_head(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        """Return the head of a request to this host."""
        named = (f"{name}: {value}" for name, value in headers.items())
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", *named]
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise ValueError("a header has more than one line")
        return f"{text}\r\n\r\n".encode("latin-1")

    def _take_from_pool(self) -> "OpenConnection | None":
        """Return one that urllib3 has opened and does not use now; it is ours from then on."""
        try:
            connection = self._pool.pool.get(block=False)
        except queue.Empty:
            return None
        found = OpenConnection(connection)
        if connection is not None and connection.sock is not None and not found.is_dropped():
            return found
        self._pool.pool.put(connection, block=False)
        return None


class OpenConnection:
    """A connection to a host, over which one request is sent at a time."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        #: Whether another request can be sent over it.
        self.is_reusable = False

    def is_dropped(self) -> bool:
        """Return whether the other side has closed it, or has sent what no request asked for."""
        from urllib3.util.wait import wait_for_read

        return self._connection.sock is None or wait_for_read(self._connection.sock, timeout=0.0)

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def exchange(self, method: str, head: bytes, body: bytes | None, limit: Exchange) -> Reply:
        """Send a request and return its answer; ``head`` is of ``OpenConnections.write_head``.

        Raises:
            OSError: it could not be sent, or there was no answer in time.
            HTTPException: the answer was cut short, or has no end.
        """
        self.is_reusable = False
        self._send(head, body or b"", limit)
        limit.start_answer()
        reader = _Reader(self._connection.sock, limit)
        version, status, reason, found = reader.read_head()
        limit.start_body(status)
        content = reader.read_body(found) if method != "HEAD" and status not in _NO_BODY else b""
        is_kept = version == "HTTP/1.1" and found.get("Connection", "").lower() != "close"
        self.is_reusable = is_kept and not reader.pending
        return Reply(status, reason, found, content)

    def _send(self, head: bytes, body: bytes, exchange: Exchange) -> None:
        socket = self._connection.sock
        # One packet for what is small.
        view = memoryview(head + body if len(body) < PIECE else head)
        for content in (view, memoryview(body)[len(view) - len(head) :]):
            for start in range(0, len(content), PIECE):
                piece = content[start : start + PIECE]
                socket.settimeout(exchange.patience)
                socket.sendall(piece)
                exchange.add_sent(len(piece))


def _close_all(connections: list[OpenConnection]) -> None:
    for each in connections:
        each.close()


def _parse_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if re.fullmatch(rb"[0-9a-fA-F]{1,15}", digits) is None:
        raise IncompleteRead(line)
    return int(digits, 16)


class _Reader:
    """One answer as it comes."""

    def __init__(self, socket: Any, exchange: Exchange) -> None:
        self._socket = socket
        self._exchange = exchange
        #: What was received and not read.
        self.pending = b""
        self._has_begun = False

    def read_head(self) -> tuple[str, int, str, Headers]:
        """Return the version, the status, its words and the headers.

        Raises:
            RemoteDisconnected: the connection ended before an answer began.
            IncompleteRead: it ended within the head, or this is no head.
        """
        while True:
            text = self._read_until(_ENDS_OF_HEAD).decode("latin-1").replace("\r\n", "\n")
            if "\n " in text or "\n\t" in text:
                text = _CONTINUED.sub(" ", text)
            first, *lines = text.split("\n")
            version, _, rest = first.partition(" ")
            status, _, reason = rest.partition(" ")
            if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit()):
                raise IncompleteRead(first.encode())
            if int(status) not in _CONTINUE:
                return version, int(status), reason, Headers(lines)

    def read_body(self, headers: Headers) -> bytes:
        """Return the body that a head announces."""
        coding, length = headers.get("Transfer-Encoding"), headers.get("Content-Length", "")
        if coding is not None:
            if coding.lower() != "chunked":
                raise IncompleteRead(coding.encode())
            return b"".join(self._read_chunks())
        if not (length.isascii() and length.isdigit()):
            raise IncompleteRead(b"")
        return self._read(int(length))

    def _read_chunks(self) -> Iterator[bytes]:
        while size := _parse_size(self._read_until(_ENDS_OF_LINE)):
            yield self._read(size)
            if self._read_until(_ENDS_OF_LINE):
                raise IncompleteRead(b"")
        while self._read_until(_ENDS_OF_LINE):
            pass  # what may stand behind the last chunk

    def _read_until(self, ends: Sequence[bytes]) -> bytes:
        """Return the text before the first of these ends."""
        while True:
            found = [(place, end) for end in ends if (place := self.pending.find(end)) >= 0]
            if found:
                place, end = min(found)
                text, self.pending = self.pending[:place], self.pending[place + len(end) :]
                return text.removesuffix(b"\r")
            if len(self.pending) > LONGEST_HEAD:
                raise IncompleteRead(self.pending)
            self.pending += self._receive()

    def _read(self, count: int) -> bytes:
        pieces = [self.pending[:count]]
        self.pending = self.pending[count:]
        left = count - len(pieces[0])
        while left:
            pieces.append(self._receive(left))
            left -= len(pieces[-1])
        return b"".join(pieces)

    def _receive(self, most: int = _RECEIVED_BYTES) -> bytes:
        self._socket.settimeout(self._exchange.left)
        found: bytes = self._socket.recv(min(most, _RECEIVED_BYTES))
        if not found and not self._has_begun:
            raise RemoteDisconnected("Remote end closed connection without response")
        if not found:
            raise IncompleteRead(self.pending)
        self._has_begun = True
        self._exchange.add_received(len(found))
        return found
