"""An HTTP server of a test, in a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import TypeVar

Server = TypeVar("Server", bound=BaseServer)

# How often the server looks whether it is to end; by default it does twice a second, and each end waits for that.
_POLL_SECONDS = 0.01


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Serve for the length of a ``with`` block."""
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
