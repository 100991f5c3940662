"""How each operation is tried: on what, with which arguments, and through which client.

The client counts requests, and loses or doubles one where it is told to. What a row of the operations says is not said
again. An operation that is missing here has no condition and no lease, or stands in ``NOT_TRIED`` with the reason.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.resources import copies
from azguard.wire.client import REQUEST_ID, Client, Limits
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer
from azguard.wire.rows import Operation
from azguard.wire.xml import build_document

_DONE = range(200, 300)


class Damage(StrEnum):
    """The damage to one request."""

    #: It is carried out, and its answer does not arrive.
    LOST = "answer lost"
    #: It is carried out twice, and the second answer arrives: a proxy that lost the first one does so.
    DOUBLED = "sent twice"


class Misnamed(StrEnum):
    """What can be wrong with the name of a request in an answer, the worst first."""

    OF_ANOTHER = "some are those of other requests: a gateway repeats answers"
    UNNAMED = "some name no request: a repeated answer is not noticed"
    UNNAMED_REFUSAL = "refusals name no request: a repeated one is not noticed"


def find_origin(url: str) -> str:
    """Return the beginning of a URL, up to its path."""
    return "/".join(url.split("/", 3)[:3])


class Tap:
    """Passes requests on to another client."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self._damage: Damage | None = None
        self._watched: tuple[Operation, str] | None = None
        #: How many requests were sent.
        self.requests = 0
        #: What went wrong with the names of requests in the answers, by the beginning of the URL.
        self.misnamed: dict[str, set[Misnamed]] = {}
        #: How many requests of the watched operation the service has done, by its answers.
        self.done = 0
        #: By the beginning of the URL: what answers there, as it calls itself.
        self.servers: dict[str, str] = {}

    def damage_next(self, damage: Damage, operation: Operation, url: str = "") -> None:
        """Damage the next request of an operation, and count from now on how many of them are done.

        ``url`` is how the URL of the request begins, where that matters.
        """
        self._damage, self._watched, self.done = damage, (operation, url), 0

    def stop_watching(self) -> int:
        """Return how many requests of the watched operation are done; damage and count no more."""
        self._damage = self._watched = None
        return self.done

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        """Send a request as the inner client does, damaged if it is the one that is meant."""
        damage = self._take_damage(method, url, headers)
        reply = self._pass_on(method, url, headers, body, limits)
        if damage is Damage.LOST:
            raise BrokenAnswer(Broken.CLOSED)
        if damage is Damage.DOUBLED:
            reply = self._pass_on(method, url, headers, body, limits)
        return reply

    def _take_damage(self, method: str, url: str, headers: Mapping[str, str]) -> Damage | None:
        if self._damage is None or not self._is_watched(method, url, headers):
            return None
        damage, self._damage = self._damage, None
        return damage

    def _is_watched(self, method: str, url: str, headers: Mapping[str, str]) -> bool:
        if self._watched is None:
            return False
        operation, beginning = self._watched
        return url.startswith(beginning) and _is_of(operation, method, url, headers)

    def _pass_on(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits) -> Reply:
        self.requests += 1
        misnamed = self.misnamed.setdefault(find_origin(url), set())
        try:
            reply = self._inner.send(method, url, headers, body, limits)
        except BrokenAnswer as error:
            if error.how is Broken.OF_ANOTHER_REQUEST:
                misnamed.add(Misnamed.OF_ANOTHER)
            raise
        self.servers[find_origin(url)] = reply.headers.get("Server", "")
        if REQUEST_ID not in reply.headers:
            misnamed.add(Misnamed.UNNAMED if reply.status_code in _DONE else Misnamed.UNNAMED_REFUSAL)
        if self._is_watched(method, url, headers) and _is_done(reply):
            self.done += 1
        return reply


def _is_done(reply: Reply) -> bool:
    """Return whether the service did it: a transaction that it refused is accepted, and refused in a part."""
    return reply.status_code in _DONE and b"\nHTTP/1.1 4" not in reply.content


def _is_of(operation: Operation, method: str, url: str, headers: Mapping[str, str]) -> bool:
    http = operation.http
    if method != http.method:
        return False
    query = url.partition("?")[2].split("&")
    asked = [f"{name}={value}" for name, value in http.query]
    is_whole = bool(asked) or not any(each.startswith("comp=") for each in query)
    fixed = {name: value for name, value in http.headers if name.startswith("x-ms-")}
    return is_whole and all(each in query for each in asked) and fixed.items() <= dict(headers).items()


