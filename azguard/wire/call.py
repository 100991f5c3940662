"""The one way to a service: an operation is sent once, as its row says, and its whole answer is returned."""

import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from azguard import __version__
from azguard.accounts.account import Auth, Target
from azguard.address import Address, Kind
from azguard.wire import client, identity
from azguard.wire.answers import Answer, build_headers
from azguard.wire.connections import Reply
from azguard.wire.exchange import REQUEST_ID
from azguard.wire.failures import Response, SentRequest, ServiceRefusal
from azguard.wire.rows import Http, Operation

#: The version of each service that is spoken: the SDK's.
API_VERSIONS = {"blob": "2026-10-06", "file": "2026-10-06", "queue": "2026-10-06", "table": "2019-02-02"}
_RESTYPES = {Kind.CONTAINER: "container", Kind.SHARE: "share", Kind.DIR: "directory"}
# Of the services, in the order of the SDK.
_ACCEPT = {"table": "application/json;odata=minimalmetadata"}
_READS = ("GET", "HEAD")


def call(
    operation: Operation,
    target: Target,
    timeouts: Mapping[str, Any],
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
    """
    http = operation.http
    if http is None:
        raise TypeError(f"{operation.name} has no form of its own")
    sent, query = build_headers(operation, given)
    sent = {**dict(http.headers), **sent, **(headers or {})}
    request = _build(target, http, query, sent, body)
    reply = _exchange(target, request, body, timeouts)
    if reply.status_code not in http.ok:
        raise _refuse(request, reply)
    return Answer(operation, reply.status_code, reply.headers, reply.content)


def locate(endpoint: str, address: Address, below: str = "") -> str:
    """Return the URL of a resource without a query; ``below`` is what stands behind it in the path."""
    if address.kind is Kind.ENTITY:
        table, partition, row = (quote(part.replace("'", "''"), safe="") for part in address.parts)
        return f"{endpoint}/{table}(PartitionKey='{partition}',RowKey='{row}')"
    parts = [quote(part, safe="~/") for part in address.parts]
    if address.kind is Kind.MESSAGE:
        parts.insert(1, "messages")
    return "/".join([endpoint, *parts, *filter(None, [below])])


def _build(
    target: Target, http: Http, query: list[tuple[str, str]], headers: dict[str, str], body: bytes | None
) -> SentRequest:
    """Return a request without what proves the caller's identity."""
    address, service = target.address, target.kind.service
    asked = [*http.query, *query]
    if address.kind in _RESTYPES:
        asked.insert(0, ("restype", _RESTYPES[address.kind]))
    if address.snapshot is not None:
        asked.append(("sharesnapshot" if service == "file" else "snapshot", address.snapshot))
    if address.version is not None:
        asked.append(("versionid", address.version))
    url = locate(target.endpoint, address, http.below)
    if asked:
        url = f"{url}?{urlencode(asked, quote_via=quote)}"
    sent = {
        "x-ms-version": API_VERSIONS[service],
        "User-Agent": f"azguard/{__version__}",
        "Accept": _ACCEPT.get(service, "application/xml"),
        **headers,
    }
    if body is not None or http.method not in _READS:
        sent["Content-Length"] = str(len(body or b""))
    return SentRequest(http.method, url, sent)


def _exchange(target: Target, request: SentRequest, body: bytes | None, timeouts: Mapping[str, Any]) -> Reply:
    """Send a request with what proves the caller's identity; once more if the service asks for another token."""
    account, service = target.account, target.kind.service
    method, headers = request.method, dict(request.headers)
    sender, limits = client.find_client(account), client.choose_limits(timeouts)
    headers[REQUEST_ID] = str(uuid.uuid4())
    url = identity.prove(account, service, method, request.url, headers)
    reply = client.send(sender, method, url, headers, body, limits)
    if reply.status_code != HTTPStatus.UNAUTHORIZED or account.auth is not Auth.LOGIN:
        return reply
    if not identity.answer_challenge(account, reply.headers.get("WWW-Authenticate"), headers):
        return reply
    headers[REQUEST_ID] = str(uuid.uuid4())
    return client.send(sender, method, url, headers, body, limits)


def _refuse(request: SentRequest, reply: Reply) -> ServiceRefusal:
    response = Response(request, *reply)
    return ServiceRefusal(_describe(response), response)


def _describe(response: Response) -> str:
    """Return the sentence of a refusal, and the facts in its body in lines of their own."""
    told = _read_facts(response.content)
    message = told.pop("Message", "") or f"the service answered {response.status_code} {response.reason}".strip()
    code = told.pop("Code", "") or response.headers.get("x-ms-error-code")
    return "\n".join([message, f"ErrorCode:{code}", *(f"{name}:{text}" for name, text in told.items())])


def _read_facts(content: bytes) -> dict[str, str]:
    """Return what the body of a refusal says, by the names that the services of blobs, files and queues use."""
    if content.lstrip()[:1] == b"{":
        import json

        try:
            error = json.loads(content)["odata.error"]
            return {"Code": str(error["code"]), "Message": str(error["message"]["value"])}
        except (ValueError, KeyError, TypeError):
            return {}
    from xml.etree import ElementTree as ET

    try:
        root = ET.fromstring(content)  # noqa: S314  # an answer of the service
    except ET.ParseError:
        return {}
    # The service of tables says the same in a namespace.
    return {each.tag.rpartition("}")[2].title() if "}" in each.tag else each.tag: each.text or "" for each in root}
