"""One client's connection to the proxy, and the proxy's to the emulator for it.

The bytes are passed on unchanged, so signatures stay valid (they cover the path, not the port).
"""

import asyncio
import re
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime

from azguard.faultproxy.faults import Chosen, Decide, Fault, ProxiedAnswer, Request

_PIECE = 64 * 1024
_DATE = re.compile(rb"(?<=\r\nDate: )[^\r]+", re.IGNORECASE)
HOST = "127.0.0.1"
LONGEST_HEAD = 256 * 1024
# Node.js closes a connection that was idle for five seconds; one this fresh it has not begun to close.
_FRESH_SECONDS = 1.0
# What is raised when a peer has gone or does not speak HTTP. It ends its own connection and nothing else.
GONE = (OSError, EOFError, asyncio.LimitOverrunError, ValueError)
# By what a client and the service name a request.
_ID = "x-ms-client-request-id"
# How often to ask whether a held request may go on.
_ASK_SECONDS = 0.005
# A slow answer takes longer than the whole deadline of a test, and its pauses are shorter than any read timeout.
_SLOW_PIECES = 10
_SLOW_PAUSE_SECONDS = 0.05
_BUSY = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b"<Error><Code>ServerBusy</Code><Message>The server is currently unable to receive requests.</Message></Error>"
)
_FAILURE = (
    b"HTTP/1.1 503 The server is busy.\r\nx-ms-error-code: ServerBusy\r\nx-ms-version: 2026-02-06\r\n"
    b"Content-Type: application/xml\r\n"
    b"Content-Length: %d\r\n\r\n" % len(_BUSY)
)


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


