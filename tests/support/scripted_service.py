"""A blob service of a few lines: each request gets the next answer of a script, as a live one would give it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Answer:
    """An answer: its status, the service's error code if it is a refusal, and headers."""

    status: int
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Service:
    """A running service: its connection string, and the requests so far as method and headers."""

    connection_string: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def running(*script: Answer) -> Iterator[Service]:
    """Answer as the script says; its last answer is repeated."""
    service, answers = Service(), list(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            service.asked.append((self.command, {name.lower(): value for name, value in self.headers.items()}))
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(answer.status)
            head = {"x-ms-request-id": "1", "x-ms-version": "2025-01-05", "Content-Length": "0", **answer.headers}
            for name, value in ({**head, "x-ms-error-code": answer.code} if answer.code else head).items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_DELETE = _answer

        def log_message(self, *_words: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}/acc"
        service.connection_string = f"AccountName=acc;AccountKey=a2V5;BlobEndpoint={endpoint}"
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
