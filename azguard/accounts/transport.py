"""A transport that takes only whole answers of the service itself, and waits for none longer than it is told to.

The one place where an answer becomes one that the rest of azguard may believe: its head and its body are whole (see
``exchanges``), and it says by its headers that it comes from Azure Storage. Anything else is no answer at all: a write
is then in doubt, whatever its status, and a read is made again or fails. So a proxy's own page is neither a success nor
a refusal, and a redirection to a login page is not followed, least of all with our credentials. Nor is an answer of the
service's one whose ETag a proxy took away or made weak: nothing could be guarded by it.

Some methods of the SDK, such as ``get_blob_tags``, drop the timeouts they are given; then those of ``default_timeouts``
hold.

Each request, its answer and how long that took are told to those who listen. Requests of all threads are told, because
transfers, renewals and updates of many entities have threads of their own.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from azguard.accounts import exchanges, unreachable
from azguard.accounts.endpoints import proxy_settings
from azguard.accounts.exchanges import REQUEST_ID, TRUNCATED, RejectedAnswer
from azguard.accounts.open_connections import OpenConnection, OpenConnections, Reply

if TYPE_CHECKING:
    from azure.core.exceptions import AzureError
    from azure.core.pipeline.transport import RequestsTransport


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
_TIMEOUTS: ContextVar[Mapping[str, Any]] = ContextVar("timeouts")
# Beside the timeouts: whether they are the wall clock's, which no answer but content outlives.
_IS_STRICT = "is_strict"
_SIGNED_BY_KEY = "SharedKey"
RequestListener = Callable[[str], None]
_listeners: list[RequestListener] = []


@contextmanager
def default_timeouts(timeouts: Mapping[str, Any], *, is_strict: bool = False) -> Iterator[None]:
    """Give every request made in this block these timeouts, in seconds, unless it has some of its own.

    With ``is_strict`` no answer but content outlives them, however fast it comes.
    """
    before = _TIMEOUTS.set({**timeouts, _IS_STRICT: is_strict})
    try:
        yield
    finally:
        _TIMEOUTS.reset(before)


class NotOfTheService(Exception):
    """An answer that does not come from Azure Storage, as the cause of the SDK's error: see ``not_of_the_service``."""

    def __init__(self, status: int, headers: Mapping[str, str], altered: str | None = None) -> None:
        self.status = status
        #: What something in between did to an answer of the service's; None if it is another's.
        self.altered = altered
        #: Where a redirection leads, without a query, which may hold a SAS, and without a user; None if it is none.
        self.leads_to = _describe_location(headers.get("Location", "")) if _is_redirection(status) else None
        kind = headers.get("Content-Type", "").partition(";")[0].strip()
        facts = [str(status), kind, f"by {server}" if (server := headers.get("Server")) else ""]
        #: What is known of it, such as ``200 text/html by nginx``.
        self.described = " ".join(fact for fact in facts if fact)
        super().__init__(f"the answer is not from Azure Storage: {self.described}")

    @property
    def may_pass(self) -> bool:
        """Return whether asking again may be answered by the service: a gateway says so while it cannot reach it."""
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR or self.status in (408, 429)


def _is_redirection(status: int) -> bool:
    """Return whether a status sends the client elsewhere, which the service never does."""
    is_other = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    return is_other and status != HTTPStatus.NOT_MODIFIED


def not_of_the_service(error: BaseException) -> NotOfTheService | None:
    """Return the answer that was not the service's, if that is what an error of the SDK is about."""
    inner = getattr(error, "inner_exception", None)
    return inner if isinstance(inner, NotOfTheService) else None


class PastUrllib3:
    """What is put before the SDK's transport."""

    session: Any
    connection_config: Any

    def send_open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeouts: Mapping[str, Any]
    ) -> Reply | None:
        """Send a request over a connection that is open; None, and nothing is sent, if there is none."""
        connections = None if self.session is None else self.session.find_open(url)
        if connections is None or (found := _take(connections, method, url, headers)) is None:
            return None
        connection, head = found
        settings = {**_TIMEOUTS.get({}), **timeouts}
        limit = _make_exchange(method, headers, settings, self.connection_config)

        def exchange() -> Reply:
            return _check_reply(connection, method, headers, connection.exchange(method, head, body, limit))

        try:
            reply: Reply = _send_and_tell(exchange, method, url)
        except (OSError, HTTPException) as error:
            raise _explain(error) from error
        finally:
            connections.give(connection)
        _check_origin(url, reply)
        return reply

    def rebuild(self, request: Any, reply: Reply) -> Any:
        """Return the answer to a request as ``send`` would."""
        from azure.core.pipeline.transport import RequestsTransportResponse

        response = self.session.rebuild(request.method, request.url, reply)
        return RequestsTransportResponse(request, response, self.connection_config.data_block_size)


