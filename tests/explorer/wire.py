"""The network under azguard: all above the socket is its own code.

A request is handed to the process that sends it, and its answer, or why there is none, is what that process is told.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from urllib.parse import parse_qsl, unquote, urlsplit

from azguard.accounts.account import Account, Auth
from azguard.wire import client
from azguard.wire.client import REQUEST_ID, Limits
from azguard.wire.connections import Headers, Reply
from azguard.wire.failures import Broken, BrokenAnswer, NotConnected, Stage

ECHO = REQUEST_ID
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
    @lru_cache(maxsize=10_000)  # a history that is played again sends the same requests
    def parse(
        cls, method: str, url: str, headers: tuple[tuple[str, str], ...], body: bytes | None, patience: float
    ) -> "Asked":
        """Read a request."""
        parts = urlsplit(url)
        kept = sorted((name.lower(), str(value)) for name, value in headers if name.lower() not in _PASSING)
        query = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "timeout")
        path = unquote(parts.path).strip("/")
        content = _PASSING_IN_BATCH.sub(b"", body or b"") if path == "$batch" else body or b""
        return cls(method, parts.netloc.split(".")[1], path, tuple(query), tuple(kept), content, patience)

    def __hash__(self) -> int:
        """Return its hash, which is made once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.method, self.service, self.path, self.query, self.headers, self.body))

    @cached_property
    def _named(self) -> dict[str, str]:
        return dict(self.headers)

    @cached_property
    def _asked(self) -> dict[str, str]:
        return dict(self.query)

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return self._named.get(name)

    def asks(self, name: str) -> str | None:
        """Return the value of a parameter of the query."""
        return self._asked.get(name)

    @cached_property
    def action(self) -> str:
        """Return what it does, such as ``PUT lease acquire``."""
        comp = self.asks("comp") or ("container" if self.asks("restype") else "")
        lease = self.header("x-ms-lease-action")
        return " ".join(filter(None, (self.method, comp, lease)))

    @cached_property
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

    def __hash__(self) -> int:
        """Return its hash, which is made once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.status, self.headers, self.body, self.is_of_another))

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
    return Account("acc", _ENDPOINTS, Auth.SAS, "sig=x", {"client": _Client(ask)}, allows_http=True)


class _Client:
    """Hands requests over, and their answers back."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        """Send a request and return its answer."""
        asked = Asked.parse(method, url, tuple(headers.items()), body, limits.answer)
        answer = self._ask(asked)
        if answer is Silence.NOT_SENT:
            raise NotConnected(Stage.HOST, ConnectionRefusedError("Connection refused"))
        if answer is Silence.TIMEOUT:
            raise BrokenAnswer(Broken.TIMED_OUT)
        if not isinstance(answer, Answer):
            raise BrokenAnswer(Broken.CLOSED)
        echo = "another" if answer.is_of_another else headers.get(ECHO, "")
        told = {**dict(answer.headers), ECHO: echo, "Content-Length": str(len(answer.body))}
        client.check_echo(headers, told)
        content = b"" if method == "HEAD" else answer.body
        return Reply(answer.status, "", Headers([f"{name}: {value}" for name, value in told.items()]), content)
