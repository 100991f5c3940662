"""Copies of files, from this emulator or from any URL.

A copy inside the emulator is done when it is answered. One from another server is pending then, as in the service.

Sources: https://learn.microsoft.com/rest/api/storageservices/copy-file
https://learn.microsoft.com/rest/api/storageservices/abort-copy-file
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from azguard.emulators.files import answers, foreign, leases, pending, signatures, wire
from azguard.emulators.files.directories import join
from azguard.emulators.files.disk import check_name
from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.foreign import UNREADABLE, ForeignSource
from azguard.emulators.files.headers import apply_smb_properties, check_metadata
from azguard.emulators.files.records import FILE, Node, ShareRecord
from azguard.emulators.files.store import Store
from azguard.emulators.files.wire import FileAnswer, FileRequest, read_request

_VERSION = "2021-12-02"
_RANGE = re.compile(r"bytes=(\d+)-(\d+)\Z", re.ASCII)
_SMB = {
    "x-ms-file-attributes": "attributes",
    "x-ms-file-creation-time": "created",
    "x-ms-file-last-write-time": "written",
    "x-ms-file-change-time": "changed",
}


def look_elsewhere(request: FileRequest, key: bytes, now: float) -> FileRequest:
    """Return a request with the source of its copy, if that is on another server.

    Raises:
        ServiceError: it is not there, or may not be read.
    """
    url = request.headers.get("x-ms-copy-source")
    if not url or wire.is_here(request, url):
        return request
    if urlsplit(url).scheme not in ("http", "https"):
        raise ServiceError("InvalidHeaderValue")

    def authorize(method: str) -> Mapping[str, str]:
        return _authorize(request, key, method, now)

    found = foreign.look(url, authorize)
    # What a range is filled with is read now: that server may be this one, under another name.
    return replace(request, foreign=found, body=_read(found, request) if request.query.get("comp") == "range" else b"")


def copy(store: Store, request: FileRequest) -> FileAnswer:
    """Copy a file over another, whose lease stays; metadata come along unless some are given."""
    share = store.get_share(request)
    check_name(request.path)
    url = request.require("x-ms-copy-source")
    parent = store.require_parent(share, request.path)
    found = store.find(share, request.path)
    if found is not None:
        _check_replaced(store, request, found)
    lease = leases.check_write(found.lease if found else leases.FREE, request.headers.get("x-ms-lease-id"), store.now())
    source = _find(store, request)
    node = store.make_node(share, found.path if found else join(parent, request.path), FILE)
    node.lease = lease
    if found is not None:
        node.id = found.id
    node.content, node.ranges = source.content, source.ranges
    node.metadata = check_metadata(request.metadata) or source.metadata
    apply_smb_properties(store, node, request, new=True, source=source)
    if request.foreign is None:
        store.disk.copy_file((source.root, source.path), share.root, node.path)
        node.size = source.size
        pending.complete(store, node, url)
    else:
        store.disk.make_file(share.root, node.path, 0)
        pending.begin(store, node, request.foreign)
    told = {name: node.copy[name] for name in ("x-ms-copy-id", "x-ms-copy-status")}
    return FileAnswer(202, {**answers.version_headers(node.etag, node.modified), **told})


def abort(store: Store, request: FileRequest) -> FileAnswer:
    """Stop a copy that is pending."""
    share = store.get_share(request)
    node = store.get_file(share, request.path)
    leases.check_write(node.lease, request.headers.get("x-ms-lease-id"), store.now())
    pending.abort(store, node, request.query.get("copyid", ""))
    return FileAnswer(204)


def read_source(store: Store, request: FileRequest, length: int) -> bytes:
    """Return the bytes of the range that a request wants to copy.

    Raises:
        ServiceError: the source is not there, or shorter.
    """
    if request.foreign is not None:
        part = request.body
    else:
        start, end = _find_source_range(request)
        node = _find(store, request)
        part = store.disk.read(node.root, node.path, start, min(end, start + length))
    if len(part) != length:
        raise ServiceError("CannotVerifyCopySource")
    return part


def _find_source_range(request: FileRequest) -> tuple[int, int]:
    """Return the first byte of the source that is wanted, and the one past its end."""
    value = request.headers.get("x-ms-source-range")
    found = _RANGE.match(value or request.require("x-ms-range"))
    if found is None or int(found[2]) < int(found[1]):
        raise ServiceError("InvalidHeaderValue")
    start, end = int(found[1]), int(found[2]) + 1
    return (start, end) if value else (0, end - start)


def _check_replaced(store: Store, request: FileRequest, found: Node) -> None:
    if found.kind != FILE:
        raise ServiceError("ResourceTypeMismatch")
    pending.refuse(store, found)
    if found.is_read_only and not request.flag("x-ms-file-copy-ignore-readonly"):
        raise ServiceError("ReadOnlyAttribute")


def _find(store: Store, request: FileRequest) -> Node:
    """Return the properties of a copy's source."""
    if request.foreign is not None:
        return _describe(store, store.get_share(request), request)
    asked = wire.ask_source(request, request.headers["x-ms-copy-source"])
    share = store.get_share(asked)
    return store.get_file(share, asked.path)


def _describe(store: Store, share: ShareRecord, request: FileRequest) -> Node:
    """Return what stands for a source on another server."""
    node = store.make_node(share, request.path, FILE)
    if request.foreign is not None:
        node.content, node.metadata = dict(request.foreign.content), dict(request.foreign.metadata)
        for header, field in _SMB.items():
            if header in request.foreign.smb:
                setattr(node, field, request.foreign.smb[header])
    return node


def _read(source: ForeignSource, request: FileRequest) -> bytes:
    """Return the range of a source on another server with which a range is to be filled."""
    try:
        return source.read_range(*_find_source_range(request))
    except UNREADABLE:
        raise ServiceError("CannotVerifyCopySource", status=404) from None


def _authorize(request: FileRequest, key: bytes, method: str, now: float) -> dict[str, str]:
    """Return the headers by which the service reads a source: what it is told to send, or the key of its account."""
    if "x-ms-copy-source-authorization" in request.headers:
        return {"Authorization": request.headers["x-ms-copy-source-authorization"]}
    url = urlsplit(request.headers["x-ms-copy-source"])
    is_own = url.path.startswith(f"/{request.account}/") and "sig" not in parse_qs(url.query)
    if not is_own or "authorization" not in request.headers:
        return {}
    headers = {"x-ms-date": answers.format_date(now), "x-ms-version": _VERSION}
    target = f"{url.path}?{url.query}" if url.query else url.path
    asked = read_request(method, target, list(headers.items()), b"", [request.account])
    return {**headers, "Authorization": signatures.authorize(asked, key)}
