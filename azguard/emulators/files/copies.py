"""Copies of files, from this emulator or from any URL.

A copy inside the emulator is done when it is answered. One from another server is pending then, as in the service: its
file has no content, and nothing else can be written to it. A copy that a killed process left pending has failed.

Sources: https://learn.microsoft.com/rest/api/storageservices/copy-file
https://learn.microsoft.com/rest/api/storageservices/abort-copy-file
"""

import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from azguard.emulators.files import answers, leases, signatures
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.database import FILE, Node, PendingCopy
from azguard.emulators.files.directories import join
from azguard.emulators.files.disk import check_name
from azguard.emulators.files.request import (
    UNREADABLE,
    FileRequest,
    ForeignSource,
    ask_source,
    check_metadata,
    is_here,
    look_at_source,
    read_request,
)
from azguard.emulators.files.store import TIMES, Store, apply_smb_properties

_VERSION = "2021-12-02"
_RANGE = re.compile(r"bytes=(\d+)-(\d+)\Z", re.ASCII)
_SMB = {"x-ms-file-attributes": "attributes", **TIMES}
_ID, _STATUS, _PROGRESS = "x-ms-copy-id", "x-ms-copy-status", "x-ms-copy-progress"
_COMPLETED, _DESCRIPTION = "x-ms-copy-completion-time", "x-ms-copy-status-description"
_SOURCE = "x-ms-copy-source"
_WHY_UNREADABLE = '500 InternalServerError "Copy failed when reading the source."'
_WHY_CHANGED = '412 ConditionNotMet "Copy failed when reading the source."'
_WHY_ENDED = '500 InternalServerError "The emulator was ended."'


def look_elsewhere(request: FileRequest, key: bytes, now: float) -> FileRequest:
    """Return a request with the source of its copy, if that is on another server."""
    url = request.headers.get("x-ms-copy-source")
    if not url or is_here(request, url):
        return request
    if urlsplit(url).scheme not in ("http", "https"):
        raise ServiceError("InvalidHeaderValue")

    def authorize(method: str) -> Mapping[str, str]:
        return _authorize(request, key, method, now)

    found = look_at_source(url, authorize)
    # What a range is filled with is read now: that server may be this one, under another name.
    return replace(request, foreign=found, body=_read(found, request) if request.query.get("comp") == "range" else b"")


def copy(store: Store, request: FileRequest) -> FileAnswer:
    """Copy a file over another, whose lease stays; metadata come along unless some are given."""
    root = store.get_share(request).root
    check_name(request.path)
    url = request.require("x-ms-copy-source")
    node, _ = make_file(store, root, request, over_read_only=request.flag("x-ms-file-copy-ignore-readonly"))
    source = _find(store, request)
    node.content, node.ranges = source.content, source.ranges
    node.metadata = check_metadata(request.metadata) or source.metadata
    apply_smb_properties(store, node, request, new=True, source=source)
    if request.foreign is None:
        store.disk.copy_file((source.root, source.path), node.root, node.path)
        node.size = source.size
        complete(store, node, url)
    else:
        store.disk.make_file(node.root, node.path, 0)
        begin(store, node, request.foreign)
    told = {name: node.copy[name] for name in ("x-ms-copy-id", "x-ms-copy-status")}
    return FileAnswer(202, {**node.version_headers, **told})


def abort(store: Store, request: FileRequest) -> FileAnswer:
    """Stop a copy that is pending: the file stays, without content."""
    node = store.get_file(request)
    leases.check_write(node.lease, request.lease_id, store.now())
    copy_id = request.query.get("copyid", "")
    if node.copy.get(_ID) not in store.pending:
        raise ServiceError("NoPendingCopyOperation")
    if node.copy[_ID] != copy_id:
        raise ServiceError("CopyIdMismatch")
    running = store.pending.pop(copy_id)
    running.is_stopped = True
    node.copy = {
        **node.copy,
        _STATUS: "aborted",
        _PROGRESS: f"{running.done}/{running.size}",
        _COMPLETED: answers.format_date(store.now()),
    }
    store.save_changed(node)
    return FileAnswer(204)


def read_source(store: Store, request: FileRequest, length: int) -> bytes:
    """Return the bytes of the range that a request wants to copy."""
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


