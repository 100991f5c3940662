"""A service that fails from some request of ``lock run`` on: it answers 503, or nothing, or a byte at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support import threaded_server

_BYTE_SECONDS = 0.2


class FailingService(ThreadingHTTPServer):
    """Fails in one way (``silent``, ``503``, ``trickle``) from one stage on; ``asked`` is what it was asked for.

    The stages are the first request (``acquire``), the one that makes the blob (``make``), the owner's record
    (``stamp``), and the look at who holds the lock (``look``).
    """

    daemon_threads = True

    def __init__(self, failure: str, stage: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failure, self.stage = failure, stage
        self.asked: list[str] = []
        self.over = threading.Event()

    @property
    def connection_string(self) -> str:
        """Return the account that this service is."""
        return f"AccountName=acc;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:{self.server_port}/acc"


class _Handler(BaseHTTPRequestHandler):
    server: FailingService

    def do_PUT(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *_words: object) -> None:
        pass

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        action = self.headers.get("x-ms-lease-action")
        self.server.asked.append(action or self.command)
        refusals = {"make": (404, "BlobNotFound"), "stamp": (201, ""), "look": (409, "LeaseAlreadyPresent")}
        if action == "acquire" and self.server.stage in refusals:
            self._send(*refusals[self.server.stage])
        elif self.server.failure == "503":
            self._send(503, "ServerBusy")
        elif self.server.failure == "trickle":
            self._trickle()
        else:
            self.server.over.wait()

    def _send(self, status: int, code: str) -> None:
        self.send_response(status)
        for name, value in {
            "x-ms-request-id": "1",
            "x-ms-version": "2021-12-02",
            "x-ms-error-code": code,
            "x-ms-lease-id": self.headers.get("x-ms-proposed-lease-id", ""),
            "ETag": '"0x1"',
            "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
            "Content-Length": "0",
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def _trickle(self) -> None:
        with suppress(OSError):  # until the other side has had enough
            self.wfile.write(b"HTTP/1.1 201 Created\r\nx-ms-request-id: 1\r\nx-ms-version: 1\r\nX: ")
            while not self.server.over.wait(_BYTE_SECONDS):
                self.wfile.write(b"x")
                self.wfile.flush()


@contextmanager
def failing(failure: str, stage: str) -> Iterator[FailingService]:
    """Yield a service that fails, running."""
    with threaded_server.running(FailingService(failure, stage)) as service:
        yield service
        service.over.set()
