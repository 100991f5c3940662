"""The network under the SDK's transport: all above the socket is azguard's own code.

A request is handed to the process that sends it, and its answer, or why there is none, is what that process is told.
"""

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http.client import RemoteDisconnected
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from urllib3.exceptions import NewConnectionError, ProtocolError, ReadTimeoutError
from urllib3.response import HTTPResponse

from azguard.accounts import exchanges, transport
from azguard.accounts.account import Account, Auth

ECHO = exchanges.REQUEST_ID
_ENDPOINTS = {service: f"http://acc.{service}.core.windows.net" for service in ("blob", "table", "queue", "file")}
# They name no version, and differ from one transmission to the next.
_PASSING = ("x-ms-date", "date", "user-agent", "accept", "accept-encoding", "connection", "content-length", ECHO)


# What a request inside a transaction says of the time.
_PASSING_IN_BATCH = re.compile(rb"(?:x-ms-date|Date): [^\r\n]*\r\n")


@dataclass(frozen=True)
class Asked:
    """A request: the names of its headers are in lower case."""

    method: str
    service: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    #: How long its sender waits for an answer, in seconds.
    patience: float = field(default=20.0, compare=False)

    @classmethod
    def parse(cls, method: str, url: str, headers: Mapping[str, str], body: Any, patience: float) -> "Asked":
        """Read a request of the SDK."""
        parts = urlsplit(url)
        kept = sorted((name.lower(), str(value)) for name, value in headers.items() if name.lower() not in _PASSING)
        query = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "timeout")
        path = unquote(parts.path).strip("/")
        content = _PASSING_IN_BATCH.sub(b"", _read(body)) if path == "$batch" else _read(body)
        return cls(method, parts.netloc.split(".")[1], path, tuple(query), tuple(kept), content, patience)

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return next((value for key, value in self.headers if key == name), None)

    def asks(self, name: str) -> str | None:
        """Return the value of a parameter of the query."""
        return next((value for key, value in self.query if key == name), None)

    @property
    def action(self) -> str:
        """Return what it does, such as ``PUT lease acquire``."""
        comp = self.asks("comp") or ("container" if self.asks("restype") else "")
        lease = self.header("x-ms-lease-action")
        return " ".join(filter(None, (self.method, comp, lease)))

    @property
    def changes(self) -> bool:
        """Return whether it may change something."""
        return self.method not in ("GET", "HEAD") or (self.service == "queue" and self.asks("peekonly") is None)


@dataclass(frozen=True)
class Answer:
    """An answer of the service, without the id of its request."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    #: Whether it carries the id of another request.
    is_of_another: bool = False

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def code(self) -> str:
        """Return the service's code, or the status."""
        return self.header("x-ms-error-code") or str(self.status)


class Silence(Enum):
    """Why there is no answer."""

    BROKEN = "the connection broke"
    TIMEOUT = "no answer in time"
    NOT_SENT = "no connection"


#: Hands a request over and returns what its sender is told.
Ask = Callable[[Asked], Answer | Silence]


def make_account(ask: Ask) -> Account:
    """Return an account whose requests are handed to ``ask``; every process may use it."""
    sender = transport.transport(connection_timeout=4.0, connection_data_block_size=1 << 20)
    sender.open()
    adapter = sender.session._adapter
    adapter.get_connection_with_tls_context = lambda request, *_, **__: _Pool(ask, request)
    adapter.find_pool = lambda scheme, host: None
    return Account("acc", _ENDPOINTS, Auth.SAS, "sig=x", {"transport": sender}, allows_http=True)


class _Pool:
    """What urllib3 would connect with, for one request."""

    def __init__(self, ask: Ask, request: Any) -> None:
        self._ask = ask
        self._request = request

    def urlopen(self, **given: Any) -> HTTPResponse:
        """Send a request and return its answer."""
        request = self._request
        asked = Asked.parse(request.method, request.url, request.headers, given["body"], given["timeout"].read_timeout)
        answer = self._ask(asked)
        if answer is Silence.NOT_SENT:
            raise NewConnectionError(self, "Connection refused")  # type: ignore[arg-type]  # only shown
        if answer is Silence.TIMEOUT:
            raise ReadTimeoutError(self, asked.path, "Read timed out.")  # type: ignore[arg-type]  # only shown
        if not isinstance(answer, Answer):
            raise ProtocolError("Connection aborted.", RemoteDisconnected("Remote end closed connection"))
        echo = "another" if answer.is_of_another else request.headers.get(ECHO, "")
        headers = {**dict(answer.headers), ECHO: echo, "Content-Length": str(len(answer.body))}
        return HTTPResponse(
            io.BytesIO(b"" if asked.method == "HEAD" else answer.body),
            headers=headers,
            status=answer.status,
            reason="",
            preload_content=False,
            request_method=asked.method,
        )


def _read(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes):
        return body
    found: bytes = body.read()
    body.seek(0)
    return found
