"""A blob service that has one blob and answers ranges of it; a test may change, keep back or spoil each answer."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from tests.support import threaded_server


@dataclass(frozen=True)
class RangeAnswer:
    """An answer to a GET: its status, its body and the headers that matter here."""

    status: int
    body: bytes
    etag: str
    content_range: str | None
    #: How many bytes of the body are left out, so that it ends too soon.
    cut: int = 0
    code: str | None = None
    #: The MD5 of the body, where it was asked for.
    md5: str | None = None
    #: Whether the body is sent in chunks, without its length, as proxies do.
    chunked: bool = False
    #: The request that it says it belongs to.
    request_id: str | None = None


#: Takes the first byte asked for and the honest answer; returns the one that is sent.
Spoil = Callable[[int, RangeAnswer], RangeAnswer]


@dataclass
class RangedService:
    """A running service; ``content`` and ``etag`` may be replaced at any time."""

    content: bytes
    etag: str = '"0x1"'
    spoil: Spoil = lambda _, answer: answer
    port: int = 0
    #: The headers of each request so far.
    asked: list[Mapping[str, str]] = field(default_factory=list)

    @property
    def target(self) -> Target:
        """Return the blob, in an account that is this service."""
        account = Account("acc", {"blob": f"http://127.0.0.1:{self.port}/acc"}, Auth.KEY, "a2V5")
        return Target(account, Address(Kind.BLOB, ("site", "large")))

    @property
    def ranges(self) -> list[str]:
        """Return the ranges that were asked for."""
        return [headers["x-ms-range"] for headers in self.asked]

    def answer(self, headers: Mapping[str, str]) -> RangeAnswer:
        """Return the honest answer to a GET."""
        self.asked.append(headers)
        content, etag = self.content, self.etag
        if headers.get("if-match", etag) != etag:
            return RangeAnswer(412, b"", etag, None, code="ConditionNotMet")
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("x-ms-range", ""))
        if found is None:
            return RangeAnswer(200, content, etag, None)
        begin, end = int(found[1]), min(int(found[2]), len(content) - 1)
        if begin > end:
            return RangeAnswer(416, b"", etag, None, code="InvalidRange")
        honest = RangeAnswer(206, content[begin : end + 1], etag, f"bytes {begin}-{end}/{len(content)}")
        if headers.get("x-ms-range-get-content-md5") == "true":
            honest = replace(honest, md5=base64.b64encode(hashlib.md5(honest.body).digest()).decode())
        return self.spoil(begin, honest)


@contextmanager
def serving(content: bytes, spoil: Spoil | None = None) -> Iterator[RangedService]:
    """Run a service with such a blob."""
    service = RangedService(content)
    if spoil is not None:
        service = replace(service, spoil=spoil)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            answer = service.answer({name.lower(): value for name, value in self.headers.items()})
            head = {
                "x-ms-request-id": "1",
                "x-ms-version": "2026-02-06",
                "x-ms-blob-type": "BlockBlob",
                "x-ms-error-code": answer.code,
                "ETag": answer.etag,
                "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT",
                "Content-Range": answer.content_range,
                "Content-MD5": answer.md5,
                "x-ms-client-request-id": answer.request_id,
                "Content-Length": None if answer.chunked else str(len(answer.body)),
                "Transfer-Encoding": "chunked" if answer.chunked else None,
            }
            self.send_response(answer.status)
            for name, value in head.items():
                if value is not None:
                    self.send_header(name, value)
            self.end_headers()
            body = answer.body[: len(answer.body) - answer.cut] if self.command == "GET" else b""
            self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if answer.chunked else body)
            self.close_connection = answer.cut > 0

        def log_message(self, *_words: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.port = server.server_address[1]
    with threaded_server.running(server):
        yield service
