"""Requests over connections of our own: a request is written to the socket, and its answer read to its end.

An answer counts only if it is whole: every line of its head has its end, and its body the length that was announced. A
head that is cut looks like a whole one to most clients: an ETag cut short looks like an ETag, missing metadata like
none. Connections stay open for the next request, of any thread.

Python's timeouts are about silence. A peer that sends, or reads, one byte a second is never silent, and would keep a
command alive for ever. Here each wait for the network is bounded by what is left of the whole exchange: one request
and its answer, within a time of the wall clock and a number of bytes.
"""

import re
import select
import time
import weakref
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from azguard.wire import network
from azguard.wire.failures import REFUSED, Broken, BrokenAnswer
from azguard.wire.network import Way

# What one process keeps open to a service: as many as it ever has requests under way.
CONNECTIONS = 64
# An exchange may take longer than its limit by the time that what it moves takes at this pace, which any network that
# can be worked with keeps.
PACE_BYTES_PER_SECOND = 64 * 1024
# What one request reads of content, or a page of a listing, is a tenth of that; an error is a few sentences.
MOST_BYTES = 64 * 1024 * 1024
MOST_ERROR_BYTES = 1024 * 1024
# An answer that is received adds at most the time of the longest that is asked for, a range of 8 MiB.
_MOST_ADDED_SECONDS = 8 * 1024 * 1024 / PACE_BYTES_PER_SECOND
# What is handed to the socket at once: one TLS record, so that the limit is looked at between two of them.
_PIECE = 16 * 1024
# Eight times what the service takes for metadata, names and all.
_LONGEST_HEAD = 64 * 1024
# The lineage, which is metadata.
_LINEAGE = "x-ms-meta-azguardlineage"
# A line may end without the carriage return.
_ENDS_OF_HEAD = (b"\n\r\n", b"\n\n")
_ENDS_OF_LINE = (b"\n",)
_CONTINUED = r"\n[ \t]+"
# Below the size from which the C library asks the system for each block.
_RECEIVED_BYTES = 64 * 1024
_CONTINUE = range(100, 200)
# These have no body whatever their head says.
_NO_BODY = (204, 304)
# The answers to others may have none, and say nothing of it.
_ANSWERED_WITH_CONTENT = ("GET", "POST")


class Headers(Mapping[str, str]):
    """The headers of an answer, by their names in any case; those that came twice are joined."""

    def __init__(self, lines: list[str]) -> None:
        #: The values and the names as they came, by the names in lower case.
        self._values: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BrokenAnswer(Broken.TRUNCATED)
            key, value = name.lower(), value.strip()
            self._values[key] = f"{self._values[key]}, {value}" if key in self._values else value
            # The service keeps names of metadata as they were written, and takes them in any case. Tools that write
            # back what they have read, such as azcopy, begin each with a capital letter.
            self._names[key] = key if key == _LINEAGE else name

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a header; most of those that are asked for are not there, for which Mapping would raise an error."""
        return self._values.get(name.lower(), default)

    def __contains__(self, name: object) -> bool:
        return str(name).lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.values())

    def __len__(self) -> int:
        return len(self._values)

    def discard(self, name: str) -> None:
        """Leave a header out, if it is there."""
        for each in (self._values, self._names):
            each.pop(name.lower(), None)

    def items(self) -> ItemsView[str, str]:
        """Return the names, as they came, with their values."""
        return dict(zip(self._names.values(), self._values.values(), strict=True)).items()


class Reply(NamedTuple):
    """A whole answer."""

    status_code: int
    reason: str
    headers: Headers
    content: bytes


class Connections:
    """The connections of one process. Threads take them and give them back; those to one place serve any request."""

    def __init__(self) -> None:
        self._idle: dict[Way, list[OpenConnection]] = {}
        weakref.finalize(self, _close_all, self._idle)

    def take(self, way: Way, seconds: float) -> "OpenConnection":
        """Return an open connection, a new one where none is idle, made within so many seconds.

        Raises:
            NotConnected: none came to be.
        """
        idle = self._idle.setdefault(way, [])
        while idle:
            with suppress(IndexError):  # Another thread was faster.
                found = idle.pop()
                if not found.is_dropped():
                    return found
                found.close()
        return OpenConnection(network.connect(way, seconds), way)

    def give(self, connection: "OpenConnection") -> None:
        """Keep a connection for the next request, if it can be used again."""
        idle = self._idle[connection.way]
        if connection.is_reusable and len(idle) < CONNECTIONS:
            idle.append(connection)
        else:
            connection.close()


class Exchange:
    """One request and its answer, from the connection to the last byte, within ``seconds`` of wall-clock time.

    What is moved adds to that, at ``PACE_BYTES_PER_SECOND``, so that the same limit serves a byte and a block. So the
    longest, a range or a block of 8 MiB, may take two minutes more, if it keeps that pace to its end. An error adds
    nothing, and without ``adds_time`` no answer does. No answer has more than ``MOST_BYTES``, and no error more than
    ``MOST_ERROR_BYTES``.
    """

    def __init__(self, seconds: float, *, adds_time: bool) -> None:
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._bytes_left = MOST_BYTES + _LONGEST_HEAD
        self._seconds_to_add = _MOST_ADDED_SECONDS if adds_time else 0.0

    @property
    def left(self) -> float:
        """Return the seconds left.

        Raises:
            TimeoutError: there are none.
        """
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    @property
    def patience(self) -> float:
        """Return the seconds within which one piece must be taken. What moved before is no time to be silent in.

        Raises:
            TimeoutError: the exchange has no time left.
        """
        return min(self.left, self._seconds)

    def add_sent(self, count: int) -> None:
        """Add the time for so many bytes that were sent."""
        self._ends += count / PACE_BYTES_PER_SECOND

    def start_answer(self) -> None:
        """Note that the request was handed over: from here on the answer has ``seconds``."""
        self._ends = min(self._ends, time.monotonic() + self._seconds)

    def start_body(self, status: int) -> None:
        """Note that the head of an answer was read, with this status."""
        if status >= REFUSED:
            self._bytes_left = MOST_ERROR_BYTES
            self._seconds_to_add = 0.0

    def add_received(self, count: int) -> None:
        """Add the time for so many bytes that were received."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise BrokenAnswer(Broken.TOO_LONG)
        added = min(count / PACE_BYTES_PER_SECOND, self._seconds_to_add)
        self._seconds_to_add -= added
        self._ends += added


