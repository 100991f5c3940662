"""The blobs and leases of one container in memory, on a clock of the simulation: what a lock asks of the service.

It answers requests of the SDK as the live service does: list, put, head, set metadata and properties, delete, and the
five operations on a lease. Rules: Lease Blob, its state diagram, in the REST reference.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Blob:
    """A blob without content."""

    etag: str
    written: float
    metadata: dict[str, str]
    lease_id: str | None = None
    term: float = 0.0
    ends: float = 0.0
    broken: bool = False

    def lease_state(self, now: float) -> str:
        """Return the state of the lease, in the service's words."""
        if self.broken:
            return "broken"
        if self.lease_id is None:
            return "available"
        return "leased" if now < self.ends else "expired"


@dataclass
class Asked:
    """A request: its method, the blob's name, the query, and its headers in lower case."""

    method: str
    name: str
    query: Mapping[str, str]
    headers: Mapping[str, str]

    @classmethod
    def parse(cls, method: str, url: str, headers: Mapping[str, str]) -> "Asked":
        """Read a request of the SDK."""
        parts = urlsplit(url)
        name = unquote(parts.path).strip("/").partition("/")[2]
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        return cls(method, name, query, {key.lower(): str(value) for key, value in headers.items()})

    @property
    def what(self) -> str:
        """Return what it does, such as ``PUT lease:acquire``."""
        action = self.headers.get("x-ms-lease-action")
        return f"{self.method} {self.query.get('comp', 'blob')}{f':{action}' if action else ''}"