#: What a page blob is made of, and a range of a file.
PAGE_BYTES = 512
#: That of a page blob.
SEQUENCE_NUMBER = 5
CONTENT = b"azguard doctor\n"
LEASE_SECONDS = 60
# The least that an account of premium shares takes.
_SHARE_GIB = 100
_TAGS = build_document("<Tags><TagSet><Tag><Key>doctor</Key><Value>yes</Value></Tag></TagSet></Tags>")
_PAGE = f"bytes=0-{PAGE_BYTES - 1}"
_NO_BLOCKS = build_document("<BlockList></BlockList>")
_BLOCK_ID = "YmxvY2s="
_NO_POLICIES = build_document("<SignedIdentifiers></SignedIdentifiers>")
_MESSAGE = build_document("<QueueMessage><MessageText>doctor</MessageText></QueueMessage>")
_METADATA = {"doctor": "yes"}


class TargetMaker(Protocol):
    """Makes what an operation needs beside its target."""

    def make(self, kind: Kind, how: str = "") -> Target:
        """Make a resource."""

    def source(self, kind: Kind, how: str) -> Target:
        """Return the source of copies of this kind."""


Arguments = Callable[[TargetMaker, Target], Mapping[str, Any]]


class Play(NamedTuple):
    """One operation as it is tried."""

    #: What it is tried on.
    kind: Kind
    #: What it sends beside its conditions, with ``body``.
    arguments: Arguments = lambda stage, target: {}
    #: The type of the blob: empty is a block blob.
    how: str = ""
    #: How many requests its preparation takes, beside those for the target.
    requests: int = 0


def _fixed(kind: Kind, how: str = "", **given: Any) -> Play:
    return Play(kind, lambda stage, target: given, how)


def _from_source(kind: Kind, how: str = "", **given: Any) -> Play:
    """Return the play of an operation that reads a source of the same kind."""

    def choose(stage: TargetMaker, _: Target) -> Mapping[str, Any]:
        return {"copy_source": copies.to_url(stage.source(kind, how)), **given}

    return Play(kind, choose, how, requests=1)


def _rename(kind: Kind, replaces: str) -> Play:
    def choose(stage: TargetMaker, _: Target) -> Mapping[str, Any]:
        return {"rename_source": copies.to_url(stage.make(kind)), "replace_if_exists": replaces}

    return Play(kind, choose, requests=1)


def _lease(verb: str, kind: Kind) -> Play:
    seconds = -1 if kind is Kind.FILE else LEASE_SECONDS
    if verb == "acquire":
        return Play(kind, lambda *_: {"proposed_lease_id": str(uuid.uuid4()), "lease_duration": seconds})
    if verb == "change":
        return Play(kind, lambda *_: {"proposed_lease_id": str(uuid.uuid4())})
    return Play(kind)


def _entity(_: TargetMaker, target: Target) -> Mapping[str, Any]:
    partition, row = target.address.parts[1:]
    return {"body": json.dumps({"PartitionKey": partition, "RowKey": row, "count": 0}).encode()}


