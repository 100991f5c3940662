"""A transport that takes only whole answers of the service itself, and waits for none longer than it is told to.

The one place where an answer becomes one that the rest of azguard may believe: its head and its body are whole (see
``exchanges``), and it says by its headers that it comes from Azure Storage. Anything else is no answer at all: a write
is then in doubt, whatever its status, and a read is made again or fails. So a proxy's own page is neither a success nor
a refusal, and a redirection to a login page is not followed, least of all with our credentials.

Some methods of the SDK, such as ``get_blob_tags``, drop the timeouts they are given; then those of ``within`` hold.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from azguard.accounts import exchanges, trace
from azguard.accounts.proxies import request_settings

if TYPE_CHECKING:
    from azure.core.pipeline.transport import RequestsTransport

TRUNCATED = "the answer was cut short"
# What one process keeps open to a service: as many as it ever has requests under way. The SDK's own pool keeps ten, and
# closes the others after each request.
CONNECTIONS = 64
# Every answer of the service has one of these, refusals included: 796 of 796 recorded ones of blobs, queues and tables,
# and all of Azurite's. Both are there unless a recording left one out.
_OF_THE_SERVICE = ("x-ms-request-id", "x-ms-version")
# Only a proxy says this, of a request that it did not pass on.
_BY_A_PROXY = 407
# These have no body whatever their head says.
_NO_BODY = (204, 304)
_TIMEOUTS: ContextVar[Mapping[str, Any]] = ContextVar("timeouts")


@contextmanager
def default_timeouts(timeouts: Mapping[str, Any]) -> Iterator[None]:
    """Give every request made in this block these timeouts, in seconds, unless it has some of its own."""
    before = _TIMEOUTS.set(timeouts)
    try:
        yield
    finally:
        _TIMEOUTS.reset(before)


class NotOfTheService(Exception):
    """An answer that does not come from Azure Storage, as the cause of the SDK's error: see ``not_of_the_service``."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        kind = headers.get("Content-Type", "").partition(";")[0].strip()
        facts = [str(status), kind, f"by {server}" if (server := headers.get("Server")) else ""]
        #: What is known of it, such as ``200 text/html by nginx``.
        self.described = " ".join(fact for fact in facts if fact)
        super().__init__(f"the answer is not from Azure Storage: {self.described}")

    @property
    def may_pass(self) -> bool:
        """Return whether asking again may be answered by the service: a gateway says so while it cannot reach it."""
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR or self.status in (408, 429)


def not_of_the_service(error: BaseException) -> NotOfTheService | None:
    """Return the answer that was not the service's, if that is what an error of the SDK is about."""
    inner = getattr(error, "inner_exception", None)
    return inner if isinstance(inner, NotOfTheService) else None


def transport(**settings: Any) -> "RequestsTransport":
    """Return the SDK's transport over requests, which raises ServiceResponseError for what is no answer.

    ``read_timeout`` is then the wall-clock limit of the whole exchange, connecting included.
    """
    from azure.core.exceptions import ServiceResponseError
    from azure.core.pipeline.transport import RequestsTransport

    class WholeAnswers(RequestsTransport):  # type: ignore[misc]  # to mypy the SDK's lazy exports are Any
        def open(self) -> None:
            if self.session is None:
                super().open()
                session: Any = self.session
                session.auth = _keep_signature
                session.merge_environment_settings = _remember(session.merge_environment_settings)
                whole_answers = adapter()
                for scheme in session.adapters:
                    session.adapters[scheme] = whole_answers

        def send(self, request: Any, **kwargs: Any) -> Any:
            settings = {**request_settings(request.url), **_TIMEOUTS.get({}), **kwargs}
            limit = settings.get("read_timeout", self.connection_config.read_timeout)
            token = exchanges.CURRENT.set(exchanges.Exchange(limit))
            try:
                send = super().send
                response: Any = trace.send(lambda: send(request, **settings), request.method, request.url)
            finally:
                exchanges.CURRENT.reset(token)
            if response.status_code != _BY_A_PROXY and not any(name in response.headers for name in _OF_THE_SERVICE):
                foreign = NotOfTheService(response.status_code, response.headers)
                raise ServiceResponseError(str(foreign), error=foreign)
            return response

    return WholeAnswers(**settings)


def _keep_signature(request: Any) -> Any:
    """Return a request as it is: without an auth, requests would replace our signature by what stands in a .netrc."""
    return request


def _remember(merge: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
    """Return what reads the proxies of the environment once for each host.

    requests reads all of the environment, twice, for each request: a sixth of the time that a small upload takes.
    """
    known: dict[Any, Mapping[str, Any]] = {}

    def find(url: str, proxies: Mapping[str, str] | None, *settings: Any) -> Mapping[str, Any]:
        scheme, _, rest = url.partition("://")
        key = (scheme, rest.partition("/")[0], tuple((proxies or {}).items()), settings)
        if key not in known:
            known[key] = merge(url, proxies, *settings)
        return dict(known[key])

    return find


def adapter() -> Any:
    """Return an adapter for requests that reads each answer to its end before it gives it away."""
    from requests.adapters import HTTPAdapter
    from requests.exceptions import ConnectionError as NoAnswer
    from urllib3 import Retry
    from urllib3.exceptions import HTTPError, ProtocolError

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, **options)
            exchanges.limit(self.poolmanager)

        def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
            manager = super().proxy_manager_for(proxy, **options)
            exchanges.limit(manager)
            return manager

        def send(self, request: Any, *arguments: Any, **options: Any) -> Any:
            response = super().send(request, *arguments, **options)
            try:
                response.raw = _read(str(request.method), response.raw)
            except (HTTPError, OSError) as error:
                response.close()
                # This is what requests says, and the SDK understands, of a connection that broke under an answer.
                raise NoAnswer(ProtocolError(TRUNCATED, error), request=request) from error
            return response

    never = Retry(total=False, redirect=False, raise_on_status=False)
    return Adapter(CONNECTIONS, CONNECTIONS, max_retries=never)


def _read(method: str, raw: Any) -> Any:
    """Return an answer with its whole body in memory: at most a range of a blob, or a page of a listing.

    Raises:
        HTTPError: the body is not as long as was announced, or its length was not announced where it matters.
    """
    from urllib3.exceptions import ProtocolError
    from urllib3.response import HTTPResponse

    announced = "Content-Length" in raw.headers or "Transfer-Encoding" in raw.headers
    if method in ("GET", "POST") and raw.status not in _NO_BODY and not announced:
        raise ProtocolError(TRUNCATED)
    body = raw.read(decode_content=False)
    raw.release_conn()
    return HTTPResponse(
        io.BytesIO(body),
        headers=raw.headers,
        status=raw.status,
        reason=raw.reason,
        version=raw.version,
        preload_content=False,
        request_method=method,
    )
