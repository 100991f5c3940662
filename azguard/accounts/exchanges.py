"""HTTP exchanges that end: connections with a wall-clock limit, and answers that are taken only if they are whole.

Python's timeouts are about silence. A peer that sends, or reads, one byte a second is never silent, and would keep a
command alive for ever. Here each wait for the network is bounded by what is left of the whole exchange.

Python's HTTP client takes a head that ends in the middle for a whole one: an ETag cut short then looks like an ETag,
and missing metadata like none. Here every line of an answer must have its end: the status, the headers up to the empty
line, the sizes of chunks. And a head may have more than a hundred lines, which the client refuses: a blob with eighty
metadata keys has as many.

Nor does it ask whose answer it reads. A gateway, or a connection that is one answer behind, can give that of an earlier
request. The service repeats the id that each request carries, so an answer with another id is no answer, and its
connection is closed.
"""

import io
import threading
import time
import zlib
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from typing import Any

TRUNCATED = "the answer was cut short"
OF_ANOTHER_REQUEST = "the answer belongs to another request"
TOO_LONG = "the answer is longer than any of Azure Storage"
#: What each transmission carries, and the service repeats.
REQUEST_ID = "x-ms-client-request-id"
# What one process keeps open to a service: as many as it ever has requests under way. The SDK's own pool keeps ten, and
# closes the others after each request.
CONNECTIONS = 64
# An exchange may take longer than its limit by the time that what it moves takes at this pace, which any network that
# can be worked with keeps.
PACE_BYTES_PER_SECOND = 64 * 1024
# What one request reads of content, or a page of a listing, is a tenth of that; an error is a few sentences.
MOST_BYTES = 64 * 1024 * 1024
MOST_ERROR_BYTES = 1024 * 1024
# An answer that is received adds at most the time of the longest that is asked for, a range of 8 MiB.
_MOST_ADDED_SECONDS = 8 * 1024 * 1024 / PACE_BYTES_PER_SECOND
# Of zlib: a head of gzip or of zlib, whichever there is.
_ANY_HEAD = 32 + zlib.MAX_WBITS
_RANGE = "x-ms-range"
#: What a head says of a body that is compressed, and is not true of it inflated.
OF_COMPRESSED = ("Content-Encoding", "Content-Length")
_CODINGS = ("gzip", "x-gzip", "deflate")
# What is handed to the socket at once: one TLS record, so that the limit is looked at between two of them.
PIECE = 16 * 1024
# Twice what the service takes for metadata, names and all; http.client refuses a longer line, and takes it for one.
LONGEST_HEAD = 64 * 1024
# The lineage, which is metadata.
_LINEAGE = "x-ms-meta-azguardlineage"


def spell(name: str) -> str:
    """Return the name of a header of an answer, that of the lineage as azguard writes it.

    The service keeps names of metadata as they were written, and takes them in any case. Tools that write back what
    they have read, such as azcopy, begin each with a capital letter.
    """
    return _LINEAGE if len(name) == len(_LINEAGE) and name.lower() == _LINEAGE else name


class RejectedAnswer(HTTPException):
    """A whole answer that is none to this request; its text says why."""


def check_echo(asked: Mapping[str, str], answered: Mapping[str, str]) -> None:
    """Make sure that an answer is to this request, by the headers of both. Some gateways take the id away."""
    if (echo := answered.get(REQUEST_ID)) and (given := asked.get(REQUEST_ID)) and echo != given:
        raise RejectedAnswer(OF_ANOTHER_REQUEST)


