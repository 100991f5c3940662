"""Renames of files and directories.

Sources: https://learn.microsoft.com/rest/api/storageservices/rename-file
https://learn.microsoft.com/rest/api/storageservices/rename-directory
"""

from azguard.emulators.files import leases, pending
from azguard.emulators.files.directories import describe_written, join
from azguard.emulators.files.disk import check_length, check_name
from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.headers import apply_smb_properties, check_metadata
from azguard.emulators.files.records import DIRECTORY, FILE, Node, ShareRecord
from azguard.emulators.files.store import Store, same_path
from azguard.emulators.files.wire import FileAnswer, FileRequest, ask_source


def rename_file(store: Store, request: FileRequest) -> FileAnswer:
    """Rename a file, over another one if that is said; it keeps its own lease."""
    return _rename(store, request, FILE)


def rename_directory(store: Store, request: FileRequest) -> FileAnswer:
    """Rename a directory with all that is in it, over a file if that is said."""
    return _rename(store, request, DIRECTORY)


def _rename(store: Store, request: FileRequest, kind: str) -> FileAnswer:
    share = store.get_share(request)
    check_name(request.path)
    source = _find_source(store, share, request, kind)
    parent = store.require_parent(share, request.path)
    target = join(parent, request.path)
    if f"{target.lower()}/".startswith(f"{source.path.lower()}/") and not same_path(target, source.path):
        raise ServiceError("InvalidInput")
    for each in store.database.list_below(share.root, source.path):
        check_length(target + each.path[len(source.path) :])
    if kind == FILE:
        leases.check_write(source.lease, request.headers.get("x-ms-source-lease-id"), store.now())
        pending.refuse(store, source)
    found = store.find(share, request.path)
    if found is None:
        leases.check_write(leases.FREE, request.headers.get("x-ms-destination-lease-id"), store.now())
    elif not same_path(found.path, source.path):
        _check_replaced(store, request, found)
        target = found.path
    source.metadata = check_metadata(request.metadata) or source.metadata
    if request.headers.get("x-ms-content-type"):
        source.content["Content-Type"] = request.headers["x-ms-content-type"]
    apply_smb_properties(store, source, request, new=False)
    # Saved under the old path: from here on nothing may refuse the request.
    store.save_changed(source)
    _move(store, share, source, target, found)
    return FileAnswer(200, describe_written(store, share, store.get(share, target)))


def _find_source(store: Store, share: ShareRecord, request: FileRequest, kind: str) -> Node:
    asked = ask_source(request, request.require("x-ms-file-rename-source"))
    if asked.share != share.name:
        raise ServiceError("InvalidHeaderValue")
    found = store.get(share, asked.path)
    if found.kind != kind:
        raise ServiceError("ResourceTypeMismatch")
    if not found.path:
        raise ServiceError("InvalidHeaderValue")
    return found


def _check_replaced(store: Store, request: FileRequest, found: Node) -> None:
    if not request.flag("x-ms-file-rename-replace-if-exists"):
        raise ServiceError("ResourceAlreadyExists")
    if found.kind == DIRECTORY:
        raise ServiceError("ResourceTypeMismatch")
    leases.check_write(found.lease, request.headers.get("x-ms-destination-lease-id"), store.now())
    pending.refuse(store, found)
    if found.is_read_only and not request.flag("x-ms-file-rename-ignore-readonly"):
        raise ServiceError("ReadOnlyAttribute")


def _move(store: Store, share: ShareRecord, source: Node, target: str, replaced: Node | None) -> None:
    """Rename on the disk and in the tables, so that a process killed in between can finish it."""
    root = share.root
    old = source.path
    is_over_file = replaced is not None and replaced.path != old
    if is_over_file:
        store.database.remove_node(root, target)
        if source.kind == DIRECTORY:
            store.disk.remove(root, target)
    store.rename(root, old, target)
