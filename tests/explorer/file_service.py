"""The File service in memory: what updates and puts of one file ask for, and the lease under which they write.

Sources: the REST reference of each operation. ``test_services.py`` sends the same requests to the Files emulator, which
is held to the recordings of the service.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import md5
from math import inf
from urllib.parse import unquote, urlsplit

from tests.explorer import service
from tests.explorer.service import Lease, accept, name_version, refuse
from tests.explorer.wire import Answer, Asked

_META = "x-ms-meta-"
_TIME = "2026-01-01T00:00:00.0000000Z"


@dataclass(frozen=True)
class File:
    """A version of a file, with its lease."""

    etag: str
    written: float
    content: bytes = b""
    metadata: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/octet-stream"
    lease: Lease | None = None

    def meta(self, name: str) -> str | None:
        """Return the value of a key of the metadata."""
        return dict(self.metadata).get(name)


@dataclass(frozen=True)
class FileService:
    """All files, by share and path; each share has its root directory alone."""

    files: Mapping[str, File] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def key(self) -> int:
        """Return a digest."""
        return hash((frozenset(self.files.items()), frozenset(self.gone.items())))

    def answer(self, asked: Asked, now: float) -> "tuple[FileService, Answer]":
        """Return the service after a request, with its answer."""
        comp, found = asked.asks("comp"), self.files.get(asked.path)
        if asked.asks("restype") == "directory" and comp == "list":
            return self, self._list(asked, now)
        if asked.asks("restype") == "share":
            return self, refuse(404, "ShareNotFound", now)
        if asked.method == "PUT" and comp is None:
            return self._create(asked, found, now)
        if comp == "rename":
            return self._rename(asked, found, now)
        if found is None:
            return self, refuse(404, "ResourceNotFound", now)
        if comp == "lease":
            lease, answer = _act_on_lease(found.lease, asked, now)
            told = (("ETag", found.etag), ("Last-Modified", service.http_date(found.written)))
            changed = self if lease == found.lease else self._with(asked.path, replace(found, lease=lease))
            return changed, replace(answer, headers=(*answer.headers, *told)) if answer.status < 300 else answer
        if asked.method in ("GET", "HEAD"):
            return self, _check(found.lease, asked.header("x-ms-lease-id"), now, writes=False) or _show(
                asked, found, now
            )
        if refusal := _check(found.lease, asked.header("x-ms-lease-id"), now, writes=True):
            return self, refusal
        return self._write(asked, found, now)

    def write(self, path: str, now: float, **changes: object) -> "FileService":
        """Return the service after a program that is not azguard wrote a file; that ends a lease that was broken."""
        before = self.files.get(path)
        if before is not None and not service.is_locked(before.lease, now):
            before = replace(before, lease=None)
        etag = name_version(before.etag if before else self.gone.get(path), sorted(changes))
        made = replace(before or File(etag, now), etag=etag, written=now, **changes)  # type: ignore[arg-type]  # the names are those of the fields
        return self._with(path, made)

    def delete(self, path: str) -> "FileService":
        """Return the service without a file."""
        rest = {name: each for name, each in self.files.items() if name != path}
        return replace(self, files=rest, gone={**self.gone, path: self.files[path].etag})

    def with_lease(self, path: str, lease: Lease | None) -> "FileService":
        """Return the service with another lease on a file."""
        return self._with(path, replace(self.files[path], lease=lease))

    def _with(self, path: str, made: File) -> "FileService":
        return replace(self, files={**self.files, path: made})

    def _write(self, asked: Asked, found: File, now: float) -> "tuple[FileService, Answer]":
        match asked.method, asked.asks("comp"):
            case "DELETE", None:
                return self.delete(asked.path), accept(202, now)
            case "PUT", "metadata":
                return self._replace(asked, replace(found, metadata=_metadata(asked)), now, 200)
            case "PUT", "properties":
                size = int(asked.header("x-ms-content-length") or len(found.content))
                resized = found.content[:size].ljust(size, b"\0")
                return self._replace(asked, replace(found, content=resized), now, 200)
            case "PUT", "range":
                first = int((asked.header("x-ms-range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
                if first + len(asked.body) > len(found.content):
                    return self, refuse(416, "InvalidRange", now)
                content = found.content[:first] + asked.body + found.content[first + len(asked.body) :]
                digest = b64encode(md5(asked.body, usedforsecurity=False).digest()).decode()
                return self._replace(asked, replace(found, content=content), now, 201, Content_MD5=digest)
        raise NotImplementedError(asked)

    def _create(self, asked: Asked, found: File | None, now: float) -> "tuple[FileService, Answer]":
        if refusal := _check(found.lease if found else None, asked.header("x-ms-lease-id"), now, writes=True):
            return self, refusal
        made = File(
            etag="",
            written=now,
            content=bytes(int(asked.header("x-ms-content-length") or 0)),
            metadata=_metadata(asked),
            content_type=asked.header("x-ms-content-type") or "application/octet-stream",
            lease=found.lease if found else None,
        )
        return self._replace(asked, made, now, 201)

    def _rename(self, asked: Asked, found: File | None, now: float) -> "tuple[FileService, Answer]":
        old = unquote(urlsplit(asked.header("x-ms-file-rename-source") or "").path).strip("/")
        source = self.files.get(old)
        if source is None:
            return self, refuse(404, "ResourceNotFound", now)
        if refusal := _check(source.lease, asked.header("x-ms-source-lease-id"), now, writes=True):
            return self, refusal
        if found is not None and asked.header("x-ms-file-rename-replace-if-exists") != "true":
            return self, refuse(409, "ResourceAlreadyExists", now)
        given = asked.header("x-ms-destination-lease-id")
        if refusal := _check(found.lease if found else None, given, now, writes=True):
            return self, refusal
        made = replace(
            source,
            metadata=_metadata(asked) or source.metadata,
            content_type=asked.header("x-ms-content-type") or source.content_type,
        )
        after, answer = self.delete(old)._replace(asked, made, now, 200)
        return after, answer

    def _replace(self, asked: Asked, made: File, now: float, status: int, **told: str) -> "tuple[FileService, Answer]":
        before = self.files.get(asked.path)
        etag = name_version(before.etag if before else self.gone.get(asked.path), asked.headers, asked.body, made.etag)
        lease = made.lease if service.is_locked(made.lease, now) else None
        made = replace(made, etag=etag, written=now, lease=lease)
        told = {"ETag": etag, "Last_Modified": service.http_date(now), **_SMB, **told}
        return self._with(asked.path, made), accept(status, now, **told)

    def _list(self, asked: Asked, now: float) -> Answer:
        start = f"{asked.path}/{asked.asks('prefix') or ''}"
        items = "".join(
            f"<File><Name>{name.partition('/')[2]}</Name><Properties><Content-Length>{len(each.content)}"
            "</Content-Length></Properties></File>"
            for name, each in sorted(self.files.items())
            if name.startswith(start)
        )
        text = f"<EnumerationResults><Entries>{items}</Entries><NextMarker /></EnumerationResults>"
        return accept(200, now, text.encode(), Content_Type="application/xml")


_SMB = {
    "x_ms_file_attributes": "Archive",
    "x_ms_file_creation_time": _TIME,
    "x_ms_file_last_write_time": _TIME,
    "x_ms_file_change_time": _TIME,
    "x_ms_file_permission_key": "1*1",
    "x_ms_file_id": "1",
    "x_ms_file_parent_id": "0",
}


def _check(lease: Lease | None, given: str | None, now: float, *, writes: bool) -> Answer | None:
    """Return the refusal of a request because of a lease, if there is one."""
    is_locked = service.is_locked(lease, now)
    if given is None:
        return refuse(412, "LeaseIdMissing", now) if writes and is_locked else None
    if lease is not None and is_locked:
        return None if lease.id == given else refuse(412, "LeaseIdMismatchWithFileOperation", now)
    if lease is not None and lease.id == given:
        return refuse(412, "LeaseLost", now)
    return refuse(412, "LeaseNotPresentWithFileOperation", now)


def _act_on_lease(lease: Lease | None, asked: Asked, now: float) -> tuple[Lease | None, Answer]:
    """Act on a lease that never ends; breaking it ends it at once."""
    if asked.header("x-ms-lease-action") != "break":
        return service.act_on_lease(lease, asked, now)
    if lease is None:
        return lease, refuse(409, "LeaseNotPresentWithLeaseOperation", now)
    return replace(lease, broken=now if lease.broken is None else lease.broken), accept(202, now, x_ms_lease_time="0")


def _metadata(asked: Asked) -> tuple[tuple[str, str], ...]:
    return tuple((name[len(_META) :], value) for name, value in asked.headers if name.startswith(_META))


def _show(asked: Asked, found: File, now: float) -> Answer:
    told = {
        "ETag": found.etag,
        "Last_Modified": service.http_date(found.written),
        "Content_Type": found.content_type,
        "x_ms_type": "File",
        "x_ms_server_encrypted": "true",
        **_SMB,
        **service.lease_headers(found.lease, now),
        **{f"{_META}{name}": value for name, value in found.metadata},
    }
    wanted = asked.header("x-ms-range")
    if wanted is None or asked.method == "HEAD":
        return accept(200, now, found.content, **told)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    if int(first) >= len(found.content):
        return refuse(416, "InvalidRange", now)
    body = found.content[int(first) : int(last) + 1 if last else None]
    told["Content_Range"] = f"bytes {first}-{int(first) + len(body) - 1}/{len(found.content)}"
    return accept(206, now, body, **told)


#: The term of a lease that never ends.
ENDLESS = inf