@dataclass
class Service:
    """The container; ``now`` tells the time in seconds. ``done`` is told each request that was done."""

    now: Callable[[], float]
    done: Callable[[Asked, "Service"], None] = lambda asked, service: None
    blobs: dict[str, Blob] = field(default_factory=dict)
    #: How many blobs one page of a listing has at most.
    page: int = 3

    def __post_init__(self) -> None:
        self._versions = itertools.count(1)

    def answer(self, asked: Asked) -> Reply:
        """Do a request and answer it."""
        status, headers, body = self._route(asked)
        if status < 300:
            self.done(asked, self)
        told = {"x-ms-request-id": "0", "x-ms-version": "2025-01-05", "Date": self._date(self.now()), **headers}
        time = f"\nTime:{EPOCH + timedelta(seconds=self.now()):%Y-%m-%dT%H:%M:%S.%f}Z</Message>"
        return status, told, body.replace(b"</Message>", time.encode())

    def _route(self, asked: Asked) -> Reply:
        if asked.query.get("comp") == "list":
            return self._list(asked)
        blob = self.blobs.get(asked.name)
        if asked.method == "PUT" and "comp" not in asked.query:
            return self._put(asked, blob)
        if blob is None:
            return _refuse(404, "BlobNotFound")
        if asked.query.get("comp") == "lease":
            lease: Callable[[Asked, Blob], Reply] = getattr(self, "_" + asked.headers["x-ms-lease-action"])
            return lease(asked, blob)
        if refusal := self._refusal(asked, blob):
            return refusal
        if asked.method == "DELETE":
            del self.blobs[asked.name]
            return 202, {}, b""
        if asked.query.get("comp") == "metadata":
            self.blobs[asked.name] = self._written(asked, blob)
            return 200, self._version(self.blobs[asked.name]), b""
        if asked.query.get("comp") == "properties":
            blob.etag, blob.written = self._next_etag(), self.now()
            return 200, self._version(blob), b""
        return 200, {**self._version(blob), **self._lease(blob), **_metadata_headers(blob)}, b""

    def _refusal(self, asked: Asked, blob: Blob) -> Reply | None:
        """Return why a request to a blob that is there is refused, if it is."""
        match, lease_id = asked.headers.get("if-match"), asked.headers.get("x-ms-lease-id")
        if match is not None and match != blob.etag:
            return _refuse(412, "ConditionNotMet")
        is_leased = blob.lease_state(self.now()) == "leased"
        if lease_id is None:
            return _refuse(412, "LeaseIdMissing") if is_leased and asked.method in ("PUT", "DELETE") else None
        if not is_leased:
            return _refuse(412, "LeaseNotPresentWithBlobOperation")
        return None if lease_id == blob.lease_id else _refuse(412, "LeaseIdMismatchWithBlobOperation")

    def _put(self, asked: Asked, blob: Blob | None) -> Reply:
        if blob is not None:
            return _refuse(409, "BlobAlreadyExists")
        self.blobs[asked.name] = self._written(asked, None)
        return 201, self._version(self.blobs[asked.name]), b""

    def _acquire(self, asked: Asked, blob: Blob) -> Reply:
        proposed, term = asked.headers["x-ms-proposed-lease-id"], float(asked.headers["x-ms-lease-duration"])
        if blob.lease_state(self.now()) == "leased" and blob.lease_id != proposed:
            return _refuse(409, "LeaseAlreadyPresent")
        blob.lease_id, blob.term, blob.ends, blob.broken = proposed, term, self.now() + term, False
        return 201, {**self._version(blob), "x-ms-lease-id": proposed}, b""

    def _renew(self, asked: Asked, blob: Blob) -> Reply:
        if blob.broken or blob.lease_id != asked.headers["x-ms-lease-id"]:
            return _refuse(409, "LeaseIdMismatchWithLeaseOperation")
        blob.ends = self.now() + blob.term
        return 200, {**self._version(blob), "x-ms-lease-id": blob.lease_id}, b""

    def _release(self, asked: Asked, blob: Blob) -> Reply:
        if blob.lease_id != asked.headers["x-ms-lease-id"]:
            return _refuse(409, "LeaseIdMismatchWithLeaseOperation")
        blob.lease_id, blob.broken = None, False
        return 200, self._version(blob), b""

    def _break(self, asked: Asked, blob: Blob) -> Reply:
        if blob.lease_id is None:
            return _refuse(409, "LeaseNotPresentWithLeaseOperation")
        blob.broken = True
        return 202, {**self._version(blob), "x-ms-lease-time": "0"}, b""

    def _list(self, asked: Asked) -> Reply:
        prefix, marker = asked.query.get("prefix", ""), asked.query.get("marker", "")
        names = sorted(name for name in self.blobs if name.startswith(prefix) and name > marker)
        shown, more = names[: self.page], names[self.page :]
        items = "".join(self._item(name, self.blobs[name]) for name in shown)
        after = shown[-1] if more else ""
        text = (
            f"<EnumerationResults><Blobs>{items}</Blobs><NextMarker>{escape(after)}</NextMarker></EnumerationResults>"
        )
        return 200, {"Content-Type": "application/xml"}, text.encode()

    def _item(self, name: str, blob: Blob) -> str:
        state = blob.lease_state(self.now())
        metadata = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in blob.metadata.items())
        return (
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{self._date(blob.written)}</Last-Modified>"
            f"<Etag>{escape(blob.etag)}</Etag><BlobType>BlockBlob</BlobType><LeaseState>{state}</LeaseState>"
            f"<LeaseStatus>{'locked' if state == 'leased' else 'unlocked'}</LeaseStatus></Properties>"
            f"<Metadata>{metadata}</Metadata></Blob>"
        )

    def _written(self, asked: Asked, before: Blob | None) -> Blob:
        start = "x-ms-meta-"
        metadata = {key[len(start) :]: value for key, value in asked.headers.items() if key.startswith(start)}
        made = Blob(self._next_etag(), self.now(), metadata)
        if before is not None:
            made.lease_id, made.term, made.ends, made.broken = before.lease_id, before.term, before.ends, before.broken
        return made

    def _next_etag(self) -> str:
        return f'"0x{next(self._versions):X}"'

    def _version(self, blob: Blob) -> dict[str, str]:
        return {"ETag": blob.etag, "Last-Modified": self._date(blob.written)}

    def _lease(self, blob: Blob) -> dict[str, str]:
        state = blob.lease_state(self.now())
        return {"x-ms-lease-state": state, "x-ms-lease-status": "locked" if state == "leased" else "unlocked"}

    def _date(self, seconds: float) -> str:
        return format_datetime(EPOCH + timedelta(seconds=int(seconds)), usegmt=True)


def _metadata_headers(blob: Blob) -> dict[str, str]:
    return {f"x-ms-meta-{key}": value for key, value in blob.metadata.items()}


def _refuse(status: int, code: str) -> Reply:
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return status, {"x-ms-error-code": code, "Content-Type": "application/xml"}, text.encode()
