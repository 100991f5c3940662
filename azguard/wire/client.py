"""A client that takes only whole answers of the service itself, and waits for none longer than it is told to.

The one place where an answer becomes one that the rest of azguard may believe: its head and its body are whole (see
``connections``), it is to this request, and it says by its headers that it comes from Azure Storage. Anything else is
no answer at all: a write is then in doubt, whatever its status, and a read is made again or fails. So a proxy's own
page is neither a success nor a refusal, and a redirection to a login page is not followed, least of all with our
credentials. Nor is an answer of the service's one whose ETag a proxy took away or made weak: nothing could be guarded
by it.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol

from azguard import __version__
from azguard.accounts.account import Account
from azguard.wire import exchange, network, throttling
from azguard.wire.connections import Connections, Reply, write_head
from azguard.wire.exchange import Exchange
from azguard.wire.failures import BrokenAnswer, NoAnswer, NotConnected, NotOfTheService, Stage, is_redirection
from azguard.wire.listeners import send_and_tell
from azguard.wire.network import Way

if TYPE_CHECKING:
    from azguard.accounts.logins import Answered

# Every answer of the service has one of these, refusals included: 796 of 796 recorded ones of blobs, queues and tables,
# and all of Azurite's. Both are there unless a recording left one out.
_OF_THE_SERVICE = ("x-ms-request-id", "x-ms-version")
# Where the services of blobs and files say when something was changed, they say its version, too: 393 of 393 recorded
# answers. That of tables never says when.
_CHANGED_AT = "Last-Modified"
_VERSION = "ETag"
_WEAK = "W/"
# Only a proxy says this, of a request that it did not pass on.
_BY_A_PROXY = 407
# A live endpoint accepts a connection within a second; four leave room for one lost packet and the answer.
CONNECT_SECONDS = 4.0


class Limits(NamedTuple):
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
        adds_time = exchange.is_of_content(method, headers) or (method == "GET" and not limits.is_strict)
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
    throttling.note(url, reply.status_code, reply.headers)
    _check_origin(reply)
    return reply


def find_client(account: Account) -> Client:
    """Return the client of an account; one for all requests, so that they share its connections."""
    return account.keep("client", NetworkClient)


def get(url: str, authorization: str | None, seconds: float) -> "Answered":
    """Ask another service once for JSON, and follow no redirect.

    ``authorization`` is the value of that header; None sends none.

    Raises:
        OSError: there is no whole answer in time.
    """
    from azguard.accounts.logins import Answered

    headers = {"Accept": "application/json", "User-Agent": f"azguard/{__version__}"}
    if authorization is not None:
        headers["Authorization"] = authorization
    limits = Limits(min(CONNECT_SECONDS, seconds), seconds, is_strict=True)
    try:
        reply = NetworkClient().send("GET", url, headers, None, limits)
    except NoAnswer as error:
        raise OSError(str(error)) from error
    return Answered(reply.status_code, reply.headers.get("Content-Type", ""), reply.content)


def _check(method: str, headers: Mapping[str, str], reply: Reply) -> Reply:
    """Return a reply with a body that is not compressed, unless it is content."""
    exchange.check_echo(headers, reply.headers)
    coding = reply.headers.get("Content-Encoding")
    if not reply.content or coding is None or not exchange.must_inflate(method, headers, reply.status_code):
        return reply
    content = exchange.inflate(coding, reply.content, reply.status_code)
    for name in exchange.OF_COMPRESSED:
        reply.headers.discard(name)
    return reply._replace(content=content)


def _check_origin(reply: Reply) -> None:
    status, headers = reply.status_code, reply.headers
    is_named = status == _BY_A_PROXY or any(name in headers for name in _OF_THE_SERVICE)
    altered = _find_alteration(status, headers)
    if not is_named or altered is not None or is_redirection(status):
        raise NotOfTheService(status, headers, altered if is_named else None)


def _find_alteration(status: int, headers: Mapping[str, str]) -> str | None:
    """Return the alteration that a proxy made to a success of the service; None if no alteration is seen."""
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    if _CHANGED_AT not in headers:
        # Only content has the type that a user gave it, and it says when it was changed.
        return "it is a page of HTML" if headers.get("Content-Type", "").startswith("text/html") else None
    if not headers.get(_VERSION):
        return "it has no ETag"
    return "its ETag is weak" if headers[_VERSION].startswith(_WEAK) else None
