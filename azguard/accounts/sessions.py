"""A session of requests that sends what the SDK has made, as it is.

requests prepares each request anew: it quotes the URL, joins headers, looks for cookies and credentials, and reads the
environment. The SDK has done what is needed of that, and signed it. For a tree of small files the preparation would
take a sixth of the time. What is not so simple, such as a body that is no bytes, is left to requests.
"""

import io
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as NoAnswer
from requests.structures import CaseInsensitiveDict
from requests.utils import check_header_validity, get_encoding_from_headers
from urllib3 import Retry
from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.response import HTTPResponse

from azguard.accounts import exchanges
from azguard.accounts.exchanges import CONNECTIONS, OF_ANOTHER_REQUEST, TOO_LONG, TRUNCATED
from azguard.accounts.open_connections import OpenConnections, Reply

# These have no body whatever their head says.
_NO_BODY = (204, 304)
# Such a request need not say how long its body is.
_READS = ("GET", "HEAD")


class SdkSession(Session):
    """Sends requests of the SDK, within the limit of their exchange; each answer is read to its end."""

    def __init__(self) -> None:
        super().__init__()
        # Without an auth, requests would replace our signature by what stands in a .netrc.
        self.auth = _keep_signature
        # By setattr, because mypy takes an assignment for one to the method of the class.
        setattr(self, "merge_environment_settings", _remember(self.merge_environment_settings))  # noqa: B010
        self._adapter = Adapter()
        for scheme in self.adapters:
            self.adapters[scheme] = self._adapter
        self._open: dict[str, OpenConnections] = {}

    # The SDK gives all but these two by name.
    def request(self, method: Any, url: Any, **settings: Any) -> Response:  # type: ignore[override]
        """Send a request; see ``requests.Session.request``."""
        headers, body = settings.pop("headers", None), settings.pop("data", None)
        is_plain = isinstance(url, str) and url.isascii() and (body is None or isinstance(body, bytes))
        if not is_plain or settings.get("files") or settings.get("allow_redirects") is not False:
            return super().request(method, url, headers=headers, data=body, **settings)
        request = PreparedRequest()
        request.method, request.url, request.body = method, url, body
        request.headers = self._complete(method, headers or {}, body)
        found = self.merge_environment_settings(
            url, settings.get("proxies") or {}, settings.get("stream"), settings.get("verify"), settings.get("cert")
        )
        response: Response = self.get_adapter(url).send(request, timeout=settings.get("timeout"), **found)
        if not found.get("stream"):
            response.content  # noqa: B018  # reads it
        return response

    def find_open(self, url: str) -> OpenConnections | None:
        """Return the connections to the host of a URL; None before the first request, and where a proxy takes part."""
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0]
        origin = f"{scheme}://{host}"
        if origin not in self._open and (pool := self._adapter.find_pool(scheme, host)) is not None:
            self._open.setdefault(origin, OpenConnections(pool, host))
        return self._open.get(origin)

    def rebuild(self, method: str, url: str, reply: Reply) -> Response:
        """Return an answer as requests would."""
        request = PreparedRequest()
        request.method, request.url = method, url
        raw = HTTPResponse(
            io.BytesIO(reply.content),
            headers=reply.headers,
            status=reply.status_code,
            reason=reply.reason,
            preload_content=False,
            request_method=method,
        )
        return self._adapter.build_response(request, raw)

    def _complete(self, method: str, headers: Mapping[str, str], body: bytes | None) -> CaseInsensitiveDict[Any]:
        found = CaseInsensitiveDict(headers)
        for name, value in self.headers.items():
            found.setdefault(name, value)
        if body:
            found["Content-Length"] = str(len(body))
        elif method not in _READS:
            found.setdefault("Content-Length", "0")
        for header in found.items():
            check_header_validity(header)
        return found


def _keep_signature(request: Any) -> Any:
    return request


def _remember(merge: Callable[..., Mapping[str, Any]]) -> Callable[..., Mapping[str, Any]]:
    """Return a function that reads the proxies of the environment once for each host.

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


class Adapter(HTTPAdapter):
    """Connections with a limit, found once for each host and its settings."""

    def __init__(self) -> None:
        never = Retry(total=False, redirect=False, raise_on_status=False)
        super().__init__(CONNECTIONS, CONNECTIONS, max_retries=never)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        self._pools: dict[Any, Any] = {}
        super().init_poolmanager(*arguments, **options)
        exchanges.limit(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        exchanges.limit(manager)
        return manager

    def get_connection_with_tls_context(self, request: Any, verify: Any, proxies: Any = None, cert: Any = None) -> Any:
        """Return the connections to the host of a request, through its proxy if it has one."""
        scheme, _, rest = request.url.partition("://")
        key = (scheme, rest.partition("/")[0], verify, cert, tuple((proxies or {}).items()))
        if key not in self._pools:
            self._pools[key] = super().get_connection_with_tls_context(request, verify, proxies, cert)
        return self._pools[key]

    def find_pool(self, scheme: str, host: str) -> Any:
        """Return the pool of the connections to a host; None if there is none yet, or several, or a proxy between."""
        found = [pool for key, pool in list(self._pools.items()) if key[:2] == (scheme, host)]
        return found[0] if len(found) == 1 and found[0].proxy is None else None

    def build_response(self, req: Any, resp: Any) -> Response:
        """Return the answer; the service sets no cookies."""
        response = Response()
        response.status_code = resp.status
        response.headers = CaseInsensitiveDict(
            (exchanges.spell(name), value) for name, value in resp.headers.itermerged()
        )
        response.encoding = get_encoding_from_headers(response.headers)
        response.raw, response.reason = resp, resp.reason
        response.url, response.request = req.url, req
        return response

    def send(self, request: Any, *arguments: Any, **options: Any) -> Any:
        """Send a request and read its answer to the end.

        Raises:
            ConnectionError: the answer was cut short, has no end, or is that to another request.
        """
        response = super().send(request, *arguments, **options)
        try:
            exchanges.check_echo(request.headers, response.headers)
            response.raw = _read(request, response.raw)
        except (HTTPError, OSError, HTTPException) as error:
            response.close()
            # This is what requests says, and the SDK understands, of a connection that broke under an answer.
            raise NoAnswer(ProtocolError(_describe(error), error), request=request) from error
        return response


def _describe(error: Exception) -> str:
    return next((words for words in (OF_ANOTHER_REQUEST, TOO_LONG) if words in str(error)), TRUNCATED)


def _read(request: Any, raw: Any) -> Any:
    """Return an answer with its whole body in memory: at most a range of a blob, or a page of a listing."""
    method = str(request.method)
    announced = "Content-Length" in raw.headers or "Transfer-Encoding" in raw.headers
    if method in ("GET", "POST") and raw.status not in _NO_BODY and not announced:
        raise ProtocolError(TRUNCATED)
    body = raw.read(decode_content=False)
    raw.release_conn()
    coding = raw.headers.get("Content-Encoding")
    if body and coding and exchanges.must_inflate(method, request.headers, raw.status):
        # Else urllib3 would, however much comes of it.
        body = exchanges.inflate(coding, body, raw.status)
        for name in exchanges.OF_COMPRESSED:
            raw.headers.discard(name)
    return HTTPResponse(
        io.BytesIO(body),
        headers=raw.headers,
        status=raw.status,
        reason=raw.reason,
        version=raw.version,
        preload_content=False,
        request_method=method,
    )
