"""A server on a real socket, which does one thing with each connection and closes it."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def serving(attend: Callable[[socket.socket], None]) -> Iterator[int]:
    """Attend to each connection in turn; yield the port. A client may hang up at any moment."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = listening.accept()
                except OSError:
                    return
                with accepted, suppress(OSError):
                    attend(accepted)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def answering(said: bytes) -> Iterator[int]:
    """Say this to each connection; yield the port."""

    def answer(accepted: socket.socket) -> None:
        accepted.recv(65536)
        accepted.sendall(said)

    with serving(answer) as port:
        yield port
