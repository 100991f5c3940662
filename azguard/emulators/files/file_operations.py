"""Operations on files, and renames of files and directories.

Sources: https://learn.microsoft.com/rest/api/storageservices/operations-on-files
https://learn.microsoft.com/rest/api/storageservices/rename-file
https://learn.microsoft.com/rest/api/storageservices/rename-directory
"""

import base64
import hashlib

from azguard.emulators.files import answers, copies, leases
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.database import DIRECTORY, FILE, LARGEST_FILE, Node, ShareRecord
from azguard.emulators.files.directories import describe_written, find_parent_id, join
from azguard.emulators.files.disk import check_length, check_name
from azguard.emulators.files.request import (
    FileRequest,
    ask_source,
    check_metadata,
    read_content,
    read_overrides,
    read_range,
)
from azguard.emulators.files.store import Store, apply_smb_properties, same_path, smb_headers

# The most bytes whose MD5 a read may ask for.
_LARGEST_HASHED = 4 * 1024**2
_TYPE = "application/octet-stream"


def create(store: Store, request: FileRequest) -> FileAnswer:
    """Create a file of zeros, over one that exists; that one's lease stays."""
    root = store.get_share(request).root
    check_name(request.path)
    size = _read_size(request.require("x-ms-content-length"))
    node, is_over_another = copies.make_file(store, root, request)
    node.metadata = check_metadata(request.metadata)
    node.content = read_content(request)
    apply_smb_properties(store, node, request, new=True)
    check_body_md5(request)
    store.disk.make_file(node.root, node.path, max(size, len(request.body)) if request.body else size)
    node.changes = None if is_over_another else []
    if request.body:
        store.disk.write(node.root, node.path, 0, request.body)
        node.ranges = [(0, len(request.body))]
        store.note_change(node, 0, len(request.body))
    store.save(node)
    return FileAnswer(201, describe_written(store, node))


def get(store: Store, request: FileRequest) -> FileAnswer:
    """Return the content of a file, or a range of it."""
    node = get_for_read(store, request)
    asked = read_range(request)
    headers = {**_describe(store, node), **read_overrides(request)}
    if asked is None:
        headers["Content-Length"] = str(node.size)
        return FileAnswer(200, headers, stream=store.disk.stream(node.root, node.path, 0, node.size))
    start, end = asked[0], min(node.size, asked[1] or node.size)
    if start >= node.size:
        raise ServiceError("InvalidRange", Content_Range=f"bytes */{node.size}")
    if "Content-MD5" in headers:
        headers["x-ms-content-md5"] = headers.pop("Content-MD5")
    if request.flag("x-ms-range-get-content-md5"):
        if end - start > _LARGEST_HASHED:
            raise ServiceError("OutOfRangeInput")
        headers["Content-MD5"] = compute_md5(store.disk.read(node.root, node.path, start, end))
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{node.size}"
    headers["Content-Length"] = str(end - start)
    return FileAnswer(206, headers, stream=store.disk.stream(node.root, node.path, start, end))


def show(store: Store, request: FileRequest) -> FileAnswer:
    """Return the properties and metadata of a file."""
    node = get_for_read(store, request)
    return FileAnswer(200, {**_describe(store, node), **read_overrides(request), "Content-Length": str(node.size)})


def show_metadata(store: Store, request: FileRequest) -> FileAnswer:
    """Return the metadata of a file or a directory."""
    node = store.get_any(request)
    leases.check_read(node.lease, request.lease_id, store.now())
    return FileAnswer(200, {**node.version_headers, **answers.metadata_headers(node.metadata)})


def delete(store: Store, request: FileRequest) -> FileAnswer:
    """Delete a file."""
    node = store.get_file(request)
    leases.check_write(node.lease, request.lease_id, store.now())
    copies.refuse(store, node)
    if node.is_read_only:
        raise ServiceError("ReadOnlyAttribute")
    store.disk.remove(node.root, node.path)
    store.database.remove_node(node.root, node.path)
    return FileAnswer(202)


def set_metadata(store: Store, request: FileRequest) -> FileAnswer:
    """Replace the metadata of a file."""
    node = get_for_write(store, request)
    node.metadata = check_metadata(request.metadata)
    store.save_changed(node)
    return FileAnswer(200, {**node.version_headers, "x-ms-request-server-encrypted": "true"})


def set_properties(store: Store, request: FileRequest) -> FileAnswer:
    """Set the content properties, attributes and times of a file, and its length."""
    length = request.headers.get("x-ms-content-length")
    node = get_for_write(store, request, keeps_content=length is None)
    size = node.size if length is None else _read_size(length)
    # A request for another length alone leaves the content properties as they are.
    node.content = read_content(request) or (node.content if length is not None else {})
    apply_smb_properties(store, node, request, new=False)
    if size != node.size:
        store.disk.resize(node.root, node.path, size)
        node.ranges = [(start, min(end, size)) for start, end in node.ranges if start < size]
        store.note_change(node, min(size, node.size), max(size, node.size))
    store.save_changed(node)
    return FileAnswer(200, describe_written(store, node))


