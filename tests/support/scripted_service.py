"""A service of a few lines: each request gets the next answer of a script."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support import recorded, threaded_server


@dataclass(frozen=True)
class Answer:
    """An answer: its status, the service's error code if it is a refusal, headers, and a body."""

    status: int
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def recorded(cls, name: str, number: int) -> "Answer":
        """Return the answer of the live service in a recording, with its date."""
        found = recorded.find(name, number)
        left_out = ("content-length", "transfer-encoding", "x-ms-error-code")
        headers = {key: value for key, value in found.headers.items() if key not in left_out}
        return cls(found.status, found.code, headers, found.content)


@dataclass
class Service:
    """A running service: its connection string, and the requests so far as method and headers."""

    connection_string: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    #: When each request came, on ``time.monotonic``.
    moments: list[float] = field(default_factory=list)
    #: What comes next; the last answer is repeated.
    script: list[Answer] = field(default_factory=list)


@contextmanager
def running(*script: Answer) -> Iterator[Service]:
    """Answer as the script says; its last answer is repeated."""
    service = Service(script=list(script))
    answers = service.script

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            service.paths.append(self.path)
            service.moments.append(time.monotonic())
            service.asked.append((self.command, {name.lower(): value for name, value in self.headers.items()}))
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response_only(answer.status)
            length = {} if answer.status == HTTPStatus.NO_CONTENT else {"Content-Length": str(len(answer.body))}
            head = {"x-ms-request-id": "1", "x-ms-version": "2025-01-05", **length, **answer.headers}
            for name, value in ({**head, "x-ms-error-code": answer.code} if answer.code else head).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

        def log_message(self, *_words: object) -> None:
            """Keep quiet."""

    with threaded_server.running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}/acc"
        places = "".join(f";{kind}Endpoint={endpoint}" for kind in ("Blob", "Queue", "File", "Table"))
        service.connection_string = f"AccountName=acc;AccountKey=a2V5{places}"
        yield service
