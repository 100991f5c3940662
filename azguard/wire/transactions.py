"""Several operations on entities in one request, which the Table service does all or not at all.

Source: https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

import uuid
from collections.abc import Sequence
from email.parser import BytesParser
from typing import NamedTuple

from azguard.accounts.account import Target
from azguard.wire.answers import Answer, build_headers
from azguard.wire.call import build_service_headers, build_url, call
from azguard.wire.client import Limits
from azguard.wire.connections import Headers
from azguard.wire.failures import REFUSED, Response, SentRequest, ServiceRefusal, Unreadable
from azguard.wire.operations.tables import TABLE_BATCH
from azguard.wire.rows import Operation


class TransactionPart(NamedTuple):
    """One operation of a transaction."""

    operation: Operation
    target: Target
    body: bytes | None
    #: The version that it is of; None without a condition.
    if_match: str | None = None


def send(table: Target, parts: Sequence[TransactionPart], timeouts: Limits) -> list[Answer]:
    """Send the operations once, and return an answer to each.

    Raises:
        ServiceRefusal: the service refused one, and did none; its message begins with the number of that one.
        NoAnswer: there was no whole answer of the service.
        Unreadable: it succeeded, and nothing can be made of the answer.
    """
    batch, changes = f"batch_{uuid.uuid4()}", f"changeset_{uuid.uuid4()}"
    inner = b"".join(_build(changes, number, part) for number, part in enumerate(parts))
    head = f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changes}\r\n\r\n"
    body = b"".join([head.encode(), inner, f"--{changes}--\r\n\r\n--{batch}--\r\n".encode()])
    answer = call(TABLE_BATCH, table, timeouts, body=body, body_type=f"multipart/mixed; boundary={batch}")
    found = _parse(answer)
    for each in found:
        if each.status_code >= REFUSED:
            raise ServiceRefusal(each)
    if len(found) != len(parts):
        raise Unreadable(f"{len(found)} of {len(parts)} operations are answered")
    return [Answer(part.operation, each) for part, each in zip(parts, found, strict=True)]


def _build(boundary: str, number: int, part: TransactionPart) -> bytes:
    http = part.operation.http
    given = {} if part.if_match is None else {"if_match": part.if_match}
    sent, query = build_headers(part.operation, given)
    headers = {**build_service_headers(part.target.account, "table"), **dict(http.headers), **sent}
    if part.body is not None:
        headers["Content-Length"] = str(len(part.body))
    lines = [
        f"--{boundary}",
        "Content-Type: application/http",
        "Content-Transfer-Encoding: binary",
        f"Content-ID: {number}",
        "",
        f"{http.method} {build_url(part.target, part.operation, query)} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + (part.body or b"") + b"\r\n"


def _parse(answer: Answer) -> list[Response]:
    """Return the answers inside an answer; where one is refused, it is the only one."""
    kind = answer.headers.get("Content-Type", "")
    if not kind.startswith("multipart/mixed"):
        raise Unreadable("the answer to a transaction has no parts")
    message = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + answer.content)
    parts = (each for each in message.walk() if not each.is_multipart())
    return [_parse_part(bytes(each.get_payload(decode=True) or b"")) for each in parts]


def _parse_part(text: bytes) -> Response:
    head, _, content = text.replace(b"\r\n", b"\n").partition(b"\n\n")
    first, *lines = head.decode("latin-1").split("\n")
    _, status, reason = [*first.split(" ", 2), "", ""][:3]
    if not status.isdigit():
        raise Unreadable("a part of the answer to a transaction has no status")
    headers = Headers([line for line in lines if ":" in line])
    return Response(SentRequest("POST", "", {}), int(status), reason, headers, content)
