"""One request to the Blob service without the SDK's client: signed here, sent by the SDK's transport.

For trees of small files: the SDK's models and policies take twice as long as the request itself. What is sent, and what
an answer must be to count, is the same; only success is read here, and a refusal becomes the SDK's own error.
"""

import base64
import hmac
import time
import uuid
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from azguard import __version__
from azguard.accounts.account import Account, Auth
from azguard.accounts.endpoints import STORAGE_SCOPE
from azguard.accounts.exchanges import REQUEST_ID
from azguard.address import Address

#: The version of the service that is spoken: the SDK's, whose models take longer to load than a small blob to read.
API_VERSION = "2026-10-06"
# The headers that a signature covers by their place, after the verb; the service ignores Date beside x-ms-date.
_SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


class DirectAnswer(NamedTuple):
    """A whole answer of the service."""

    status: int
    #: Their names in any case.
    headers: Mapping[str, str]
    content: bytes


class ChallengeReceived(Exception):
    """The service asks for another token than it got, which the SDK knows how to get; nothing was done."""

    status_code = 401

    def __init__(self, response: Any) -> None:
        super().__init__("the service asks for another token")
        self.response = response


def send(
    account: Account,
    method: str,
    address: Address,
    headers: Mapping[str, str],
    timeouts: Mapping[str, Any],
    *,
    body: bytes | None = None,
    query: Mapping[str, str] | None = None,
) -> DirectAnswer:
    """Send a request about a blob or a container, once.

    Raises:
        HttpResponseError: the service refused it, or failed.
        ChallengeReceived: a login needs another token.
        AzureError: there was no whole answer of the service.
    """
    from azure.core.exceptions import HttpResponseError
    from azure.core.pipeline.transport import HttpRequest

    url, sent = _sign(account, method, address, headers, query or {}, body)
    reply = account.sender.send_open(method, url, sent, body, timeouts)
    if reply is not None and reply.status_code < HTTPStatus.BAD_REQUEST:
        return DirectAnswer(reply.status_code, reply.headers, reply.content)
    request = HttpRequest(method, url, headers=sent, data=body)
    if reply is not None:
        response = account.sender.rebuild(request, reply)
    else:
        response = account.sender.send(request, stream=True, **timeouts)
    if response.status_code < HTTPStatus.BAD_REQUEST:
        return DirectAnswer(
            response.status_code, response.headers, response.internal_response.raw.read(decode_content=False)
        )
    if response.status_code == HTTPStatus.UNAUTHORIZED and account.auth is Auth.LOGIN:
        raise ChallengeReceived(response)
    raise HttpResponseError(_describe(response), response=response)


def _sign(
    account: Account,
    method: str,
    address: Address,
    headers: Mapping[str, str],
    query: Mapping[str, str],
    body: bytes | None,
) -> tuple[str, dict[str, str]]:
    """Return the URL and the headers of a request, which prove the caller's identity."""
    url = f"{account.endpoint('blob')}/{'/'.join(quote(part, safe='~/') for part in address.parts)}"
    sent = {
        "x-ms-version": API_VERSION,
        REQUEST_ID: str(uuid.uuid4()),
        "x-ms-date": _format_date(int(time.time())),
        "User-Agent": f"azguard/{__version__}",
        "Accept": "application/xml",
        **headers,
    }
    if body is not None:
        sent["Content-Length"] = str(len(body))
    if account.auth is Auth.KEY:
        path = f"/{url.partition('://')[2].partition('/')[2]}"
        resource = path + "".join(f"\n{name}:{query[name]}" for name in sorted(query))
        signature = sign(account.name, account.secret or "", method, resource, sent)
        sent["Authorization"] = f"SharedKey {account.name}:{signature}"
    elif account.auth is Auth.LOGIN:
        sent["Authorization"] = f"Bearer {account.login.get_token_info(STORAGE_SCOPE).token}"
    asked = [urlencode(query, quote_via=quote)] if query else []
    asked += [(account.secret or "").lstrip("?")] if account.auth is Auth.SAS else []
    return f"{url}?{'&'.join(asked)}" if asked else url, sent


def sign(account: str, key: str, method: str, resource: str, headers: Mapping[str, str]) -> str:
    """Return the signature of a request; ``resource`` is its path and, in lines of their own, its query.

    Source: https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
    """
    found = {name.lower(): value for name, value in headers.items() if value}
    if found.get("content-length") == "0":
        del found["content-length"]
    by_place = "\n".join(found.get(name, "") for name in _SIGNED)
    by_name = "".join(f"{name}:{found[name]}\n" for name in sorted(found) if name.startswith("x-ms-"))
    text = f"{method}\n{by_place}\n{by_name}/{account}{resource}"
    return base64.b64encode(hmac.digest(_decode(key), text.encode(), "sha256")).decode()


@lru_cache(maxsize=8)
def _decode(key: str) -> bytes:
    return base64.b64decode(key)


@lru_cache(maxsize=8)
def _format_date(second: int) -> str:
    return formatdate(second, usegmt=True)


def _describe(response: Any) -> str:
    """Return the message and the facts in the body of a refusal, as the SDK words them."""
    from xml.etree import ElementTree as ET

    try:
        told = {each.tag: each.text or "" for each in ET.fromstring(response.body())}  # noqa: S314  # the service's
    except ET.ParseError:
        told = {}
    message = told.pop("Message", "") or f"Operation returned an invalid status '{response.reason}'"
    code = told.pop("Code", response.headers.get("x-ms-error-code"))
    return "\n".join([message, f"ErrorCode:{code}", *(f"{name}:{text}" for name, text in told.items())])