def is_of_content(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for content, which is what was stored; azguard always asks for a range of it."""
    return method == "GET" and _RANGE in headers


def must_inflate(method: str, headers: Mapping[str, str], status: int) -> bool:
    """Return whether a compressed answer to a request is to be inflated: content is delivered as it was stored."""
    return status >= HTTPStatus.BAD_REQUEST or not is_of_content(method, headers)


def inflate(coding: str, body: bytes, status: int) -> bytes:
    """Return the body of an answer as it was before it was compressed."""
    if coding.lower() not in _CODINGS:
        raise IncompleteRead(coding.encode())
    most = MOST_ERROR_BYTES if status >= HTTPStatus.BAD_REQUEST else MOST_BYTES
    stream = zlib.decompressobj(_ANY_HEAD)
    try:
        found = stream.decompress(body, most + 1)
    except zlib.error as error:
        raise IncompleteRead(body[:PIECE]) from error
    if len(found) > most:
        raise RejectedAnswer(TOO_LONG)
    if not stream.eof or stream.unused_data:
        raise IncompleteRead(found[:PIECE])
    return found


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
        self._bytes_left = MOST_BYTES + LONGEST_HEAD
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
        if status >= HTTPStatus.BAD_REQUEST:
            self._bytes_left = MOST_ERROR_BYTES
            self._seconds_to_add = 0.0

    def add_received(self, count: int) -> None:
        """Add the time for so many bytes that were received."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise RejectedAnswer(TOO_LONG)
        added = min(count / PACE_BYTES_PER_SECOND, self._seconds_to_add)
        self._seconds_to_add -= added
        self._ends += added


#: The exchange that this thread is in.
CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class _Timed(io.RawIOBase):
    """The bytes of an answer as they come, within the limit of the exchange."""

    def __init__(self, raw: Any, sock: Any) -> None:
        self._raw, self._socket = raw, sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        exchange = CURRENT.get()
        if exchange is not None:
            self._socket.settimeout(exchange.left)
        count: int | None = self._raw.readinto(buffer)
        if exchange is not None and count:
            exchange.add_received(count)
        return count

    def fileno(self) -> int:
        return int(self._raw.fileno())

    def close(self) -> None:
        self._raw.close()
        super().close()


class _WholeLines(io.BufferedReader):
    """An answer whose lines all have their end.

    ``in_head`` says that heads are being read: status, headers, empty line. The headers are handed over as one line.
    http.client joins them anyway before it reads them, and refuses more than a hundred lines.
    """

    in_head = False

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._has_status = False
        self._empty_line = b""

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return a line, or all headers at once.

        Raises:
            RemoteDisconnected: the connection ended before an answer began.
            IncompleteRead: it ended within one.
        """
        if self._empty_line:
            line, self._empty_line = self._empty_line, b""
            return line
        line = self._whole_line(size)
        if not self.in_head:
            return line
        if not self._has_status:
            self._has_status = True
            return line
        headers = b""
        while line not in (b"\r\n", b"\n") and len(headers) <= LONGEST_HEAD:
            headers += line
            line = self._whole_line(size)
        self._has_status = False
        self._empty_line = line if headers else b""
        return headers or line

    def _whole_line(self, size: int | None) -> bytes:
        line = super().readline(size)
        if not line and self.in_head and not self._has_status:
            raise RemoteDisconnected("Remote end closed connection without response")
        if not line.endswith(b"\n") and (size is None or size < 0 or len(line) < size):
            raise IncompleteRead(line)
        return line


class _WholeResponse(HTTPResponse):
    """http.client's reading of an answer, over whole lines."""

    def __init__(self, sock: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp: Any = _WholeLines(_Timed(self.fp.detach(), sock))

    def begin(self, *arguments: Any, **options: Any) -> None:
        lines = self.fp
        lines.in_head = True
        try:
            super().begin(*arguments, **options)
        finally:
            lines.in_head = False
        if (exchange := CURRENT.get()) is not None:
            exchange.start_body(self.status)


class _Connection:
    """What is put before a connection class of urllib3."""

    response_class = _WholeResponse

    def send(self, data: Any) -> None:
        """Send, within the limit of the exchange."""
        parent: Any = super()
        exchange = CURRENT.get()
        this: Any = self
        if exchange is None or not isinstance(data, (bytes, bytearray, memoryview)):
            parent.send(data)
            return
        if this.sock is None:
            this.connect()
        view = memoryview(data)
        for start in range(0, len(view), PIECE):
            piece = view[start : start + PIECE]
            this.sock.settimeout(exchange.patience)
            parent.send(piece)
            exchange.add_sent(len(piece))

    def getresponse(self, *arguments: Any, **options: Any) -> Any:
        """Wait for the answer, now that the request was sent."""
        exchange = CURRENT.get()
        if exchange is not None:
            exchange.start_answer()
        parent: Any = super()
        return parent.getresponse(*arguments, **options)

    def _new_conn(self) -> Any:
        """Connect; to a name in a thread of its own: nothing else ends a look-up before its time, Ctrl-C included."""
        from urllib3.exceptions import ConnectTimeoutError
        from urllib3.util.ssl_ import is_ipaddress

        parent: Any = super()
        this: Any = self
        if is_ipaddress(this.host):
            return parent._new_conn()  # noqa: SLF001  # what urllib3 gives to override
        ended: list[Any] = []

        def connect() -> None:
            try:
                ended.append(parent._new_conn())  # noqa: SLF001  # as above
            except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
                ended.append(error)

        seconds = this.timeout if isinstance(this.timeout, (int, float)) else None
        thread = threading.Thread(target=connect, name="connect", daemon=True)
        thread.start()
        thread.join(seconds)
        if not ended:
            raise ConnectTimeoutError(self, f"Connection to {this.host} timed out.")
        if isinstance(ended[0], BaseException):
            raise ended[0]
        return ended[0]


def limit(manager: Any) -> None:
    """Have a pool manager of urllib3 make such connections from now on, whatever their kind."""
    manager.pool_classes_by_scheme = {
        scheme: _pool_class(pool) for scheme, pool in manager.pool_classes_by_scheme.items()
    }


@cache
def _pool_class(pool: Any) -> Any:
    if issubclass(pool.ConnectionCls, _Connection):
        return pool
    connection = type(pool.ConnectionCls.__name__, (_Connection, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})
