"""One client's connection to the proxy, and the faults that are injected into it."""

import asyncio
import re
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime

from azguard.demo.proxy import (
    GONE,
    LONGEST_HEAD,
    Connection,
    Head,
    Peer,
    body_of_answer,
    body_of_request,
    pass_on,
    read_head,
    send,
)
from tests.support.faultproxy.faults import Chosen, Decide, Fault, ProxiedAnswer, Request

_DATE = re.compile(rb"(?<=\r\nDate: )[^\r]+", re.IGNORECASE)
# By what a client and the service name a request.
_ID = "x-ms-client-request-id"
# How often to ask whether a held request may go on.
_ASK_SECONDS = 0.005
# A slow answer takes longer than the whole deadline of a test, even if the test then gets no processor for a while, and
# its pauses are shorter than any read timeout.
_SLOW_PIECES = 200
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


async def read_whole(pieces: AsyncIterator[bytes]) -> bytes:
    """Read a body whole, as it is on the wire."""
    return b"".join([piece async for piece in pieces])


class FaultyConnection(Connection):
    """One client's connection through which faults are injected."""

    def __init__(self, client: Peer, port: int, decide: Decide, record: Callable[[ProxiedAnswer], None]) -> None:
        super().__init__(client, port)
        self._decide = decide
        self._record = record

    async def exchange(self, head: Head) -> bool:
        """Pass one request on and its answer back; return whether the connection stays open."""
        request = Request(head.start[0], head.start[1], head.headers)
        decided = self._decide(request)
        chosen = Chosen(decided) if isinstance(decided, Fault) else decided
        if chosen.fault is Fault.RESET:
            self._record(ProxiedAnswer(request, chosen.fault, None))
            _reset(self.client)
            return False
        content = body_of_request(self.client.reader, head)
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
                upstream = await self.connect_upstream()
                upstream.writer.write(head.raw)
                # The emulator may answer before it has read the whole body, so both go on at the same time.
                sending = asyncio.create_task(send(content, upstream.writer))
                answer = await self.read_answer(upstream, tells=fault is not Fault.DROP)
                int(answer.start[1])  # raises ValueError if the emulator does not speak HTTP
            except GONE:
                self._record(ProxiedAnswer(request, fault, None, sent=sent))
                raise
            said = body_of_answer(upstream.reader, answer, request.method)
            record = _to_answer(request, fault, answer, sent)
            answer = _change_head(answer, request, chosen)
            if _is_of_transaction(answer) or chosen.keeps:
                whole = await read_whole(said)
                said = _yield_once(whole)
                record = replace(record, parts=_parts(answer, whole), raw=answer.raw + whole if chosen.keeps else b"")
            # Before anything is sent to the client, so that a client that has its answer finds it in the log.
            self._record(record)
            if fault in (Fault.NONE, Fault.REPLAYED):
                self.client.writer.write(answer.raw)
                await pass_on(said, self.client.writer)
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
        upstream = await self.connect_upstream()
        upstream.writer.write(head.raw + content)
        await upstream.writer.drain()
        answer = await read_head(upstream.reader)
        said = await read_whole(body_of_answer(upstream.reader, answer, request.method))
        self._record(replace(_to_answer(request, Fault.REPLAYED, answer, sent), parts=_parts(answer, said)))
        if answer.closes:
            self.close()
        self.used = asyncio.get_running_loop().time()

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
            self.client.writer.write(_half(answer.raw, content))
            await self.client.writer.drain()
        else:
            await self._trickle(answer.raw + content)
            return True
        return False

    async def _answer_instead(self, head: Head, chosen: Chosen) -> bool:
        """Answer with what is stored, if the fault says so, else with 503."""
        failure = _FAILURE + (b"" if head.start[0] == "HEAD" else _BUSY)
        is_stored = chosen.fault in (Fault.STORED_AFTER, Fault.STORED_BEFORE)
        self.client.writer.write(chosen.stored if is_stored else failure)
        await self.client.writer.drain()
        return not head.closes

    async def _trickle(self, said: bytes) -> None:
        step = max(1, -(-len(said) // _SLOW_PIECES))
        for start in range(0, len(said), step):
            self.client.writer.write(said[start : start + step])
            await self.client.writer.drain()
            await asyncio.sleep(_SLOW_PAUSE_SECONDS)

    async def _await_client_gone(self) -> None:
        """Wait until the client has given up."""
        try:
            while await self.client.reader.read(LONGEST_HEAD):
                pass
        except OSError:
            pass  # It did so with a reset.


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