def transport(**settings: Any) -> "RequestsTransport":
    """Return the SDK's transport over requests, which raises ServiceResponseError for what is no answer.

    ``read_timeout`` is then the wall-clock limit of the whole exchange, connecting included.
    """
    import logging

    from azure.core.pipeline.transport import RequestsTransport

    from azguard.accounts.sessions import SdkSession

    class WholeAnswers(PastUrllib3, RequestsTransport):  # type: ignore[misc]  # to mypy the SDK's lazy exports are Any
        def open(self) -> None:
            # One that was closed stays closed.
            if self.session is None and not self._has_been_opened:
                self.session = SdkSession()
            super().open()

        def send(self, request: Any, **kwargs: Any) -> Any:
            settings = {**proxy_settings(request.url), **_TIMEOUTS.get({}), **kwargs}
            limit = _make_exchange(request.method, request.headers, settings, self.connection_config)
            settings.pop(_IS_STRICT, None)
            # The SDK gives a key a new id to sign each time; what it sends again for a challenge has its first one.
            if not request.headers.get("Authorization", "").startswith(_SIGNED_BY_KEY):
                request.headers[REQUEST_ID] = str(uuid.uuid4())
            token = exchanges.CURRENT.set(limit)
            try:
                send = super().send
                response: Any = _send_and_tell(lambda: send(request, **settings), request.method, request.url)
            finally:
                exchanges.CURRENT.reset(token)
            _check_origin(request.url, response)
            return response

    # The SDK's warnings are about its insides; without a handler they would go to stderr.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    return WholeAnswers(**settings)


def _take(
    connections: OpenConnections, method: str, url: str, headers: Mapping[str, str]
) -> tuple[OpenConnection, bytes] | None:
    """Return a connection and the head of a request; None without a connection, or for what only requests can send."""
    path = url.partition("://")[2].partition("/")[2]
    try:
        head = connections.write_head(method, f"/{path}", headers)
    except ValueError:
        return None
    connection = connections.take() if path.isascii() and path.isprintable() and " " not in path else None
    return None if connection is None else (connection, head)


def _make_exchange(
    method: str, headers: Mapping[str, str], settings: Mapping[str, Any], configured: Any
) -> exchanges.Exchange:
    is_strict = settings.get(_IS_STRICT, False)
    adds_time = exchanges.is_of_content(method, headers) or (method == "GET" and not is_strict)
    return exchanges.Exchange(settings.get("read_timeout", configured.read_timeout), adds_time=adds_time)


def _check_reply(connection: OpenConnection, method: str, headers: Mapping[str, str], reply: Reply) -> Reply:
    """Return a reply with a body that is not compressed, unless it is content."""
    try:
        exchanges.check_echo(headers, reply.headers)
        coding = reply.headers.get("Content-Encoding")
        if not reply.content or coding is None or not exchanges.must_inflate(method, headers, reply.status_code):
            return reply
        content = exchanges.inflate(coding, reply.content, reply.status_code)
    except HTTPException:
        connection.is_reusable = False
        raise
    for name in exchanges.OF_COMPRESSED:
        reply.headers.discard(name)
    return reply._replace(content=content)


def _check_origin(url: str, response: Any) -> None:
    """Make sure that an answer is the service's, and note how long it asks to be left alone."""
    from azure.core.exceptions import ServiceResponseError

    status, headers = response.status_code, response.headers
    unreachable.note_throttling(url, status, headers)
    is_named = status == _BY_A_PROXY or any(name in headers for name in _OF_THE_SERVICE)
    altered = _find_alteration(status, headers)
    if not is_named or altered is not None or _is_redirection(status):
        foreign = NotOfTheService(status, headers, altered if is_named else None)
        raise ServiceResponseError(str(foreign), error=foreign)


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


def _describe_location(location: str) -> str:
    try:
        parts = urlsplit(location)
    except ValueError:
        return "a malformed URL"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")) or "nowhere"


def _explain(error: Exception) -> "AzureError":
    """Return the SDK's error for a connection that broke under a request or its answer."""
    from azure.core.exceptions import ServiceResponseError, ServiceResponseTimeoutError
    from urllib3.exceptions import ProtocolError

    if isinstance(error, TimeoutError):
        return ServiceResponseTimeoutError(str(error), error=error)
    words = {IncompleteRead: TRUNCATED, RejectedAnswer: str(error)}.get(type(error), "Connection aborted.")
    broken = ProtocolError(words, error)
    return ServiceResponseError(str(broken), error=broken)


@contextmanager
def listen_to_requests(listener: RequestListener) -> Iterator[None]:
    """Tell each request and each pause of this block to a listener, as a line of text that may hold credentials."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell_listeners(text: str) -> None:
    """Tell a line to those who listen."""
    for listener in _listeners:
        listener(text)


def _send_and_tell(call: Callable[[], Any], method: str, url: str, clock: Callable[[], float] = time.monotonic) -> Any:
    """Return the response of a request that ``call`` sends, and tell its end: a status, or why there was no answer."""
    if not _listeners:
        return call()
    began = clock()
    try:
        response = call()
    except BaseException as error:
        tell_listeners(f"{method} {url}: no answer after {_describe_seconds(clock() - began)} ({type(error).__name__})")
        raise
    answer = " ".join(filter(None, (str(response.status_code), response.headers.get("x-ms-error-code"))))
    tell_listeners(f"{method} {url}: {answer} in {_describe_seconds(clock() - began)}")
    return response


def _describe_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
