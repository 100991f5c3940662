"""The Blob service in memory: the operations that single writes, updates and locks ask for.

Sources: the REST reference of each operation, and tests/data/semantics.yaml for what is not written there.
``test_services.py`` sends the same requests to Azurite, ``test_recorded.py`` those of recordings of the live service.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import md5
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tests.explorer import names, service
from tests.explorer.service import Lease, accept, name_version, refuse
from tests.explorer.wire import Answer, Asked

_META = "x-ms-meta-"
_TAG = re.compile("<Key>(.*?)</Key><Value>(.*?)</Value>")
_AT_MOST = re.compile("\"(.*)\" <= '(.*)'")
_LISTED = re.compile("<Latest>(.*?)</Latest>")

#: Blocks by their ids, in their order.
Blocks = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Blob:
    """A version of a blob, with its lease."""

    etag: str
    written: float
    content: bytes = b""
    metadata: tuple[tuple[str, str], ...] = ()
    kind: str = "BlockBlob"
    content_type: str = "application/octet-stream"
    lease: Lease | None = None
    #: The index tags, as a header has them.
    tags: tuple[tuple[str, str], ...] = ()
    #: Those that it is made of; none where one request wrote it.
    blocks: Blocks = ()

    def meta(self, name: str) -> str | None:
        """Return the value of a key of the metadata."""
        return dict(self.metadata).get(name)


@dataclass(frozen=True)
class BlobService:
    """All blobs, by container and name."""

    blobs: Mapping[str, Blob] = field(default_factory=dict)
    #: The last version of what was deleted, from which the next one's name is made.
    gone: Mapping[str, str] = field(default_factory=dict)
    #: Blocks that are no part of a blob yet.
    staged: Mapping[str, Blocks] = field(default_factory=dict)
    #: How many blobs a page of a listing has at most: few, so that the other pages are read as well.
    page: int = 3
    #: Whether readers are told the name of a content instead of it: see ``names``.
    conceals: bool = False

    @cached_property
    def key(self) -> int:
        """Return a digest."""
        return hash(tuple(frozenset(each.items()) for each in (self.blobs, self.gone, self.staged)))

    def answer(self, asked: Asked, now: float) -> "tuple[BlobService, Answer]":
        """Return the service after a request, with its answer."""
        if asked.asks("restype") == "container" and asked.asks("comp") == "list":
            return self, self._list(asked, now)
        container = asked.path.partition("/")[0]
        if container == "nowhere" or len(container) == 32:
            return self, refuse(404, "ContainerNotFound", now)
        if asked.asks("restype") == "container" and asked.method == "GET":
            return self, accept(200, now, ETag='"0x0"', Last_Modified=service.http_date(0))
        blob = self.blobs.get(asked.path)
        if asked.method == "PUT" and asked.asks("comp") in (None, "blocklist"):
            return self._put(asked, blob, now)
        if asked.asks("comp") == "block":
            return self._stage(asked, blob, now)
        if blob is None:
            return self, refuse(404, "BlobNotFound", now)
        if asked.asks("comp") == "lease":
            return self._lease(asked, blob, now)
        writes = asked.method not in ("GET", "HEAD")
        if refusal := _check(asked, blob, now, writes=writes):
            return self, refusal
        return self._act(asked, blob, now)

    def write(self, path: str, now: float, **changes: object) -> "BlobService":
        """Return the service after a program that is not azguard wrote a blob."""
        before = self.blobs.get(path)
        etag = name_version(before.etag if before else self.gone.get(path), sorted(changes))
        made = replace(before or Blob(etag, now), etag=etag, written=now, **changes)  # type: ignore[arg-type]  # the names are those of the fields
        # As any write does: see ``_replace``.
        made = made if service.is_locked(made.lease, now) else replace(made, lease=None)
        if "content" not in changes:
            return replace(self, blobs={**self.blobs, path: made})
        return replace(self._discard(path), blobs={**self.blobs, path: replace(made, blocks=())})

    def delete(self, path: str) -> "BlobService":
        """Return the service without a blob."""
        rest = {name: blob for name, blob in self.blobs.items() if name != path}
        return replace(self._discard(path), blobs=rest, gone={**self.gone, path: self.blobs[path].etag})

    def with_lease(self, path: str, lease: Lease | None) -> "BlobService":
        """Return the service with another lease on a blob."""
        return replace(self, blobs={**self.blobs, path: replace(self.blobs[path], lease=lease)})

    def _act(self, asked: Asked, blob: Blob, now: float) -> "tuple[BlobService, Answer]":
        match asked.method, asked.asks("comp"):
            case "DELETE", None:
                return self.delete(asked.path), accept(202, now)
            case "PUT", "metadata":
                return self._replace(asked, replace(blob, metadata=_metadata(asked)), now, 200)
            case "PUT", "properties":
                kind = asked.header("x-ms-blob-content-type") or ""
                return self._replace(asked, replace(blob, content_type=kind), now, 200)
            case "PUT", "appendblock":
                return self._append(asked, blob, now)
            case (("GET" | "HEAD"), None):
                shown = names.conceal(blob.content.decode()).encode() if self.conceals else blob.content
                return self, _show(asked, replace(blob, content=shown), now)
            case "GET", "tags":
                return self, accept(200, now, _show_tags(blob), Content_Type="application/xml")
            case "PUT", "tags":
                # They are no part of the version.
                tagged = replace(blob, tags=tuple(_TAG.findall(asked.body.decode())))
                return replace(self, blobs={**self.blobs, asked.path: tagged}), accept(204, now)
            case "GET", "blocklist":
                return self, accept(200, now, _show_blocks(blob), ETag=blob.etag, Content_Type="application/xml")
        raise NotImplementedError(asked)

    def _put(self, asked: Asked, blob: Blob | None, now: float) -> "tuple[BlobService, Answer]":
        if blob is not None and asked.header("if-none-match") == "*":
            return self, refuse(409, "BlobAlreadyExists", now)
        if blob is None and {"if-match", "x-ms-if-tags"} & dict(asked.headers).keys():
            return self, refuse(412, "ConditionNotMet", now)
        if blob is not None and (refusal := _check(asked, blob, now, writes=True)):
            return self, refusal
        source = asked.header("x-ms-copy-source")
        if source is not None:
            return self._copy(asked, blob, source, now)
        blocks = self._find_blocks(asked, blob)
        if blocks is None:
            return self, refuse(400, "InvalidBlockList", now)
        content = b"".join(each for _, each in blocks) if asked.asks("comp") else asked.body
        made = Blob(
            etag="",
            written=now,
            content=names.reveal(content.decode()).encode() if self.conceals else content,
            metadata=_metadata(asked),
            kind=asked.header("x-ms-blob-type") or "BlockBlob",
            content_type=asked.header("x-ms-blob-content-type") or "application/octet-stream",
            lease=blob.lease if blob else None,
            tags=tuple(parse_qsl(asked.header("x-ms-tags") or "")),
            blocks=blocks,
        )
        return self._discard(asked.path)._replace(asked, made, now, 201)

    def _find_blocks(self, asked: Asked, blob: Blob | None) -> Blocks | None:
        """Return the blocks of a list, the staged ones first; None if one is not there any more."""
        if asked.asks("comp") is None:
            return ()
        there = {**dict(blob.blocks if blob else ()), **dict(self.staged.get(asked.path, ()))}
        listed = _LISTED.findall(asked.body.decode())
        return tuple((each, there[each]) for each in listed) if set(listed) <= there.keys() else None

    def _stage(self, asked: Asked, blob: Blob | None, now: float) -> "tuple[BlobService, Answer]":
        if blob is not None and (refusal := service.check_lease(blob.lease, asked, now, writes=True)):
            return self, refusal
        staged = {**dict(self.staged.get(asked.path, ())), str(asked.asks("blockid")): asked.body}
        blocks = tuple(sorted(staged.items()))
        return replace(self, staged={**self.staged, asked.path: blocks}), accept(201, now)

    def _discard(self, path: str) -> "BlobService":
        """Return the service without the blocks that were staged for a blob, which any write of its content ends."""
        if path not in self.staged:
            return self
        return replace(self, staged={name: blocks for name, blocks in self.staged.items() if name != path})

    def _copy(self, asked: Asked, blob: Blob | None, source: str, now: float) -> "tuple[BlobService, Answer]":
        path = source.partition("?")[0].partition("://")[2].partition("/")[2]
        found = self.blobs.get(path)
        if found is None:
            return self, refuse(404, "CannotVerifyCopySource", now)
        wanted = asked.header("x-ms-source-if-match")
        if wanted is not None and wanted != found.etag:
            return self, refuse(412, "SourceConditionNotMet", now)
        made = replace(found, lease=blob.lease if blob else None, metadata=_metadata(asked) or found.metadata)
        state = "success"
        return self._discard(asked.path)._replace(asked, made, now, 202, x_ms_copy_status=state, x_ms_copy_id="c")

    def _append(self, asked: Asked, blob: Blob, now: float) -> "tuple[BlobService, Answer]":
        if blob.kind != "AppendBlob":
            return self, refuse(409, "InvalidBlobType", now)
        at = asked.header("x-ms-blob-condition-appendpos")
        if at is not None and int(at) != len(blob.content):
            return self, refuse(412, "AppendPositionConditionNotMet", now)
        most = asked.header("x-ms-blob-condition-maxsize")
        if most is not None and len(blob.content) + len(asked.body) > int(most):
            return self, refuse(412, "MaxBlobSizeConditionNotMet", now)
        made = replace(blob, content=blob.content + asked.body)
        told = {"x_ms_blob_append_offset": str(len(blob.content)), "x_ms_blob_committed_block_count": "1"}
        return self._replace(asked, made, now, 201, **told)

    def _replace(self, asked: Asked, made: Blob, now: float, status: int, **told: str) -> "tuple[BlobService, Answer]":
        before = self.blobs.get(asked.path)
        etag = name_version(before.etag if before else self.gone.get(asked.path), asked.headers, asked.body)
        # A write ends a lease that has expired or was broken, so that it cannot be renewed.
        lease = made.lease if service.is_locked(made.lease, now) else None
        made = replace(made, etag=etag, written=now, lease=lease)
        answer = accept(status, now, ETag=etag, Last_Modified=service.http_date(now), **told)
        return replace(self, blobs={**self.blobs, asked.path: made}), answer

    def _lease(self, asked: Asked, blob: Blob, now: float) -> "tuple[BlobService, Answer]":
        if refusal := _check_conditions(asked, blob, now, writes=True):
            return self, refusal
        lease, answer = service.act_on_lease(blob.lease, asked, now)
        if answer.status >= 300:
            return self, answer
        told = (("ETag", blob.etag), ("Last-Modified", service.http_date(blob.written)))
        return self.with_lease(asked.path, lease), replace(answer, headers=(*answer.headers, *told))

    def _list(self, asked: Asked, now: float) -> Answer:
        start, after = f"{asked.path}/{asked.asks('prefix') or ''}", asked.asks("marker") or ""
        names = sorted(name for name in self.blobs if name.startswith(start) and name > after)
        shown, more = names[: self.page], names[self.page :]
        items = "".join(_show_item(name.partition("/")[2], self.blobs[name], now) for name in shown)
        marker = escape(shown[-1]) if more else ""
        text = f"<EnumerationResults><Blobs>{items}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
        return accept(200, now, text.encode(), Content_Type="application/xml")


def _check(asked: Asked, blob: Blob, now: float, *, writes: bool) -> Answer | None:
    refusal = _check_conditions(asked, blob, now, writes=writes)
    return refusal or service.check_lease(blob.lease, asked, now, writes=writes)


def _check_conditions(asked: Asked, blob: Blob, now: float, *, writes: bool) -> Answer | None:
    match, none_match = asked.header("if-match"), asked.header("if-none-match")
    if match not in (None, "*", blob.etag):
        return refuse(412, "ConditionNotMet", now)
    if none_match is not None and none_match in ("*", blob.etag):
        return refuse(412 if writes else 304, "ConditionNotMet", now)
    # The one condition on tags that azguard sends by itself: a tag is no higher.
    limit = _AT_MOST.fullmatch(asked.header("x-ms-if-tags") or "")
    if limit is not None and dict(blob.tags).get(limit[1], "~") > limit[2]:
        return refuse(412, "ConditionNotMet", now)
    return None


def _show_tags(blob: Blob) -> bytes:
    tags = "".join(f"<Tag><Key>{escape(key)}</Key><Value>{escape(value)}</Value></Tag>" for key, value in blob.tags)
    return f"<Tags><TagSet>{tags}</TagSet></Tags>".encode()


def _show_blocks(blob: Blob) -> bytes:
    blocks = "".join(f"<Block><Name>{name}</Name><Size>{len(each)}</Size></Block>" for name, each in blob.blocks)
    return f"<BlockList><CommittedBlocks>{blocks}</CommittedBlocks></BlockList>".encode()


def _metadata(asked: Asked) -> tuple[tuple[str, str], ...]:
    return tuple((name[len(_META) :], value) for name, value in asked.headers if name.startswith(_META))


def _show(asked: Asked, blob: Blob, now: float) -> Answer:
    told = {
        "ETag": blob.etag,
        "Last_Modified": service.http_date(blob.written),
        "Content_Type": blob.content_type,
        "x_ms_blob_type": blob.kind,
        "x_ms_creation_time": service.http_date(0),
        "x_ms_access_tier": "Hot",
        "x_ms_access_tier_inferred": "true",
        **service.lease_headers(blob.lease, now),
        **{f"{_META}{name}": value for name, value in blob.metadata},
        **({"x_ms_tag_count": str(len(blob.tags))} if blob.tags else {}),
    }
    digest = b64encode(md5(blob.content, usedforsecurity=False).digest()).decode()
    if blob.kind == "AppendBlob":
        told["x_ms_blob_committed_block_count"] = "1"
    wanted = asked.header("x-ms-range")
    if wanted is None or asked.method == "HEAD":
        return accept(200, now, blob.content, Content_MD5=digest, **told)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    if int(first) >= len(blob.content):
        return refuse(416, "InvalidRange", now)
    body = blob.content[int(first) : int(last) + 1 if last else None]
    told["Content_Range"] = f"bytes {first}-{int(first) + len(body) - 1}/{len(blob.content)}"
    return accept(206, now, body, x_ms_blob_content_md5=digest, **told)


def _show_item(name: str, blob: Blob, now: float) -> str:
    state, status = service.lease_state(blob.lease, now), "locked" if service.is_locked(blob.lease, now) else "unlocked"
    duration = service.lease_headers(blob.lease, now).get("x_ms_lease_duration")
    lasts = "" if duration is None else f"<LeaseDuration>{duration}</LeaseDuration>"
    metadata = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in blob.metadata)
    written = service.http_date(blob.written)
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{written}</Last-Modified><Etag>"
        f"{escape(blob.etag)}</Etag><Content-Length>{len(blob.content)}</Content-Length><BlobType>{blob.kind}</BlobType>"
        f"<LeaseState>{state}</LeaseState><LeaseStatus>{status}</LeaseStatus>{lasts}</Properties>"
        f"<Metadata>{metadata}</Metadata></Blob>"
    )
