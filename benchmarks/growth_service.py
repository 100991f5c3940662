"""A service that answers at once. ``python -m benchmarks.growth_service ITEMS`` prints its port, and serves.

Each container has so many blobs of eight bytes, each table so many entities, and the queue so many messages; the
container ``empty`` has none. Nothing is stored: a write is answered as if it were done. So what a command costs is
what azguard does, and hardly what it waits for.
"""

import asyncio
import base64
import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, unquote, urlsplit

CONTENT = b"content\n"
ETAG = '"0x8DD000000000001"'
_MD5 = base64.b64encode(hashlib.md5(CONTENT, usedforsecurity=False).digest()).decode()
_DATE = "Thu, 26 Nov 2026 12:00:00 GMT"
_BLOB_PAGE, _ENTITY_PAGE = 5000, 1000
_VERSION = {"Last-Modified": _DATE, "ETag": ETAG}
_BLOB = {
    **_VERSION,
    "Content-Type": "text/plain",
    "Content-MD5": _MD5,
    "x-ms-blob-type": "BlockBlob",
    "x-ms-creation-time": _DATE,
    "x-ms-lease-state": "available",
    "x-ms-lease-status": "unlocked",
}
_LISTED = (
    "<Blob><Name>{name}</Name><Properties><Creation-Time>"
    + _DATE
    + "</Creation-Time><Last-Modified>"
    + _DATE
    + "</Last-Modified>"
    "<Etag>" + ETAG.strip('"') + "</Etag><Content-Length>8</Content-Length><Content-Type>text/plain</Content-Type>"
    "<Content-MD5>" + _MD5 + "</Content-MD5><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>"
    "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState></Properties></Blob>"
)
_MESSAGE = (
    "<QueueMessage><MessageId>00000000-0000-4000-8000-{number:012}</MessageId><InsertionTime>"
    + _DATE
    + "</InsertionTime>"
    "<ExpirationTime>Thu, 03 Dec 2026 12:00:00 GMT</ExpirationTime><PopReceipt>r{number}</PopReceipt>"
    "<TimeNextVisible>" + _DATE + "</TimeNextVisible><DequeueCount>1</DequeueCount>{text}</QueueMessage>"
)
Reply = tuple[int, Mapping[str, str], bytes]


def name_blob(number: int) -> str:
    """Return the name of a blob."""
    return f"files/{number:07}.txt"