def make_file(store: Store, root: int, request: FileRequest, *, over_read_only: bool = False) -> tuple[Node, bool]:
    """Return the node of a file that is made, and whether it takes the place of another, whose lease and id stay."""
    parent = store.require_parent(root, request.path)
    found = store.find(root, request.path)
    if found is not None:
        _check_replaced(store, found, over_read_only=over_read_only)
    lease = leases.check_write(found.lease if found else leases.FREE, request.lease_id, store.now())
    node = store.make_node(root, found.path if found else join(parent, request.path), FILE)
    node.lease = lease
    node.id = found.id if found else node.id
    return node, found is not None


def _check_replaced(store: Store, found: Node, *, over_read_only: bool) -> None:
    if found.kind != FILE:
        raise ServiceError("ResourceTypeMismatch")
    refuse(store, found)
    if found.is_read_only and not over_read_only:
        raise ServiceError("ReadOnlyAttribute")


def _find(store: Store, request: FileRequest) -> Node:
    if request.foreign is not None:
        return _describe(store, request, request.foreign)
    return store.get_file(ask_source(request, request.headers["x-ms-copy-source"]))


def _describe(store: Store, request: FileRequest, source: ForeignSource) -> Node:
    """Return a node that stands for a source on another server."""
    node = store.make_node(store.get_share(request).root, request.path, FILE)
    node.content, node.metadata = dict(source.content), dict(source.metadata)
    for header, field in _SMB.items():
        if header in source.smb:
            setattr(node, field, source.smb[header])
    return node


def _read(source: ForeignSource, request: FileRequest) -> bytes:
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


def describe(store: Store, node: Node) -> dict[str, str]:
    """Return the headers that tell of the copy by which a file was last written."""
    if node.copy.get(_STATUS) != "pending":
        return node.copy
    running = store.pending.get(node.copy[_ID])
    if running is None:
        return {**node.copy, _STATUS: "failed", _DESCRIPTION: _WHY_ENDED}
    return {**node.copy, _PROGRESS: f"{running.done}/{running.size}"}


def refuse(store: Store, node: Node) -> None:
    """Refuse to write a file that is the destination of a pending copy."""
    if node.copy.get(_ID) in store.pending:
        raise ServiceError("PendingCopyOperation")


def begin(store: Store, node: Node, source: ForeignSource) -> None:
    """Begin to copy a source into a file, whose node is saved already, and tell so in its node."""
    copy_id = str(uuid.uuid4())
    node.copy = {
        _ID: copy_id,
        _SOURCE: source.url.partition("?")[0],
        _STATUS: "pending",
        _PROGRESS: f"0/{source.size}",
    }
    store.save(node)
    store.pending[copy_id] = running = PendingCopy(node.root, source.size)
    threading.Thread(target=_run, args=(store, copy_id, running, source), daemon=True).start()


def complete(store: Store, node: Node, source: str) -> None:
    """Tell in the node of a file that it was copied as a whole from a source, a URL."""
    node.copy = {
        _ID: str(uuid.uuid4()),
        _SOURCE: source.partition("?")[0],
        _STATUS: "success",
        _PROGRESS: f"{node.size}/{node.size}",
        _COMPLETED: answers.format_date(store.now()),
    }
    store.save(node)


def _run(store: Store, copy_id: str, running: PendingCopy, source: ForeignSource) -> None:
    partial = store.locate_partial(copy_id)
    why = ""
    try:
        with partial.open("wb") as file:
            for part in source.read():
                if running.is_stopped:
                    break
                file.write(part)
                running.done += len(part)
        if not source.is_unchanged():
            why = _WHY_CHANGED
        elif running.done != source.size:
            why = _WHY_UNREADABLE
    except (*UNREADABLE, ServiceError):
        why = _WHY_UNREADABLE
    with store.database.lock:
        if not running.is_stopped:
            _finish(store, copy_id, why)
    partial.unlink(missing_ok=True)


def _finish(store: Store, copy_id: str, why: str) -> None:
    running = store.pending.pop(copy_id)
    with store.transaction():
        found = (each for each in store.database.list_all_nodes(running.root) if each.copy.get(_ID) == copy_id)
        node = next(found, None)
        if node is None:
            return
        ended = {_PROGRESS: f"{running.done}/{running.size}", _COMPLETED: answers.format_date(store.now())}
        if why:
            node.copy = {**node.copy, **ended, _STATUS: "failed", _DESCRIPTION: why}
        else:
            store.disk.take(node.root, node.path, store.locate_partial(copy_id))
            node.ranges = [(0, running.size)] if running.size else []
            node.copy = {**node.copy, **ended, _STATUS: "success"}
        store.save_changed(node)
