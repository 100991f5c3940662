"""The one way to a service: an operation is sent once, as its row says, and its whole answer is returned."""

import re
import uuid
from collections.abc import Mapping
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from azguard import __version__
from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.errors import ConfigError
from azguard.wire import client, signing
from azguard.wire.answers import ENCRYPTED_BY, SINCE, Answer, build_headers
from azguard.wire.client import REQUEST_ID, Limits
from azguard.wire.failures import Response, SentRequest, ServiceRefusal
from azguard.wire.rows import Http, Operation

#: The version of each service that is spoken, unless an older one is chosen.
API_VERSIONS = {"blob": "2026-10-06", "file": "2026-10-06", "queue": "2026-10-06", "table": "2019-02-02"}
#: The oldest version that may be chosen: what azguard cannot do without is older.
OLDEST_VERSION = "2018-11-09"
#: What every request to a service carries.
_SERVICE_HEADERS = {
    **{service: {"Accept": "application/xml"} for service in ("blob", "file", "queue")},
    "table": {
        "DataServiceVersion": "3.0",
        "Accept": "application/json;odata=minimalmetadata",
    },
}
# What the service is told of, where its URL could be that of something else.
_RESTYPES = ("container", "share", "directory")
_READS = ("GET", "HEAD")
_CHALLENGED = 401
_UNENCRYPTED = "{} did not encrypt as it was asked to; no emulator does"


def call(
    operation: Operation,
    target: Target,
    timeouts: Limits,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    **given: Any,
) -> Answer:
    """Send an operation once; ``headers`` are its conditions and lease id, ``given`` the other arguments of its row.

    Raises:
        ServiceRefusal: the service refused it, or failed.
        NoAnswer: there was no whole answer of the service.
        LoginFailed: no token could be had; nothing was sent.
        ConfigError: the version of the service that was chosen does not have it; nothing was sent.
        Unreadable: it succeeded, and nothing can be made of the answer.
    """
    http = operation.http
    sent, query = build_headers(operation, given)
    url = build_url(target, operation, query)
    secret = _encrypt(target, http)
    every = {**_speak_of_files(target, operation), **dict(http.headers), **sent, **secret, **(headers or {})}
    _check_version(target, operation, every, query)
    response = _exchange(target, http.method, url, every, body, timeouts)
    if response.status_code not in http.ok:
        raise ServiceRefusal(response)
    told = response.headers
    if body is not None and any(name in secret and secret[name] != told.get(name) for name in ENCRYPTED_BY):
        target.account.shared.pop("tell_unencrypted", bool)(_UNENCRYPTED.format(target.endpoint))
    return Answer(operation, response)


def locate(endpoint: str, address: Address) -> str:
    """Return the URL of a resource without a query."""
    if address.kind is Kind.ENTITY:
        table, partition, row = (quote(part.replace("'", "''"), safe="") for part in address.parts)
        return f"{endpoint}/{table}(PartitionKey='{partition}',RowKey='{row}')"
    parts = [quote(part, safe="~/") for part in address.parts if part]
    if address.kind is Kind.MESSAGE:
        parts.insert(1, "messages")
    return "/".join([endpoint, *parts])


def build_url(target: Target, operation: Operation, query: list[tuple[str, str]]) -> str:
    """Return the URL of a request without what proves the caller's identity."""
    address, http = target.address, operation.http
    asked = [*http.query, *query]
    if http.path is not None:
        url = f"{target.endpoint}/{http.path.format(name=quote(address.container, safe='$'))}"
    else:
        url = locate(target.endpoint, address)
        asked += [("restype", operation.noun)] if operation.noun in _RESTYPES else []
    if address.snapshot is not None:
        asked.append(("sharesnapshot" if target.kind.service == "file" else "snapshot", address.snapshot))
    if address.version is not None:
        asked.append(("versionid", address.version))
    pairs = "&".join(f"{name}={quote(value, safe='')}" for name, value in asked)
    return f"{url}?{pairs}" if pairs else url


def _exchange(
    target: Target, method: str, url: str, headers: dict[str, str], body: bytes | None, timeouts: Limits
) -> Response:
    """Send a request with what proves the caller's identity; once more if the service asks for another token."""
    account, service = target.account, target.kind.service
    sender = client.find_client(account)
    sent = {
        **build_service_headers(account, service),
        REQUEST_ID: str(uuid.uuid4()),
        "User-Agent": f"azguard/{__version__}",
        **headers,
    }
    if body is not None or method not in _READS:
        sent["Content-Length"] = str(len(body or b""))
    else:
        sent["Cache-Control"] = "no-cache"
    url = signing.prove(account, service, method, url, sent)
    reply = client.send(sender, method, url, sent, body, timeouts)
    is_challenged = reply.status_code == _CHALLENGED and account.auth is Auth.LOGIN
    if is_challenged and signing.answer_challenge(account, reply.headers.get("WWW-Authenticate"), sent):
        sent[REQUEST_ID] = str(uuid.uuid4())
        reply = client.send(sender, method, url, sent, body, timeouts)
    return Response(SentRequest(method, url, sent), *reply)


def check_api_version(text: str, where: str) -> str:
    """Return the version of the services' API that a text names.

    Raises:
        ConfigError: it is none that azguard speaks.
    """
    newest = API_VERSIONS["blob"]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text) is None or not OLDEST_VERSION <= text <= newest:
        raise ConfigError(
            f"{where} {text!r} is no version that azguard speaks",
            reason="api_version_unknown",
            values={"oldest": OLDEST_VERSION, "newest": newest},
        )
    return text


def build_service_headers(account: Account, service: str) -> dict[str, str]:
    """Return the headers of every request to a service."""
    version = min(API_VERSIONS[service], account.api_version or API_VERSIONS[service])
    return {**_SERVICE_HEADERS[service], "x-ms-version": version}


def _check_version(target: Target, operation: Operation, headers: dict[str, str], query: list[tuple[str, str]]) -> None:
    """Refuse what the version of the service that was chosen does not have."""
    version = target.account.api_version
    if version is None:
        return
    asked = [*query, *([("versionid", "")] if target.address.version else [])]
    names = [*headers, *(f"{name}: {text}" for name, text in headers.items())]
    words = [f"?{name}{word}" for name, text in asked for word in ("", *(f"={each}" for each in text.split(",")))]
    names += [each for word in words for each in (word, f"{word} of {operation.title}")]
    known = {name: SINCE[name] for name in names if name in SINCE} | {operation.title: operation.since}
    what, since = max(known.items(), key=itemgetter(1))
    what = what.lstrip("?")
    if since > version:
        raise ConfigError(
            f"version {version} of the service does not know {what}, which came with {since}; it was not sent",
            str(target.address),
            reason="version_lacks",
            values={"since": since},
        )


def _encrypt(target: Target, http: Http) -> dict[str, str]:
    """Return the headers for the encryption that the caller asks for, if the operation takes them."""
    asked = target.account.encryption
    return {name: value for argument in asked if argument in http.sends for name, value in asked[argument].items()}


def _speak_of_files(target: Target, operation: Operation) -> dict[str, str]:
    """Return the headers for the service of files alone: how names are read, and by which right of a login."""
    if target.kind.service != "file":
        return {}
    # The service drops a dot at the end of a name, and so takes the name for another one, unless it is told.
    dots = {} if operation.noun == "share" else {"x-ms-allow-trailing-dot": "true"}
    return dots | ({"x-ms-file-request-intent": "backup"} if target.account.auth is Auth.LOGIN else {})