class Service:
    """What it answers, by method and path."""

    def __init__(self, items: int) -> None:
        self.items = items
        self._given = 0

    def answer(self, method: str, target: str, is_part: bool, body: bytes) -> Reply:
        """Answer a request."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        # The first part of the path is the account's name.
        path = unquote(parts.path).split("/", 2)[2] if parts.path.count("/") > 1 else ""
        if path == "$batch":
            return self._commit(body)
        if path.startswith("queue"):
            return self._answer_queue(method, path, query)
        if path.startswith("table"):
            return self._answer_table(method, path, query)
        if query.get("comp") == "list":
            return self._list_blobs(path, query) if path else self._list_containers()
        return _answer_blob(method, is_part=is_part)

    def _list_containers(self) -> Reply:
        told = f"<Properties><Last-Modified>{_DATE}</Last-Modified><Etag>{ETAG}</Etag></Properties>"
        listed = f"<Containers><Container><Name>site</Name>{told}</Container></Containers>"
        return _say(f"<EnumerationResults>{listed}<NextMarker/></EnumerationResults>")

    def _list_blobs(self, container: str, query: Mapping[str, str]) -> Reply:
        items = 0 if container == "empty" else self.items
        first = int(query.get("marker") or 0)
        after = min(items, first + min(_BLOB_PAGE, int(query.get("maxresults") or _BLOB_PAGE)))
        listed = "".join(_LISTED.replace("{name}", name_blob(number)) for number in range(first, after))
        marker = f"<NextMarker>{after}</NextMarker>" if after < items else "<NextMarker/>"
        return _say(f"<EnumerationResults><Blobs>{listed}</Blobs>{marker}</EnumerationResults>")

    def _answer_table(self, method: str, path: str, query: Mapping[str, str]) -> Reply:
        if method != "GET":
            return 204, {"ETag": ETAG}, b""
        first = int(query.get("NextRowKey") or 0)
        after = min(self.items, first + min(_ENTITY_PAGE, int(query.get("$top") or _ENTITY_PAGE)))
        rows = [_describe_entity(number) for number in range(first, after)]
        on = {"x-ms-continuation-NextPartitionKey": "p", "x-ms-continuation-NextRowKey": str(after)}
        headers = {"Content-Type": "application/json;odata=minimalmetadata", **(on if after < self.items else {})}
        return 200, headers, json.dumps({"value": rows}).encode()

    def _commit(self, body: bytes) -> Reply:
        parts = len(re.findall(rb"\r\n(?:PUT|PATCH|MERGE|POST|DELETE) http", body))
        head = "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        one = f"{head}HTTP/1.1 204 No Content\r\nETag: {ETAG}\r\n\r\n\r\n"
        text = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + one * parts + "--c--\r\n--b--\r\n"
        return 202, {"Content-Type": "multipart/mixed; boundary=b"}, text.encode()

    def _answer_queue(self, method: str, path: str, query: Mapping[str, str]) -> Reply:
        if method == "GET" and path.endswith("/messages"):
            first, self._given = self._given, min(self.items, self._given + int(query.get("numofmessages") or 1))
            text = f"<MessageText>{base64.b64encode(CONTENT).decode()}</MessageText>"
            listed = "".join(_MESSAGE.format(number=number, text=text) for number in range(first, self._given))
            return _say(f"<QueueMessagesList>{listed}</QueueMessagesList>")
        if method == "POST":
            return 201, {}, f"<QueueMessagesList>{_MESSAGE.format(number=0, text='')}</QueueMessagesList>".encode()
        if method == "PUT":
            return 204, {"x-ms-popreceipt": "r", "x-ms-time-next-visible": _DATE}, b""
        return (200, {"x-ms-approximate-messages-count": str(self.items)}, b"") if method == "GET" else (204, {}, b"")


def _answer_blob(method: str, *, is_part: bool) -> Reply:
    if method in ("GET", "HEAD"):
        size = len(CONTENT)
        told = {**_BLOB, "Content-Length": str(size), "Content-Range": f"bytes 0-{size - 1}/{size}"}
        return (206 if is_part else 200, told, CONTENT if method == "GET" else b"")
    return (202, {}, b"") if method == "DELETE" else (201, _VERSION, b"")


def _describe_entity(number: int) -> dict[str, object]:
    return {
        "odata.etag": "W/\"datetime'2026-11-26T12%3A00%3A00.0000000Z'\"",
        "PartitionKey": "p",
        "RowKey": f"{number:07}",
        "Timestamp": "2026-11-26T12:00:00.0000000Z",
        "count": number,
        "status": "new",
    }


def _say(text: str) -> Reply:
    return 200, {"Content-Type": "application/xml"}, b'<?xml version="1.0" encoding="utf-8"?>' + text.encode()


class _Connection(asyncio.Protocol):
    def __init__(self, answer: Callable[[str, str, bool, bytes], Reply]) -> None:
        self._answer = answer
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while (end := self._heard.find(b"\r\n\r\n")) >= 0:
            first, *lines = self._heard[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            whole = end + 4 + int(headers.get("content-length", 0))
            if len(self._heard) < whole:
                return
            body, self._heard = self._heard[end + 4 : whole], self._heard[whole:]
            method, target, _ = first.split(" ")
            self._reply(headers, *self._answer(method, target, "x-ms-range" in headers, body))

    def _reply(self, asked: Mapping[str, str], status: int, headers: Mapping[str, str], body: bytes) -> None:
        told = {
            "Server": "Windows-Azure-Blob/1.0",
            "x-ms-request-id": "1",
            "x-ms-version": asked.get("x-ms-version", ""),
            "x-ms-client-request-id": asked.get("x-ms-client-request-id", ""),
            "Date": _DATE,
            **({} if status == 204 else {"Content-Length": str(len(body))}),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        self._transport.write(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + body)


async def _serve(items: int) -> None:
    service = Service(items)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(service.answer), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