_LEASED = {"blob": Kind.BLOB, "container": Kind.CONTAINER, "share": Kind.SHARE, "file": Kind.FILE}
PLAYS: Mapping[str, Play] = MappingProxyType(
    {
        "blob.put_block_blob": _fixed(Kind.BLOB, body=CONTENT),
        "blob.put_append_blob": _fixed(Kind.BLOB, "append"),
        "blob.put_page_blob": _fixed(Kind.BLOB, "page", size=PAGE_BYTES),
        "blob.get": _fixed(Kind.BLOB),
        "blob.get_properties": _fixed(Kind.BLOB),
        "blob.set_properties": _fixed(Kind.BLOB, content_type="text/plain"),
        "blob.resize": _fixed(Kind.BLOB, "page", size=PAGE_BYTES),
        "blob.set_sequence_number": _fixed(Kind.BLOB, "page", sequence_action="increment"),
        "blob.set_metadata": _fixed(Kind.BLOB, metadata=_METADATA),
        "blob.set_tier": _fixed(Kind.BLOB, access_tier="Cool"),
        "blob.get_tags": _fixed(Kind.BLOB),
        "blob.set_tags": _fixed(Kind.BLOB, body=_TAGS),
        "blob.snapshot": _fixed(Kind.BLOB),
        "blob.copy": _from_source(Kind.BLOB),
        "blob.delete": _fixed(Kind.BLOB, delete_snapshots="include"),
        "blob.put_block": _fixed(Kind.BLOB, block_id=_BLOCK_ID, body=CONTENT),
        "blob.put_block_list": _fixed(Kind.BLOB, body=_NO_BLOCKS),
        "blob.get_block_list": _fixed(Kind.BLOB, blocklisttype="all"),
        "blob.append_block": _fixed(Kind.BLOB, "append", body=CONTENT),
        "blob.append_block_from_url": _from_source(
            Kind.BLOB, "append", source_range=f"bytes=0-{len(CONTENT) - 1}"
        ),
        "blob.seal_append_blob": _fixed(Kind.BLOB, "append"),
        "blob.put_page": _fixed(Kind.BLOB, "page", range=_PAGE, body=bytes(PAGE_BYTES)),
        "blob.clear_page": _fixed(Kind.BLOB, "page", range=_PAGE),
        "blob.put_page_from_url": _from_source(Kind.BLOB, "page", range=_PAGE, source_range=_PAGE),
        "blob.get_page_ranges": _fixed(Kind.BLOB, "page"),
        "container.create": _fixed(Kind.CONTAINER),
        "container.get_properties": _fixed(Kind.CONTAINER),
        "container.set_metadata": _fixed(Kind.CONTAINER, metadata=_METADATA),
        "container.get_acl": _fixed(Kind.CONTAINER),
        "container.set_acl": _fixed(Kind.CONTAINER, body=_NO_POLICIES),
        "container.delete": _fixed(Kind.CONTAINER),
        "container.list_blobs": _fixed(Kind.CONTAINER, maxresults=1),
        "table.create": Play(
            Kind.TABLE, lambda _, table: {"body": json.dumps({"TableName": table.address.container}).encode()}
        ),
        "table.entity_query": _fixed(Kind.TABLE, top=1),
        "table.entity_get": _fixed(Kind.ENTITY),
        "table.entity_insert": Play(Kind.ENTITY, _entity),
        "table.entity_update": Play(Kind.ENTITY, _entity),
        "table.entity_merge": Play(Kind.ENTITY, _entity),
        "table.entity_delete": _fixed(Kind.ENTITY),
        # With the same metadata, a second create is done.
        "queue.create": Play(Kind.QUEUE, lambda *_: {"metadata": {"doctor": uuid.uuid4().hex}}),
        "queue.get_metadata": _fixed(Kind.QUEUE),
        "queue.put_message": _fixed(Kind.QUEUE, body=_MESSAGE),
        "queue.peek_messages": _fixed(Kind.QUEUE, numofmessages=1),
        "queue.get_messages": _fixed(Kind.QUEUE, numofmessages=1, visibilitytimeout=1),
        "queue.update_message": _fixed(Kind.MESSAGE, visibilitytimeout=0),
        "queue.delete_message": _fixed(Kind.MESSAGE),
        "share.create": _fixed(Kind.SHARE, quota=_SHARE_GIB),
        "share.get_properties": _fixed(Kind.SHARE),
        "share.set_properties": _fixed(Kind.SHARE, quota=_SHARE_GIB),
        "share.set_metadata": _fixed(Kind.SHARE, metadata=_METADATA),
        "share.get_acl": _fixed(Kind.SHARE),
        "share.set_acl": _fixed(Kind.SHARE, body=_NO_POLICIES),
        "share.get_stats": _fixed(Kind.SHARE),
        "share.delete": _fixed(Kind.SHARE),
        "directory.create": _fixed(Kind.DIR),
        "directory.list": _fixed(Kind.SHARE, maxresults=1),
        "directory.rename": _rename(Kind.DIR, "false"),
        "file.create": _fixed(Kind.FILE, size=PAGE_BYTES),
        "file.get": _fixed(Kind.FILE),
        "file.get_properties": _fixed(Kind.FILE),
        "file.set_properties": _fixed(Kind.FILE, content_type="text/plain"),
        "file.set_metadata": _fixed(Kind.FILE, metadata=_METADATA),
        "file.put_range": _fixed(Kind.FILE, write="update", range=_PAGE, body=bytes(PAGE_BYTES)),
        "file.list_ranges": _fixed(Kind.FILE),
        "file.copy": _from_source(Kind.FILE),
        "file.rename": _rename(Kind.FILE, "true"),
        "file.delete": _fixed(Kind.FILE),
        **{
            f"{noun}.lease_{verb}": _lease(verb, kind)
            for noun, kind in _LEASED.items()
            for verb in ("acquire", "renew", "change", "release", "break")
        },
    }
)  # fmt: skip
#: What has a condition or a lease, and is not tried; and why.
NOT_TRIED: Mapping[str, str] = MappingProxyType(
    {
        "blob.abort_copy": "no copy is pending for long enough",
        "blob.set_immutability_policy": "doctor could not remove what it made",
        "container.undelete": "an account without soft delete keeps nothing",
        "file.abort_copy": "no copy is pending for long enough",
        "share.undelete": "an account without soft delete keeps nothing",
    }
)
