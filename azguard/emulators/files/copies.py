"""Copies of files, from this emulator or from any URL. A copy is done when it is answered.

Source: https://learn.microsoft.com/rest/api/storageservices/copy-file
"""

import uuid
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request as UrlRequest
from urllib.request import urlopen

from azguard.emulators.files import answers, leases
from azguard.emulators.files.directories import join
from azguard.emulators.files.disk import check_name
from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.headers import apply_smb_properties, check_metadata
from azguard.emulators.files.records import FILE, Node, ShareRecord
from azguard.emulators.files.store import Store
from azguard.emulators.files.wire import Answer, Request, read_request

_FETCH_SECONDS = 30


def copy(store: Store, request: Request) -> Answer:
    """Copy a file over another, whose lease stays; metadata come along unless some are given."""
    share = store.get_share(request)
    check_name(request.path)
    source = request.require("x-ms-copy-source")
    parent = store.require_parent(share, request.path)
    found = store.find(share, request.path)
    if found is not None and found.kind != FILE:
        raise ServiceError("ResourceTypeMismatch")
    lease = leases.check_write(found.lease if found else leases.FREE, request.headers.get("x-ms-lease-id"), store.now())
    content, data = _read_all(store, request, source)
    node = store.make_node(share, found.path if found else join(parent, request.path), FILE)
    node.lease = lease
    if found is not None:
        node.id = found.id
    node.content, node.ranges = content.content, content.ranges or ([(0, len(data))] if data else [])
    node.metadata = check_metadata(request.metadata) or content.metadata
    apply_smb_properties(store, node, request, new=True)
    _write(store, share, node, data)
    copy_id = str(uuid.uuid4())
    node.copy = {
        "x-ms-copy-id": copy_id,
        "x-ms-copy-source": source.partition("?")[0],
        "x-ms-copy-status": "success",
        "x-ms-copy-progress": f"{len(data)}/{len(data)}",
        "x-ms-copy-completion-time": answers.format_date(store.now()),
    }
    store.save(node)
    return Answer(
        202,
        {
            **answers.version_headers(node.etag, node.modified),
            "x-ms-copy-id": copy_id,
            "x-ms-copy-status": "success",
        },
    )


def abort(store: Store, request: Request) -> Answer:
    """Refuse to abort a copy: all are done when they are answered."""
    share = store.get_share(request)
    node = store.get_file(share, request.path)
    leases.check_write(node.lease, request.headers.get("x-ms-lease-id"), store.now())
    raise ServiceError("NoPendingCopyOperation")


def read_source(store: Store, request: Request, length: int) -> bytes:
    """Return the bytes of the range that a request wants to copy.

    Raises:
        ServiceError: the source is not there, or shorter.
    """
    value = request.headers.get("x-ms-source-range", f"bytes=0-{length - 1}")
    start, _, last = value.removeprefix("bytes=").partition("-")
    if not start.isdecimal() or not last.isdecimal():
        raise ServiceError("InvalidHeaderValue")
    _, data = _read_all(store, request, request.headers["x-ms-copy-source"])
    part = data[int(start) : int(last) + 1]
    if len(part) != length:
        raise ServiceError("CannotVerifyCopySource")
    return part


def _read_all(store: Store, request: Request, url: str) -> tuple[Node, bytes]:
    """Return the properties and the content of a copy's source."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ServiceError("InvalidHeaderValue")
    if parts.netloc != request.host:
        return _fetch(store, request, url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    asked = read_request("GET", target, [("Host", request.host)], b"", [request.account])
    share = store.get_share(asked)
    node = store.get_file(share, asked.path)
    return node, store.disk.read(share.root, node.path, 0, node.size)


def _fetch(store: Store, request: Request, url: str) -> tuple[Node, bytes]:
    headers = {}
    if "x-ms-copy-source-authorization" in request.headers:
        headers = {"Authorization": request.headers["x-ms-copy-source-authorization"]}
    try:
        with urlopen(UrlRequest(url, headers=headers), timeout=_FETCH_SECONDS) as answer:  # noqa: S310  # http and https only, see above
            data = answer.read()
            kind = answer.headers.get("Content-Type", "")
    except (URLError, OSError):
        raise ServiceError("CannotVerifyCopySource", status=404) from None
    share = store.get_share(request)
    node = store.make_node(share, request.path, FILE)
    node.content = {"Content-Type": kind} if kind else {}
    return node, data


def _write(store: Store, share: ShareRecord, node: Node, data: bytes) -> None:
    store.disk.make_file(share.root, node.path, len(data))
    store.disk.write(share.root, node.path, 0, data)