def _body_of_request(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """Return the pieces of a request's body as they are on the wire; where no length is announced there is none."""
    return _body(reader, head, otherwise=0)


def _body_of_answer(reader: asyncio.StreamReader, head: Head, method: str) -> AsyncIterator[bytes]:
    """Return the pieces of an answer's body as they are on the wire; without a length it ends with the connection."""
    if method == "HEAD" or head.start[1] in ("204", "304"):
        return _exactly(reader, 0)
    return _body(reader, head, otherwise=None)


def _move_date(head: Head, ahead_seconds: int) -> Head:
    """Return the head of an answer with a Date that is so many seconds later; one without a Date stays as it is."""

    def move(found: re.Match[bytes]) -> bytes:
        moved = parsedate_to_datetime(found[0].decode("latin-1")) + timedelta(seconds=ahead_seconds)
        return format_datetime(moved, usegmt=True).encode()

    return replace(head, raw=_DATE.sub(move, head.raw)) if ahead_seconds else head


def _add_header(head: Head, name: str, value: str) -> Head:
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


@dataclass(frozen=True)
class Peer:
    """One end of a TCP connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Connection:
    """One client's connection, and ours to the emulator for it; both are kept alive."""

    def __init__(self, client: Peer, port: int, decide: Decide, record: Callable[[ProxiedAnswer], None]) -> None:
        self._client = client
        self._port = port
        self._decide = decide
        self._record = record
        self._upstream: Peer | None = None
        self._used = 0.0

    def close(self) -> None:
        if self._upstream is not None:
            self._upstream.writer.close()
            self._upstream = None

    async def serve(self) -> None:
        """Pass requests on, one after the other, until either side or a fault ends the connection."""
        while await self._exchange(await read_head(self._client.reader)):
            self._used = asyncio.get_running_loop().time()

    async def _exchange(self, head: Head) -> bool:
        """Pass one request on and its answer back; return whether the connection stays open."""
        request = Request(head.start[0], head.start[1], head.headers)
        decided = self._decide(request)
        chosen = Chosen(decided) if isinstance(decided, Fault) else decided
        if chosen.fault is Fault.RESET:
            self._record(ProxiedAnswer(request, chosen.fault, None))
            _reset(self._client)
            return False
        content = _body_of_request(self._client.reader, head)
        if chosen.fault in (Fault.FAIL_BEFORE, Fault.STORED_BEFORE):
            await read_whole(content)
            self._record(ProxiedAnswer(request, chosen.fault, None))
            return await self._answer_instead(head, chosen)
        if chosen.fault is Fault.ZOMBIE:
            content = _yield_once(await read_whole(content))
            await self._await_client_gone()
            self.close()  # the emulator may be closing our idle connection
        if chosen.fault is Fault.REPLAYED:
            whole = await read_whole(content)
            await self._forward_unheard(head, whole, request)
            content = _yield_once(whole)
        while chosen.until is not None and not chosen.until():  # noqa: ASYNC110  # another thread decides
            await asyncio.sleep(_ASK_SECONDS)
        return await self._forward(head, content, request, chosen)

    async def _forward(self, head: Head, content: AsyncIterator[bytes], request: Request, chosen: Chosen) -> bool:
        fault = chosen.fault
        sending: asyncio.Task[None] | None = None
        sent = time.time()
        try:
            try:
                upstream = await self._connect_upstream()
                upstream.writer.write(head.raw)
                # The emulator may answer before it has read the whole body, so both go on at the same time.
                sending = asyncio.create_task(_send(content, upstream.writer))
                answer = await self._answer(upstream, fault)
                int(answer.start[1])  # raises ValueError if the emulator does not speak HTTP
            except GONE:
                self._record(ProxiedAnswer(request, fault, None, sent=sent))
                raise
            said = _body_of_answer(upstream.reader, answer, request.method)
            record = _to_answer(request, fault, answer, sent)
            answer = _change_head(answer, request, chosen)
            if _is_of_transaction(answer) or chosen.keeps:
                whole = await read_whole(said)
                said = _yield_once(whole)
                record = replace(record, parts=_parts(answer, whole), raw=answer.raw + whole if chosen.keeps else b"")
            # Before anything is sent to the client, so that a client that has its answer finds it in the log.
            self._record(record)
            if fault in (Fault.NONE, Fault.REPLAYED):
                self._client.writer.write(answer.raw)
                await pass_on(said, self._client.writer)
                await sending
            elif not await self._spoil_answer(chosen, head, answer, said, sending):
                return False
        finally:
            if sending is not None:
                sending.cancel()
        return not (head.closes or answer.closes or upstream.reader.at_eof())

    async def _forward_unheard(self, head: Head, content: bytes, request: Request) -> None:
        """Pass a request on and drop its answer, like a proxy that lost the answer and then sends the request again."""
        sent = time.time()
        upstream = await self._connect_upstream()
        upstream.writer.write(head.raw + content)
        await upstream.writer.drain()
        answer = await read_head(upstream.reader)
        said = await read_whole(_body_of_answer(upstream.reader, answer, request.method))
        self._record(replace(_to_answer(request, Fault.REPLAYED, answer, sent), parts=_parts(answer, said)))
        if answer.closes:
            self.close()
        self._used = asyncio.get_running_loop().time()

    async def _spoil_answer(
        self, chosen: Chosen, head: Head, answer: Head, said: AsyncIterator[bytes], sending: "asyncio.Task[None]"
    ) -> bool:
        """Apply the fault to the answer; return whether the connection stays open."""
        fault = chosen.fault
        if fault in (Fault.DROP, Fault.ZOMBIE):
            return False
        content = await read_whole(said)
        await sending
        if fault in (Fault.FAIL_AFTER, Fault.STORED_AFTER):
            return await self._answer_instead(head, chosen)
        if fault is Fault.LATE:
            await self._await_client_gone()
        elif fault is Fault.HALF:
            self._client.writer.write(_half(answer.raw, content))
            await self._client.writer.drain()
        else:
            await self._trickle(answer.raw + content)
            return True
        return False

    async def _answer_instead(self, head: Head, chosen: Chosen) -> bool:
        """Answer with what is stored, if the fault says so, else with 503."""
        failure = _FAILURE + (b"" if head.start[0] == "HEAD" else _BUSY)
        is_stored = chosen.fault in (Fault.STORED_AFTER, Fault.STORED_BEFORE)
        self._client.writer.write(chosen.stored if is_stored else failure)
        await self._client.writer.drain()
        return not head.closes

    async def _trickle(self, said: bytes) -> None:
        step = max(1, -(-len(said) // _SLOW_PIECES))
        for start in range(0, len(said), step):
            self._client.writer.write(said[start : start + step])
            await self._client.writer.drain()
            await asyncio.sleep(_SLOW_PAUSE_SECONDS)

    async def _await_client_gone(self) -> None:
        """Wait until the client has given up."""
        try:
            while await self._client.reader.read(LONGEST_HEAD):
                pass
        except OSError:
            pass  # It did so with a reset.

    async def _answer(self, upstream: Peer, fault: Fault) -> Head:
        """Return the emulator's answer; what comes before it ("100 Continue") is passed on."""
        while (answer := await read_head(upstream.reader)).start[1].startswith("1"):
            if fault is not Fault.DROP:
                self._client.writer.write(answer.raw)
        return answer

    async def _connect_upstream(self) -> Peer:
        """Return the connection to the emulator, a new one if the emulator may be closing the old one."""
        idle = asyncio.get_running_loop().time() - self._used
        if self._upstream is None or self._upstream.reader.at_eof() or idle > _FRESH_SECONDS:
            self.close()
            self._upstream = Peer(*await asyncio.open_connection(HOST, self._port, limit=LONGEST_HEAD))
        return self._upstream


def _to_answer(request: Request, fault: Fault, answer: Head, sent: float) -> ProxiedAnswer:
    """Return the record of an answer that came just now."""
    return ProxiedAnswer(
        request=request,
        fault=fault,
        status=int(answer.start[1]),
        etag=answer.headers.get("etag"),
        sent=sent,
        answered=time.time(),
        headers=answer.headers,
    )


def _change_head(answer: Head, request: Request, chosen: Chosen) -> Head:
    asked = request.headers.get(_ID) if chosen.echoes else None
    named = answer if asked is None else _add_header(answer, _ID, asked)
    return _move_date(named, chosen.ahead_seconds)


def _half(head: bytes, content: bytes) -> bytes:
    """Return the first half of an answer: half of the body; without a body, the head up to the middle of the ETag."""
    if content and not content.startswith(b"0\r\n"):
        return head + content[: len(content) // 2]
    position = head.lower().find(b"\r\netag: ")
    return head[: position + 16] if position >= 0 else head[: len(head) // 2]


def _is_of_transaction(answer: Head) -> bool:
    return answer.headers.get("content-type", "").startswith("multipart/mixed")


def _parts(answer: Head, content: bytes) -> tuple[int, ...]:
    """Return the statuses of the parts of a transaction's answer; any other has none."""
    if not _is_of_transaction(answer):
        return ()
    return tuple(int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", content))


def _reset(client: Peer) -> None:
    """End a connection with a reset instead of an orderly end."""
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.writer.transport.abort()


async def _yield_once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _send(content: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    """Pass a request's body on; if a side has gone, end the connection, so that neither side waits for the rest."""
    try:
        await pass_on(content, writer)
    except GONE:
        writer.close()
