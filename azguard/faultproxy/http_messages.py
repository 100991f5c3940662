"""HTTP/1.1 messages as streams: heads read, bodies passed on as they are on the wire."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime

_PIECE = 64 * 1024
_DATE = re.compile(rb"(?<=\r\nDate: )[^\r]+", re.IGNORECASE)


@dataclass(frozen=True)
class Head:
    """The start line and the headers of a message, as sent and as read."""

    raw: bytes
    start: tuple[str, str, str]
    headers: Mapping[str, str]

    @property
    def closes(self) -> bool:
        """Return whether the connection ends with this message."""
        return "HTTP/1.0" in self.start or self.headers.get("connection", "").lower() == "close"


async def read_head(reader: asyncio.StreamReader) -> Head:
    """Read a message up to its body.

    Raises:
        EOFError: the peer has gone.
        asyncio.LimitOverrunError: it is longer than the reader's limit.
    """
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    start = [*first.split(" ", 2), "", ""]
    pairs = (line.partition(":") for line in lines)
    return Head(raw, (start[0], start[1], start[2]), {name.lower(): value.strip() for name, _, value in pairs})


def body_of_request(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """Return the pieces of a request's body as they are on the wire; where no length is announced there is none.

    Raises:
        ValueError: its length is not a number.
    """
    return _body(reader, head, otherwise=0)


def body_of_answer(reader: asyncio.StreamReader, head: Head, method: str) -> AsyncIterator[bytes]:
    """Return the pieces of an answer's body as they are on the wire; without a length it ends with the connection.

    Raises:
        ValueError: its length is not a number.
    """
    if method == "HEAD" or head.start[1] in ("204", "304"):
        return _exactly(reader, 0)
    return _body(reader, head, otherwise=None)


def move_date(head: Head, ahead_seconds: int) -> Head:
    """Return the head of an answer with a Date that is so many seconds later; one without a Date stays as it is.

    Raises:
        ValueError: its Date is none.
    """

    def move(found: re.Match[bytes]) -> bytes:
        moved = parsedate_to_datetime(found[0].decode("latin-1")) + timedelta(seconds=ahead_seconds)
        return format_datetime(moved, usegmt=True).encode()

    return replace(head, raw=_DATE.sub(move, head.raw)) if ahead_seconds else head


def add_header(head: Head, name: str, value: str) -> Head:
    """Return the head of a message with one more header, unless it has that already."""
    if name in head.headers:
        return head
    return replace(head, raw=head.raw[:-2] + f"{name}: {value}\r\n\r\n".encode("latin-1"))


async def pass_on(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    """Write a body piece by piece, no faster than it is taken.

    Raises:
        EOFError: it ended before its announced length.
        ValueError: it is not in chunks, as announced.
    """
    async for piece in body:
        writer.write(piece)
        await writer.drain()


def _body(reader: asyncio.StreamReader, head: Head, otherwise: int | None) -> AsyncIterator[bytes]:
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunks(reader)
    announced = head.headers.get("content-length")
    length = otherwise if announced is None else int(announced)
    return _to_the_end(reader) if length is None else _exactly(reader, length)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        line = await reader.readuntil(b"\r\n")
        yield line
        size = int(line.partition(b";")[0], 16)
        if size == 0:
            break
        async for piece in _exactly(reader, size + 2):
            yield piece
    # Trailers, up to the empty line.
    while line != b"\r\n":
        line = await reader.readuntil(b"\r\n")
        yield line


async def _exactly(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    while length:
        piece = await reader.read(min(length, _PIECE))
        if not piece:
            raise EOFError
        length -= len(piece)
        yield piece


async def _to_the_end(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(_PIECE):
        yield piece


async def read_whole(pieces: AsyncIterator[bytes]) -> bytes:
    """Read a body whole, as it is on the wire."""
    return b"".join([piece async for piece in pieces])
