"""HTTP messages as they are on the wire: heads read, bodies passed on piece by piece, nothing changed on the way."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

_PIECE = 64 * 1024
# How a peer that has gone, or does not speak HTTP, shows itself. It ends its own connection and nothing else.
GONE = (OSError, EOFError, asyncio.LimitOverrunError, ValueError)


@dataclass(frozen=True)
class Peer:
    """One end of a TCP connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


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
        GONE: the peer has gone, or does not speak HTTP.
    """
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    start = [*first.split(" ", 2), "", ""]
    pairs = (line.partition(":") for line in lines)
    return Head(raw, (start[0], start[1], start[2]), {name.lower(): value.strip() for name, _, value in pairs})


def body(reader: asyncio.StreamReader, head: Head, otherwise: int | None = 0) -> AsyncIterator[bytes]:
    """Return a body's pieces as they are on the wire.

    ``otherwise`` is its length in bytes where none is announced; None is until the connection ends.
    """
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunks(reader)
    announced = head.headers.get("content-length")
    length = otherwise if announced is None else int(announced)
    return _to_the_end(reader) if length is None else exactly(reader, length)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        line = await reader.readuntil(b"\r\n")
        yield line
        size = int(line.partition(b";")[0], 16)
        if size == 0:
            break
        async for piece in exactly(reader, size + 2):
            yield piece
    # Trailers, up to the empty line.
    while line != b"\r\n":
        line = await reader.readuntil(b"\r\n")
        yield line


async def exactly(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    """Yield so many bytes; fewer are an EOFError."""
    while length:
        piece = await reader.read(min(length, _PIECE))
        if not piece:
            raise EOFError
        length -= len(piece)
        yield piece


async def _to_the_end(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(_PIECE):
        yield piece


async def pass_on(pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    """Write every piece as it comes, no faster than the peer takes them."""
    async for piece in pieces:
        writer.write(piece)
        await writer.drain()


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    """Read a body whole, as it is on the wire."""
    return b"".join([piece async for piece in pieces])
