"""A client that takes only whole answers of the service itself, and waits for none longer than it is told to.

The one place where an answer becomes one that the rest of azguard may believe: its head and its body are whole (see
``connections``), it is to this request, and it says by its headers that it comes from Azure Storage. Anything else is
no answer at all: a write is then in doubt, whatever its status, and a read is made again or fails. So a proxy's own
page is neither a success nor a refusal, and a redirection to a login page is not followed, least of all with our
credentials. Nor is an answer of the service's one whose ETag a proxy took away or made weak: nothing could be guarded
by it.

A gateway, or a connection that is one answer behind, can give the answer of an earlier request. The service repeats the
id that each request carries. So an answer with another id is no answer, and its connection is closed.

How long a service wants to be left alone (``Retry-After``) is noted here, for all threads. Each service, by its host
and port, has a time of its own; its latest answer counts.
"""

import time
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from azguard import __version__, times
from azguard.accounts.account import Account
from azguard.frozen import frozen
from azguard.wire import network
from azguard.wire.connections import MOST_BYTES, MOST_ERROR_BYTES, Connections, Exchange, Reply, write_head
from azguard.wire.failures import (
    REFUSED,
    SUCCESSES,
    Broken,
    BrokenAnswer,
    NoAnswer,
    NotConnected,
    NotOfTheService,
    Stage,
    is_redirection,
    says_later,
)
from azguard.wire.listeners import send_and_tell
from azguard.wire.network import Way

#: What each transmission carries, and the service repeats.
REQUEST_ID = "x-ms-client-request-id"
# Every answer of the service has one of these, refusals included: 796 of 796 recorded ones of blobs, queues and tables,
# and all of Azurite's. Both are there unless a recording left one out.
_OF_THE_SERVICE = ("x-ms-request-id", "x-ms-version")
# Where the services of blobs and files say when something was changed, they say its version, too: 393 of 393 recorded
# answers. That of tables never says when.
_CHANGED_AT = "Last-Modified"
_VERSION = "ETag"
_WEAK = "W/"
# The service says no Age. A cache that has asked it counts from then, in whole seconds, and one may pass on the way.
_WAY_SECONDS = 1
# Only a proxy says this, of a request that it did not pass on.
_BY_A_PROXY = 407
# A live endpoint accepts a connection within a second; four leave room for one lost packet and the answer.
CONNECT_SECONDS = 4.0
# Of zlib: a head of gzip or of zlib, whichever there is.
_ANY_HEAD = 32 + zlib.MAX_WBITS
_CODINGS = ("gzip", "x-gzip", "deflate")
# What a head says of a body that is compressed, and is not true of it inflated.
_OF_COMPRESSED = ("Content-Encoding", "Content-Length")
_RANGE = "x-ms-range"
# Thirty years.
_MOST_SECONDS = 1e9
_until: dict[str, float] = {}


@frozen
class Limits:
    """How long one request may take, in seconds."""

    #: Until there is a connection.
    connect: float = CONNECT_SECONDS
    #: Until the whole answer is there, connecting included; what is moved adds to it, see ``Exchange``.
    answer: float = 60.0
    #: Whether they are the wall clock's, which no answer but content outlives.
    is_strict: bool = False


