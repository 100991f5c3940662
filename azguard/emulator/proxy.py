"""An HTTP proxy in front of the emulator that can lose answers, and knows the truth about every request.

What is lost is lost as on a real network: the emulator has done its work and answered, and the client's connection
closes without a byte. Nothing is changed on the way, so signatures stay valid (they cover the path, not the port).
"""

import asyncio
import random
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from azguard.emulator.http_messages import Head, body_of_answer, body_of_request, pass_on, read_head

_HOST = "127.0.0.1"
_LONGEST_HEAD = 256 * 1024
# Node.js closes a connection that was idle for five seconds; one this fresh it has not begun to close.
_FRESH_SECONDS = 1.0
# How a peer that has gone, or does not speak HTTP, shows itself. It ends its own connection and nothing else.
_GONE = (OSError, EOFError, asyncio.LimitOverrunError, ValueError)


class Fault(Enum):
    """What happens to one request."""

    NONE = "none"
    DROP = "drop"  # the emulator answers, and the client's connection closes without a byte


@dataclass(frozen=True)
class Request:
    """What a client asks. ``path`` is as sent, with its query; the names of ``headers`` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def writes(self) -> bool:
        """Return whether it may change something."""
        return self.method not in ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Answer:
    """What the emulator really answered, whatever the client heard; ``status`` is None if it did not answer."""

    request: Request
    fault: Fault
    status: int | None
    etag: str | None = None

    @property
    def dropped(self) -> bool:
        """Return whether the emulator answered and the client heard nothing."""
        return self.fault is Fault.DROP and self.status is not None


Decide = Callable[[Request], Fault]


@dataclass(frozen=True)
class Proxy:
    """A running proxy: its port on 127.0.0.1, and the answers so far, in the order in which they came."""

    port: int
    log: list[Answer] = field(default_factory=list)


def losing(share: float, chance: random.Random, *, only_writes: bool = False) -> Decide:
    """Return a rule that loses this share of all answers, or of those to writes, at random."""

    def decide(request: Request) -> Fault:
        if only_writes and not request.writes:
            return Fault.NONE
        return Fault.DROP if chance.random() < share else Fault.NONE

    return decide


@contextmanager
def running(upstream_port: int, decide: Decide) -> Iterator[Proxy]:
    """Run a proxy in a thread of this process for the length of a ``with`` block.

    ``decide`` is called in that thread, once per request, before it is passed on.

    Raises:
        OSError: no port can be opened.
    """
    server = _Server(upstream_port, decide)
    thread = threading.Thread(target=server.run, name="proxy", daemon=True)
    thread.start()
    try:
        yield server.started()
    finally:
        server.stop()
        thread.join()


class _Server:
    """The proxy's thread: its event loop, and how the other thread starts and stops it."""

    def __init__(self, upstream_port: int, decide: Decide) -> None:
        self._upstream_port, self._decide = upstream_port, decide
        self._log: list[Answer] = []
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self._accepted: set[socket.socket] = set()  # and not served yet
        self._port = 0
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

    def started(self) -> Proxy:
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return Proxy(self._port, self._log)

    def stop(self) -> None:
        self._ready.wait()
        try:
            if self._serving is not None:
                self._loop.call_soon_threadsafe(self._serving.cancel)
        except RuntimeError:
            pass  # The loop is closed: it has ended by itself.

    async def _serve(self) -> None:
        """Accept clients until cancelled, which ends every connection too."""
        with socket.create_server((_HOST, 0)) as listening:
            listening.setblocking(False)
            self._port = listening.getsockname()[1]
            self._serving = asyncio.current_task()
            self._ready.set()
            async with asyncio.TaskGroup() as connections:
                # Not sock_accept, which trips over a client that comes while it is being cancelled.
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
            # Else a body waits 40 ms for the word that its head has arrived.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            return  # This client has gone already.
        accepted.setblocking(False)
        self._accepted.add(accepted)
        connections.create_task(self._serve_one(accepted))

    async def _serve_one(self, accepted: socket.socket) -> None:
        self._accepted.remove(accepted)
        client = _Peer(*await asyncio.open_connection(sock=accepted, limit=_LONGEST_HEAD))
        connection = _Connection(client, self._upstream_port, self._decide, self._log.append)
        try:
            await connection.serve()
        except _GONE:
            pass  # This client has gone; the others go on.
        finally:
            client.writer.close()
            connection.close()


@dataclass(frozen=True)
class _Peer:
    """One end of a TCP connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Connection:
    """One client's connection, and ours to the emulator for it; both are kept alive."""

    def __init__(self, client: _Peer, port: int, decide: Decide, record: Callable[[Answer], None]) -> None:
        self._client, self._port, self._decide, self._record = client, port, decide, record
        self._upstream: _Peer | None = None
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
        fault = self._decide(request)
        body = body_of_request(self._client.reader, head)
        sending: asyncio.Task[None] | None = None
        try:
            try:
                upstream = await self._fresh()
                upstream.writer.write(head.raw)
                # The emulator may answer before it has read the whole body, so both go on at the same time.
                sending = asyncio.create_task(_send(body, upstream.writer))
                answer = await self._answer(upstream, fault)
                status = int(answer.start[1])
            except _GONE:
                self._record(Answer(request, fault, None))
                raise
            # Before the client can hear of it: whoever has an answer finds it in the log.
            self._record(Answer(request, fault, status, answer.headers.get("etag")))
            if fault is Fault.DROP:
                return False
            self._client.writer.write(answer.raw)
            await pass_on(body_of_answer(upstream.reader, answer, request.method), self._client.writer)
            await sending
        finally:
            if sending is not None:
                sending.cancel()
        return not (head.closes or answer.closes or upstream.reader.at_eof())

    async def _answer(self, upstream: _Peer, fault: Fault) -> Head:
        """Return the emulator's answer; what comes before it ("100 Continue") is passed on."""
        while (answer := await read_head(upstream.reader)).start[1].startswith("1"):
            if fault is not Fault.DROP:
                self._client.writer.write(answer.raw)
        return answer

    async def _fresh(self) -> _Peer:
        """Return the connection to the emulator, a new one if the emulator may be closing the old one."""
        idle = asyncio.get_running_loop().time() - self._used
        if self._upstream is None or self._upstream.reader.at_eof() or idle > _FRESH_SECONDS:
            self.close()
            self._upstream = _Peer(*await asyncio.open_connection(_HOST, self._port, limit=_LONGEST_HEAD))
        return self._upstream


async def _send(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    """Pass a request's body on; if a side has gone, end the connection, so that nobody waits for the rest."""
    try:
        await pass_on(body, writer)
    except _GONE:
        writer.close()
