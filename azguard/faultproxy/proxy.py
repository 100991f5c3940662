"""An HTTP proxy in front of the emulator that injects faults and records how every request really ended.

An answer is lost as on a real network: the emulator has done its work and answered, and the client's connection
closes without a byte. The bytes are passed on unchanged, so signatures stay valid (they cover the path, not the port).
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from azguard.faultproxy.connection import GONE, HOST, LONGEST_HEAD, Connection, Peer
from azguard.faultproxy.faults import Chosen, Decide, Fault, ProxiedAnswer, Request, losing

__all__ = [
    "GONE",
    "HOST",
    "LONGEST_HEAD",
    "Chosen",
    "Decide",
    "Fault",
    "ProxiedAnswer",
    "Proxy",
    "Request",
    "losing",
    "running",
]


@dataclass(frozen=True)
class Proxy:
    """A running proxy."""

    #: On 127.0.0.1.
    port: int
    #: The answers so far, in the order in which they came.
    log: list[ProxiedAnswer] = field(default_factory=list)


@contextmanager
def running(
    upstream_port: int, decide: Decide, *, port: int = 0, record: Callable[[ProxiedAnswer], None] | None = None
) -> Iterator[Proxy]:
    """Run a proxy in a thread of this process for the length of a ``with`` block.

    In that thread ``decide`` is called once per request, before it is passed on, and ``record`` once per answer,
    before anything is sent to the client. ``port`` 0 is any that is free.

    Raises:
        OSError: no port can be opened.
    """
    server = _Server(upstream_port, decide, port, record)
    thread = threading.Thread(target=server.run, name="proxy", daemon=True)
    thread.start()
    try:
        yield server.await_started()
    finally:
        server.stop()
        thread.join()


class _Server:
    """The proxy's thread: its event loop, and how the other thread starts and stops it."""

    def __init__(
        self, upstream_port: int, decide: Decide, port: int, record: Callable[[ProxiedAnswer], None] | None
    ) -> None:
        self._upstream_port = upstream_port
        self._decide = decide
        self._record = record
        self._log: list[ProxiedAnswer] = []
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

    def await_started(self) -> Proxy:
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
        with socket.create_server((HOST, self._port)) as listening:
            listening.setblocking(False)  # noqa: FBT003  # it has no keyword
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
        accepted.setblocking(False)  # noqa: FBT003  # it has no keyword
        self._accepted.add(accepted)
        connections.create_task(self._serve_one(accepted))

    async def _serve_one(self, accepted: socket.socket) -> None:
        self._accepted.remove(accepted)
        client = Peer(*await asyncio.open_connection(sock=accepted, limit=LONGEST_HEAD))
        connection = Connection(
            client=client,
            port=self._upstream_port,
            decide=self._decide,
            record=self._note,
        )
        try:
            await connection.serve()
        except GONE:
            pass  # This client has gone; the others go on.
        finally:
            client.writer.close()
            connection.close()

    def _note(self, answer: ProxiedAnswer) -> None:
        self._log.append(answer)
        if self._record is not None:
            self._record(answer)
