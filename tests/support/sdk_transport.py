"""What the SDK sends with in tests: the wire's own client, in the form that it knows."""

import io
from collections.abc import Callable, Mapping
from typing import Any

from azguard.accounts.account import SINGLE_BYTES, Account
from azguard.wire import client
from azguard.wire.client import Limits
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer, NoAnswer, NotConnected

_READS = ("GET", "HEAD")
Send = Callable[[str, str, Mapping[str, str], bytes | None, Limits], Reply]


def make_transport(account: Account) -> Any:
    """Return the transport of an account, which takes answers of Azure Storage alone.

    It raises the SDK's errors, whose cause is ours.
    """
    sender = client.find_client(account)
    return account.keep("transport", lambda: _make_transport(lambda *request: client.send(sender, *request)))


def _make_transport(send: Send) -> Any:
    import logging

    from azure.core.pipeline.transport import RequestsTransport

    # The SDK's warnings are about its insides; without a handler they would go to stderr.
    logging.getLogger("azure").addHandler(logging.NullHandler())

    # Answers are in memory already; the SDK would cut them into pieces of 4 KiB and join them again.
    return RequestsTransport(session=_Session(send), session_owner=False, connection_data_block_size=SINGLE_BYTES)


class _Session:
    """What the SDK takes for a session of requests."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def request(self, method: str, url: str, **given: Any) -> Any:
        """Send a request and return its answer as requests would.

        Raises:
            AzureError: there is none.
        """
        from azure.core.exceptions import ServiceRequestError, ServiceResponseError, ServiceResponseTimeoutError

        body = _read(given.get("data"))
        headers = dict(given.get("headers") or {})
        if body or method not in _READS:
            headers["Content-Length"] = str(len(body or b""))
        try:
            reply = self._send(method, url, headers, body, Limits(*given["timeout"]))
        except NotConnected as error:
            raise ServiceRequestError(str(error), error=error) from error
        except NoAnswer as error:
            is_late = isinstance(error, BrokenAnswer) and error.how is Broken.TIMED_OUT
            kind = ServiceResponseTimeoutError if is_late else ServiceResponseError
            raise kind(str(error), error=error) from error
        return _rebuild(method, url, headers, reply)


def _read(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, Mapping):
        from urllib.parse import urlencode

        return urlencode(body).encode()
    content: bytes = body.read() if hasattr(body, "read") else b"".join(body)
    return content


def _rebuild(method: str, url: str, headers: Mapping[str, str], reply: Reply) -> Any:
    """Return an answer as requests would."""
    from requests import PreparedRequest, Response
    from requests.structures import CaseInsensitiveDict
    from urllib3.response import HTTPResponse

    response = Response()
    response.status_code, response.reason = reply.status_code, reply.reason
    response.headers = CaseInsensitiveDict(reply.headers)
    response.url = url
    response.request = PreparedRequest()
    response.request.method, response.request.url = method, url
    response.request.headers = CaseInsensitiveDict(headers)
    response.raw = HTTPResponse(
        io.BytesIO(reply.content),
        headers=reply.headers,
        status=reply.status_code,
        reason=reply.reason,
        preload_content=False,
        request_method=method,
    )
    return response
