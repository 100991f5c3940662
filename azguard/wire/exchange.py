"""An exchange that ends: one request and its answer, within a time of the wall clock and a number of bytes.

Python's timeouts are about silence. A peer that sends, or reads, one byte a second is never silent, and would keep a
command alive for ever. Here each wait for the network is bounded by what is left of the whole exchange.

A gateway, or a connection that is one answer behind, can give the answer of an earlier request. The service repeats the
id that each request carries. So an answer with another id is no answer, and its connection is closed.
"""

import time
import zlib
from collections.abc import Mapping
from http import HTTPStatus

from azguard.wire.failures import Broken, BrokenAnswer

#: What each transmission carries, and the service repeats.
REQUEST_ID = "x-ms-client-request-id"
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
# Of zlib: a head of gzip or of zlib, whichever there is.
_ANY_HEAD = 32 + zlib.MAX_WBITS
_RANGE = "x-ms-range"
#: What a head says of a body that is compressed, and is not true of it inflated.
OF_COMPRESSED = ("Content-Encoding", "Content-Length")
_CODINGS = ("gzip", "x-gzip", "deflate")
# What is handed to the socket at once: one TLS record, so that the limit is looked at between two of them.
PIECE = 16 * 1024
# Eight times what the service takes for metadata, names and all.
LONGEST_HEAD = 64 * 1024
# The lineage, which is metadata.
_LINEAGE = "x-ms-meta-azguardlineage"


def spell(name: str) -> str:
    """Return the name of a header of an answer, that of the lineage as azguard writes it.

    The service keeps names of metadata as they were written, and takes them in any case. Tools that write back what
    they have read, such as azcopy, begin each with a capital letter.
    """
    return _LINEAGE if len(name) == len(_LINEAGE) and name.lower() == _LINEAGE else name


def check_echo(asked: Mapping[str, str], answered: Mapping[str, str]) -> None:
    """Make sure that an answer is to this request, by the headers of both. Some gateways take the id away."""
    if (echo := answered.get(REQUEST_ID)) and (given := asked.get(REQUEST_ID)) and echo != given:
        raise BrokenAnswer(Broken.OF_ANOTHER_REQUEST)


def is_of_content(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for content, which is what was stored; azguard always asks for a range of it."""
    return method == "GET" and _RANGE in headers


def must_inflate(method: str, headers: Mapping[str, str], status: int) -> bool:
    """Return whether a compressed answer to a request is to be inflated: content is delivered as it was stored."""
    return status >= HTTPStatus.BAD_REQUEST or not is_of_content(method, headers)


def inflate(coding: str, body: bytes, status: int) -> bytes:
    """Return the body of an answer as it was before it was compressed."""
    if coding.lower() not in _CODINGS:
        raise BrokenAnswer(Broken.TRUNCATED)
    most = MOST_ERROR_BYTES if status >= HTTPStatus.BAD_REQUEST else MOST_BYTES
    stream = zlib.decompressobj(_ANY_HEAD)
    try:
        found = stream.decompress(body, most + 1)
    except zlib.error as error:
        raise BrokenAnswer(Broken.TRUNCATED) from error
    if len(found) > most:
        raise BrokenAnswer(Broken.TOO_LONG)
    if not stream.eof or stream.unused_data:
        raise BrokenAnswer(Broken.TRUNCATED)
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
            raise BrokenAnswer(Broken.TOO_LONG)
        added = min(count / PACE_BYTES_PER_SECOND, self._seconds_to_add)
        self._seconds_to_add -= added
        self._ends += added
