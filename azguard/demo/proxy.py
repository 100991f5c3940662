"""A proxy in front of the emulator that loses answers as a network does.

The emulator has done its work and answered, and the client's connection closes without a byte. What passes is passed on
unchanged, so signatures stay valid (they cover the path, not the port).
"""

import asyncio
import random
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from azguard.frozen import frozen

HOST = "127.0.0.1"
#: What is raised when a peer has gone or does not speak HTTP. It ends its own connection and nothing else.
GONE = (OSError, EOFError, asyncio.LimitOverrunError, ValueError)
LONGEST_HEAD = 256 * 1024
_PIECE = 64 * 1024
# Node.js closes a connection that was idle for five seconds; one this fresh it has not begun to close.
_FRESH_SECONDS = 1.0


@frozen
class LossyProxy:
    """A running proxy."""

    #: On 127.0.0.1.
    port: int
    #: Of each answer so far, in the order in which they came, whether it was lost.
    lost: list[bool] = field(default_factory=list)


@contextmanager
def lose_answers(upstream_port: int, share: float, chance: random.Random) -> Iterator[LossyProxy]:
    """Run a proxy that loses this share of all answers, at random, for the length of a ``with`` block.

    Raises:
        OSError: no port can be opened.
    """
    lost: list[bool] = []

    def connect(client: Peer) -> Connection:
        return _LosingConnection(client, upstream_port, lambda: chance.random() < share, lost)

    with serve_clients(connect) as port:
        yield LossyProxy(port, lost)


@frozen
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
    """Return the pieces of a request's body as they are on the wire; without an announced length there is no body."""
    return _body(reader, head, otherwise=0)


def body_of_answer(reader: asyncio.StreamReader, head: Head, method: str) -> AsyncIterator[bytes]:
    """Return the pieces of an answer's body as they are on the wire; without a length it ends with the connection."""
    if method == "HEAD" or head.start[1] in ("204", "304"):
        return _exactly(reader, 0)
    return _body(reader, head, otherwise=None)


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


async def pass_on(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    """Write a body piece by piece, no faster than it is taken.

    Raises:
        EOFError: it ended before its announced length.
        ValueError: it is not in chunks, as announced.
    """
    async for piece in body:
        writer.write(piece)
        await writer.drain()


async def send(content: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    """Pass a request's body on; if a side has gone, end the connection, so that neither side waits for the rest."""
    try:
        await pass_on(content, writer)
    except GONE:
        writer.close()


@frozen
class Peer:
    """One end of a TCP connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Connection:
    """One client's connection, and ours to the emulator for it; both are kept alive."""

    def __init__(self, client: Peer, port: int) -> None:
        self.client = client
        self._port = port
        self._upstream: Peer | None = None
        self.used = 0.0

    def close(self) -> None:
        """End our connection to the emulator."""
        if self._upstream is not None:
            self._upstream.writer.close()
            self._upstream = None

    async def serve(self) -> None:
        """Pass requests on, one after the other, until either side ends the connection."""
        while await self.exchange(await read_head(self.client.reader)):
            self.used = asyncio.get_running_loop().time()

    async def exchange(self, head: Head) -> bool:
        """Pass one request on and its answer back; return whether the connection stays open."""
        raise NotImplementedError

    async def read_answer(self, upstream: Peer, *, tells: bool) -> Head:
        """Return the emulator's answer; what comes before it ("100 Continue") is passed on if ``tells``."""
        while (answer := await read_head(upstream.reader)).start[1].startswith("1"):
            if tells:
                self.client.writer.write(answer.raw)
        return answer

    async def connect_upstream(self) -> Peer:
        """Return the connection to the emulator, a new one if the emulator may be closing the old one."""
        idle = asyncio.get_running_loop().time() - self.used
        if self._upstream is None or self._upstream.reader.at_eof() or idle > _FRESH_SECONDS:
            self.close()
            self._upstream = Peer(*await asyncio.open_connection(HOST, self._port, limit=LONGEST_HEAD))
        return self._upstream


class _LosingConnection(Connection):
    def __init__(self, client: Peer, port: int, loses: Callable[[], bool], lost: list[bool]) -> None:
        super().__init__(client, port)
        self._loses, self._lost = loses, lost

    async def exchange(self, head: Head) -> bool:
        is_lost = self._loses()
        upstream = await self.connect_upstream()
        upstream.writer.write(head.raw)
        # The emulator may answer before it has read the whole body, so both go on at the same time.
        sending = asyncio.create_task(send(body_of_request(self.client.reader, head), upstream.writer))
        try:
            answer = await self.read_answer(upstream, tells=not is_lost)
            self._lost.append(is_lost)
            if is_lost:
                return False
            self.client.writer.write(answer.raw)
            await pass_on(body_of_answer(upstream.reader, answer, head.start[0]), self.client.writer)
            await sending
        finally:
            sending.cancel()
        return not (head.closes or answer.closes or upstream.reader.at_eof())


@contextmanager
def serve_clients(connect: Callable[[Peer], Connection], port: int = 0) -> Iterator[int]:
    """Serve clients in a thread of this process for the length of a ``with`` block; yield the port on 127.0.0.1.

    ``port`` 0 is any that is free.

    Raises:
        OSError: no port can be opened.
    """
    server = _Server(connect, port)
    thread = threading.Thread(target=server.run, name="proxy", daemon=True)
    thread.start()
    try:
        yield server.await_started()
    finally:
        server.stop()
        thread.join()


class _Server:
    """The proxy's thread: its event loop, and how the other thread starts and stops it."""

    def __init__(self, connect: Callable[[Peer], Connection], port: int) -> None:
        self._connect = connect
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        #: Accepted, and not served yet.
        self._accepted: set[socket.socket] = set()
        self._port = port
        self._failure: OSError | None = None

    def run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except asyncio.CancelledError:
            pass  # stopped
        except OSError as error:
            self._failure = error
        finally:
            self._ready.set()

    def await_started(self) -> int:
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self._port

    def stop(self) -> None:
        self._ready.wait()
        try:
            if self._serving is not None:
                self._loop.call_soon_threadsafe(self._serving.cancel)
        except RuntimeError:
            pass  # The loop is closed: it has ended by itself.

    async def _serve(self) -> None:
        """Accept clients until cancelled, which ends every connection too."""
        with socket.create_server((HOST, self._port)) as listening:
            listening.settimeout(0)
            self._port = listening.getsockname()[1]
            self._serving = asyncio.current_task()
            self._ready.set()
            async with asyncio.TaskGroup() as connections:
                # Not sock_accept, which raises if a client connects while it is being cancelled.
                self._loop.add_reader(listening, self._accept, listening, connections)
                try:
                    await self._loop.create_future()
                finally:
                    self._loop.remove_reader(listening)
                    for accepted in self._accepted:
                        accepted.close()

    def _accept(self, listening: socket.socket, connections: asyncio.TaskGroup) -> None:
        try:
            accepted, _ = listening.accept()
            # Without it a body waits 40 ms until the arrival of its head is acknowledged.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            return  # This client has gone already.
        accepted.settimeout(0)
        self._accepted.add(accepted)
        connections.create_task(self._serve_one(accepted))

    async def _serve_one(self, accepted: socket.socket) -> None:
        self._accepted.remove(accepted)
        client = Peer(*await asyncio.open_connection(sock=accepted, limit=LONGEST_HEAD))
        connection = self._connect(client)
        try:
            await connection.serve()
        except GONE:
            pass  # This client has gone; the others go on.
        finally:
            client.writer.close()
            connection.close()
