"""The SDK's parts: azure-identity asks for tokens over the wire's own client, and a script's client of a container.

The demonstration compares azguard with that client, which ``az`` and scripts have. It is here because no module outside
the wire imports a client of the SDK.
"""

import json
import uuid
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from azguard.errors import ConfigError, LoginFailed
from azguard.wire import unreachable
from azguard.wire.client import REQUEST_ID, Limits, NetworkClient
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer, NoAnswer, NotConnected

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

_READS = ("GET", "HEAD")


def explain(error: Exception, authority: str) -> LoginFailed | None:
    """Return why an authority did not answer; None if the error says something else."""
    failure = _find_failure(error)
    return None if failure is None else unreachable.explain(failure, authority).build(LoginFailed)


@cache
def make_transport() -> Any:
    """Return the transport that azure-identity sends with."""
    import logging

    from azure.core.pipeline.transport import HttpResponse, HttpTransport
    from azure.core.utils import case_insensitive_dict

    # Its warnings are about its insides; without a handler they would go to stderr.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    sender = NetworkClient()

    class Response(HttpResponse):
        def __init__(self, request: Any, reply: Reply) -> None:
            super().__init__(request, reply)
            self.status_code, self.reason = reply.status_code, reply.reason
            self.headers = case_insensitive_dict(reply.headers)
            self.content_type = reply.headers.get("Content-Type")

        def body(self) -> bytes:
            content: bytes = self.internal_response.content
            return content

        def json(self) -> Any:
            return json.loads(self.body())

    class Transport(HttpTransport[Any, Any]):
        def open(self) -> None:
            pass

        def close(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

        def send(self, request: Any, **timeouts: Any) -> Any:
            return Response(request, _send(sender, request, timeouts))

    return Transport()


def _send(sender: NetworkClient, request: Any, timeouts: Mapping[str, Any]) -> Reply:
    """Send a request of azure-identity; what it raises is an error that azure-identity knows, whose cause is ours."""
    from azure.core.exceptions import ServiceRequestError, ServiceResponseError, ServiceResponseTimeoutError

    request.headers[REQUEST_ID] = str(uuid.uuid4())
    body, headers = _read_body(request.data), dict(request.headers)
    if body or request.method not in _READS:
        headers["Content-Length"] = str(len(body or b""))
    try:
        given = {"connect": timeouts.get("connection_timeout"), "answer": timeouts.get("read_timeout")}
        limits = Limits(**{name: seconds for name, seconds in given.items() if seconds is not None})
        return sender.send(request.method, request.url, headers, body, limits)
    except NotConnected as error:
        raise ServiceRequestError(str(error), error=error) from error
    except NoAnswer as error:
        is_late = isinstance(error, BrokenAnswer) and error.how is Broken.TIMED_OUT
        kind = ServiceResponseTimeoutError if is_late else ServiceResponseError
        raise kind(str(error), error=error) from error


def _read_body(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return (urlencode(body) if isinstance(body, Mapping) else str(body)).encode()


def _find_failure(error: BaseException | None) -> NoAnswer | None:
    """Return why there was no answer, which one of the causes of an error says; None if there was one."""
    seen: set[int] = set()
    while error is not None and not isinstance(error, NoAnswer):
        if id(error) in seen:
            return None
        seen.add(id(error))
        error = getattr(error, "inner_exception", None) or error.__cause__
    return error


def check_installed() -> None:
    """Refuse where only azguard itself was installed: it needs no client of the SDK.

    Raises:
        ConfigError: the client is not there.
    """
    try:
        import azure.storage.blob  # noqa: F401
    except ImportError as error:
        message = "the SDK's client, which the demo compares azguard with, is missing"
        raise ConfigError(message, reason="sdk_missing") from error


def open_container(endpoint: str, name: str, key: str, retry_wait_seconds: float) -> "ContainerClient":
    """Return the client of one container, with its retries on."""
    from azure.storage.blob import ContainerClient, LinearRetry

    policy = LinearRetry(backoff=retry_wait_seconds, random_jitter_range=0)  # type: ignore[arg-type]  # int in name only
    # No HTTP_PROXY leads to 127.0.0.1.
    return ContainerClient(endpoint, name, credential=key, retry_policy=policy, use_env_settings=False)