class OpenConnection:
    """A connection to a host, over which one request is sent at a time."""

    def __init__(self, sock: Any, way: Way) -> None:
        self._socket = sock
        self.way = way
        #: Whether another request can be sent over it.
        self.is_reusable = False

    def is_dropped(self) -> bool:
        """Return whether the other side has closed it, or has sent what no request asked for."""
        if not hasattr(select, "poll"):
            return bool(select.select([self._socket], [], [], 0)[0])
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close it."""
        with suppress(OSError):
            self._socket.close()

    def exchange(self, method: str, head: bytes, body: bytes | None, limit: Exchange) -> Reply:
        """Send a request and return its answer; ``head`` is of ``write_head``.

        Raises:
            BrokenAnswer: it could not be sent, or there was no whole answer in time.
        """
        self.is_reusable = False
        try:
            return self._exchange(method, head, body or b"", limit)
        except TimeoutError as error:
            raise BrokenAnswer(Broken.TIMED_OUT) from error
        except OSError as error:
            raise BrokenAnswer(Broken.RESET) from error

    def _exchange(self, method: str, head: bytes, body: bytes, limit: Exchange) -> Reply:
        self._send(head, body, limit)
        limit.start_answer()
        reader = _Reader(self._socket, limit)
        version, status, reason, found = reader.read_head()
        limit.start_body(status)
        may_have_body = method != "HEAD" and status not in _NO_BODY
        is_announced = "Content-Length" in found or "Transfer-Encoding" in found
        must_be_read = may_have_body and (is_announced or method in _ANSWERED_WITH_CONTENT)
        content = reader.read_body(found) if must_be_read else b""
        is_kept = version == "HTTP/1.1" and found.get("Connection", "").lower() != "close"
        self.is_reusable = is_kept and (is_announced or not may_have_body) and not reader.pending
        return Reply(status, reason, found, content)

    def _send(self, head: bytes, body: bytes, exchange: Exchange) -> None:
        # One packet for what is small.
        view = memoryview(head + body if len(body) < _PIECE else head)
        for content in (view, memoryview(body)[len(view) - len(head) :]):
            for start in range(0, len(content), _PIECE):
                piece = content[start : start + _PIECE]
                self._socket.settimeout(exchange.patience)
                self._socket.sendall(piece)
                exchange.add_sent(len(piece))


def write_head(method: str, url: str, headers: Mapping[str, str], way: Way) -> bytes:
    """Return the head of a request. A proxy that forwards it is told the whole URL.

    Raises:
        ValueError: a header has more than one line, or the URL has what no URL can have.
    """
    host, slash, path = url.partition("://")[2].partition("/")
    asked = url if way.is_forwarded else f"/{path}" if slash or not path else path
    if not asked.isascii() or not asked.isprintable() or " " in asked:
        raise ValueError("a URL is ASCII without spaces")
    sent = {"Host": host, **headers, **(network.proxy_headers(way) if way.is_forwarded else {})}
    lines = [f"{method} {asked} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
        raise ValueError("a header has more than one line")
    return f"{text}\r\n\r\n".encode("latin-1")


def _close_all(idle: dict[Way, list[OpenConnection]]) -> None:
    for connections in idle.values():
        for each in connections:
            each.close()


def _parse_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if re.fullmatch(rb"[0-9a-fA-F]{1,15}", digits) is None:
        raise BrokenAnswer(Broken.TRUNCATED)
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
            BrokenAnswer: the connection ended before the end of the head, or this is no head.
        """
        while True:
            text = self._read_until(_ENDS_OF_HEAD).decode("latin-1").replace("\r\n", "\n")
            if "\n " in text or "\n\t" in text:
                text = re.sub(_CONTINUED, " ", text)
            first, *lines = text.split("\n")
            version, _, rest = first.partition(" ")
            status, _, reason = rest.partition(" ")
            if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit()):
                raise BrokenAnswer(Broken.TRUNCATED)
            if int(status) not in _CONTINUE:
                return version, int(status), reason, Headers(lines)

    def read_body(self, headers: Headers) -> bytes:
        """Return the body that a head announces."""
        coding, length = headers.get("Transfer-Encoding"), headers.get("Content-Length", "")
        if coding is not None:
            if coding.lower() != "chunked":
                raise BrokenAnswer(Broken.TRUNCATED)
            return b"".join(self._read_chunks())
        if not (length.isascii() and length.isdigit()):
            raise BrokenAnswer(Broken.TRUNCATED)
        return self._read(int(length))

    def _read_chunks(self) -> Iterator[bytes]:
        while size := _parse_size(self._read_until(_ENDS_OF_LINE)):
            yield self._read(size)
            if self._read_until(_ENDS_OF_LINE):
                raise BrokenAnswer(Broken.TRUNCATED)
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
            if len(self.pending) > _LONGEST_HEAD:
                raise BrokenAnswer(Broken.TRUNCATED)
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
            raise BrokenAnswer(Broken.CLOSED)
        if not found:
            raise BrokenAnswer(Broken.TRUNCATED)
        self._has_begun = True
        self._exchange.add_received(len(found))
        return found