class Client(Protocol):
    """Sends requests; a test may put another one in the place of ``NetworkClient``."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        """Send a request once, and return the whole answer.

        Raises:
            NoAnswer: there is none.
        """


class NetworkClient:
    """Sends requests over connections that it keeps open."""

    def __init__(self) -> None:
        self._connections = Connections()
        #: By scheme and host: proxies do not change while a command runs.
        self._ways: dict[str, Way] = {}

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        """Send a request once, and return the whole answer.

        Raises:
            NotConnected: no connection came to be; nothing was sent.
            BrokenAnswer: there was no whole answer in time, or that of another request.
        """
        way = self._find_way(url)
        try:
            head = write_head(method, url, headers, way)
        except ValueError as error:
            raise NotConnected(Stage.SETTING, error) from error
        adds_time = _is_of_content(method, headers) or (method == "GET" and not limits.is_strict)
        limit = Exchange(limits.answer, adds_time=adds_time)
        connection = self._connections.take(way, min(limits.connect, limits.answer))
        try:
            reply = connection.exchange(method, head, body, limit)
            return _check(method, headers, reply)
        except BrokenAnswer:
            connection.is_reusable = False
            raise
        finally:
            self._connections.give(connection)

    def _find_way(self, url: str) -> Way:
        origin = url[: url.find("/", len("https://"))]
        if origin not in self._ways:
            self._ways[origin] = network.find_way(url)
        return self._ways[origin]


def send(
    client: Client, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits
) -> Reply:
    """Send a request to a service of Azure Storage once, and return its whole answer; tell those who listen.

    Raises:
        NotConnected: no connection came to be; nothing was sent.
        BrokenAnswer: there was no whole answer in time, or that of another request.
        NotOfTheService: what answered is not Azure Storage.
    """
    reply = send_and_tell(lambda: client.send(method, url, headers, body, limits), method, url)
    note_pause(url, reply.status_code, reply.headers)
    _check_origin(reply)
    return reply


def note_pause(url: str, status: int, headers: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
    """Note what an answer from a URL says, if it is one that says later."""
    if not says_later(status):
        return
    seconds = _read_pause(headers)
    if seconds is not None:
        _until[urlsplit(url).netloc] = clock() + seconds


def find_pause_seconds(endpoint: str, clock: Callable[[], float] = time.monotonic) -> float:
    """Return for how many seconds from now the service at an endpoint is to be left alone; 0 if it did not say so."""
    return max(0.0, _until.get(urlsplit(endpoint).netloc, 0.0) - clock()) if _until else 0.0


def find_client(account: Account) -> Client:
    """Return the client of an account; one for all requests, so that they share its connections."""
    return account.keep("client", NetworkClient)


def check_echo(asked: Mapping[str, str], answered: Mapping[str, str]) -> None:
    """Make sure that an answer is to this request, by the headers of both. Some gateways take the id away."""
    if (echo := answered.get(REQUEST_ID)) and (given := asked.get(REQUEST_ID)) and echo != given:
        raise BrokenAnswer(Broken.OF_ANOTHER_REQUEST)


def get(url: str, authorization: str | None, seconds: float) -> Reply:
    """Ask another service once for JSON, and follow no redirect.

    ``authorization`` is the value of that header; None sends none.

    Raises:
        OSError: there is no whole answer in time.
    """
    headers = {"Accept": "application/json", "User-Agent": f"azguard/{__version__}"}
    if authorization is not None:
        headers["Authorization"] = authorization
    limits = Limits(min(CONNECT_SECONDS, seconds), seconds, is_strict=True)
    try:
        return NetworkClient().send("GET", url, headers, None, limits)
    except NoAnswer as error:
        raise OSError(str(error)) from error


def _check(method: str, headers: Mapping[str, str], reply: Reply) -> Reply:
    """Return a reply with a body that is not compressed, unless it is content."""
    check_echo(headers, reply.headers)
    coding, is_error = reply.headers.get("Content-Encoding"), reply.status_code >= REFUSED
    if not reply.content or coding is None or (_is_of_content(method, headers) and not is_error):
        return reply
    content = _inflate(coding, reply.content, MOST_ERROR_BYTES if is_error else MOST_BYTES)
    for name in _OF_COMPRESSED:
        reply.headers.discard(name)
    return reply._replace(content=content)


def _check_origin(reply: Reply) -> None:
    status, headers = reply.status_code, reply.headers
    is_named = status == _BY_A_PROXY or any(name in headers for name in _OF_THE_SERVICE)
    altered = _find_alteration(status, headers)
    if not is_named or altered is not None or is_redirection(status):
        raise NotOfTheService(status, headers, altered if is_named else None)


def _find_alteration(status: int, headers: Mapping[str, str]) -> str | None:
    """Return the alteration that a proxy made to an answer of the service; None if no alteration is seen."""
    age = headers.get("Age", "")
    if _is_number(age) and int(age) > _WAY_SECONDS:
        return f"a cache had kept it for {age}s"
    if status not in SUCCESSES:
        return None
    if _CHANGED_AT not in headers:
        # Only content has the type that a user gave it, and it says when it was changed.
        return "it is a page of HTML" if headers.get("Content-Type", "").startswith("text/html") else None
    if not headers.get(_VERSION):
        return "it has no ETag"
    return "its ETag is weak" if headers[_VERSION].startswith(_WEAK) else None


def _is_of_content(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for content, which is what was stored; azguard always asks for a range of it."""
    return method == "GET" and _RANGE in headers


def _inflate(coding: str, body: bytes, most: int) -> bytes:
    """Return the body of an answer as it was before it was compressed."""
    if coding.lower() not in _CODINGS:
        raise BrokenAnswer(Broken.TRUNCATED)
    stream = zlib.decompressobj(_ANY_HEAD)
    try:
        found = stream.decompress(body, most + 1)
    except zlib.error as error:
        raise BrokenAnswer(Broken.TRUNCATED) from error
    if len(found) > most:
        raise BrokenAnswer(Broken.TOO_LONG)
    if not stream.eof or stream.unused_data:
        raise BrokenAnswer(Broken.TRUNCATED)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _read_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks for; a moment counts from the answer's own date, not from our clock."""
    text = headers.get("Retry-After", "").strip()
    if _is_number(text):
        return min(float(text), _MOST_SECONDS)
    until, now = times.find_http_date(text), times.find_http_date(headers.get("Date"))
    return None if until is None or now is None else max(0.0, (until - now).total_seconds())