def lease(store: Store, request: FileRequest) -> FileAnswer:
    """Acquire, change, release or break the lease of a file."""
    if store.get_share(request).snapshot:
        raise ServiceError("InvalidQueryParameterValue")
    node = store.get_file(request)
    node.lease, status, headers = leases.act(node.lease, request.headers, store.now(), timed=False)
    store.save(node)
    return FileAnswer(status, {**node.version_headers, **headers})


def _describe(store: Store, node: Node) -> dict[str, str]:
    """Return the headers that tell all of a file but its length."""
    return {
        "Content-Type": _TYPE,
        **node.version_headers,
        **node.content,
        **answers.metadata_headers(node.metadata),
        **smb_headers(node, find_parent_id(store, node)),
        **node.lease.headers(store.now()),
        **copies.describe(store, node),
        "x-ms-type": "File",
        "x-ms-server-encrypted": "true",
        "Accept-Ranges": "bytes",
    }


def get_for_read(store: Store, request: FileRequest) -> Node:
    """Return the file that a request reads, if the lease id that it sends, if any, is that of the file."""
    node = store.get_file(request, reads=True)
    leases.check_read(node.lease, request.lease_id, store.now())
    return node


def get_for_write(store: Store, request: FileRequest, *, keeps_content: bool = False) -> Node:
    """Return the file that a request writes, if its lease allows that."""
    node = store.get_file(request)
    node.lease = leases.check_write(node.lease, request.lease_id, store.now())
    copies.refuse(store, node)
    if node.is_read_only and not keeps_content:
        raise ServiceError("ReadOnlyAttribute")
    return node


def compute_md5(data: bytes) -> str:
    """Return the MD5 of bytes as headers have it."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def check_body_md5(request: FileRequest) -> None:
    """Refuse a body that is not what its MD5 says."""
    given = request.headers.get("content-md5")
    if given and given != compute_md5(request.body):
        raise ServiceError("Md5Mismatch")


def _read_size(text: str) -> int:
    if not text.isdecimal():
        raise ServiceError("InvalidHeaderValue")
    if int(text) > LARGEST_FILE:
        raise ServiceError("FileTooLarge")
    return int(text)


def rename(store: Store, request: FileRequest, kind: str) -> FileAnswer:
    """Rename a file, which keeps its own lease, or a directory with all that is in it; over a file if that is said."""
    share = store.get_share(request)
    check_name(request.path)
    source = _find_source(store, share, request, kind)
    parent = store.require_parent(share.root, request.path)
    target = join(parent, request.path)
    if f"{target.lower()}/".startswith(f"{source.path.lower()}/") and not same_path(target, source.path):
        raise ServiceError("InvalidInput")
    for each in store.database.list_below(share.root, source.path):
        check_length(target + each.path[len(source.path) :])
    if kind == FILE:
        leases.check_write(source.lease, request.headers.get("x-ms-source-lease-id"), store.now())
        copies.refuse(store, source)
    found = store.find(share.root, request.path)
    if found is None:
        leases.check_write(leases.FREE, request.headers.get("x-ms-destination-lease-id"), store.now())
    elif not same_path(found.path, source.path):
        _check_rename_target(store, request, found)
        target = found.path
    source.metadata = check_metadata(request.metadata) or source.metadata
    if request.headers.get("x-ms-content-type"):
        source.content["Content-Type"] = request.headers["x-ms-content-type"]
    apply_smb_properties(store, source, request, new=False)
    # Saved under the old path: from here on nothing may refuse the request.
    store.save_changed(source)
    _move(store, source, target, found)
    return FileAnswer(200, describe_written(store, store.get(share.root, target)))


def _find_source(store: Store, share: ShareRecord, request: FileRequest, kind: str) -> Node:
    asked = ask_source(request, request.require("x-ms-file-rename-source"))
    if asked.share != share.name:
        raise ServiceError("InvalidHeaderValue")
    found = store.get(share.root, asked.path)
    if found.kind != kind:
        raise ServiceError("ResourceTypeMismatch")
    if not found.path:
        raise ServiceError("InvalidHeaderValue")
    return found


def _check_rename_target(store: Store, request: FileRequest, found: Node) -> None:
    if not request.flag("x-ms-file-rename-replace-if-exists"):
        raise ServiceError("ResourceAlreadyExists")
    if found.kind == DIRECTORY:
        raise ServiceError("ResourceTypeMismatch")
    leases.check_write(found.lease, request.headers.get("x-ms-destination-lease-id"), store.now())
    copies.refuse(store, found)
    if found.is_read_only and not request.flag("x-ms-file-rename-ignore-readonly"):
        raise ServiceError("ReadOnlyAttribute")


def _move(store: Store, source: Node, target: str, replaced: Node | None) -> None:
    """Rename on the disk and in the tables, so that a process killed in between can finish it."""
    root, old = source.root, source.path
    is_over_file = replaced is not None and replaced.path != old
    if is_over_file:
        store.database.remove_node(root, target)
        if source.kind == DIRECTORY:
            store.disk.remove(root, target)
    store.rename(root, old, target)
